"""Congestion controls as the running kernel has them."""

from __future__ import annotations

from pathlib import Path

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# A scenario's names that differ from the kernel's.
_NAMES = {"bbr1": "bbr"}


def kernel_name(control: str) -> str:
    """What the kernel calls a control of a scenario."""
    return _NAMES.get(control, control)


def available() -> list[str]:
    """The controls that are built in or loaded, by the kernel's names."""
    try:
        return _AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def loadable(release: str) -> list[str]:
    """The controls that are modules of this kernel, by the kernel's names."""
    folder = Path("/lib/modules") / release / "kernel/net/ipv4"
    names = (path.name.split(".")[0] for path in folder.glob("tcp_*.ko*"))
    return sorted(name.removeprefix("tcp_") for name in names if name not in ("tcp_diag", "tcp_probe"))
