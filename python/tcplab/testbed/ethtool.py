"""Offloads of interfaces, by the ethtool ioctl (linux/ethtool.h)."""

from __future__ import annotations

import array
import errno
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
# Name in a plan: the commands that read and set it.
_OFFLOADS = {
    "tso": (0x1E, 0x1F),
    "gso": (0x23, 0x24),
    "gro": (0x2B, 0x2C),
}


def set_offload(control: socket.socket, interface: str, name: str, on: bool) -> None:
    """Switch an offload; raises OSError. `control` is any socket of the interface's namespace."""
    _call(control, interface, _OFFLOADS[name][1], int(on))


def offloads(control: socket.socket, interface: str) -> list[str]:
    """The offloads that are on."""
    found = []
    for name, (read, _) in _OFFLOADS.items():
        try:
            on = _call(control, interface, read, 0)
        except OSError as problem:
            if problem.errno != errno.EOPNOTSUPP:
                raise
            on = 0
        if on:
            found.append(name)
    return found


def _call(control: socket.socket, interface: str, command: int, value: int) -> int:
    argument = array.array("I", [command, value])
    request = struct.pack("16sP8x", interface.encode(), argument.buffer_info()[0])
    fcntl.ioctl(control, _SIOCETHTOOL, request)
    return argument[1]
