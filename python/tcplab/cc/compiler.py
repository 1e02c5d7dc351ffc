"""Compiling a control: natively, as a shared object for the simulator, and as eBPF for the running kernel."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcplab.cc import cache, companion
from tcplab.cc.diagnostics import refused
from tcplab.cc.errors import ControlFileError, NoCompilerError

_LOG = logging.getLogger(__name__)

# As crates/control/build.rs and crates/kernelcc/build.rs compile tcplab's own.
_LANGUAGE = ("-std=gnu11", "-O2", "-fno-diagnostics-color")
_NATIVE = (*_LANGUAGE, "-ffreestanding", "-fPIC", "-shared", "-DTL_SHARED")
# Compilers' default warnings are errors in a control, and so is a variable without a value. Warnings about
# style stay warnings, and so does a division by zero: the run explains it better.
_STRICT = (
    "-Werror",
    "-Wuninitialized",
    "-Wmaybe-uninitialized",
    "-Wreturn-type",
    "-Wno-unknown-warning-option",
    "-Wno-error=cpp",
    "-Wno-error=div-by-zero",
    "-Wno-error=attributes",
    "-Wno-error=deprecated-declarations",
)
# The C library is linked to find names that are in no library: neither a control nor the kernel uses it.
_PLAIN = (*_STRICT, "-nostdlib", *(("-Wl,-z,defs", "-lc", "-lgcc") if sys.platform == "linux" else ()))
# A crash shall show what it is: gcc would put SIGILL in place of a division by zero that it sees.
_CRASHING = ("-fno-isolate-erroneous-paths-dereference",)
_EBPF = (*_LANGUAGE, *_STRICT, "-target", "bpf", "-g", "-c")
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
# A control is compiled in a fraction of a second: CPU time, and time, seconds.
_CPU = 60
_PATIENCE = 300.0
# A control's file is not longer, bytes.
_LONGEST = 1 << 20
# The directory of the headers in the cache begins so.
_HEADERS = "include-"


@dataclass(frozen=True)
class Source:
    """A control's text, and the file that it came from."""

    file: Path
    text: str

    @staticmethod
    def read(file: Path) -> Source:
        """Read a file; raises ControlFileError."""
        try:
            # A device such as /dev/zero never ends.
            with file.open("rb") as stream:
                data = stream.read(_LONGEST + 1)
            if len(data) > _LONGEST:
                raise ControlFileError(str(file), f"is longer than {_LONGEST} B, which no control is")
            text = data.decode("utf-8")
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
            raise ControlFileError(str(file), f"cannot be read: {reason}") from None
        if "\0" in text:
            raise ControlFileError(str(file), "cannot be read: not a text file")
        return Source(file.absolute(), text.replace("\r\n", "\n").replace("\r", "\n"))


def native(source: Source, *, checked: bool = False) -> Path:
    """The shared object; `checked` makes undefined behaviour end the program with a message.

    Raises ControlFileError and NoCompilerError.
    """
    compiler = _program(*_NATIVE_COMPILER)
    crashing = () if "clang" in Path(compiler).resolve().name else _CRASHING
    return _compiled(compiler, (*_NATIVE, *crashing, *(_CHECKED if checked else _PLAIN)), source, ".so")


def ebpf(source: Source) -> Path:
    """The eBPF object; raises ControlFileError and NoCompilerError."""
    compiler = _program(*_EBPF_COMPILER)
    return _compiled(compiler, _EBPF, source, ".o")


def missing() -> list[NoCompilerError]:
    """Tools that this machine lacks for compiling a user's controls: for the simulator, for the kernel."""
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
    missing = f"{variable} names {named}, which is not a program" if named else missing
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
    # The linker looks into libraries for what it knows to be missing: they come after the text.
    command = [compiler, "-x", "c", "-", "-I", str(include), "-o", str(place), *options]
    _LOG.info("%s: %s", source.file, " ".join(command))
    try:
        code, said = companion.run(
            command, text.encode(), cpu=_CPU, timeout=_PATIENCE, env={**os.environ, "LC_ALL": "C"}
        )
    except subprocess.TimeoutExpired:
        raise ControlFileError(str(source.file), f"took {_PATIENCE:g} s to compile: stopped") from None
    except OSError as problem:
        raise NoCompilerError(f"{compiler} cannot be run: {problem.strerror}", "install it again") from None
    if code == -signal.SIGKILL:
        raise ControlFileError(str(source.file), f"took {_CPU} s of CPU time to compile: stopped")
    if code:
        raise refused(compiler, source.file, source.text, said.decode(errors="replace"))


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
