"""Files that crash, hang or deceive: what is said of each, and what it takes along."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import tcplab
from tcplab.cc import apart, smoke
from tcplab.cc.apart import Apart
from tcplab.cc.compiler import Source, ebpf, native
from tcplab.cc.describe import described_file
from tcplab.cc.errors import ControlCrashError, ControlFileError
from tcplab.engine.sim import SimEngine
from tcplab.scenario import expand, from_data

Write = Callable[..., Path]
AT_LOSS = "ca->reductions++;"


def crash(source: Source) -> ControlCrashError:
    """Run it as a run does, unchecked, until it ends."""
    libraries = {str(source.file): str(native(source))}
    plan = expand(from_data(smoke.scenario(source.file)))

    def run() -> None:
        with Apart(libraries) as process:
            process.open(json.dumps(plan), None, libraries)
            while not process.advance(50).done:
                pass

    with pytest.raises(ControlCrashError) as caught:
        run()
    return caught.value


def constructor(mark: Path) -> tuple[str, str]:
    """A shared object that runs a command when it is opened."""
    text = (
        "extern int system(const char *);\n"
        f'__attribute__((constructor)) static void opened(void) {{ system("touch {mark}"); }}\n'
    )
    return ('#include "tcplab_cc.h"\n', '#include "tcplab_cc.h"\n' + text)


def test_nothing_of_a_file_runs_to_describe_and_check_it(control: Write, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = control(constructor(mark))
    assert described_file(Source.read(file)).name == "mine"
    scenario = smoke.scenario(file)
    for engine in ("sim", "kernel"):
        tcplab.check(scenario, engine=engine)
    assert SimEngine().check(expand(from_data(scenario))) == []
    assert not mark.exists()
    # It would have.
    smoke.simulated(Source.read(file))
    assert mark.exists()


@pytest.mark.parametrize(
    ("change", "operation", "number", "said"),
    [
        (
            (AT_LOSS, "ca->reductions /= tp->snd_cwnd - tp->snd_cwnd;"),
            "ssthresh",
            "SIGFPE",
            "division by zero",
        ),
        (
            ("\tenter_growth(tp, ca);\n}\n\n/* `acked`", "\t*(volatile u32 *)NULL = 1;\n}\n\n/* `acked`"),
            "init",
            "SIGSEGV",
            "null or invalid pointer",
        ),
        ((AT_LOSS, "__builtin_trap();"), "ssthresh", "SIGILL", "undefined behavior"),
        ((AT_LOSS, "extern void abort(void); abort();"), "ssthresh", "SIGABRT", ""),
    ],
)
def test_a_crash_is_reported_with_signal_operation_and_time(
    control: Write, change: tuple[str, str], operation: str, number: str, said: str
) -> None:
    problem = crash(Source.read(control(change)))
    assert problem.signal is signal.Signals[number]
    assert problem.at is not None
    assert (problem.at.control, problem.at.operation) == ("mine.c", operation)
    assert 0 < problem.at.time < smoke.SECONDS
    assert re.fullmatch(rf"mine\.c: {operation} at \d\.\d{{6}} s: .*{said}.* \({number}\)", str(problem))


@pytest.mark.parametrize("code", [0, 3])
def test_a_control_that_ends_the_process_is_reported(control: Write, code: int) -> None:
    problem = crash(Source.read(control((AT_LOSS, f"extern void exit(int); exit({code});"))))
    assert problem.at is not None
    assert problem.at.operation == "ssthresh"
    assert f"ended the process with exit code {code}" in str(problem)


def test_an_endless_loop_is_ended(control: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "STALL", 1)
    problem = crash(Source.read(control((AT_LOSS, 'for (;;) __asm__ volatile("");'))))
    assert problem.signal is signal.SIGXCPU
    assert problem.at is not None
    assert problem.at.operation == "ssthresh"
    assert "did not return within 1 s of CPU time" in str(problem)


def test_a_control_that_sleeps_is_ended(control: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_ASLEEP", 0.5)
    problem = crash(Source.read(control((AT_LOSS, "extern int pause(void); pause();"))))
    assert "it did not return, and has been asleep for 0.5 s" in str(problem)


def test_a_loop_in_a_constructor_is_ended(control: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "STALL", 1)
    text = '__attribute__((constructor)) static void opened(void) { for (;;) __asm__ volatile(""); }\n'
    problem = crash(Source.read(control(('#include "tcplab_cc.h"\n', f'#include "tcplab_cc.h"\n{text}'))))
    assert str(problem) == (
        "mine.c, outside of its operations: it did not return within 1 s of CPU time (SIGXCPU)"
    )


def test_a_window_of_nothing_fails_the_smoke_run(control: Write) -> None:
    source = Source.read(
        control(("\tenter_growth(tp, ca);\n}\n\n/* Packets", "\ttp->snd_cwnd = 0;\n}\n\n/* Packets"))
    )
    with pytest.raises(smoke.SmokeError, match=r"mine\.c: cong_avoid at .*: it leaves snd_cwnd at 0"):
        smoke.simulated(source)


def mistakes(make: Callable[[Source], Path], source: Source) -> list[tuple[str, int, str]]:
    with pytest.raises(ControlFileError) as caught:
        make(source)
    return [(Path(one.file).name, one.line, one.message) for one in caught.value.mistakes]


def line_of(source: Source, words: str) -> int:
    return next(number for number, line in enumerate(source.text.splitlines(), 1) if words in line)


@pytest.mark.parametrize("make", [native, ebpf])
@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        ((AT_LOSS, "u32 x; ca->reductions = x;"), "u32 x;", "uninitialized"),
        (("return max(reduced, 2u);\n", "ca->reductions = reduced; }\n"), "reduced; }", "return"),
        (("\tu32 reduced =", "\tu32 *p = malloc(4);\n\tu32 reduced ="), "malloc(4)", "malloc"),
        (
            ("\tenter_growth(tp, ca);\n}\n\n/* `acked`", "\treturn 5;\n}\n\n/* `acked`"),
            "return 5",
            "should not return|with a value",
        ),
        (
            ("\tTELEMETRY;\n\tu32 reductions;", "\tu32 reductions;\n\tTELEMETRY;"),
            "struct state {",
            "does not begin with TELEMETRY",
        ),
        (("\tTELEMETRY;\n", ""), "struct state {", "does not begin with TELEMETRY"),
    ],
)
def test_what_compilers_warn_of_is_a_mistake_at_its_line(
    control: Write, make: Callable[[Source], Path], change: tuple[str, str], words: str, said: str
) -> None:
    if change[1].endswith("reduced; }\n"):
        change = ("return max(reduced, 2u);\n}", "ca->reductions = reduced; }")
    source = Source.read(control(change))
    found = mistakes(make, source)
    assert any(
        file == "mine.c"
        and line in (line_of(source, words), line_of(source, words) + 1)
        and re.search(said, text)
        for file, line, text in found
    ), found


@pytest.mark.parametrize("make", [native, ebpf])
@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (("PHASE(CONGESTION_AVOIDANCE)", "PHSE(CONGESTION_AVOIDANCE)"), "PHSE(", "PHASES is not a list"),
        (
            ("PHASE(SLOW_START) PHASE", "PHASE(SLOW_START), PHASE"),
            "PHASE(SLOW_START),",
            "PHASES is not a list",
        ),
        (("#define PHASES(PHASE)", "#define PHASE(PHASE)"), "#define PHASE(", "did you mean PHASES?"),
        (("#define GAUGES(GAUGE)", "#define GAUGES(GUAGE)"), "#define GAUGES", "GAUGES is not a list"),
        (("\tPARAMETER(beta", "\tPARAMTER(beta"), "#define PARAMETERS", "PARAMETERS is not a list"),
        (("#define CONTROL mine", "#define CONTROLL mine"), "tcplab_cc.h", "a control begins with"),
    ],
)
def test_a_list_that_is_mistyped_is_one_mistake(
    control: Write, make: Callable[[Source], Path], change: tuple[str, str], words: str, said: str
) -> None:
    source = Source.read(control(change))
    ((file, line, text),) = mistakes(make, source)
    assert said in text
    if file == "mine.c":
        assert line == line_of(source, words)
    else:
        assert file == "tcplab_cc.h"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("double d = tp->snd_cwnd; ca->reductions = d * 0.7;", "the kernel has no floating point"),
        (
            "s32 d = (s32)tp->snd_cwnd - 5; ca->reductions = d / ((s32)tp->lost - 3);",
            "the kernel has no signed division",
        ),
    ],
)
def test_what_the_kernel_has_not_is_said_in_words(control: Write, statement: str, said: str) -> None:
    source = Source.read(control((AT_LOSS, statement)))
    found = mistakes(ebpf, source)
    assert {text.partition(":")[0] for _, _, text in found} == {said}
    # Of some instructions the compiler knows no more than the operation.
    operation = line_of(source, "SSTHRESH(")
    assert {line for _, line, _ in found} <= {operation, line_of(source, statement)}


def test_a_list_without_members_is_as_none(control: Write) -> None:
    source = Source.read(
        control(
            ("PARAMETERS(PARAMETER) \\\n", "PARAMETERS(PARAMETER)\n#define IGNORED \\\n"),
            ("* PARAM(sk, beta) >> 10", "/ 2"),
            ("GAUGES(GAUGE) \\\n", "GAUGES(GAUGE)\n#define IGNORED_TOO \\\n"),
        )
    )
    described = described_file(source)
    assert (described.parameters, described.gauges) == ((), ())
    assert ebpf(source).is_file()


def test_a_library_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    library = tmp_path / "mine.so"
    library.write_bytes(b"no library")
    with pytest.raises(ControlCrashError, match=r"it cannot be loaded: .*mine\.so: file too short"):
        Apart({"mine.c": str(library)})
