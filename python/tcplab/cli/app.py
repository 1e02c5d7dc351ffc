"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from tcplab.cli import (
    calc,
    cc,
    check,
    compare,
    doctor,
    echo,
    export,
    listing,
    pcap,
    report,
    run,
    schema,
    show,
    study,
    tune,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help costs 0.11 s, boxes drawn by rich 0.35 s.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for name, command, example in (
    ("run", run.run, run.EXAMPLE),
    ("check", check.check, check.EXAMPLE),
    ("list", listing.list_runs, listing.EXAMPLE),
    ("show", show.show, show.EXAMPLE),
    ("tune", tune.tune, tune.EXAMPLE),
    ("calc", calc.calc, calc.EXAMPLE),
    ("report", report.report, report.EXAMPLE),
    ("compare", compare.compare, compare.EXAMPLE),
    ("export", export.export, export.EXAMPLE),
    ("pcap", pcap.pcap, pcap.EXAMPLE),
    ("schema", schema.schema, schema.EXAMPLE),
    ("doctor", doctor.doctor, doctor.EXAMPLE),
):
    # A line that begins with a backspace keeps its paragraph from being wrapped.
    app.command(name, epilog=f"\b\nExample:\n  {example}")(command)


app.add_typer(cc.app, name="cc")
app.add_typer(echo.app, name="echo")


app.add_typer(study.app, name="study")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"tcplab {version('tcplab')}")
        except PackageNotFoundError:
            typer.echo("tcplab (run from its source tree, not installed)")
        raise typer.Exit


@app.callback()
def tcplab(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A laboratory for TCP performance.

    One scenario file describes a network, the traffic and what to measure; one command runs it and answers
    with tables, statistics, plots and a report.

    Exit codes: 0 done, 1 the test's answer is no, 2 the input is wrong, 3 the machine can't, 130 interrupted.
    """
