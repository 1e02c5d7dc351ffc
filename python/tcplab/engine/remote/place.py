"""Where a host of a scenario is, as a URL: `ssh://[USER@]HOST[:PORT]`, `tcplab://HOST[:PORT]` or `local:`.

A host without tcplab is the URL of what it serves, such as `discard://HOST` (`peers`).
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tcplab.engine.remote.peers import PEERS, Peer

SERVICE_PORT = 5230
"""Default port of `tcplab serve`."""

_KEYS: dict[str, tuple[str, ...]] = {
    "ssh": ("address", "cpus", "ports", "initiate", "impair"),
    "tcplab": ("address", "certificate", "initiate"),
    "local": ("address", "cpus", "ports", "initiate", "impair"),
    **dict.fromkeys(PEERS, ()),
}
_FORMS = f"use ssh://USER@HOST:PORT, tcplab://HOST:PORT, local:, or a peer: {', '.join(PEERS)}"
# Ports below are those of services (RFC 6335, section 6).
_FIRST_PORT, _LAST_PORT = 1024, 65535


class PlaceError(ValueError):
    """A place that cannot be understood."""


@dataclass(frozen=True)
class Place:
    """A real host, and how it is reached."""

    url: str
    """As given."""
    scheme: str
    """`ssh`, `tcplab`, `local`: this machine, or a kind of peer."""
    host: str
    """Its name or address; to ssh also a `Host` of the user's ssh_config. Of this machine: `this machine`."""
    user: str | None = None
    port: int | None = None
    address: str | None = None
    """The IP address at which the other hosts reach it; none: that at which we did."""
    cpus: tuple[int, ...] = ()
    """CPUs that its processes are pinned to; empty: any."""
    ports: range | None = None
    """Where flows connect to it; none: ports that its kernel chooses."""
    initiate: bool = False
    """It connects to the others, which cannot connect to it: it is behind a firewall, or NAT."""
    impair: bool = False
    """It does to what it sends what the scenario's links do, by netem."""
    target: dict[str, str] | None = None
    """Of a web server: `host`, as the request's field has it, and `path` with the query."""
    certificate: str | None = None
    """SHA-256 of the service's certificate, in hexadecimal; none: a trusted authority has signed it.
    A URL may name the certificate's file instead."""

    @property
    def peer(self) -> Peer | None:
        """The services of a host without an agent."""
        return PEERS.get(self.scheme)

    @classmethod
    def read(cls, url: str) -> Place:
        """Read a URL; raises PlaceError."""
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError as problem:
            raise PlaceError(f"{url!r}: {problem}") from None
        try:
            port = parts.port
        except ValueError:
            raise PlaceError(f"{url!r}: the port is not a number from 0 to 65535") from None
        if parts.scheme not in _KEYS:
            raise PlaceError(f"{url!r} is not a host: {_FORMS}")
        if parts.scheme == "local":
            host = _this_machine(url, parts)
        # A name that ssh would take for an option is not a name.
        if not host or host.startswith("-") or (parts.username or "").startswith("-"):
            raise PlaceError(f"{url!r} names no host: {_FORMS}")
        if parts.scheme != "ssh" and not is_name(host):
            raise PlaceError(f"{url!r}: {host!r} is not the name of a host")
        target = _target(url, parts) if parts.scheme == "http" else None
        if (parts.path not in ("", "/") and target is None) or parts.fragment or parts.password:
            raise PlaceError(f"{url!r}: only USER@HOST:PORT and settings after ? are understood")
        if parts.scheme == "tcplab" and parts.username:
            raise PlaceError(f"{url!r}: the token does not belong there: give it as TCPLAB_TOKEN")
        if parts.scheme in PEERS and parts.username:
            raise PlaceError(f"{url!r}: it takes no user name: leave out {parts.username}@")
        if target is not None:
            return cls(url, parts.scheme, host, port=port, target=target)
        return cls(url, parts.scheme, host, parts.username, port, **_settings(url, parts))

    def destination(self) -> list[str]:
        """The arguments of ssh that name it."""
        user = ["-l", self.user] if self.user else []
        port = ["-p", str(self.port)] if self.port else []
        return [*user, *port, "--", self.host]


