"""A compiler's messages explained: the mistakes of a control's file, in words and at its own lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from tcplab.cc.errors import ControlFileError, Mistake, NoCompilerError, printable

_MESSAGE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$")
# Where a macro of a header is used, which gcc says after the message.
_EXPANDED = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): note: in expansion of macro")
# An error that the headers report of the whole file makes the other messages meaningless.
_WHOLE = re.compile(r"a control begins with|(?P<list>PHASES|PARAMETERS|GAUGES) is not a list")
_LISTS = ("CONTROL", "PHASES", "PARAMETERS", "GAUGES")
_TELEMETRY = re.compile(
    r"has no member named 'telemetry'|no member named 'telemetry' in|TELEMETRY is not the first"
)
# LLVM before 18 names the place in the instruction that it cannot make.
_SIGNED = re.compile(r"[Uu]nsupport(?:ed)? signed division(?:.*?:(?P<line>\d+):(?P<column>\d+))?")
# When there is something else to say, gcc mentions the -Wno- options too that it does not know.
_OPTION = re.compile(r"error: unrecognized command-line option '(?!-Wno-)")
_ABSENT = re.compile(r"undefined reference to `(?P<name>[^']+)'|undefined symbol: (?P<symbol>\S+)")
_CALLED = re.compile(r"A call to built-in function '(?P<name>\w+)' is not supported")
# The compiler's own functions for what the processor does not have.
_FLOATING = re.compile(r"__\w*[sdt]f\d?$|__\w*(?:float|fix)\w*$")
_NO_FLOATING = (
    "the kernel has no floating point: compute with scaled whole numbers, such as x * 717 >> 10 for 0.7 x"
)
_NO_SIGNED = "the kernel has no signed division: divide unsigned numbers, and treat the sign apart"


def refused(compiler: str, file: Path, text: str, said: str) -> Exception:
    """Errors of a compiler that rejects a file: it cannot do this at all, or the file is wrong."""
    if "compatible with triple" in said or "unknown target triple" in said:
        return NoCompilerError(f"{compiler} does not compile for eBPF", "sudo apt-get install clang")
    said = said.translate({0x2018: "'", 0x2019: "'"})
    if _OPTION.search(said) or "libubsan" in said:
        return NoCompilerError(f"{compiler} cannot do this: {said.splitlines()[0]}", "use another, with CC")
    mistakes = list(dict.fromkeys([*_compiled(said, file, text), *_linked(said, file, text)]))
    mistakes = _of_the_whole(mistakes, text, file) or mistakes
    if not mistakes:
        reason = next((line for line in said.splitlines() if line.strip()), "no reason given")
        mistakes = [Mistake(compiler, 0, 0, reason)]
    return ControlFileError(str(file), "does not compile", mistakes)


def _compiled(said: str, file: Path, text: str) -> Iterator[Mistake]:
    lines = said.splitlines()
    for number, line in enumerate(lines):
        found = _MESSAGE.match(line)
        if found is None:
            signed = _SIGNED.search(line)
            if signed and signed["line"]:
                yield Mistake(str(file), int(signed["line"]), int(signed["column"]), _NO_SIGNED)
            continue
        place = (found["file"], int(found["line"]), int(found["column"]))
        if place[0] != str(file):
            place = _expanded(lines[number + 1 :], file) or place
        words = _plain(found["text"])
        if _TELEMETRY.search(words):
            words = "struct state does not begin with TELEMETRY, which the tools read there"
            place = (str(file), *_line(text, r"struct\s+state\s*\{"))
        elif _SIGNED.search(words):
            words = _NO_SIGNED
        elif called := _CALLED.match(words):
            name = called["name"]
            words = f"it calls {name}, which the kernel does not offer"
            words = _NO_FLOATING if _FLOATING.match(name) else words
        yield Mistake(_shown(place[0]), place[1], place[2], words)


def _linked(said: str, file: Path, text: str) -> Iterator[Mistake]:
    for found in _ABSENT.finditer(said):
        name = found["name"] or found["symbol"]
        words = f"it calls {name}, which is not there: a control has only what tcplab_cc.h gives"
        yield Mistake(str(file), *_line(text, rf"\b{re.escape(name)}\s*\("), words)


def _of_the_whole(mistakes: list[Mistake], text: str, file: Path) -> list[Mistake]:
    """The mistakes that make the others, if there are such."""
    found = []
    for mistake in mistakes:
        whole = _WHOLE.match(mistake.message)
        if whole and whole["list"]:
            place = _line(text, rf"#\s*define\s+{whole['list']}\b")
            found.append(Mistake(str(file), *place, mistake.message))
        elif whole:
            found.append(mistake)
    return found or list(_misspelt(text, file))


def _misspelt(text: str, file: Path) -> Iterator[Mistake]:
    """Definitions before the header that nearly have a name which it knows, and does not find."""
    head = text.partition('"tcplab_cc.h"')[0]
    defined = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", head, re.MULTILINE)
    absent = [name for name in _LISTS if name not in defined]
    for name in defined:
        near = [] if name in _LISTS else difflib.get_close_matches(name, absent, n=1, cutoff=0.8)
        if near:
            place = _line(text, rf"#\s*define\s+{name}\b")
            yield Mistake(str(file), *place, f"tcplab_cc.h does not have {name}: did you mean {near[0]}?")


def _expanded(lines: list[str], file: Path) -> tuple[str, int, int] | None:
    """Where the file uses the macro that a message is about."""
    for line in lines:
        if _MESSAGE.match(line):
            return None
        found = _EXPANDED.match(line)
        if found and found["file"] == str(file):
            return found["file"], int(found["line"]), int(found["column"])
    return None


def _line(text: str, pattern: str) -> tuple[int, int]:
    """Line and column of the first match; 0 where there is none."""
    found = re.search(pattern, text)
    if found is None:
        return 0, 0
    begin = text.rfind("\n", 0, found.start()) + 1
    return text.count("\n", 0, begin) + 1, found.start() - begin + 1


def _shown(file: str) -> str:
    """A header of ours by its name: where the cache keeps it says nothing."""
    return Path(file).name if Path(file).parent.name.startswith("include-") else file


def _plain(text: str) -> str:
    """A message without quotes, the option that asked for it, and the names of what the headers make."""
    text = re.sub(r" \[-W[^\]]*\]$", "", text)
    text = re.sub(r"static_assert failed due to requirement '.*' (?=\")", "", text)
    text = re.sub(r"static assertion failed due to requirement '[^']*'(?:: )?", "", text)
    text = re.sub(r"^(#error |static assertion failed: |static_assert failed )", "", text)
    return printable(text.strip('"'))
