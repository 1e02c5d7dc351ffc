"""How the views of `tcplab pcap` read captures, and print."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.cli.failure import Code, CommandError

if TYPE_CHECKING:
    from tcplab.captures.flow import Flow
    from tcplab.captures.flows import Flows
    from tcplab.captures.packets import Packets
    from tcplab.captures.summary import Summary

# A file without a name is gone when the process is, however that ends.
_KEPT: list[Any] = []


def captures_of(paths: list[Path]) -> list[Path]:
    """The captures; of a result directory, all in it."""
    from tcplab.captures.errors import refused
    from tcplab.captures.run_captures import captures_in

    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        try:
            inside = captures_in(path)
        except OSError as problem:
            raise CommandError(str(refused(Path(problem.filename), problem)), Code.INPUT) from None
        if not inside:
            raise CommandError(
                f"{path}: holds no captures (a scenario with `capture: headers` makes some)", Code.INPUT
            )
        found += inside
    return found


def only(captures: list[Path], what: str) -> Path:
    """The one capture that a view looks at."""
    if len(captures) > 1:
        raise CommandError(f"{what} looks at one capture, not at {len(captures)}: name one", Code.INPUT)
    return captures[0]


def summary_of(path: Path, filter_text: str | None, named: Path | None = None) -> Summary:
    """The flows of a capture that a filter means; messages call it `named`."""
    from tcplab.captures.errors import CaptureError
    from tcplab.captures.summary import summarise

    try:
        with interruptible():
            return replace(summarise(path, filter_text), path=named or path)
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None


def flow_of(summary: Summary, number: int) -> Flow:
    """The flow with this number."""
    from tcplab.captures.errors import CaptureError

    try:
        return summary.flow(number)
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None


def only_flow(summary: Summary, number: int) -> Flows:
    """The flow with this number, as flows."""
    from tcplab.captures.errors import CaptureError

    try:
        return summary.only(number)
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None


def followed(path: Path, flows: list[int]) -> Packets:
    """The packets of these flows."""
    from tcplab.captures.errors import CaptureError
    from tcplab.captures.packets import follow

    try:
        with interruptible():
            packets, _ = follow(path, flows)
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    return packets


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once while compiled code reads a capture: there is nothing to tidy up."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def seekable(path: Path) -> Path:
    """The capture as a file that can be read twice: standard input is kept in one that goes when we do."""
    if str(path) != "-":
        return path
    import shutil
    import tempfile

    kept = tempfile.TemporaryFile()  # noqa: SIM115 (it is read for as long as the process lives)
    _KEPT.append(kept)
    shutil.copyfileobj(sys.stdin.buffer, kept)
    kept.flush()
    return Path(f"/proc/self/fd/{kept.fileno()}")


def width() -> int:
    """Characters of a terminal's line; 0 where lines may be as long as they need."""
    if not sys.stdout.isatty():
        return 0
    import shutil

    return shutil.get_terminal_size().columns


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they come."""
    from tcplab.cli.output import say

    for line in lines:
        say(line)


def print_wrapped(text: str) -> None:
    """Print a sentence, on more than one line where the terminal is narrow."""
    from tcplab.captures.listing import wrapped

    print_lines(wrapped("", text, width()))


def print_remarks(facts: dict[str, Any], near_receiver: Sequence[int] = ()) -> None:
    """Print what could not be read, and which RTTs are not those of the path."""
    from tcplab.captures.warnings import remarks

    said = list(remarks(facts))
    if near_receiver:
        which = ", ".join(map(str, near_receiver[:6])) + (", ..." if len(near_receiver) > 6 else "")
        said.append(
            f"captured near the receiver of the data (flow {which}): RTT is only that from here to the "
            "receiver, that of the handshake (hs rtt) is the whole"
        )
    if said:
        from tcplab.cli.output import say

        say()
        for text in said:
            print_wrapped(f"note: {text}")
