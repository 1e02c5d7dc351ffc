"""Common parts of servers' commands: addresses, values of options, and listening until interrupted."""

from __future__ import annotations

import json as json_text
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tcplab.cli.failure import Code, CommandError
from tcplab.process import ending_signals

Event = dict[str, Any]


def listen(mode: str, settings: dict[str, Any], describe: Callable[[Event], str], *, json: bool) -> None:
    """Run the agent in a mode that serves, and print what it says until Ctrl-C or SIGTERM.

    `describe` puts an event into words. Raises CommandError.
    """
    from tcplab.cli.output import say
    from tcplab.echo.agent import EchoAgent, EchoAgentError

    def show(event: Event) -> None:
        say(json_text.dumps(event) if json else describe(event))
        sys.stdout.flush()

    # Either is how a server ends when all is well.
    interrupt_on_signals()
    try:
        with suppress(KeyboardInterrupt), EchoAgent(mode, settings) as agent:
            try:
                for event in agent:
                    show(event)
            except KeyboardInterrupt:
                agent.stop()
                for event in agent:
                    show(event)
    except EchoAgentError as problem:
        raise CommandError(str(problem), Code.MACHINE, problem.hint) from None


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP as on SIGINT, and in a system call that waits.

    Where polars was imported, its handler of SIGINT has system calls go on.
    """
    for number in (signal.SIGINT, *ending_signals()):
        signal.signal(number, signal.default_int_handler)


def addresses_of(host: str | None, port: int, *, passive: bool = False) -> list[str]:
    """IP addresses with the port, as the agent reads them; all of this machine's for None."""
    if host == "":
        # To getaddrinfo(3) it would be all of them, too.
        raise CommandError("'': no address: it is not the name of a host", Code.INPUT)
    flags = socket.AI_PASSIVE if passive else socket.AI_ADDRCONFIG
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not the name of a host"
        name, _, behind = str(host).rpartition(":")
        hint = f"{name} --port {behind}" if name and behind.isdigit() else ""
        raise CommandError(f"{host}: no address: {reason}", Code.INPUT, hint) from None
    texts = []
    for family, _, _, _, address in found:
        if family == socket.AF_INET6 and not socket.has_ipv6:
            continue
        ip = str(address[0]).partition("%")[0]
        texts.append(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}")
    if passive and host is None and not _ipv6():
        texts = [text for text in texts if not text.startswith("[")]
    return list(dict.fromkeys(texts))


def _ipv6() -> bool:
    """Whether this machine lets IPv6 sockets be opened."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def value_of_option(text: str, kind: str, option: str) -> Any:
    """An option's value, of one of the scenario language's kinds."""
    from tcplab.scenario import QuantityError
    from tcplab.scenario.quantity import value_of

    try:
        return value_of(kind, text)
    except QuantityError as problem:
        near = f" (perhaps {problem.suggestion})" if problem.suggestion else ""
        raise CommandError(f"{option}: {problem.message}{near}", Code.INPUT) from None
