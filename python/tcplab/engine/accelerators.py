"""Warnings of accelerators that reached a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def full(node: str, counts: Mapping[str, int], limits: str) -> Iterator[str]:
    """By its counts of new connections; `limits` are the settings to raise."""
    if counts.get("passed"):
        yield f"{node}: the accelerator was full, and connections passed unsplit: raise {limits}"
    if refused := counts.get("refused"):
        yield f"{node}: the accelerator was full, and reset {refused} connections: raise {limits}"
