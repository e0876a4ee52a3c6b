"""How a figure is drawn: an SVG with text as text, no outside reference, the same bytes for the same data.

matplotlib without pyplot, which takes another 0.3 s and keeps a list of figures. Text of labels is foreign: no formulas
are read in it, and one of odd glyphs is drawn with those that the browser has.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from cpubench.results.parse import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# Okabe and Ito's colours, darkest first, which all kinds of colour vision tell apart; yellow only as the last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 4)), (0, (7, 1)),
)  # fmt: skip
# Of lines alone: a hatch of circles takes 70 kB of an SVG.
HATCHES = ("", "///", "\\\\\\", "xxx", "|||", "---", "+++", "//--")
GREY = "#555555"
STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "cpubench", "text.parse_math": False, "axes.formatter.use_mathtext": False,
    "font.family": ["DejaVu Sans"], "font.size": 10, "axes.titlesize": 10, "axes.labelsize": 10, "legend.fontsize": 10,
    "xtick.labelsize": 10, "ytick.labelsize": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "hatch.linewidth": 0.7,
    "legend.frameon": False, "figure.facecolor": "none", "axes.facecolor": "none", "axes.edgecolor": GREY,
    "path.simplify": False,
}  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A figure: ``finding`` is it in words, with the range of its data; ``rows`` are its table; ``svg`` stands alone.

    Without an ``svg`` there is a ``reason``.
    """

    name: str
    title: str
    finding: str = ""
    heads: list[str] = field(default_factory=list)  # those of numbers begin with ">"
    rows: list[list[str]] = field(default_factory=list)
    svg: str = ""
    reason: str = ""


def look(at: int) -> dict[str, Any]:
    """Colour, marker and dashes of the candidate at a position; each alone tells it from the others."""
    return {"color": COLOURS[at % 8], "marker": MARKERS[at % 8], "linestyle": DASHES[at % 8]}


def bar_look(at: int) -> dict[str, Any]:
    """Fill and hatch of a candidate's bars."""
    return {"facecolor": COLOURS[at % 8] + "99", "edgecolor": "#222222", "hatch": HATCHES[at % 8], "linewidth": 0.8}


def label(text: object, limit: int = 40) -> str:
    """Foreign text for a place in a figure."""
    return shown(str(text), limit)


def of_kind(model: str, kind: str, limit: int = 40) -> str:
    """A model with what its points are counted per, which is never cut off: points per core and per vcpu are two."""
    return f"{label(model, limit)} (per {label(kind, 20)})"


def drawn(name: str, title: str, finding: str, size: tuple[float, float], draw: Callable[[Canvas], None]) -> str:
    """The SVG of a figure of a size in inches; every id in it begins with ``name``, as many share a page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = io.StringIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that its own font lacks, and of labels that leave no room
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        canvas = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(canvas)
        draw(canvas)
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _own(name, title, finding, out.getvalue())


def axes_of(canvas: Canvas) -> Axes:
    return canvas.add_subplot()


def _own(name: str, title: str, finding: str, svg: str) -> str:
    """The SVG with ids of its own, a title and a description, and as wide as its place."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in [one for one in parent if one.tag == f"{{{SVG}}}metadata"]:
            parent.remove(child)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    words = {"title": title, "desc": finding}
    for at, (tag, text) in enumerate(words.items()):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(at, element)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-desc", "class": "figure"}
    return ElementTree.tostring(root, encoding="unicode")
