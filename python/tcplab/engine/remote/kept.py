"""Keeps the agent on hosts from run to run: several runs of a command send it to each host once.

An agent of its own holds the program there, in memory that ends with its connection. A run's connection, of
the same user, executes it by that process's number (`/proc/PID/exe`, proc(5)). The environment tells the
numbers to the processes that make runs.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

from tcplab.engine.remote.connections import AT_ONCE, SILENCE, Connection, connect
from tcplab.engine.remote.place import Place
from tcplab.testbed.errors import TestbedError

_VARIABLE = "TCPLAB_KEPT_AGENTS"
# How often a keeper hears from us, seconds.
_ASK = SILENCE / 5
_QUESTION = b'{"do":"clock"}\n'


def process_at(place: Place) -> int:
    """The process there that holds the agent; 0 if none does."""
    return _processes().get(_key(place), 0)


@contextmanager
def keeping(places: Iterable[Place]) -> Iterator[None]:
    """Keep the agent at each of these that stands here more than once.

    One that cannot be reached is for the run to report.
    """
    counted = Counter(_key(place) for place in places if place.scheme == "ssh")
    several = {_key(place): place for place in places if counted[_key(place)] > 1}
    held = {}
    with ExitStack() as stack:
        for key, keeper in zip(several, _keepers(several.values()), strict=True):
            if keeper is not None:
                stack.callback(keeper.close)
                held[key] = keeper.process
        _tell({**_processes(), **held})
        try:
            yield
        finally:
            _tell({key: process for key, process in _processes().items() if key not in held})


def _keepers(places: Iterable[Place]) -> list[_Keeper | None]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_Keeper.at, places))


class _Keeper:
    """An agent that does nothing, and the thread that it hears from."""

    def __init__(self, connection: Connection, process: int) -> None:
        self.process = process
        self._connection = connection
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="keeper", daemon=True)
        self._thread.start()

    @classmethod
    def at(cls, place: Place) -> _Keeper | None:
        """None if it cannot be."""
        try:
            connection = connect(place.host, place)
        except OSError:
            return None
        try:
            connection.prepare()
            connection.start()
            connection.socket.settimeout(SILENCE)
            said = connection.rest
            while b"\n" not in said:
                data = connection.socket.recv(1 << 16)
                if not data:
                    raise OSError
                said += data
            return cls(connection, int(json.loads(said.partition(b"\n")[0])["pid"]))
        except (TestbedError, OSError, ValueError, KeyError):
            connection.close()
            return None

    def _ask(self) -> None:
        with suppress(OSError):
            while not self._over.wait(_ASK):
                self._connection.socket.sendall(_QUESTION)
                # Its answers mean nothing to us, and must not fill the way here.
                with suppress(BlockingIOError):
                    self._connection.socket.recv(1 << 16, socket.MSG_DONTWAIT)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()


def _key(place: Place) -> str:
    return " ".join(place.destination())


def _processes() -> Mapping[str, int]:
    read: dict[str, int] = json.loads(os.environ.get(_VARIABLE, "{}"))
    return read


def _tell(processes: Mapping[str, int]) -> None:
    if processes:
        os.environ[_VARIABLE] = json.dumps(processes)
    else:
        os.environ.pop(_VARIABLE, None)
