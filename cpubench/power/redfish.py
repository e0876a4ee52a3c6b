"""Whole-server watts from the BMC by Redfish: ``EnvironmentMetrics`` (2020.4 and later), else ``Power``.

``CPUBENCH_REDFISH_URL`` is https://BMC or the URL of a chassis; ``.._USER`` and ``.._PASSWORD`` log in; ``.._CA`` is a
file with the certificate to trust, ``.._INSECURE=1`` trusts any, and plain http. Nothing of these is ever printed.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from typing import IO, Any, NoReturn
from urllib.parse import urljoin, urlsplit

from cpubench.errors import UsageError
from cpubench.power.channel import WALL_MAX_W, Channel, Reading, now_ns

TIMEOUT_S = 10.0
PERIOD_S = 5.0  # BMCs renew their value each 1 to 60 s, and a request costs 2 ms with TLS
MOST_BYTES = 1 << 20
ROOT_PATH = "/redfish/v1/Chassis"
Json = dict[str, Any]


class RedfishError(Exception):
    """A request without a value: its code, and a sentence that holds nothing secret."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def number(value: Any) -> float | None:
    """A number of JSON; null, text and truth values are none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def parse_environment(document: Json) -> float | None:
    """The watts of an EnvironmentMetrics resource."""
    power = document.get("PowerWatts")
    return number(power.get("Reading")) if isinstance(power, dict) else None


def parse_power(document: Json) -> float | None:
    """The watts of a Power resource; None too where it lists several meters, of which one may hold the others."""
    controls = document.get("PowerControl")
    if not isinstance(controls, list) or len(controls) != 1 or not isinstance(controls[0], dict):
        return None
    return number(controls[0].get("PowerConsumedWatts"))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the password to wherever it points."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> NoReturn:
        fp.close()
        raise RedfishError("read_error", f"the BMC redirects (HTTP {code}): give the URL that it points to")


def _trust(insecure: bool) -> ssl.SSLContext:
    """Whose certificates are taken: the system's, those of CPUBENCH_REDFISH_CA, or all."""
    try:
        context = ssl.create_default_context(cafile=os.environ.get("CPUBENCH_REDFISH_CA"))
    except OSError as error:
        raise UsageError("meter", f"CPUBENCH_REDFISH_CA cannot be read: {error.strerror}", "redfish") from None
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Client:
    """GET of JSON from one BMC."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        insecure = os.environ.get("CPUBENCH_REDFISH_INSECURE") == "1"
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise UsageError("meter", "its URL must be https://BMC or that of a chassis", "redfish")
        if parts.username is not None or parts.password is not None:
            raise UsageError("meter", "no password in a URL: set CPUBENCH_REDFISH_USER and .._PASSWORD", "redfish")
        if parts.scheme == "http" and not insecure:
            raise UsageError(
                "meter", "http shows the password to everybody: use https, or set .._INSECURE=1", "redfish"
            )
        self.url = url
        self._headers = {"Accept": "application/json"}
        user, password = (os.environ.get(f"CPUBENCH_REDFISH_{name}") for name in ("USER", "PASSWORD"))
        if user is not None:
            secret = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {secret}"
        handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if parts.scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=_trust(insecure)))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> Json:
        """The JSON object there; RedfishError."""
        target = urljoin(self.url, path)
        if urlsplit(target)[:2] != urlsplit(self.url)[:2]:
            raise RedfishError("read_error", "the BMC points to another host")
        try:
            with self._opener.open(urllib.request.Request(target, headers=self._headers), timeout=TIMEOUT_S) as reply:
                data = reply.read(MOST_BYTES)
        except urllib.error.HTTPError as error:
            error.close()
            code = "permission" if error.code in (401, 403) else "no_data" if error.code == 404 else "read_error"
            raise RedfishError(code, f"HTTP {error.code} for {path[:80]!r}") from None
        except ssl.SSLCertVerificationError:
            raise RedfishError("permission", "its certificate is not trusted: set CPUBENCH_REDFISH_CA") from None
        except TimeoutError:
            raise RedfishError("timeout", f"no answer within {TIMEOUT_S:.0f} s") from None
        except (OSError, ValueError) as error:  # URLError is an OSError
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise RedfishError("permission", "its certificate is not trusted: set CPUBENCH_REDFISH_CA") from None
            code = "timeout" if isinstance(reason, TimeoutError) else "read_error"
            raise RedfishError(code, str(getattr(reason, "strerror", None) or type(reason).__name__)) from None
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            raise RedfishError("read_error", f"no JSON at {path[:80]!r}") from None
        if not isinstance(document, dict):
            raise RedfishError("read_error", f"no JSON object at {path[:80]!r}")
        return document


def chassis_of(client: Client) -> str:
    """The path of the chassis: the URL's own, or the only one that there is."""
    path = urlsplit(client.url).path.rstrip("/")
    if path not in ("", "/redfish", "/redfish/v1", ROOT_PATH):
        return path
    members = client.get(ROOT_PATH).get("Members")
    told = [m.get("@odata.id") for m in members if isinstance(m, dict)] if isinstance(members, list) else []
    ids: list[str] = [id_ for id_ in told if isinstance(id_, str) and id_.startswith("/")]
    if len(ids) != 1:  # an enclosure with several machines, or boards of one: only a person knows which
        names = ", ".join(f"{id_[:60]!r}" for id_ in ids[:6]) or "none"
        raise RedfishError("ambiguous", f"{len(ids)} chassis ({names}): give --meter redfish:https://BMC<chassis>")
    return ids[0].rstrip("/")


def watts(client: Client, chassis: str) -> tuple[float, str]:
    """The chassis' watts and the resource that told them; RedfishError."""
    last = RedfishError("no_data", "neither EnvironmentMetrics nor Power tells watts")
    for name, parse in (("EnvironmentMetrics", parse_environment), ("Power", parse_power)):
        try:
            document = client.get(f"{chassis}/{name}")
        except RedfishError as error:
            if error.code != "no_data":
                raise
            continue
        value = parse(document)
        if value is not None:
            return value, name
        several = document.get("PowerControl")
        if isinstance(several, list) and len(several) > 1:
            last = RedfishError("ambiguous", f"PowerControl lists {len(several)} meters: use --meter cmd:..")
    raise last


class RedfishMeter:
    """Opened by asking once; UsageError or RedfishError where there is no answer."""

    def __init__(self, name: str, url: str, clock: Callable[[], int] = now_ns) -> None:
        self.name, self.scope, self.period_s = name, "wall", PERIOD_S
        self.sockets: frozenset[int] | None = None
        self.flags, self._clock, self._client = set[str](), clock, Client(url)
        self._chassis = chassis_of(self._client)
        _, resource = watts(self._client, self._chassis)
        path = f"{self._chassis}/{resource}"
        self.channels: tuple[Channel, ...] = (
            Channel(f"redfish:{path}", "wall", "power", 1.0, path, max_w=WALL_MAX_W, gap_s=4 * PERIOD_S),
        )

    def read(self) -> list[Reading]:
        before = self._clock()
        value, code = None, ""
        try:
            value, _ = watts(self._client, self._chassis)
        except RedfishError as error:
            code = error.code
        return [Reading([(before + self._clock()) // 2], [value], [code])]

    def close(self) -> None:
        pass
