import math

import numpy as np
import polars as pl
import pytest

from tcplab.study.expect import parse
from tcplab.study.grid import AxisValues, Value, cells
from tcplab.study.judge import Judgement, Verdict, judge
from tcplab.study.junit import case_words
from tcplab.study.store import Done, dataset

CC = AxisValues("cc", "cc", (Value("reno", ()), Value("cubic", ()), Value("bbr1", ())))
RTT = AxisValues("rtt", "rtt", (Value("10 ms", ()), Value("100 ms", ())))


def judged(
    text: str,
    goodput: dict[str, list[float]],
    axes: list[AxisValues] | None = None,
    left_out: dict[str, list[str]] | None = None,
) -> Judgement:
    """A statement about cells whose labels, joined by a slash, are the keys."""
    found = cells(axes or [CC], "full", ["sim"])
    known = [cell for cell in found if "/".join(cell.labels.values()) in goodput]
    done = [
        Done(cell.id, number + 1, "done", "", None, 1.0, ({"flow": None, "goodput": value},))
        for cell in known
        for number, value in enumerate(goodput["/".join(cell.labels.values())])
    ]
    frame = dataset(tuple(known), done, ["cc", "rtt"])
    return judge(parse(text), known, frame, baseline={"cc": "cubic"}, left_out=left_out)


def test_a_clear_difference_holds_or_fails() -> None:
    values = {"bbr1": [95.0, 94.0, 96.0], "cubic": [10.0, 11.0, 9.0]}
    assert judged("goodput(cc=bbr1) > 5 * goodput(cc=cubic)", values).verdict is Verdict.HOLDS
    assert judged("goodput(cc=bbr1) < goodput(cc=cubic)", values).verdict is Verdict.FAILS


def test_a_difference_within_the_spread_is_undecided_and_says_what_would_decide_it() -> None:
    values = {"bbr1": [95.0, 80.0, 110.0], "cubic": [90.0, 75.0, 105.0]}
    found = judged("goodput(cc=bbr1) > goodput(cc=cubic)", values)
    assert found.verdict is Verdict.UNDECIDED
    (case,) = found.cases
    assert case.low < 0 < case.high
    assert case.repetitions is not None
    assert case.repetitions > 3


def test_the_proposed_repetitions_are_about_enough() -> None:
    rng = np.random.default_rng(1)
    few = {"bbr1": list(rng.normal(100, 6, 5)), "cubic": list(rng.normal(95, 6, 5))}
    found = judged("goodput(cc=bbr1) > goodput(cc=cubic)", few)
    assert found.verdict is Verdict.UNDECIDED
    needed = found.cases[0].repetitions
    assert needed is not None
    decided = 0
    for _ in range(50):
        # The same difference and spread as estimated, with that many values.
        many = {name: list(rng.normal(np.mean(v), np.std(v, ddof=1), needed)) for name, v in few.items()}
        decided += judged("goodput(cc=bbr1) > goodput(cc=cubic)", many).verdict is Verdict.HOLDS
    assert decided >= 20


def test_deterministic_values_decide_without_an_interval() -> None:
    values = {"bbr1": [95.0] * 3, "cubic": [10.0] * 3}
    for text, verdict in (
        ("goodput(cc=bbr1) > 5 * goodput(cc=cubic)", Verdict.HOLDS),
        ("goodput(cc=bbr1) < goodput(cc=cubic)", Verdict.FAILS),
    ):
        found = judged(text, values)
        (case,) = found.cases
        assert case.verdict is verdict
        assert math.isnan(case.low)
        assert math.isnan(case.high)
        assert ("deterministic" in "".join(case_words(found))) is (verdict is Verdict.FAILS)


def test_each_cell_is_judged_beside_its_own_baseline() -> None:
    values = {
        "cubic/10 ms": [10.0, 10.1, 9.9],
        "bbr1/10 ms": [20.0, 20.1, 19.9],
        "cubic/100 ms": [1.0, 1.1, 0.9],
        "bbr1/100 ms": [0.1, 0.11, 0.09],
    }
    found = judged("goodput > 0.5 * goodput(baseline)", values, [CC, RTT])
    verdicts = {tuple(case.free.values()): case.verdict for case in found.cases}
    assert verdicts == {
        ("cubic", "10 ms"): Verdict.HOLDS,
        ("bbr1", "10 ms"): Verdict.HOLDS,
        ("cubic", "100 ms"): Verdict.HOLDS,
        ("bbr1", "100 ms"): Verdict.FAILS,
    }


def test_one_repetition_decides_nothing() -> None:
    found = judged("goodput(cc=bbr1) > goodput(cc=cubic)", {"bbr1": [95.0], "cubic": [10.0]})
    assert found.verdict is Verdict.UNDECIDED
    assert "one repetition" in found.cases[0].reason


