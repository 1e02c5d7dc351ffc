"""The few system calls about namespaces and processes that Python's library lacks."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
_PR_SET_PDEATHSIG = 1
# Settings of Ubuntu, Debian and Linux that forbid user namespaces: the value that does, one that doesn't.
_GATES = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones (unshare(2)); raises OSError."""
    _check(_libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Let this thread enter a namespace (setns(2)); raises OSError."""
    _check(_libc.setns(descriptor, kind))


def die_with_parent(parent: int) -> None:
    """Be killed when the thread that started this process ends (PR_SET_PDEATHSIG).

    `parent` is the process it was started by: if it is gone already, no signal will ever come.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def network_of(process: int) -> Iterator[None]:
    """Be in the network namespace of a process meanwhile. Only this thread moves."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(other, CLONE_NEWNET)
        finally:
            os.close(other)
        try:
            yield
        finally:
            setns(own, CLONE_NEWNET)
    finally:
        os.close(own)


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


def enter_user_namespace() -> None:
    """Become root of a new user namespace that maps this user alone; raises OSError.

    The process must have one thread. It keeps its user's rights to files and gains every capability over
    the namespaces it makes from now on.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # A group map may be written without privileges only once setgroups is off (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