def is_name(host: str) -> bool:
    """Whether a host may have this name: its labels are of 1 to 63 bytes (RFC 1035, section 2.3.4)."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def urls_of(given: Iterable[str]) -> dict[str, str]:
    """URLs by the name of the host in the scenario, from `NAME=URL`; raises PlaceError."""
    places: dict[str, str] = {}
    for text in given:
        name, equals, url = text.partition("=")
        if not equals or not name:
            raise PlaceError(f"{text!r} is not NAME=ssh://HOST")
        if name in places:
            raise PlaceError(f"{name!r} is given twice")
        places[name] = url
    return places


def _this_machine(url: str, parts: SplitResult) -> str:
    if parts.netloc or parts.path:
        raise PlaceError(f"{url!r}: this machine is local:")
    return "this machine"


def _target(url: str, parts: SplitResult) -> dict[str, str]:
    """The target of the request (RFC 9112, sections 3.2 and 3.2.1)."""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not re.fullmatch(r"[!-~]+", path):
        raise PlaceError(f"{url!r}: write spaces and other characters of the path as %XX")
    return {"host": parts.netloc.rpartition("@")[2], "path": path}


def _settings(url: str, parts: SplitResult) -> dict[str, Any]:
    settings: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    keys = _KEYS[parts.scheme]
    unknown = next((key for key in settings if key not in keys), None)
    if unknown is not None:
        raise PlaceError(f"{url!r}: unknown setting {unknown!r} (settings: {', '.join(keys) or 'none'})")
    if "address" in settings:
        try:
            settings["address"] = str(ipaddress.ip_address(str(settings["address"])))
        except ValueError:
            raise PlaceError(f"{url!r}: {settings['address']!r} is not an IP address") from None
    if "cpus" in settings:
        if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", str(settings["cpus"])):
            raise PlaceError(f"{url!r}: {settings['cpus']!r} is not a list of CPUs such as 0,1")
        settings["cpus"] = tuple(int(one) for one in str(settings["cpus"]).split(","))
    if "ports" in settings:
        try:
            settings["ports"] = ports_in(str(settings["ports"]))
        except PlaceError as problem:
            raise PlaceError(f"{url!r}: {problem}") from None
    for switch in ("initiate", "impair"):
        if settings.get(switch, "off") not in ("on", "off"):
            raise PlaceError(f"{url!r}: {switch} is on or off")
        if switch in settings:
            settings[switch] = settings[switch] == "on"
    if "certificate" in settings:
        settings["certificate"] = _digest(url, str(settings["certificate"]))
    return settings


def ports_in(given: str) -> range:
    """A range of ports, FIRST-LAST; raises PlaceError."""
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", given)
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not _FIRST_PORT <= first <= last <= _LAST_PORT:
        raise PlaceError(f"{given!r} is not a range of ports from {_FIRST_PORT} on, such as 5300-5399")
    return range(first, last + 1)


def _digest(url: str, given: str) -> str:
    """The SHA-256 of a certificate, given as such or as the PEM file that holds it."""
    digest = given.replace(":", "").lower()
    if re.fullmatch(r"[0-9a-f]{64}", digest):
        return digest
    if not given.endswith(".pem"):
        raise PlaceError(
            f"{url!r}: the certificate is given by its SHA-256, 64 hexadecimal digits, or as a .pem file"
        )
    try:
        text = Path(given).read_text(encoding="ascii")
        # Of a chain the first is the service's own (RFC 8446, section 4.4.2).
        first = text[: text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")]
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()
    except OSError as problem:
        raise PlaceError(f"{url!r}: {given}: {problem.strerror}") from None
    except ValueError:
        raise PlaceError(f"{url!r}: {given} holds no certificate") from None