def test_values_that_never_vary_decide_with_certainty() -> None:
    values = {"bbr1": [95.0, 95.0], "cubic": [94.0, 94.0]}
    assert judged("goodput(cc=bbr1) > goodput(cc=cubic)", values).verdict is Verdict.HOLDS
    same = {"bbr1": [95.0, 95.0], "cubic": [95.0, 95.0]}
    assert judged("goodput(cc=bbr1) > goodput(cc=cubic)", same).verdict is Verdict.FAILS
    assert judged("goodput(cc=bbr1) >= goodput(cc=cubic)", same).verdict is Verdict.HOLDS


def test_axes_not_named_stay_free_and_must_all_hold() -> None:
    values = {
        "bbr1/10 ms": [9.0, 9.1, 9.0],
        "cubic/10 ms": [8.0, 8.1, 8.0],
        "bbr1/100 ms": [5.0, 5.1, 5.0],
        "cubic/100 ms": [8.0, 8.1, 8.0],
    }
    found = judged("goodput(cc=bbr1) > goodput(cc=cubic)", values, [CC, RTT])
    assert {case.free["rtt"]: case.verdict for case in found.cases} == {
        "10 ms": Verdict.HOLDS,
        "100 ms": Verdict.FAILS,
    }
    assert found.verdict is Verdict.FAILS
    at_10 = judged("goodput(cc=bbr1, rtt=10 ms) > goodput(cc=cubic, rtt=10 ms)", values, [CC, RTT])
    assert at_10.verdict is Verdict.HOLDS


def test_a_figure_of_one_cell_stands_beside_every_case() -> None:
    values = {f"{cc}/10 ms": [v, v + 0.1] for cc, v in (("reno", 7.0), ("cubic", 8.0), ("bbr1", 9.0))}
    found = judged("goodput(rtt=10 ms) >= goodput(cc=reno, rtt=10 ms)", values, [CC, RTT])
    assert len(found.cases) == 3


def test_the_word_baseline_is_the_baseline_of_each_case() -> None:
    values = {"bbr1": [95.0, 94.0, 96.0], "cubic": [10.0, 11.0, 9.0], "reno": [5.0, 5.5, 4.5]}
    found = judged("goodput(cc=reno) < goodput(baseline)", values)
    assert [case.verdict for case in found.cases] == [Verdict.HOLDS]


def test_equivalence_is_two_one_sided_tests() -> None:
    near = {"bbr1": [100.0, 100.2, 99.8], "cubic": [101.0, 101.2, 100.8]}
    assert judged("equivalent(goodput(cc=bbr1), goodput(cc=cubic), 5 %)", near).verdict is Verdict.HOLDS
    far = {"bbr1": [100.0, 100.2, 99.8], "cubic": [120.0, 120.2, 119.8]}
    assert judged("equivalent(goodput(cc=bbr1), goodput(cc=cubic), 5 %)", far).verdict is Verdict.FAILS
    wide = {"bbr1": [80.0, 100.0, 120.0], "cubic": [101.0, 101.2, 100.8]}
    assert judged("equivalent(goodput(cc=bbr1), goodput(cc=cubic), 5 %)", wide).verdict is Verdict.UNDECIDED


def test_what_no_cell_has_is_said() -> None:
    found = judged("goodput(cc=vegas) > 1 Mbit/s", {"cubic": [1.0, 2.0]})
    assert found.verdict is Verdict.UNDECIDED
    assert "vegas" in found.cases[0].reason


def test_a_figure_that_quick_leaves_out_is_said_to_be() -> None:
    found = judged("goodput(cc=bbr1) > 1 Mbit/s", {"cubic": [1.0, 2.0]}, left_out={"cc": ["bbr1"]})
    assert found.verdict is Verdict.UNDECIDED
    assert found.cases[0].reason == "--quick leaves out cc=bbr1"


def test_a_cell_whose_runs_failed_is_undecided() -> None:
    (cell,) = [c for c in cells([CC], "full", ["sim"]) if c.labels["cc"] == "reno"]
    frame = dataset((cell,), [Done(cell.id, 1, "failed", "no such window", None, 0.0, ())], ["cc"])
    assert isinstance(frame, pl.DataFrame)
    found = judge(parse("goodput(cc=reno) > 1 Mbit/s"), [cell], frame, baseline={})
    assert found.verdict is Verdict.UNDECIDED
    assert "not measured" in found.cases[0].reason


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_a_true_statement_is_refuted_in_no_more_cases_than_the_level_allows(ratio: float) -> None:
    """Where both sides are equal in truth, `>` is wrongly confirmed in 5 % of studies."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(1000):
        values = {"bbr1": list(rng.normal(100, 5, 5)), "cubic": list(rng.normal(100 / ratio, 5, 5))}
        found = judged(f"goodput(cc=bbr1) > {ratio} * goodput(cc=cubic)", values)
        wrong += found.verdict is Verdict.HOLDS
    # 50 expected; five standard deviations of a binomial count.
    assert abs(wrong - 50) < 5 * math.sqrt(1000 * 0.05 * 0.95)
