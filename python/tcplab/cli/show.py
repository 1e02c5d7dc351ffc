"""`tcplab show`: a result in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json, Level, OneRun, level_of, results

if TYPE_CHECKING:
    import polars as pl

    from tcplab.results import Run

EXAMPLE = "tcplab show runs/four-controls-20260101-120000 --table sockets --limit 5"


_NAMES = (
    "flows, intervals, losses, sockets, gauges, legs, queues, queue_classes, queue_gauges, "
    "packets, echoes, echo_batches, fetches, pings, hosts, events or routes"
)


def _tables() -> list[str]:
    from tcplab.results import TABLES

    return list(TABLES)


@guarded
def show(
    run: OneRun,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", "-t", metavar="TABLE", help=f"Rows of a table: {_NAMES}.", autocompletion=_tables
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, metavar="N", help="Maximum number of rows; 0: all. [default: 20]"),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="LIST", help="Columns, such as time,cwnd.")
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", metavar="NAME", help="Rows of this flow.")] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Rows that meet a condition, such as 'cwnd > 10'."),
    ] = None,
    form: Annotated[
        Literal["csv", "parquet", "json"] | None,
        typer.Option("--format", "-f", help="All rows in this format."),
    ] = None,
    level: Level = None,
    json: Json = False,
) -> None:
    """Print the summary of a result, or rows of a table."""
    _refuse_study(run)
    confidence = level_of(level)
    if table is None and (columns or flow or where or form or limit is not None):
        raise CommandError(
            "--limit, --columns, --flow, --where and --format choose rows of a table",
            Code.INPUT,
            "add --table NAME",
        )
    with results([run]) as (loaded,):
        if table is not None:
            frame = _chosen(loaded, table, columns, flow, where)
            if form is None:
                _rows(frame, table, 20 if limit is None else limit, json)
            else:
                _write(frame.head(limit) if limit else frame, form)
        elif json:
            _summary_json(loaded, confidence)
        else:
            _summary(loaded, confidence)


def _refuse_study(path: Path) -> None:
    """A study has cells, not one summary."""
    from tcplab.results.listing import is_study

    if is_study(path):
        raise CommandError(
            f"{path} is a study",
            Code.INPUT,
            f"tcplab study report {quote(str(path))}; results of its cells: {path}/cells",
        )


def _summary(run: Run, level: float) -> None:
    from tcplab.cli.output import say, show, warn
    from tcplab.present.summary_table import summary
    from tcplab.quantities import plural, seconds
    from tcplab.results.manifest import local_time
    from tcplab.results.writer import REPORT_FILE

    manifest = run.manifest
    wall = sum(each.wall_duration or 0.0 for each in run.manifests.values())
    took = f" in {seconds(wall)}" if wall else ""
    place = f" on {run.engine}" if run.engine else ""
    say(f"{run.name}: {plural(len(run.repetitions), 'run')}{place}{took}, {run.status}")
    if manifest.started:
        say(f"started {local_time(manifest.started)}, seed {manifest.seed}, tcplab {manifest.tcplab}")
    for text in run.warnings:
        warn(f"tcplab: warning: {text}")
    for number, each in run.manifests.items():
        for what in each.faults:
            warn(f"run {number} {what}")
    say()
    show(summary(run, level=level))
    say()
    from tcplab.results import TABLES

    counts = [f"{name} {len(run.tables[name])}" for name in TABLES if len(run.tables[name])]
    say(f"rows     {', '.join(counts) or 'none'}")
    report = run.path / REPORT_FILE
    if report.exists():
        say(f"report   {report}")


def _summary_json(run: Run, level: float) -> None:
    from tcplab.analysis.summaries import summary
    from tcplab.cli.output import say_json

    say_json(
        {
            "name": run.name,
            "path": str(run.path),
            "engine": run.engine,
            "status": run.status,
            "warnings": run.warnings,
            "manifests": [each.to_data() for each in run.manifests.values()],
            "summary": summary(run, level=level).to_json(),
        }
    )


def _chosen(run: Run, name: str, columns: str | None, flow: str | None, where: str | None) -> pl.DataFrame:
    """The rows and columns of a table that were asked for."""
    import polars as pl

    from tcplab.results import TABLES

    if name not in TABLES:
        raise CommandError(f"unknown table {name!r}", Code.INPUT, f"tables: {', '.join(TABLES)}")
    frame = run.tables[name]
    if flow is not None:
        if "flow" not in frame.columns:
            raise CommandError(f"--flow: the table {name} has no column flow", Code.INPUT)
        found = frame["flow"].unique().drop_nulls().sort().to_list()
        if flow not in found:
            there = ", ".join(found) or "none"
            raise CommandError(f"--flow: unknown flow {flow!r} in this table", Code.INPUT, f"flows: {there}")
        frame = frame.filter(pl.col("flow") == flow)
    if where is not None:
        try:
            frame = frame.filter(pl.sql_expr(where))
        except pl.exceptions.PolarsError as problem:
            reason = str(problem).partition("\n")[0]
            raise CommandError(f"--where {where}: {reason}", Code.INPUT) from None
    wanted = [*dict.fromkeys(column.strip() for column in (columns or "").split(",") if column.strip())]
    for column in wanted:
        if column not in frame.columns:
            known = f"columns of {name}: {', '.join(frame.columns)}"
            raise CommandError(f"--columns: unknown column {column!r}", Code.INPUT, known)
    return frame.select(wanted) if wanted else frame


def _write(frame: pl.DataFrame, form: str) -> None:
    """Rows to standard output for other programs; in CSV and JSON control characters are escaped."""
    from io import BytesIO

    data = BytesIO()
    if form == "parquet":
        frame.write_parquet(data, compression="zstd")
    elif form == "json":
        frame.write_json(data)
        data.write(b"\n")
    else:
        frame.write_csv(data)
    sys.stdout.flush()
    sys.stdout.buffer.write(data.getvalue())


def _rows(frame: pl.DataFrame, name: str, limit: int, json: bool) -> None:
    from tcplab.results import TABLES

    shown = frame.head(limit) if limit else frame
    if json:
        from tcplab.cli.output import say_json

        say_json({"table": name, "rows": shown.to_dicts()})
        return
    from tcplab.cli.output import say, table, warn

    if frame.is_empty():
        say(f"the table {name} is empty")
        return
    # A column that holds nothing (what this engine cannot know) only takes room.
    known = [column for column in shown.columns if shown[column].null_count() < len(shown)]
    units = {column.name: column.unit for column in TABLES[name]}
    heads = [f"{column} ({units[column]})" if units.get(column) else column for column in known]
    rows: list[list[Any]] = [[_cell(value) for value in row] for row in shown.select(known).iter_rows()]
    numeric = [head for head, column in zip(heads, known, strict=True) if shown[column].dtype.is_numeric()]
    table(heads, rows, right=numeric)
    if len(shown) < len(frame):
        warn(f"{len(shown)} of {len(frame)} rows (--limit 0 shows all)")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.9g}" if isinstance(value, float) else str(value)
