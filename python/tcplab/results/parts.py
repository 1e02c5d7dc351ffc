"""Tables that come in parts while a run goes on, so that memory does not grow with their rows."""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tcplab.results.errors import ResultsError
from tcplab.results.files import write_whole

if TYPE_CHECKING:
    import polars as pl

    from tcplab.plan.types import Plan

# polars is imported where rows have come: another thread loads it while the simulation runs.

DIR = "parts"
"""Where parts are until they are joined, in the run directory."""
# Rows of a group of Parquet, and streams whose rows are sorted at one time.
_ROWS = 1 << 16
_NUMBER = "number"


class TableParts:
    """Parts of a run's tables, each a file of its own, until `finish` joins them.

    Rows of flows come in the order in which their streams ended. They are kept by ranges of the streams'
    numbers, and sorted range by range.
    """

    def __init__(self, run_dir: Path, plan: Plan) -> None:
        self._run_dir = run_dir
        self._files: dict[str, dict[int, list[Path]]] = {}
        self._first: dict[str, int] = {}
        streams = 0
        for flow in plan["flows"]:
            self._first[flow["name"]] = streams
            streams += flow["streams"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the parts."""
        shutil.rmtree(self._run_dir / DIR, ignore_errors=True)

    def add(self, name: str, data: bytes) -> None:
        """Write more rows of a table, an Arrow IPC file; raises ResultsError when they cannot be written."""
        import polars as pl

        from tcplab.results.tables import conform

        frame = conform(name, pl.read_ipc(BytesIO(data)))
        if name != "flows":
            self._write(name, 0, frame)
            return
        first = pl.col("flow").replace_strict(self._first, return_dtype=pl.Int64())
        frame = frame.with_columns((first + pl.col("stream")).alias(_NUMBER))
        group = frame[_NUMBER] // _ROWS
        for number in group.unique().sort():
            self._write(name, number, frame.filter(group == number))

    def finish(self, rest: Mapping[str, bytes]) -> None:
        """Write all tables, of which `rest` has the rows that have not come in parts."""
        import polars as pl

        from tcplab.results.tables import write_table

        for name, data in rest.items():
            if name in self._files:
                self.add(name, data)
                self._join(name)
            else:
                write_table(self._run_dir, name, pl.read_ipc(BytesIO(data)))

    def _write(self, name: str, group: int, frame: pl.DataFrame) -> None:
        from tcplab.results.tables import write_frame

        files = self._files.setdefault(name, defaultdict(list))[group]
        path = self._run_dir / DIR / f"{name}-{group}-{len(files)}.parquet"
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultsError.from_os(path, error) from error
        write_frame(path, frame)
        files.append(path)

    def _join(self, name: str) -> None:
        import polars as pl

        from tcplab.results.tables import write_frame

        groups = self._files[name]
        if name == "flows":
            for group, files in groups.items():
                rows = (
                    pl.concat(pl.read_parquet(file, glob=False) for file in files).sort(_NUMBER).drop(_NUMBER)
                )
                write_frame(files[0], rows)
                groups[group] = files[:1]
        files = [file for group in sorted(groups) for file in groups[group]]
        path = self._run_dir / f"{name}.parquet"

        def fill(beside: Path) -> None:
            try:
                # Groups of one size, so that the file is the same however many threads polars has.
                pl.scan_parquet(files, glob=False).sink_parquet(
                    beside, compression="zstd", row_group_size=_ROWS
                )
            except pl.exceptions.PolarsError as error:
                # polars reports a full disk as an error of the format.
                if (number := re.search(r"\(os error (\d+)\)", str(error))) is None:
                    raise
                raise OSError(int(number[1]), os.strerror(int(number[1]))) from error

        try:
            write_whole(path, fill)
        except pl.exceptions.PolarsError as error:
            raise ResultsError(path, f"cannot be written: {error}") from error
