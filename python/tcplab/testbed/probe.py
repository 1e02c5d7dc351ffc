"""A process that tries out what networks on this machine need, and says how it went.

It makes a user namespace if it must, a network namespace, and in it one of everything; with its end all of
that is gone. Trying is the only sure way: limits come from the kernel's configuration, containers, security
modules and sysctls alike.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field

from tcplab.testbed.agent import agent_command


@dataclass(frozen=True)
class Probed:
    """Features of the machine: None where one works, otherwise the reason why it does not."""

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
    accecn: str | None = None
    """Accurate ECN."""
    sysctls: str | None = None
    """Settings of a namespace of its own."""
    read_only: list[str] = field(default_factory=list)
    """Settings that a namespace has, but may not change."""
    absent: list[str] = field(default_factory=list)
    """Settings that a namespace does not have."""


def tun_hint(why: str) -> str:
    """Commands that let anybody make TUN devices, which fail for this reason now."""
    if os.strerror(errno.EACCES) in why:
        return "sudo chmod 666 /dev/net/tun"
    return "sudo modprobe tun; sudo mkdir -p /dev/net; sudo mknod -m 666 /dev/net/tun c 10 200"


SYSCTLS_HINT = (
    "sudo mount -o remount,rw /proc/sys; start a container with --security-opt systempaths=unconfined"
)
"""Makes settings of namespaces writable."""


def probe(sysctls: Iterable[str] = ()) -> Probed:
    """Try everything in a process of its own."""
    try:
        done = subprocess.run(
            agent_command("probe", *sysctls),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Probed(**json.loads(done.stdout))
    except OSError as problem:
        return Probed(privileged=False, namespace=f"the probe does not start: {problem.strerror}")
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return Probed(privileged=False, namespace=lines[-1] if lines else "the probe printed nothing")
