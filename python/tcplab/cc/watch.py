"""Activity of the controls in another process: memory shared with it, in which their operations note it.

The twin of `struct tl_watch` in cc/include/tcplab_cc_native.h.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass

# In the order of struct tcp_congestion_ops.
_OPERATIONS = (
    "init",
    "ssthresh",
    "cong_avoid",
    "set_state",
    "cwnd_event",
    "in_ack_event",
    "pkts_acked",
    "min_tso_segs",
    "cong_control",
    "undo_cwnd",
    "sndbuf_expand",
)
# tcp_mstamp at the run's beginning, microseconds: EPOCH_US of crates/tcp.
_EPOCH = 1_000_000
_NOTED = "tl_watched"


class _Slot(ctypes.Structure):
    _fields_ = (
        ("time", ctypes.c_uint64),
        ("operation", ctypes.c_uint64),
        ("no_window_time", ctypes.c_uint64),
        ("no_window", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class At:
    """An operation of a control at a time."""

    control: str
    """The name of its file."""
    operation: str
    time: float
    """Seconds of the run."""

    def __str__(self) -> str:
        return f"{self.control}: {self.operation} at {self.time:.6f} s"


class RunningOperations:
    """One slot for each control, in the order of `names`."""

    def __init__(self, names: Iterable[str], fd: int | None = None) -> None:
        self.names = tuple(names)
        size = max(len(self.names), 1) * ctypes.sizeof(_Slot)
        self.fd = os.memfd_create("tcplab-watch") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, size)
        self._memory = mmap.mmap(self.fd, size)
        self._slots = (_Slot * len(self.names)).from_buffer(self._memory)

    def attach(self, place: int, library: str) -> None:
        """Open the shared object of a control, and have its operations noted in a slot; raises OSError."""
        pointer = ctypes.c_void_p.in_dll(ctypes.CDLL(library), _NOTED)
        pointer.value = ctypes.addressof(self._slots[place])

    def running(self) -> At | None:
        """The operation that runs; none while none does."""
        found = (self._at(name, slot.operation, slot.time) for name, slot in self._named())
        return next((at for at in found if at is not None), None)

    def no_window(self) -> At | None:
        """The first operation that left the window at 0 packets; none if none did."""
        found = (self._at(name, slot.no_window, slot.no_window_time) for name, slot in self._named())
        return next((at for at in found if at is not None), None)

    def close(self) -> None:
        """Give the memory back."""
        del self._slots
        self._memory.close()
        os.close(self.fd)

    def _named(self) -> Iterable[tuple[str, _Slot]]:
        return zip(self.names, self._slots, strict=True)

    @staticmethod
    def _at(name: str, operation: int, time: int) -> At | None:
        # Whoever runs there may have written anything.
        if not 0 < operation <= len(_OPERATIONS):
            return None
        return At(name, _OPERATIONS[operation - 1], (time - _EPOCH) / 1e6)
