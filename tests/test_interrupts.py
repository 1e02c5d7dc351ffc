"""Signals while the main thread waits for runs, or does something meanwhile."""

import signal
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tcplab import engine, runner
from tcplab.progress import Silent
from tcplab.runner import stopping_on_signals, waited
from tcplab.scenario import from_data

SCENARIO = {
    "tcplab": 1,
    "name": "short",
    "network": {"path": {"rate": "10 Mbit/s", "rtt": "20 ms"}},
    "flows": [{"name": "bulk", "kind": "tcp", "duration": "1 s"}],
}


@pytest.fixture
def two_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two signals come as a wait ends, before the standard library has its lock again."""
    restore = threading.Condition._acquire_restore  # type: ignore[attr-defined]
    is_sent = False

    def interrupted(self: threading.Condition, state: Any) -> None:
        nonlocal is_sent
        if not is_sent:
            is_sent = True
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
        restore(self, state)

    monkeypatch.setattr(threading.Condition, "_acquire_restore", interrupted)


@pytest.mark.usefixtures("two_signals")
def test_a_second_signal_is_a_keyboard_interrupt_wherever_it_comes() -> None:
    stop = threading.Event()
    future: Future[None] = Future()
    with pytest.raises(KeyboardInterrupt), stopping_on_signals(stop):
        waited([future], 0.01)
    assert stop.is_set()


def test_one_signal_only_sets_the_event() -> None:
    stop = threading.Event()
    with stopping_on_signals(stop):
        signal.raise_signal(signal.SIGINT)
        done, pending = waited([Future[None]()], 0.01)
    assert (stop.is_set(), len(done), len(pending)) == (True, 0, 1)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_only_ctrl_c_is_impatient(ending: signal.Signals) -> None:
    stop = threading.Event()
    with stopping_on_signals(stop):
        signal.raise_signal(ending)
        signal.raise_signal(ending)
    assert stop.is_set()


def test_nohup_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = threading.Event()
        with stopping_on_signals(stop):
            signal.raise_signal(signal.SIGHUP)
        assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_is_done_meanwhile_is_done_whole(tmp_path: Path) -> None:
    """An import into which the exception comes may end with another one: numpy's with an ImportError."""
    steps: list[str] = []

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("done")

    prepared = runner.prepare(from_data(SCENARIO), source="short", engine=engine.load("sim"))
    batch = [(prepared, runner.claim(prepared, tmp_path / "out"))]
    with pytest.raises(KeyboardInterrupt):
        runner.execute(batch, watcher=Silent(), meanwhile=interrupted)
    assert steps == ["done"]
