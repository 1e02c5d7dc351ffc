"""Mistakes of a study file, each told once and where it stands."""

from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors
from tcplab.study.load import load

TEXT = """\
tcplab: 1
study: mistakes
scenario:
  tcplab: 1
  name: one-path
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
  flows: [{name: bulk, kind: tcp, cc: CONTROL, duration: DURATION}]
grid:
  flows.bulk.cc: [reno, cubik]
  network.path.rate: [10 Mbit/s, 20 Mbit/s]
"""


def mistakes(tmp_path: Path, control: str = "reno", duration: str = "2 s") -> list[tuple[int, str, str]]:
    """Line, message and suggestion of each."""
    file = tmp_path / "study.yaml"
    file.write_text(TEXT.replace("CONTROL", control).replace("DURATION", duration), encoding="utf-8")
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    return [(error.line, error.message, error.suggestion) for error in refused.value.errors]


def test_an_unknown_control_is_a_mistake_at_its_value_in_the_grid(tmp_path: Path) -> None:
    assert mistakes(tmp_path) == [
        (
            9,
            "flows.bulk.cc: there is no congestion control `cubik`: `tcplab cc list` shows those there are",
            "cubic",
        )
    ]


def test_a_mistake_of_all_cells_is_told_once_and_names_none(tmp_path: Path) -> None:
    first, _ = mistakes(tmp_path, duration="2 parsecs")
    assert first[0] == 7
    assert "cell" not in first[1]
