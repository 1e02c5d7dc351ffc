"""The flows of a capture, each made when it is asked for: a million of them take little memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from tcplab.captures.flow import Flow, flow_of

if TYPE_CHECKING:
    import polars as pl

    from tcplab import _core

# Rows that are made at once: columns that say the same in all of them share their memory.
_PIECE = 1 << 16
# So many rows are made one by one rather than with all others.
_FEW = 8

# Columns that precede those of both directions.
_LEAD = (
    "flow",
    "protocol",
    "client",
    "client_port",
    "server",
    "server_port",
    "interface",
    "first_packet",
    "first",
    "last",
    "duration",
    "end",
    "handshake_rtt",
    "handshake_server",
    "handshake_client",
    "ecn_negotiated",
    "accecn_negotiated",
    "main",
)


class Flows(Sequence[Flow]):
    """Flows of a capture, in some order."""

    def __init__(self, core: _core.Flows, places: Sequence[int] | None = None) -> None:
        """The flows at these places of what the core holds; None: all of them."""
        self._core = core
        self._places = range(len(core)) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Flow: ...
    @overload
    def __getitem__(self, index: slice) -> Flows: ...
    def __getitem__(self, index: int | slice) -> Flow | Flows:
        if isinstance(index, slice):
            return Flows(self._core, self._places[index])
        return flow_of(self.raw(index))

    def raw(self, index: int) -> dict[str, Any]:
        """A flow as the core says it."""
        return self._core.get(self._places[index])

    def of_number(self, number: int) -> Flows:
        """The flow with this number alone, from all of the capture; empty if there is none."""
        place = self._core.place_of(number)
        return Flows(self._core, [] if place is None else [place])

    def picked(self, indexes: Sequence[int]) -> Flows:
        """The flows at these indexes, in their order."""
        return Flows(self._core, [self._places[index] for index in indexes])

    def frame(self) -> pl.DataFrame:
        """A row per flow. The columns of each direction begin with `forward_` and `backward_`.

        Times are ns (`first` and `last` since 1970), sizes bytes, goodput bit/s; null is what is not known.
        """
        import polars as pl

        if not len(self):
            return self._piece(0, 0, {})
        places = self._places
        if isinstance(places, range) and places.step == 1:
            return self._rows(places.start, places.stop)
        if len(places) <= _FEW:
            return pl.concat(self._rows(place, place + 1) for place in places)
        return self._rows(0, len(self._core))[list(places)]

    def _rows(self, begin: int, end: int) -> pl.DataFrame:
        from concurrent.futures import ThreadPoolExecutor

        import polars as pl

        pieces = range(begin, end, _PIECE)
        workers = min(len(os.sched_getaffinity(0)), len(pieces))
        constants: dict[tuple[str, Any, int], pl.Series] = {}
        with ThreadPoolExecutor(workers) as pool:
            made = list(
                pool.map(lambda start: self._piece(start, min(start + _PIECE, end), constants), pieces)
            )
        return pl.concat(made, rechunk=False)

    def _piece(self, begin: int, end: int, constants: dict[tuple[str, Any, int], pl.Series]) -> pl.DataFrame:
        """Some rows; columns of one value are taken from, or put to, `constants`."""
        from io import BytesIO

        import polars as pl

        types = {"integer": pl.Int64(), "real": pl.Float64(), "truth": pl.Boolean(), "text": pl.String()}
        raw = self._core.columns(begin, end)
        varying: list[pl.Series] = []
        if "flows" in raw:
            frame = pl.read_ipc(BytesIO(raw["flows"])).with_columns(pl.col(pl.Categorical).cast(pl.String))
            varying = frame.get_columns()
        columns = {}
        for name, kind, value in raw["columns"]:
            if kind == "column":
                columns[name] = varying[value].alias(name)
                continue
            key = kind, value, end - begin
            if key not in constants:
                constants[key] = pl.repeat(value, end - begin, dtype=types[kind], eager=True)
            columns[name] = constants[key].alias(name)
        lead = [columns.pop(name) for name in _LEAD]
        return pl.DataFrame([*lead, *columns.values()])
