"""The `tcplab` command and its own options."""

from __future__ import annotations

from typing import Annotated

import typer

from tcplab.cli.commands import Group

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Plain help costs 0.1 s, boxes drawn by rich 0.35 s.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(asked: bool) -> None:
    if asked:
        from tcplab.cli.version import version_text

        typer.echo(version_text())
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

    Exit codes: 0 done, 1 a check or expectation failed, 2 wrong input, 3 not possible on this machine, 4 a
    run failed, 70 a bug in tcplab, 130 interrupted.
    """
