"""`tcplab ui`: draw networks, run them and watch TCP in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import readable

EXAMPLE = "tcplab ui scenarios"


@guarded
def ui(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Directory of scenarios and results.")
    ] = Path(),
    host: Annotated[
        str, typer.Option("--bind", "--host", metavar="ADDR", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65535, metavar="N", help="Port to listen on; 0: any free one."
        ),
    ] = 8020,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Change no file and run nothing on the kernel.")
    ] = False,
    allow_run: Annotated[
        bool,
        typer.Option(
            "--allow-run",
            help="When not on loopback, allow kernel runs, networks with terminals, studies and own C files.",
        ),
    ] = False,
    base_path: Annotated[
        str, typer.Option(metavar="PATH", help="URL path of the page behind a reverse proxy.")
    ] = "",
    name: Annotated[
        list[str] | None,
        typer.Option("--server-name", metavar="HOST", help="A further host name of this server. Repeatable."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Draw networks, run them and watch TCP, in a browser."""
    readable(directory)
    if not host:
        # To bind(2) it would be all addresses.
        raise CommandError("--bind: '' is not an address", Code.INPUT)
    try:
        from tcplab.server.app import PAGE
        from tcplab.server.serve import Settings, serve
    except ModuleNotFoundError as problem:
        hint = "pip install 'tcplab[ui]'"
        raise CommandError(f"the module {problem.name} is missing", Code.MACHINE, hint) from None
    if not (PAGE / "index.html").is_file():
        raise CommandError("the page is not built", Code.MACHINE, "run `make ui` in the source tree")
    settings = Settings(
        directory, host, port, read_only, allow_run, base_path, tuple(name or ()), open_browser=browser
    )
    try:
        serve(settings)
    except OSError as problem:
        hint = "choose another with --port" if problem.errno == 98 else ""
        raise CommandError(
            f"cannot listen on {host} port {port}: {problem.strerror}", Code.MACHINE, hint
        ) from None
