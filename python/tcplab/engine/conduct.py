"""A run in real time, followed from its start to its last agent's end; whatever hosts its agents are on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable

from tcplab.engine.base import Plan, Progress, Status
from tcplab.testbed.agents import Agents, Event, Json, called, failure

# How often progress is shown and Ctrl-C looked for, seconds.
_TICK = 0.1
# How long agents may take to write what is left after the run's end, seconds.
_FINISH = 15.0


class Watch:
    """Follows the agents of a run."""

    def __init__(
        self,
        plan: Plan,
        agents: Agents,
        progress: Callable[[Progress], None],
        note: Callable[[Event], None],
        silent: Iterable[str] = (),
    ) -> None:
        """`note` is given every event; the progress of `silent` agents is not traffic's."""
        self._plan = plan
        self._agents = agents
        self._progress = progress
        self._note = note
        self._silent = frozenset(silent)
        self._received = _Goodput(plan)

    def follow(self, start: int, waiting: set[str]) -> tuple[Status, str]:
        """Wait until all of `waiting` are done; how the run ended. `start` is of CLOCK_MONOTONIC, ns."""
        duration = self._plan["duration"]
        unfinished = {(flow["name"], role) for flow in self._plan["flows"] for role in roles(flow)}
        status, message = Status.DONE, ""
        # A stream that failed leaves the others their run.
        broken = ""
        stopped = False
        deadline = start + duration + int(_FINISH * 1e9)
        shown = 0.0
        while waiting:
            event = self._agents.next_event(_TICK)
            now = time.monotonic_ns()
            if event is not None:
                if event.name == "gone":
                    status, message = Status.FAILED, message or str(failure(event))
                    waiting.discard(event.agent)
                elif event.name == "done":
                    waiting.discard(event.agent)
                elif event.name == "finished":
                    unfinished.discard((event.content["flow"], event.content["role"]))
                elif event.name == "error" and "flow" not in event.content:
                    status, message = Status.FAILED, str(failure(event))
                elif event.name == "error" and now < start + duration and not stopped:
                    broken = broken or str(failure(event))
                self._take(event)
            failed = status is Status.FAILED
            if not stopped and (failed or not unfinished):
                stopped = self._stop()
                deadline = now + int(_FINISH * 1e9)
            if now > deadline:
                slow = " and ".join(map(called, sorted(waiting)))
                return Status.FAILED, message or f"{slow} did not end within {_FINISH:g} s of the run's end"
            if time.monotonic() - shown >= _TICK and not stopped:
                shown = time.monotonic()
                at = min(max(0, now - start), duration)
                try:
                    self._progress(Progress(at, duration, self._received.rates()))
                except KeyboardInterrupt:
                    status = Status.INTERRUPTED
                    message = f"stopped at {at / 1e9:.3f} s of {duration / 1e9:g} s"
                    stopped = self._stop()
                    deadline = now + int(_FINISH * 1e9)
        if broken and status is Status.DONE:
            return Status.FAILED, broken
        return status, message

    def _stop(self) -> bool:
        self._agents.tell({"do": "stop"})
        return True

    def _take(self, event: Event) -> None:
        if event.name == "progress" and event.agent not in self._silent:
            self._received.note(event)
        self._note(event)


class _Goodput:
    """What has lately been received, flow by flow."""

    def __init__(self, plan: Plan) -> None:
        self._receiver = {flow["name"]: flow["to"] for flow in plan["flows"] if flow["kind"] != "ping"}
        self._last = dict.fromkeys(self._receiver, (0, 0))
        self._rates: dict[str, float] = {}

    def note(self, event: Event) -> None:
        """An agent tells how far it has come."""
        now = int(event.content["time"])
        for flow, counted in event.content["flows"].items():
            if self._receiver.get(flow) != event.agent:
                continue
            then, before = self._last[flow]
            received = int(counted["received"])
            if now > then:
                self._rates[flow] = (received - before) * 8e9 / (now - then)
                self._last[flow] = (now, received)

    def rates(self) -> dict[str, float]:
        """bit/s by flow."""
        return dict(self._rates)


def roles(flow: Json) -> tuple[str, ...]:
    """The ends that a flow has."""
    return ("client",) if flow["kind"] == "ping" else ("server", "client")


def seed_of(seed: int, name: str) -> int:
    """A random stream of its own for each flow, so that adding one shifts no other."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
