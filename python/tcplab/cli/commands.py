"""The commands by name, each imported only when it is used: that saves 0.1 s of start."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from tcplab.cli.command import Command as CommandOfAll
from tcplab.cli.command import usage_errors


@dataclass(frozen=True)
class Command:
    """Where a command is, and what the list of commands says of it."""

    module: str
    """Under `tcplab.cli`."""
    about: str
    """The first sentence of its own help."""
    function: str | None = None
    """The function, beside which `EXAMPLE` stands; None: the module's `app` has commands of its own."""


COMMANDS = {
    "run": Command("run", "Run scenarios, print a summary and write a report.", "run"),
    "check": Command("check", "Validate scenarios or studies and show what would run.", "check"),
    "new": Command("new", "Write a scenario to begin with, and its JSON Schema for editors.", "new"),
    "examples": Command("examples", "List or copy the scenarios that come with tcplab."),
    "list": Command("listing", "List the results below a directory, newest first.", "list_runs"),
    "show": Command("show", "Print the summary of a result, or rows of a table.", "show"),
    "study": Command("study", "Run a scenario over a parameter grid and compare the results."),
    "tune": Command("tune", "Find the best configuration of a scenario for a goal.", "tune"),
    "calc": Command("calc", "Compute the limits of TCP on a path: window, loss and recovery.", "calc"),
    "report": Command("report", "Write the reports of results and studies, or their figures.", "report"),
    "compare": Command("compare", "Compare two or more results, flow by flow.", "compare"),
    "export": Command("export", "Write a result in the format of another tool.", "export"),
    "echo": Command("echo", "Measure request-response times over TCP, by message size and clients."),
    "bulk": Command("bulk", "Measure the throughput to another machine."),
    "ping": Command("ping", "Measure round-trip times to another machine.", "ping"),
    "serve": Command(
        "serve", "Let others use this machine as a host of their runs, until interrupted.", "serve"
    ),
    "pcap": Command("pcap", "Analyze captures: flows, losses, round-trip times, packets."),
    "cc": Command("cc", "Congestion controls: list, check, create, register for the whole system."),
    "topo": Command("topo", "Networks that stay up: build, list, open a shell in a node, change, remove."),
    "ui": Command("ui", "Draw networks, run them and watch TCP, in a browser.", "ui"),
    "schema": Command("schema", "Print the JSON Schema of scenarios or studies, for editors.", "schema"),
    "doctor": Command(
        "doctor",
        "Check whether this machine can run the kernel engine, or another machine can run the remote engine.",
        "doctor",
    ),
}


class Group(TyperGroup):
    """A group that imports a command when it is asked for, not to list it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded()

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Parse the words in front of the command."""
        with usage_errors():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Parse the words behind the command, and run it."""
        with usage_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.about) for name, command in COMMANDS.items()])


class _Loaded(MutableMapping[str, Any]):
    """The commands; each is imported when it is first looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _load(name, COMMANDS[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _load(name: str, command: Command) -> Any:
    module = import_module(f"tcplab.cli.{command.module}")
    if command.function is None:
        for info in module.app.registered_commands:
            info.cls = CommandOfAll
        group = typer.main.get_group(module.app)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    # A line that begins with a backspace keeps its paragraph from being wrapped.
    alone.command(name, cls=CommandOfAll, epilog=f"\b\nExample:\n  {module.EXAMPLE}")(
        getattr(module, command.function)
    )
    return typer.main.get_command(alone)
