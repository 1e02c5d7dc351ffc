"""A test between two machines, seen from its clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tcplab.analysis.echo.explain import Path
from tcplab.analysis.echo.round_trips import Series, from_events
from tcplab.analysis.echo.statistics import Echoes, statistics


@dataclass(frozen=True)
class Asked:
    """Settings of `tcplab echo run`. Times in ns."""

    addresses: tuple[str, ...]
    sizes: tuple[int, ...]
    iterations: int
    clients: int
    warmup: int
    interval: int
    timeout: int
    nodelay: bool
    busy_poll: bool
    control: str
    cpus: tuple[int, ...]
    raw: str | None

    def to_json(self) -> dict[str, Any]:
        """As the agent is given it."""
        return {
            "addresses": list(self.addresses),
            "sizes": list(self.sizes),
            "iterations": self.iterations,
            "clients": self.clients,
            "warmup": self.warmup,
            "interval": self.interval,
            "timeout": self.timeout,
            "nodelay": self.nodelay,
            "busy_poll": self.busy_poll,
            "control": self.control,
            "cpus": list(self.cpus),
            "raw": self.raw,
        }


@dataclass
class Test:
    """Results so far."""

    asked: Asked
    level: float
    series: list[Series] = field(default_factory=list)
    connected: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """How to fix the errors; each once."""
    warnings: list[str] = field(default_factory=list)
    """Deviations from the request that do not stop the test; each once."""
    progress: list[dict[str, Any]] = field(default_factory=list)
    """How far each client is."""
    complete: int = 0
    """Clients that are through."""

    def note(self, event: dict[str, Any]) -> None:
        """Take what the agent says."""
        match event["event"]:
            case "connected":
                self.connected.append(event)
                if event["words"]:
                    self._warn(f"the server says: {event['words']}")
            case "series":
                if event["done"]:
                    self.series += from_events([event])
            case "progress":
                self.progress = event["clients"]
            case "warning":
                self._warn(f"{event['message']} ({event['hint']})")
            case "ended":
                self.complete += bool(event["complete"])
                if event["error"]:
                    self.errors.append(event["error"])
                    if event["hint"] and event["hint"] not in self.hints:
                        self.hints.append(event["hint"])

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def echoes(self) -> Echoes:
        """The statistics of what has come in."""
        asked = self.asked
        return statistics(
            self.series,
            clients=asked.clients,
            iterations=asked.iterations,
            warmup=asked.warmup,
            level=self.level,
        )

    def done_at(self, size: int) -> bool:
        """Whether no client still works at a size."""
        return sum(one.size == size for one in self.series) >= max(1, len(self.connected) - len(self.errors))

    def current(self) -> tuple[int, int, float] | None:
        """The size at work, round trips made there by all clients, and their mean in ns."""
        busy = [one for one in self.progress if one["size"] is not None]
        if not busy:
            return None
        size = int(busy[0]["size"])
        here = [one for one in busy if one["size"] == size]
        done, total = sum(one["done"] for one in here), sum(one["sum"] for one in here)
        return size, done, total / done if done else math.nan

    def path(self) -> Path:
        """The path's properties, from the sockets."""
        mss = min((int(one["mss"]) for one in self.connected if one["mss"]), default=None)
        return Path(mss=mss)

    def mode(self) -> str:
        """How it was measured, in words: it decides over what small messages take."""
        asked = self.asked
        if not asked.busy_poll:
            waiting = "both ends sleep while they wait"
        elif all(one["server_polls"] for one in self.connected):
            waiting = "both ends poll"
        else:
            waiting = "the clients poll, the server sleeps while it waits"
        pinned = f", clients on CPU {', '.join(map(str, asked.cpus))}" if asked.cpus else ""
        nagle = "off" if asked.nodelay else "on"
        controls = sorted({str(one["control"]) for one in self.connected})
        mss = sorted({int(one["mss"]) for one in self.connected})
        parts = [f"{waiting}{pinned}", f"Nagle {nagle}"]
        if controls:
            parts += [", ".join(controls), f"MSS {', '.join(map(str, mss))} B"]
        return "; ".join(parts)
