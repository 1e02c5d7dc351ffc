"""The reader in Rust and the one in Python agree: on plans key by key, on mistakes word by word."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tcplab import _core
from tcplab.scenario import ScenarioErrors, expand, load
from tcplab.scenario.document import read
from tcplab.scenario.load import from_document

from .generate import scenarios

ROOT = Path(__file__).parents[4]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
# Rust marks the second of two spellings of one time, and has more queues: crates/scenario/tests/bad.
BETTER = {"everything-at-once", "too-large"}


def in_rust(text: bytes, name: str, folder: Path) -> dict[str, Any] | str:
    plan, mistakes = _core.scenario_plan(text, name, str(folder), [])
    return json.loads(plan) if plan is not None else "\n".join(mistake["text"] for mistake in mistakes)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_scenario_gives_the_same_plan_in_the_same_order(file: Path) -> None:
    made = in_rust(file.read_bytes(), file.name, file.parent)
    assert json.dumps(made) == json.dumps(expand(load(file)))


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_bad_file_is_refused_with_the_same_text(file: Path) -> None:
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    said = in_rust(file.read_bytes(), str(file), file.parent)
    assert isinstance(said, str)
    assert said == str(refused.value) or file.stem in BETTER


@settings(max_examples=40, deadline=None)
@given(scenarios())
def test_a_valid_scenario_gives_the_same_plan(data: dict[str, Any]) -> None:
    text = json.dumps(data, ensure_ascii=False)
    assert in_rust(text.encode(), "made", Path()) == expand(from_document(read(text, "made"), Path()))


def test_controls_are_asked_of_the_caller() -> None:
    class Controls:
        def names(self) -> list[str]:
            return ["cubic"]

        def known(self, name: str) -> object:
            return ("CUBIC", [("beta", 0.1, 0.9, "0.1 to 0.9")]) if name == "cubic" else None

    text = SHIPPED[0].read_text(encoding="utf-8").split("flows:")[0]
    flows = "flows: [{name: a, kind: tcp, cc: cubi}, {name: b, kind: tcp, cc: {name: cubic, beta: 3}}]\n"
    _, mistakes = _core.scenario_plan((text + flows).encode(), "f", ".", [], Controls())
    assert [(mistake["path"], mistake["suggestion"]) for mistake in mistakes] == [
        ("flows.a.cc", "cubic"),
        ("flows.b.cc.beta", ""),
    ]
