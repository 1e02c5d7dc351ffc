"""Which CPUs serve the emulated links, and which are left to the nodes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass
class Division:
    """CPUs for the emulator and for the nodes; both empty where any will do. Claimed until it is left."""

    emulator: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    claims: ExitStack = field(default_factory=ExitStack, compare=False)

    def __enter__(self) -> Division:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.claims.close()


def divide(nodes: Iterable[Mapping[str, Any]], *, emulated: bool) -> Division:
    """Give the emulator a CPU of its own, if links are emulated, there are two CPUs and the plan pins nobody.

    Left to itself, Linux wakes a node's thread on the CPU of whoever woke it, which is the emulator's.
    With few CPUs in use much it does not look for an idle one (`select_idle_cpu`). The thread
    then waits until the emulator sleeps. Two labs at a time take different CPUs, as far as there are any.
    """
    usable = sorted(os.sched_getaffinity(0))
    if not emulated or len(usable) == 1 or any(node["cpus"] for node in nodes):
        return Division()
    for cpu in reversed(usable):
        # A name in the abstract namespace (unix(7)) is gone with its process, however that ends.
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0tcplab-emulator-cpu-{cpu}")
        except OSError:
            claim.close()
            continue
        claims = ExitStack()
        claims.enter_context(claim)
        return Division([cpu], [other for other in usable if other != cpu], claims)
    return Division()
