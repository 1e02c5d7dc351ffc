"""The `tcplab` command."""

from __future__ import annotations

import sys

try:
    # Ctrl-C must not print a traceback, from the first of our own lines on.
    import signal

    from tcplab.process import open_streams, settle
except KeyboardInterrupt:
    sys.exit(130)


def main() -> None:
    """Run the command line and leave with its exit code."""
    # A shell's background job starts with SIGINT ignored; whoever sends it means it all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settle()
    open_streams()
    try:
        # Typer takes 65 ms to import, in which Ctrl-C must not print a traceback either.
        if sys.argv[1:] == ["--version"]:
            from tcplab.cli.version import version_text

            sys.stdout.write(version_text() + "\n")
            sys.stdout.flush()
            return
        from tcplab.cli.app import app

        app(prog_name="tcplab")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:
        from tcplab.cli.failure import report

        sys.exit(report(problem))
