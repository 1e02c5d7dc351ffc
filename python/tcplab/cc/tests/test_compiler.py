"""Compiling a file: what comes of it, what is kept, and what is said of mistakes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tcplab.cc import compiler
from tcplab.cc.compiler import Source, ebpf, native
from tcplab.cc.describe import described_file
from tcplab.cc.errors import ControlFileError, NoCompilerError
from tcplab.cc.template import starting_file

Write = Callable[..., Path]


def test_a_file_is_compiled_once_whoever_asks(control: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.read(control())
    calls: list[Source] = []
    whole = compiler._compile

    def counted(*args: object) -> None:
        calls.append(source)
        whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "_compile", counted)
    first = native(source)
    assert native(source) == first
    assert len(calls) == 1
    assert native(Source(source.file, source.text + "\n/* changed */\n")) != first
    assert len(calls) == 2


def test_many_at_once_get_one_whole_file(control: Write) -> None:
    source = Source.read(control())
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(native(source))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert len(set(made)) == 1
    assert sorted(path.name for path in made[0].parent.glob(".making-*")) == []
    assert described_file(source).name == "mine"


def test_a_home_that_cannot_be_written_is_done_without(
    control: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert native(Source.read(control())).is_file()


def test_a_home_where_nothing_may_be_executed_is_done_without(
    control: Write, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noexec = SimpleNamespace(f_flag=os.ST_NOEXEC)
    monkeypatch.setattr(os, "statvfs", lambda place: noexec)
    library = native(Source.read(control()))
    assert library.is_file()
    assert own_cache not in library.parents


def test_a_mistake_is_reported_with_its_line(control: Write) -> None:
    source = Source.read(control(("ca->reductions++", "ca->reductionz++")))
    line = next(number for number, text in enumerate(source.text.splitlines(), 1) if "reductionz" in text)
    for make in (native, ebpf):
        with pytest.raises(ControlFileError) as caught:
            make(source)
        (mistake,) = caught.value.mistakes
        assert (mistake.file, mistake.line) == (str(source.file), line)
        assert "reductionz" in mistake.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("#define CONTROL mine", ""), "a control begins with `#define CONTROL name`"),
        (
            ("beta, 512, 1, 1023", "beta, 0, 1, 1023"),
            "the default of beta is not between its minimum and its maximum",
        ),
        (("#define CONTROL mine", "#define CONTROL averylongcontrol"), "at most 12 characters"),
        (("reductions, 1, ", "reductions, 0, "), "the scale of reductions is not above zero"),
        (('reductions, 1, "",', 'reductions, 1, "packets per hour",'), "the unit of reductions is too long"),
    ],
)
def test_what_the_headers_ask_for_is_said_in_words(
    control: Write, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ControlFileError) as caught:
        native(Source.read(control(change)))
    assert any(said in mistake.message for mistake in caught.value.mistakes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("\t.ssthresh = OP(ssthresh),\n", ""), "no SSTHRESH"),
        (("\t.cong_avoid = OP(cong_avoid),\n", ""), "neither CONG_AVOID nor CONG_CONTROL"),
        (("ca->reductions++;", "extern u32 compute(u32); ca->reductions = compute(1);"), "calls compute"),
    ],
)
def test_a_file_that_compiles_but_is_not_a_control_is_rejected(
    control: Write, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ControlFileError, match=said):
        described_file(Source.read(control(change)))


def test_without_a_compiler_the_command_that_installs_one_is_named(
    control: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = Source.read(control())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError) as caught:
        native(source)
    assert caught.value.hint == "sudo apt-get install gcc libc6-dev"
    monkeypatch.setenv("CLANG", "no-such-clang")
    with pytest.raises(NoCompilerError, match="no-such-clang"):
        ebpf(source)


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    endless = tmp_path / "endless.c"
    endless.symlink_to("/dev/zero")
    with pytest.raises(ControlFileError, match=r"endless\.c is longer than 1048576 B"):
        Source.read(endless)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ControlFileError, match="No such file"):
        Source.read(tmp_path / "absent.c")
    (tmp_path / "odd.c").write_bytes(b"\xff\xfe")
    with pytest.raises(ControlFileError, match="not a text"):
        Source.read(tmp_path / "odd.c")


def test_a_path_may_hold_what_c_must_quote(tmp_path: Path) -> None:
    file = tmp_path / 'a "b\\\n c' / "mine.c"
    file.parent.mkdir()
    file.write_text(starting_file("mine"), encoding="utf-8")
    assert described_file(Source.read(file)).name == "mine"
