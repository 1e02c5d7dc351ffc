"""Analysis of captures: their flows, series, packets and figures.

    from tcplab import captures

    capture = captures.read("sender.pcap")
    capture.flows                  # a polars frame, one row per flow
    capture.series(1)              # every packet of flow 1, as the analysis understood it

Names are imported when first used: a packet list must not wait for a data frame library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab.captures.capture import Capture, read
    from tcplab.captures.errors import CaptureError
    from tcplab.captures.flow import Flow

__all__ = ["Capture", "CaptureError", "Flow", "read"]

_HOMES = {"Capture": "capture", "CaptureError": "errors", "Flow": "flow", "read": "capture"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
