"""Where a host of a scenario is, as a URL: `ssh://[USER@]HOST[:PORT]`, `tcplab://HOST[:PORT]` or `local:`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

SERVICE_PORT = 5230
"""Where `tcplab serve` listens unless told."""

_KEYS = {
    "ssh": ("address", "cpus"),
    "tcplab": ("address", "certificate"),
    "local": ("address", "cpus"),
}
_FORMS = "use ssh://USER@HOST:PORT, tcplab://HOST:PORT or local:"


class PlaceError(ValueError):
    """A place that cannot be understood."""


@dataclass(frozen=True)
class Place:
    """A real host, and how it is reached."""

    url: str
    """As given."""
    scheme: str
    """`ssh`, `tcplab` or `local`: this machine."""
    host: str
    """Its name or address; to ssh also a `Host` of the user's ssh_config. Of this machine: `this machine`."""
    user: str | None = None
    port: int | None = None
    address: str | None = None
    """The IP address at which the other hosts reach it; none: that at which we did."""
    cpus: tuple[int, ...] = ()
    """CPUs that its processes are pinned to; empty: any."""
    certificate: str | None = None
    """SHA-256 of the service's certificate, in hexadecimal; none: a trusted authority has signed it."""

    @classmethod
    def read(cls, url: str) -> Place:
        """Read a URL; raises PlaceError."""
        parts = urlsplit(url)
        if parts.scheme not in _KEYS:
            raise PlaceError(f"{url!r} is not a host: {_FORMS}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError as problem:
            raise PlaceError(f"{url!r}: {problem}") from None
        if parts.scheme == "local":
            host = _this_machine(url, parts)
        # A name that ssh would take for an option is not a name.
        if not host or host.startswith("-") or (parts.username or "").startswith("-"):
            raise PlaceError(f"{url!r} names no host: {_FORMS}")
        if parts.path not in ("", "/") or parts.fragment or parts.password:
            raise PlaceError(f"{url!r}: only USER@HOST:PORT and settings after ? are understood")
        if parts.scheme == "tcplab" and parts.username:
            raise PlaceError(f"{url!r}: the token does not belong there: give it as TCPLAB_TOKEN")
        return cls(url, parts.scheme, host, parts.username, port, **_settings(url, parts))

    def destination(self) -> list[str]:
        """The arguments of ssh that name it."""
        user = ["-l", self.user] if self.user else []
        port = ["-p", str(self.port)] if self.port else []
        return [*user, *port, "--", self.host]


def urls_of(given: Iterable[str]) -> dict[str, str]:
    """URLs by the name of the host in the scenario, from `NAME=URL`; raises PlaceError."""
    places: dict[str, str] = {}
    for text in given:
        name, equals, url = text.partition("=")
        if not equals or not name:
            raise PlaceError(f"{text!r} is not NAME=ssh://HOST")
        if name in places:
            raise PlaceError(f"{name!r} has two places")
        places[name] = url
    return places


def _this_machine(url: str, parts: SplitResult) -> str:
    if parts.netloc or parts.path:
        raise PlaceError(f"{url!r}: this machine is local:")
    return "this machine"


def _settings(url: str, parts: SplitResult) -> dict[str, Any]:
    settings: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    keys = _KEYS[parts.scheme]
    unknown = next((key for key in settings if key not in keys), None)
    if unknown is not None:
        raise PlaceError(f"{url!r}: unknown setting {unknown!r}; there is {', '.join(keys)}")
    if "address" in settings:
        try:
            settings["address"] = str(ipaddress.ip_address(str(settings["address"])))
        except ValueError:
            raise PlaceError(f"{url!r}: {settings['address']!r} is not an IP address") from None
    if "cpus" in settings:
        if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", str(settings["cpus"])):
            raise PlaceError(f"{url!r}: {settings['cpus']!r} is not a list of CPUs such as 0,1")
        settings["cpus"] = tuple(int(one) for one in str(settings["cpus"]).split(","))
    if "certificate" in settings:
        digest = str(settings["certificate"]).replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise PlaceError(f"{url!r}: the certificate is given by its SHA-256, 64 hexadecimal digits")
        settings["certificate"] = digest
    return settings
