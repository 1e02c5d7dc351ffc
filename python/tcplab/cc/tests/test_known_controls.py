"""Mistakes in a scenario that only the controls know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors, load
from tcplab.testbed.known_controls import Controls

HEAD = "tcplab: 1\nname: t\nnetwork: {path: {rate: 10 Mbit/s, rtt: 20 ms}}\nflows:\n"


def errors(place: Path, *flows: str) -> list[str]:
    file = place / "scenario.yaml"
    file.write_text(HEAD + "".join(f"  - {flow}\n" for flow in flows), encoding="utf-8")
    with pytest.raises(ScenarioErrors) as caught:
        load(file, (), Controls())
    return [str(error).replace(f"{file}", "s") for error in caught.value.errors]


def test_a_value_outside_its_range_is_reported_with_its_place(tmp_path: Path) -> None:
    (error,) = errors(tmp_path, "{name: a, kind: tcp, cc: {name: cubic, beta: 1.8}}")
    assert error.startswith("s:5:50: flows.a.cc.beta: 1.8 is outside 0.001 to 0.999")


def test_an_unknown_parameter_is_reported_with_the_nearest_or_with_all(tmp_path: Path) -> None:
    near, far = errors(
        tmp_path,
        "{name: a, kind: tcp, cc: {name: tl_cubic, bta: 0.8}}",
        "{name: b, kind: tcp, cc: {name: reno, speed: 3}}",
    )
    assert "cubic has no parameter `bta`" in near
    assert "did you mean `beta`?" in near
    assert "reno has no parameter `speed`; it has beta" in far


def test_they_come_with_all_other_mistakes(tmp_path: Path) -> None:
    found = errors(tmp_path, "{name: a, kind: tcp, cc: {name: cubic, beta: 1.8}, rate: 3}")
    assert len(found) == 2


def test_a_users_file_is_held_to_its_ranges(tmp_path: Path, control: Callable[..., Path]) -> None:
    control()
    (error,) = errors(tmp_path, "{name: a, kind: tcp, cc: {name: ./mine.c, beta: 2}}")
    assert "flows.a.cc.beta: 2 is outside 0.001 to 0.999" in error


def test_a_file_that_does_not_compile_is_reported_with_both_lines(
    tmp_path: Path, control: Callable[..., Path]
) -> None:
    file = control(("ca->reductions++", "ca->reductionz++"))
    (error,) = errors(tmp_path, "{name: a, kind: tcp, cc: ./mine.c}")
    assert error.startswith("s:5:30: flows.a.cc: ./mine.c does not compile\n")
    assert f"{file}:" in error
    assert "reductionz" in error


def test_a_value_that_is_not_a_number_is_reported_once(tmp_path: Path) -> None:
    (error,) = errors(tmp_path, "{name: a, kind: tcp, cc: {name: cubic, beta: much}}")
    assert "not a number" in error
