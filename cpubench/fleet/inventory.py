"""The hosts of an inventory of Ansible in YAML, as the plan needs them.

Ansible reads the same file when it runs, with all that it knows. Here it is read strictly, in a tenth of the time that
``ansible-inventory`` takes for 1,000 names: a key that is there twice, a group without hosts and a variable of ours
that makes no sense are refused before a host is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cpubench.errors import UsageError
from cpubench.fleet.layout import check_name
from cpubench.power.levels import Level, parse_level
from cpubench.results.parse import located, read, shown

MOST_BYTES = 20_000_000
DEPTH = 10
MERGE = "tag:yaml.org,2002:merge"
ANSIBLES = ("!vault", "!vault-encrypted", "!unsafe")  # tags that its inventories may have
VAULTED = "$ANSIBLE_VAULT"
OURS = ("power_group", "caps", "cap_range_watts", "ansible_host", "ansible_port")
INSTALL = "install it with `pip install 'cpubench[fleet]'`"


class Host(NamedTuple):
    name: str
    group: str | None  # those of one power group are measured one after the other
    caps: tuple[str, ...] | None  # None: those of the plan
    range_w: tuple[float, float] | None  # caps that it takes
    address: str  # with its port


def load_inventory(file: Path, group: str = "candidates") -> list[Host]:
    """The hosts of a group, by their names. UsageError in one line for an inventory that says too little or twice."""
    try:
        return _hosts(_document(file), group)
    except UsageError as fault:
        raise located(file, fault) from None


def _document(file: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise UsageError("no_ansible", f"PyYAML is not installed: {INSTALL}") from None

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass  # of its own: what is added to it is added to no other

    for tag in ANSIBLES:
        Loader.add_constructor(tag, _plain)
    loader: Any = None
    try:
        loader = Loader(read(file, MOST_BYTES))
        node = loader.get_single_node()
        if node is None:
            return None
        _check_keys(loader, node)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        text = f"is not YAML: {getattr(error, 'problem', None) or 'cannot be read'}"
        raise UsageError("not_yaml", text, f"line {mark.line + 1}" if mark else "") from None
    except (RecursionError, ValueError, TypeError):
        raise UsageError(
            "not_yaml", "is no inventory in YAML: nested too deeply, or with keys that are no names"
        ) from None
    finally:
        if loader is not None:
            loader.dispose()


def _plain(loader: Any, node: Any) -> Any:
    """What is under a tag of Ansible's, as it stands: vaulted text is opened by Ansible alone, from the same file."""
    if node.id == "scalar":
        return loader.construct_scalar(node)
    return (loader.construct_sequence if node.id == "sequence" else loader.construct_mapping)(node, deep=True)


def _check_keys(loader: Any, root: Any) -> None:
    """UsageError for a key that is twice in a mapping as it is written: what ``<<`` merges into one is no second."""
    open_: list[Any] = [root]
    seen: set[int] = set()
    while open_:
        node = open_.pop()
        if id(node) in seen or node.id == "scalar":
            continue
        seen.add(id(node))
        if node.id == "sequence":
            open_ += node.value
            continue
        open_ += [part for pair in node.value for part in pair]
        named = [key for key, _ in node.value if key.id == "scalar" and key.tag != MERGE]
        keys = [loader.construct_object(key) for key in named]
        if len(set(map(repr, keys))) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            place = f"line {node.start_mark.line + 1}"
            raise UsageError("duplicate", f"{shown(str(twice), 60)!r} is there twice in one mapping", place)


def _hosts(document: Any, wanted: str) -> list[Host]:
    if not isinstance(document, dict) or not document:
        raise UsageError("inventory", "is no inventory: it holds no groups; start from `cpubench fleet init`")
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, body in document.items():
        _gather(str(name), body, groups, 0)
    if wanted not in groups:
        known = ", ".join(shown(name, 40) for name in sorted(groups)[:8])
        raise UsageError("unknown_group", f"there is no group {shown(wanted, 60)!r}; known: {known}")
    for name, bodies in groups.items():
        if not any(body.get("hosts") or body.get("children") for body in bodies):
            raise UsageError("unknown_group", f"the group {shown(name, 60)!r} is named, and no host is in it")
    told: dict[str, dict[str, Any]] = {name: {} for name in _members(wanted, groups, DEPTH)}
    # Nearer wins, as with Ansible: variables of all, of groups from the outside in, then the host's own.
    for name in sorted(groups, key=lambda one: _height(one, groups, DEPTH), reverse=True):
        members = told if name == "all" else [one for one in _members(name, groups, DEPTH) if one in told]
        for host in members:
            for body in groups[name]:
                told[host] |= {key: value for key, value in (body.get("vars") or {}).items() if key in OURS}
    for bodies in groups.values():
        for body in bodies:
            for host, own in (body.get("hosts") or {}).items():
                if str(host) in told:
                    told[str(host)] |= _mapping(own, f"host {host}")
    hosts = [_host(name, told[name]) for name in sorted(told)]
    _check_addresses(hosts)
    return hosts


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError("inventory", f"{shown(what, 80)} is no mapping")
    return value


