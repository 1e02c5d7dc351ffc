"""The shipped studies: each runs in the simulator, and the published findings it stands for hold."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tcplab import study
from tcplab.shipped import study_names
from tcplab.study.judge import Verdict
from tcplab.study.report import write_study_figures, write_study_report
from tcplab.study.shipped import described


@pytest.mark.parametrize("name", study_names())
def test_a_shipped_study_runs_quickly_and_refutes_no_published_finding(name: str, tmp_path: Path) -> None:
    found = study.run(name, quick=True, out=tmp_path / "out", jobs=2)
    assert {one.status for one in found.outcome.done} == {"done"}, [
        one.message for one in found.outcome.done if one.status != "done"
    ]
    refuted = [j.statement.text for j in found.judgements if j.verdict is Verdict.FAILS]
    assert not refuted
    assert any(j.verdict is Verdict.HOLDS for j in found.judgements)
    page = write_study_report(found).read_text()
    assert "A quick run" in page
    written = write_study_figures(found, tmp_path / "figures", ["svg"])
    assert len(written) >= 3
    assert all(path.stat().st_size > 0 for path in written)


def test_every_study_says_what_it_is_about() -> None:
    assert all(about for _, about in described())
    assert {"tuning", "starvation", "latency", "bbr2-mininet", "bufferbloat", "aqm", "remedies"} <= set(
        study_names()
    )


def test_the_package_ships_every_study_s_files() -> None:
    source = Path(__file__).parents[1]
    patterns = tomllib.loads((source / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    shipped = {path.resolve() for pattern in patterns for path in source.glob(pattern["path"])}
    assert set((source / "studies").rglob("*.yaml")) <= shipped
    assert (Path(study.__file__).parents[1] / "studies").samefile(source / "studies")
