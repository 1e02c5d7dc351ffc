"""Mistakes of a study file, each reported once, with its place."""

from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors
from tcplab.study.load import Asked, load

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
            "flows.bulk.cc: unknown congestion control `cubik`: `tcplab cc list` shows the available ones",
            "cubic",
        )
    ]


def test_a_mistake_of_all_cells_is_reported_once_and_names_none(tmp_path: Path) -> None:
    first, _ = mistakes(tmp_path, duration="2 parsecs")
    assert first[0] == 7
    assert "cell" not in first[1]


OWN_KEYS = """\
tcplab: 2
study: my study
descriptions: text
scenario: {tcplab: 1}
grid:
  cc: {set: flows.bulk.cc, values: []}
  loss: {set: a, values: {none: {b: 0 %}}}
  rtt: 20 ms
cells: every
repeat: 0
gap: 5
expect: [{finding: better}]
plots: [{kind: bar, metric: Goodput}]
quick: {skip: {cc: reno}}
"""

MESSAGES = """\
study.yaml:1:9: tcplab: `2` is not a version of the study language (`1`)
study.yaml:2:8: study: `my study` is not a name: letters, digits, `-` and `_`, a letter first, at most 48 \
(`my-study`)
study.yaml:3:1: descriptions: unknown key `descriptions` (`description`)
study.yaml:6:28: grid.cc.values: the axis has no values
study.yaml:7:3: grid.loss: values by label say themselves what they set: leave out `set`, or give a list
study.yaml:8:8: grid.rtt: expected a list of values, found `20 ms` (`[20 ms]`)
study.yaml:9:8: cells: `every` is neither `full`, `zip` nor a list of grids (`full`)
study.yaml:10:9: repeat: `0` must be at least 1 (`1`)
study.yaml:11:6: gap: `5` has no unit (`5 ms`)
study.yaml:12:10: expect.0: `that` is missing (`that: goodput(cc=bbr1) > goodput(cc=cubic)`)
study.yaml:13:16: plots.0.kind: `bar` is not one of `bars`, `curve`, `laws`, `heatmap`, `map`, `tradeoff`, \
`improvement`, `fairness`, `cpu` or `queue` (`bars`)
study.yaml:13:29: plots.0.metric: `Goodput` is not the name of a metric: small letters, digits and `_`
study.yaml:14:9: quick.skip: expected a list, found `reno`
"""


def test_mistakes_of_a_studys_own_keys_are_reported_as_those_of_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(OWN_KEYS, encoding="utf-8")
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    messages = []
    for error in refused.value.errors:
        near = f" (`{error.suggestion}`)" if error.suggestion else ""
        messages.append(f"study.yaml:{error.line}:{error.column}: {error.path}: {error.message}{near}")
    assert messages == MESSAGES.splitlines()


QUICK_ON_KERNEL = """\
tcplab: 1
study: scaled
scenario:
  tcplab: 1
  name: one
  network: {path: {rate: 10 Mbit/s, rtt: 40 ms}}
  flows: [{name: bulk, kind: tcp}]
  duration: 10 s
grid:
  cc: {set: flows.bulk.cc, values: [reno, cubic, prague]}
repeat: 5
quick:
  repeat: 3
  set: {duration: 4 s, network.path.rtt: 20 ms}
  skip: {cc: [reno]}
  kernel: {repeat: 1, set: {duration: 2 s}, skip: {cc: [prague]}}
"""


@pytest.mark.parametrize(
    ("engines", "repeat", "seconds", "controls"),
    [
        (("sim",), 3, 4, ["cubic", "prague"]),
        (("kernel",), 1, 2, ["reno", "cubic"]),
        (("sim", "kernel"), 1, 2, ["reno", "cubic"]),
    ],
)
def test_a_quick_run_with_the_kernel_is_lessened_further_for_every_engine(
    engines: tuple[str, ...], repeat: int, seconds: int, controls: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(QUICK_ON_KERNEL, encoding="utf-8")
    study = load(file, Asked(engines=engines, quick=True))
    assert study.repeat == repeat
    assert [cell.labels["cc"] for cell in study.cells if cell.engine == engines[-1]] == controls
    plans = list(study.plans.values())
    assert {plan["duration"] for plan in plans} == {seconds * 10**9}
    assert {plan["links"][0]["forward"]["delay"] for plan in plans} == {10_000_000}


def test_a_value_that_quick_leaves_out_on_the_kernel_is_one_of_its_axis(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(QUICK_ON_KERNEL.replace("skip: {cc: [prague]}", "skip: {cc: [prage]}"), encoding="utf-8")
    with pytest.raises(ScenarioErrors, match=r"quick\.kernel\.skip\.cc: the axis cc has no value `prage`"):
        load(file, Asked(quick=True))


def test_seeds_end_before_2_to_the_64(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    text = QUICK_ON_KERNEL.partition("quick:")[0]
    file.write_text(f"{text}seed: {2**64 - 5}\n", encoding="utf-8")
    assert load(file).repeat == 5
    for asked, seed in ((Asked(repeat=6), 2**64 - 5), (Asked(seed=2**64 - 4), 2**64 - 4)):
        with pytest.raises(ScenarioErrors) as refused:
            load(file, asked)
        (error,) = refused.value.errors
        assert (error.line, error.path) == (12, "seed")
        assert error.message == f"{asked.repeat or 5} repetitions from seed {seed} go beyond 2^64 - 1"