def _gather(name: str, body: Any, groups: dict[str, list[dict[str, Any]]], depth: int) -> None:
    body = _mapping(body, f"group {name}")
    if depth > DEPTH:
        raise UsageError("inventory", f"groups are nested more than {DEPTH} deep")
    strange = sorted(set(body) - {"hosts", "vars", "children"}, key=str)
    if strange:
        text = f"group {name}: {strange[0]!r} is none of hosts, vars and children"
        raise UsageError("inventory", shown(text, 160))
    for part in ("hosts", "vars", "children"):
        _mapping(body.get(part), f"{part} of group {name}")
    groups.setdefault(name, []).append(body)
    for child, inner in (body.get("children") or {}).items():
        _gather(str(child), inner, groups, depth + 1)


def _members(name: str, groups: dict[str, list[dict[str, Any]]], depth: int) -> Iterator[str]:
    """The names of a group's hosts; a host may come twice."""
    if depth < 0:
        raise UsageError("inventory", f"the group {shown(name, 60)!r} is in itself")
    for body in groups[name]:
        yield from (str(host) for host in body.get("hosts") or {})
        for child in body.get("children") or {}:
            yield from _members(str(child), groups, depth - 1)


def _height(name: str, groups: dict[str, list[dict[str, Any]]], depth: int) -> int:
    """How many levels of groups are below; all is the outermost."""
    if name == "all":
        return DEPTH + 1
    below = [str(child) for body in groups[name] for child in body.get("children") or {}]
    return 1 + max((_height(child, groups, depth - 1) for child in below), default=0) if depth else 0


def _host(name: str, told: dict[str, Any]) -> Host:
    where = f"host {check_name(name, 'the name of a host')}"
    group = told.get("power_group")
    range_w, caps = told.get("cap_range_watts"), told.get("caps")
    if group is not None and not isinstance(group, str | int):
        raise UsageError("inventory", "power_group is no name", where)
    if str(group).startswith(VAULTED):  # the same name is another text in each place: none would wait for another
        raise UsageError("inventory", "power_group is vaulted, which only Ansible reads: write it plainly", where)
    if caps is not None and not (isinstance(caps, list) and caps):
        raise UsageError("level", "caps is no list of levels such as [as-is, 300W]", where)
    if range_w is not None:
        numbers = range_w if isinstance(range_w, list) and len(range_w) == 2 else []
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers) or not (
            numbers and 0 < numbers[0] <= numbers[1]
        ):
            raise UsageError("level", "cap_range_watts is not like [150, 400]", where)
        range_w = (float(numbers[0]), float(numbers[1]))
    names = None if caps is None else tuple(level.name for level in levels([str(one) for one in caps], where))
    address = f"{told.get('ansible_host', name)}:{told.get('ansible_port', 22)}"
    return Host(name, None if group is None else str(group), names, range_w, address)


def levels(caps: list[str], where: str) -> list[Level]:
    """Levels, each once."""
    found = [parse_level(text, where) for text in caps]
    twice = next((one.name for at, one in enumerate(found) if one in found[:at]), None)
    if twice is not None:
        raise UsageError("level", f"{twice} is given twice", where)
    return found


def _check_addresses(hosts: list[Host]) -> None:
    """Two names of one machine would measure each other; not where they are of one power group."""
    first: dict[str, Host] = {}
    for host in hosts:
        other = first.setdefault(host.address, host)
        if other is not host and (host.group is None or host.group != other.group):
            text = f"{other.name} and {host.name} are both {shown(host.address, 80)}"
            raise UsageError("duplicate", f"{text}: leave one out, or give both the same power_group")
