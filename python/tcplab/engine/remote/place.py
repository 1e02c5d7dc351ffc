"""Where a host of a scenario is: `ssh://[USER@]HOST[:PORT][?address=ADDRESS]`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

_KEYS = ("address",)


class PlaceError(ValueError):
    """A place that cannot be understood."""


@dataclass(frozen=True)
class Place:
    """A real host, and how it is reached."""

    url: str
    """As given."""
    host: str
    """Its name to ssh: a host's name, its address, or a `Host` of the user's ssh_config."""
    user: str | None = None
    port: int | None = None
    address: str | None = None
    """The IP address at which the other hosts reach it; none: that at which ssh did."""

    @classmethod
    def read(cls, url: str) -> Place:
        """Read a URL; raises PlaceError."""
        parts = urlsplit(url)
        if parts.scheme != "ssh":
            raise PlaceError(f"{url!r} is not a host: use ssh://USER@HOST:PORT")
        try:
            host, port = parts.hostname, parts.port
        except ValueError as problem:
            raise PlaceError(f"{url!r}: {problem}") from None
        # A name that ssh would take for an option is no name.
        if not host or host.startswith("-") or (parts.username or "").startswith("-"):
            raise PlaceError(f"{url!r} names no host: use ssh://USER@HOST:PORT")
        if parts.path not in ("", "/") or parts.fragment or parts.password:
            raise PlaceError(f"{url!r}: only USER@HOST:PORT and ?address=ADDRESS are understood")
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = next((key for key in settings if key not in _KEYS), None)
        if unknown is not None:
            raise PlaceError(f"{url!r}: unknown setting {unknown!r}; there is {', '.join(_KEYS)}")
        address = settings.get("address")
        try:
            address = str(ipaddress.ip_address(address)) if address is not None else None
        except ValueError:
            raise PlaceError(f"{url!r}: {address!r} is not an IP address") from None
        return cls(url, host, parts.username, port, address)

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
