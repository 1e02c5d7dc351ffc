"""A process that tries out what networks on this machine need, and says how it went.

It makes a user namespace if it must, a network namespace, and in it one of everything; with its end all of
that is gone. Trying is the only sure way: limits come from the kernel's configuration, containers, security
modules and sysctls alike.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcplab.testbed import namespaces, netlink

_TUNSETIFF = 0x4004_54CA
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tcplab.testbed.probe import main; main(sys.argv[2:])"
)


@dataclass(frozen=True)
class Probed:
    """What could be done; a text says why something could not."""

    privileged: bool
    """Without a user namespace."""
    user_namespace: str | None = None
    namespace: str | None = None
    veth: str | None = None
    tun: str | None = None
    bridge: str | None = None
    capture: str | None = None
    ipv6: str | None = None
    netem: str | None = None
    read_only: list[str] = field(default_factory=list)
    """Settings that a namespace has, but may not change."""
    absent: list[str] = field(default_factory=list)
    """Settings that a namespace does not have."""


def probe(sysctls: Iterable[str] = ()) -> Probed:
    """Try everything in a process of its own."""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _START, root, *sysctls],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return Probed(**json.loads(done.stdout))
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return Probed(privileged=False, namespace=lines[-1] if lines else "the probe said nothing")


def main(sysctls: list[str]) -> None:
    """Try everything and say how it went."""
    found: dict[str, Any] = {"privileged": namespaces.has_capability(namespaces.CAP_SYS_ADMIN)}
    if not found["privileged"]:
        found["user_namespace"] = _attempt(_user_namespace)
    found["namespace"] = _attempt(lambda: namespaces.unshare(namespaces.CLONE_NEWNET))
    if found["namespace"] is None:
        found["veth"] = _attempt(lambda: _ask(_veth()))
        found["bridge"] = _attempt(lambda: _ask(netlink.bridge("br0")))
        found["tun"] = _attempt(_tap)
        found["capture"] = _attempt(_packet_socket)
        found["ipv6"] = _attempt(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close())
        found["netem"] = "there is no veth to try it on" if found["veth"] else _attempt(_netem)
        paths = {name: Path("/proc/sys") / name.replace(".", "/") for name in sysctls}
        # Of an interface that does not exist yet its settings do not either: the defaults stand for them.
        found["absent"] = [name for name, path in paths.items() if not path.exists()]
        found["read_only"] = [name for name, path in paths.items() if path.exists() and not _writable(path)]
    sys.stdout.write(json.dumps(found))


def _user_namespace() -> None:
    try:
        namespaces.enter_user_namespace()
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            # What the error stands for here, user_namespaces(7).
            raise OSError(errno.ENOSPC, "there may be no more of them (user.max_user_namespaces)") from None
        raise


def _veth() -> netlink.Request:
    return netlink.veth("v0", "02:00:00:00:00:01", 1500, os.getpid(), "v1", "02:00:00:00:00:02")


def _netem() -> None:
    try:
        _ask(netlink.netem("v0", socket.if_nametoindex("v0")))
    except netlink.NetlinkError as problem:
        # The kernel's own words: which interface it was tried on is nobody's concern.
        raise OSError(problem.errno, str(problem.strerror).removeprefix(f"cannot {problem.what}: ")) from None


def _ask(request: netlink.Request) -> None:
    with netlink.Netlink() as kernel:
        kernel.carry_out([request])


def _tap() -> None:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"t0", flags))
    finally:
        os.close(device)


def _packet_socket() -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


def _writable(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _attempt(action: Callable[[], object]) -> str | None:
    try:
        action()
    except OSError as problem:
        return problem.strerror or str(problem)
    return None
