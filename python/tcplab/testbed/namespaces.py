"""Which privileges this process has, and what an ordinary user lacks for namespaces."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

CAP_NET_ADMIN = 12
# Settings of Ubuntu, Debian and Linux that forbid user namespaces: the value that does, one that doesn't.
_GATES = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)


def has_capability(number: int) -> bool:
    """Whether this process has a capability (capabilities(7)) over its own user namespace."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def in_first_user_namespace() -> bool:
    """Whether this is the user namespace the machine booted with, the one that owns host-wide limits."""
    try:
        words = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    except OSError:
        return True
    return words == ["0", "0", "4294967295"]


def remedy() -> str:
    """The command that lets ordinary users make user namespaces, from what forbids it on this machine."""
    for name, closed, opened in _GATES:
        path = Path("/proc/sys") / name.replace(".", "/")
        with suppress(OSError):
            if path.read_text(encoding="ascii").strip() == closed:
                return f"run as root, or: sudo sysctl -w {name}={opened}"
    return "run as root"
