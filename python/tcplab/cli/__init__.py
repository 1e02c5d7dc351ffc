"""The `tcplab` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        # Typer takes a tenth of a second to import, in which Ctrl-C must not print a traceback either.
        from tcplab.cli.app import app

        app(prog_name="tcplab")
    except KeyboardInterrupt:
        sys.exit(130)
