"""Compiling a control: natively, as a shared object for the simulator, and as eBPF for the running kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcplab.cc import cache
from tcplab.cc.errors import ControlFileError, Mistake, NoCompilerError

# As crates/control/build.rs and crates/kernelcc/build.rs compile tcplab's own.
_LANGUAGE = ("-std=gnu11", "-O2", "-fno-diagnostics-color")
_NATIVE = (*_LANGUAGE, "-ffreestanding", "-fPIC", "-shared", "-DTL_SHARED")
# A control calls nothing, so nothing is linked; except what tells of undefined behaviour.
_PLAIN = ("-nostdlib",)
_EBPF = (*_LANGUAGE, "-target", "bpf", "-g", "-c")
_CHECKED = ("-fsanitize=undefined", "-fno-sanitize-recover=all", "-g")
# The variable that names the compiler, the names it is looked for by, and what to say and install without it.
_Wanted = tuple[str, tuple[str, ...], str, str]
_NATIVE_COMPILER: _Wanted = ("CC", ("cc", "gcc", "clang"), "no C compiler is installed", "gcc libc6-dev")
_EBPF_COMPILER: _Wanted = (
    "CLANG",
    ("clang",),
    "clang is not installed, which compiles for the kernel",
    "clang",
)
# A control is compiled in a fraction of a second.
_PATIENCE = 60.0
# The directory of the headers in the cache begins so, and so does what they say of a file as a whole.
_HEADERS = "include-"
_WHOLE = "a control begins with"
_MESSAGE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$")


@dataclass(frozen=True)
class Source:
    """A control's text, and the file that it came from."""

    file: Path
    text: str

    @staticmethod
    def read(file: Path) -> Source:
        """Read a file; raises ControlFileError."""
        try:
            return Source(file.absolute(), file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not a text"
            raise ControlFileError(str(file), f"cannot be read: {reason}") from None


def native(source: Source, *, checked: bool = False) -> Path:
    """The shared object; `checked` makes undefined behaviour end the program with a message.

    Raises ControlFileError and NoCompilerError.
    """
    compiler = _program(*_NATIVE_COMPILER)
    return _compiled(compiler, (*_NATIVE, *(_CHECKED if checked else _PLAIN)), source, ".so")


def ebpf(source: Source) -> Path:
    """The eBPF object; raises ControlFileError and NoCompilerError."""
    compiler = _program(*_EBPF_COMPILER)
    return _compiled(compiler, _EBPF, source, ".o")


def missing() -> list[NoCompilerError]:
    """What this machine lacks for compiling a user's controls: for the simulator, for the kernel."""
    found = []
    for wanted in (_NATIVE_COMPILER, _EBPF_COMPILER):
        try:
            _program(*wanted)
        except NoCompilerError as problem:
            found.append(problem)
    return found


def headers() -> Path:
    """The directory of tcplab_cc.h and the headers that it includes."""
    from tcplab import _core

    files, _ = _core.control_files("")

    def make(place: Path) -> None:
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")

    parts = [part for name in sorted(files) for part in (name, files[name])]
    return cache.kept(f"{_HEADERS}{cache.key(*parts)}", make)


def _program(variable: str, names: Sequence[str], missing: str, packages: str) -> str:
    named = os.environ.get(variable)
    for name in [named] if named else names:
        found = shutil.which(name)
        if found:
            return found
    missing = f"{variable} names {named}, which is no program" if named else missing
    raise NoCompilerError(missing, f"sudo apt-get install {packages}")


def _compiled(compiler: str, options: Sequence[str], source: Source, suffix: str) -> Path:
    include = headers()
    which = Path(compiler).resolve()
    stat = which.stat()
    identity = (str(which), str(stat.st_size), str(stat.st_mtime_ns), *options)
    name = cache.key(include.name, *identity, str(source.file), source.text) + suffix
    return cache.kept(name, lambda place: _compile(compiler, options, source, include, place))


def _compile(compiler: str, options: Sequence[str], source: Source, include: Path, place: Path) -> None:
    # From a pipe: what is compiled is what the cache knows it by, whatever becomes of the file meanwhile.
    text = f'#line 1 "{_quoted(str(source.file))}"\n{source.text}'
    try:
        done = subprocess.run(
            [compiler, *options, "-x", "c", "-", "-I", str(include), "-o", str(place)],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PATIENCE,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise ControlFileError(
            str(source.file), f"took {_PATIENCE:g} s to compile and was given up"
        ) from None
    except OSError as problem:
        raise NoCompilerError(f"{compiler} cannot be run: {problem.strerror}", "install it again") from None
    if done.returncode:
        raise _refused(compiler, source, done.stderr.decode(errors="replace"))


def _refused(compiler: str, source: Source, said: str) -> Exception:
    """What the compiler's messages mean: it cannot do this at all, or the file is wrong."""
    if "compatible with triple" in said or "unknown target triple" in said:
        return NoCompilerError(f"{compiler} does not compile for eBPF", "sudo apt-get install clang")
    if "unrecognized command-line option" in said or "libubsan" in said:
        return NoCompilerError(f"{compiler} cannot do this: {said.splitlines()[0]}", "use another, with CC")
    found = [match for line in said.splitlines() if (match := _MESSAGE.match(line))]
    mistakes = [
        Mistake(_shown(m["file"]), int(m["line"]), int(m["column"]), _plain(m["text"])) for m in found
    ]
    # What the headers say of a file as a whole makes the rest of it senseless.
    of_the_whole = [mistake for mistake in mistakes if mistake.message.startswith(_WHOLE)]
    mistakes = of_the_whole or mistakes
    if not mistakes:
        told = next((line for line in said.splitlines() if line.strip()), "no reason given")
        mistakes = [Mistake(compiler, 0, 0, told)]
    return ControlFileError(str(source.file), "does not compile", mistakes)


def _shown(file: str) -> str:
    """A header of ours by its name: where the cache keeps it says nothing."""
    return Path(file).name if Path(file).parent.name.startswith(_HEADERS) else file


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """A message with straight quotes, and without the names of what the headers make."""
    text = text.translate({0x2018: "'", 0x2019: "'"})
    return re.sub(r"^(#error |static assertion failed: |static_assert failed )", "", text).strip('"')
