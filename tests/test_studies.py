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
    found = study.run(name, quick=True, output=tmp_path / "out", jobs=2)
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


COMPANY = """\
tcplab: 1
study: company
scenario:
  tcplab: 1
  name: company
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms, queue: fq_codel}}
  flows: [{name: one, kind: tcp}]
  duration: 12 s
  omit: 4 s
grid:
  company:
    values:
      alone: {}
      another: {flows: [&one {name: one, kind: tcp}, &other {name: other, kind: tcp, start: 2 s}]}
      a capped one: {flows: [*one, *other, {name: call, kind: udp, rate: 2 Mbit/s}]}
repeat: 1
baseline: {company: alone}
"""


def test_fairness_behind_a_queue_for_each_flow_is_as_theory_has_it(tmp_path: Path) -> None:
    """Max-min shares of 10 Mbit/s: a half, or two fifths beside 2 Mbit/s. Harm is 1 - beside / alone."""
    file = tmp_path / "study.yaml"
    file.write_text(COMPANY, encoding="utf-8")
    rows = study.run(file, output=tmp_path / "out").results.to_dicts()
    found = {(row["company"], row["flow"]): row for row in rows}
    alone = found["alone", "one"]["goodput"]
    for company, harm, jain in (
        ("another", 1 / 2, 1),
        ("a capped one", 3 / 5, 10**2 / (3 * (2**2 + 4**2 + 4**2))),
    ):
        assert 1 - found[company, "one"]["goodput"] / alone == pytest.approx(harm, abs=0.02)
        assert found[company, None]["jain"] == pytest.approx(jain, abs=0.01)
        for flow in ("one", "other"):
            assert found[company, flow]["share"] == pytest.approx(1, abs=0.02)
    assert found["a capped one", "call"]["goodput"] == pytest.approx(2e6, rel=0.01)
    # Within a second or two of the later flow's start; the window of goodput is a second itself.
    assert found["another", None]["convergence"] < 2e9


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
