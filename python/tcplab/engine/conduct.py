"""A run in real time, followed from its start to its last agent's end; whatever hosts its agents are on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tcplab.engine.base import Progress, Status
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow, Plan
from tcplab.testbed.agents import Agents, Event, called, failure

# How often progress is shown and Ctrl-C looked for, seconds.
_TICK = 0.1
# How long agents may take to write what is left after the run's end, seconds.
_FINISH = 15.0
# A receiver of datagrams to which none came for so long after the last sender ended will receive no more,
# seconds.
_QUIET = 0.5
_QUIET_UNKNOWN_PATH = 3.0


class RunMonitor:
    """Follows the agents of a run."""

    def __init__(
        self,
        plan: Plan,
        agents: Agents,
        progress: Callable[[Progress], None],
        note: Callable[[Event], None],
        emulator: str | None = None,
        roles: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """`note` is given every event; `emulator` is the agent whose links carry the traffic, if any.

        `roles` are those that agents have in each flow, by its name, where not all of them have an agent.
        """
        self._plan = plan
        self._agents = agents
        self._progress = progress
        self._note = note
        self._emulator = emulator
        self._received = _Goodput(plan)
        self._flows: dict[str, dict[str, dict[str, float]]] = {}
        self._roles = dict(roles or {flow["name"]: roles_of(flow) for flow in plan["flows"]})
        self._draining = _Draining(plan, known_path=emulator is not None)
        self._resets_expected = any(_resets(node.get("accelerate")) for node in plan["nodes"])

    def follow(self, start: int, waiting: set[str]) -> tuple[Status, str]:
        """Wait until all of `waiting` are done; how the run ended. `start` is of CLOCK_MONOTONIC, ns."""
        duration = self._plan["duration"]
        unfinished = {(flow, role) for flow, roles in self._roles.items() for role in roles}
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
                elif self._resets_expected and event.content.get("reset"):
                    pass
                elif event.name == "error" and now < start + duration and not stopped:
                    broken = broken or str(failure(event))
                self._take(event)
            failed = status is Status.FAILED
            if not stopped and (failed or not unfinished or self._draining.over(unfinished, now)):
                stopped = self._stop()
                deadline = now + int(_FINISH * 1e9)
            if now > deadline:
                slow = " and ".join(map(called, sorted(waiting)))
                return Status.FAILED, message or f"{slow} did not end within {_FINISH:g} s of the run's end"
            if time.monotonic() - shown >= _TICK and not stopped:
                shown = time.monotonic()
                at = min(max(0, now - start), duration)
                try:
                    self._progress(self._position(at))
                except KeyboardInterrupt:
                    status = Status.INTERRUPTED
                    message = f"stopped at {at / 1e9:.3f} s of {duration / 1e9:g} s"
                    stopped = self._stop()
                    deadline = now + int(_FINISH * 1e9)
        if broken and status is Status.DONE:
            return Status.FAILED, broken
        return status, message

    def _position(self, at: int) -> Progress:
        return Progress(
            at,
            self._plan["duration"],
            self._received.rates(),
            self._sampled("cwnd"),
            self._sampled("srtt"),
        )

    def _sampled(self, figure: str) -> dict[str, float]:
        """A figure of the flows' sockets in their senders' latest reports."""
        return {
            flow: counted[figure]
            for flows in self._flows.values()
            for flow, counted in flows.items()
            if counted.get(figure) is not None
        }

    def _stop(self) -> bool:
        self._agents.send({"do": "stop"})
        return True

    def _take(self, event: Event) -> None:
        if event.name == "progress":
            if event.agent == self._emulator:
                self._draining.packets_in_links(event.content["held"])
            else:
                self._received.note(event)
                self._draining.note(event)
                self._flows[event.agent] = event.content["flows"]
        self._note(event)


def _resets(accelerator: Mapping[str, Any] | None) -> bool:
    """Whether an accelerator resets connections as its settings say.

    Their flows are incomplete then, and the run has not failed.
    """
    return accelerator is not None and (
        accelerator["kill_at"] is not None or accelerator["when_full"] == "reset"
    )


class _Draining:
    """Whether datagrams are still on their way after the last sender has ended.

    A receiver of datagrams cannot know how many were lost, so it never ends by itself. The run is over when
    all links are empty and the receivers have read what arrived. Where links are not ours, silence has to do.
    """

    def __init__(self, plan: Plan, *, known_path: bool) -> None:
        self._receivers = {(flow["name"], "server") for flow in plan["flows"] if kind_of(flow).datagrams}
        self._quiet = int((_QUIET if known_path else _QUIET_UNKNOWN_PATH) * 1e9)
        self._held = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._moved = 0

    def packets_in_links(self, held: int) -> None:
        """The emulator reports how many packets its links hold."""
        self._held = held

    def note(self, event: Event) -> None:
        """An agent reports the progress of its flows."""
        for flow, counted in event.content["flows"].items():
            received = int(counted["received"])
            if self._counts.get((event.agent, flow)) != received:
                self._counts[event.agent, flow] = received
                self._moved = time.monotonic_ns()

    def over(self, unfinished: set[tuple[str, str]], now: int) -> bool:
        """Whether only receivers of datagrams are left, and nothing can reach them any more."""
        if not unfinished <= self._receivers or self._held:
            self._moved = now
        return now - self._moved > self._quiet


class _Goodput:
    """The bytes received lately, flow by flow."""

    def __init__(self, plan: Plan) -> None:
        self._receiver = {flow["name"]: flow["to"] for flow in plan["flows"] if kind_of(flow).served}
        self._last = dict.fromkeys(self._receiver, (0, 0))
        self._rates: dict[str, float] = {}

    def note(self, event: Event) -> None:
        """An agent reports its progress."""
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


def roles_of(flow: Flow) -> tuple[str, ...]:
    """The ends that end by themselves: a web server serves until the run's end."""
    return ("client",) if not kind_of(flow).served or "web" in flow else ("server", "client")
