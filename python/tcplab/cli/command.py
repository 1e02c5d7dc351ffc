"""Common parts of all commands: --quiet, --verbose, usage errors, earlier spellings, optional values."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from tcplab.cli.failure import Code, complain, report
from tcplab.cli.old_spellings import respelled
from tcplab.cli.output import configure, warn
from tcplab.safe_text import visible

# typer keeps a copy of click to itself; this is the class of click that typer's own errors are of.
_UsageError: Any = typer.BadParameter.__base__
# typer names the type of its own code.
_NUMBER = re.compile(r"is not a valid int(?:eger)?(?: range)?$")

# Commands that take `-` as a name of standard output; others would make a file called `-`.
_TO_STANDARD_OUTPUT = ("export", "schema", "topo capture", "topo import")

NOT_A_STREAM = "this command does not write to standard output; name a file or directory"


class Command(TyperCommand):
    """A command with `--quiet` and `--verbose`."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._paths: list[Any] = [param for param in self.params if hasattr(param.type, "readable")]
        self._ranges = [param.type for param in self.params if hasattr(param.type, "_describe_range")]
        for param in self.params:
            if param.type in self._ranges:
                param.metavar = param.metavar or "N"
        for param in self._paths:
            # Whoever opens the file says why it cannot be read, as of any other reason.
            param.type.readable = False
        self.params += [
            TyperOption(
                param_decls=["--quiet", "-q"],
                is_flag=True,
                default=False,
                expose_value=False,
                callback=_quiet,
                help="Print no progress and no summary: only results, warnings and errors.",
            ),
            TyperOption(
                param_decls=["--verbose", "-v"],
                count=True,
                type=int,
                default=0,
                expose_value=False,
                callback=_verbose,
                help="Log to standard error; -vv logs more.",
            ),
        ]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help without ranges, `0<=x<=65535`: they stand in the message about a number outside."""
        described = [one._describe_range for one in self._ranges]
        try:
            for one in self._ranges:
                one._describe_range = str
            super().format_help(ctx, formatter)
        finally:
            for one, describe in zip(self._ranges, described, strict=True):
                one._describe_range = describe

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments by their metavars, without typer's braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the command's name."""
        name = ctx.command_path.partition(" ")[2]
        if not name.startswith("topo "):
            # Programs in a node get any words; ours are names of files, which tables and JSON hold as text.
            _refuse_undecoded(args, ctx)
        current, warnings = respelled(name, args)
        current = _with_defaults(
            current, {name: word for param in self.params for name, word in _words(param)}
        )
        for text in () if ctx.resilient_parsing else warnings:
            warn(f"tcplab: warning: {text}")
        try:
            rest = super().parse_args(ctx, current)
            for param in self._paths:
                _refuse_path(param, ctx, streams=name in _TO_STANDARD_OUTPUT)
            return rest
        except _UsageError as problem:
            # Some do not know which command they are of.
            problem.ctx = problem.ctx or ctx
            raise


def _refuse_path(param: Any, ctx: Any, *, streams: bool) -> None:
    """Fail if the path is empty, or is `-` and an option that names a file to write.

    `Path("")` would be the working directory, and `Path("-")` a file of that name.
    """
    value = ctx.params[param.name]
    values = value if isinstance(value, list | tuple) else [value]
    if "" in values:
        raise typer.BadParameter("the path is empty", ctx, param)
    name = param.opts[0]
    if name.startswith("-") and "-" in values and not (streams and name == "--output"):
        raise _UsageError(f"{name} -: {NOT_A_STREAM}", ctx)


def _refuse_undecoded(args: list[str], ctx: Any) -> None:
    for word in args:
        if any("\udc80" <= character <= "\udcff" for character in word):
            raise _UsageError(f"{visible(word)} is not {sys.getfilesystemencoding().upper()}", ctx)


class DefaultGroup(TyperGroup):
    """A group one of whose commands need not be named: `tcplab study NAME` is `tcplab study run NAME`."""

    default = "run"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant."""
        if args and args[0] not in self.commands:
            args = [self.default, *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the group's name."""
        # Options before the argument belong to the default command, too.
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and the argument of the one that need not be named."""
        found = super().shell_complete(ctx, incomplete)
        command = self.commands[self.default]
        argument = next(param for param in command.params if param.param_type_name == "argument")
        with command.make_context(self.default, [], parent=ctx, resilient_parsing=True) as inner:
            return [*found, *argument.shell_complete(inner, incomplete)]


def _words(param: Any) -> Iterator[tuple[str, str]]:
    """The names of an option whose value may be left out, and the value that it then has."""
    metavar = param.metavar or ""
    if metavar.startswith("["):
        yield from ((name, "auto") for name in param.opts if name.startswith("--"))


def _with_defaults(args: list[str], words: dict[str, str]) -> list[str]:
    """Arguments in which each of these options has a value."""
    made: list[str] = []
    for arg, following in zip(args, [*args[1:], "-"], strict=False):
        made.append(arg)
        if arg in words and following.startswith("-"):
            made.append(words[arg])
    return made


@contextmanager
def usage_errors() -> Iterator[None]:
    """A command line that is wrong ends like any wrong input: `tcplab: error:`, and a hint."""
    try:
        yield
    except _UsageError as problem:
        # A group without a command prints its help, which is not an error message.
        if type(problem).__name__ == "NoArgsIsHelpError":
            raise
        path = problem.ctx.command_path if problem.ctx is not None else "tcplab"
        # Of a missing choice it has them in lines of their own.
        message = re.sub(
            r"[:,]?\n\t", lambda line: ": " if line[0][0] == ":" else ", ", problem.format_message()
        )
        message = message[:1].lower() + message[1:].rstrip(".")
        message = _NUMBER.sub("is not a whole number", message)
        complain(f"tcplab: error: {message}\nhint: {path} --help\n")
        raise typer.Exit(Code.INPUT) from None
    except OSError as problem:
        # Help that could not be written: typer would end with 1, or Python with a traceback.
        raise typer.Exit(report(problem)) from None


def _quiet(_ctx: Any, _param: Any, value: bool) -> None:
    configure(quiet=value)


def _verbose(_ctx: Any, _param: Any, value: int) -> None:
    configure(level={0: logging.WARNING, 1: logging.INFO}.get(value, logging.DEBUG))
