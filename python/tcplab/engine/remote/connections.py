"""The interface of every connection to a host, however the host is reached."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

from tcplab.engine.remote.place import Place
from tcplab.testbed.errors import TestbedError

SILENCE = 5
"""How long either end hears nothing of the other before it gives the run up, seconds."""

AT_ONCE = 8
"""Hosts that are connected to at a time: from the tenth login in progress on sshd refuses some (MaxStartups),
and a service takes 32 of one address."""


class Connection(Protocol):
    """A host, from the first packet to it until `close`."""

    name: str
    """The host's, in the scenario."""
    place: Place
    socket: socket.socket
    """The agent's standard input and output."""
    rest: bytes
    """The agent's output that has not been read yet."""

    def prepare(self) -> None:
        """Have the host take what it needs; raises TestbedError."""

    def start(self) -> None:
        """Run the agent."""

    def close(self) -> None:
        """End the connection, and with it the agent."""

    def problem(self) -> TestbedError | None:
        """Why it has ended, if that is known."""


def connect(name: str, place: Place) -> Connection:
    """Start to connect to a host; `name` is its name in the scenario."""
    from tcplab.engine.remote.local import LocalConnection
    from tcplab.engine.remote.service import ServiceConnection
    from tcplab.engine.remote.ssh import SshConnection

    kinds: dict[str, Callable[[str, Place], Connection]] = {
        "ssh": SshConnection,
        "tcplab": ServiceConnection,
        "local": LocalConnection,
    }
    return kinds[place.scheme](name, place)


def own_address(host: str) -> str:
    """The address from which this machine reaches `host`; raises TestbedError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        # Nothing is sent: the kernel chooses the address that it would send from.
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except (OSError, UnicodeError) as problem:
        raise TestbedError(
            f"no route to {host}: {getattr(problem, 'strerror', None) or problem}", f"ip route get {host}"
        ) from None


def address_of(host: str) -> str:
    """The IP address of a name; raises TestbedError."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as problem:
        raise TestbedError(
            f"{host} is not known: {getattr(problem, 'strerror', None) or problem}", f"getent hosts {host}"
        ) from None
