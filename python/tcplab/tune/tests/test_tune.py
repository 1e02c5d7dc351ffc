import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcplab.results.errors import ResultsError
from tcplab.study.expect import parse, parse_goal
from tcplab.study.grid import Cell
from tcplab.study.task import Made
from tcplab.tune.advice import advice
from tcplab.tune.findings import confirmation, goal_text, justification
from tcplab.tune.knobs import KnobError, listed, read
from tcplab.tune.race import Measured, Placed
from tcplab.tune.tune import Confirmed, Goal, GoalError, Tuned, Tuning

# 64 KiB a round trip of 100 ms is 5 Mbit/s: the window or several streams must be raised to fill 20 Mbit/s.
SCENARIO = """
tcplab: 1
name: long
network:
  path: {rate: 20 Mbit/s, rtt: 100 ms, loss: 0.01 %}
  hosts: {window: 64 KiB}
flows: [{name: bulk, kind: tcp, cc: cubic}]
duration: 8 s
omit: 3 s
"""


class Quiet:
    def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
        pass


def tuned(
    directory: Path, over: list[str], *constraints: str, goal: str = "goodput", trials: int = 0
) -> Tuned:
    scenario = directory / "long.yaml"
    scenario.write_text(SCENARIO)
    expression, sign = parse_goal(goal)
    asked = Goal(goal, expression, sign, tuple(parse(text) for text in constraints))
    search = Tuning(scenario, over, asked, directory / "out")
    return search.run(watcher=Quiet(), jobs=2, trials=trials or None)


def best(found: Tuned) -> dict[str, str]:
    assert found.best is not None
    return dict(found.labels[found.best.label])


def test_a_larger_window_is_found_where_the_window_limits(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["window=64 KiB|256 KiB|1 MiB"])
    assert best(found)["window"] in ("256 KiB", "1 MiB")
    assert any("significantly worse" in one.why for one in found.placed)
    assert "Best of 3 candidates" in justification(found)[0]


def test_constraints_exclude_what_is_fast_but_late(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["window=64 KiB|2 MiB"], "rtt.p95 < 110 ms")
    assert best(found) == {"window": "64 KiB"}
    assert next(one for one in found.placed if one.left_in).why == "fails rtt.p95 < 110 ms"


def test_the_least_of_a_metric_can_be_the_goal(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["flows.bulk.streams=1|8"], goal="least rtt.p95")
    assert best(found) == {"streams": "1"}


def test_a_large_space_is_sampled_and_the_best_are_raced(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["window=64 KiB|256 KiB|1 MiB", "streams=1|2|4", "cc=cubic|reno|bbr1"], trials=10)
    assert (found.sampled, found.space) == (10, 27)
    assert 1 <= len(found.placed) <= 10
    assert "were sampled" in justification(found)[0]


def test_nothing_that_meets_the_constraints_is_said(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["streams=1|2"], "rtt.p95 < 1 ms")
    assert found.best is None
    assert justification(found) == ["None of 2 candidates meets the constraints."]


def test_of_sizes_that_serve_as_well_the_smallest_is_chosen(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["window=4 MiB|1 MiB|2 MiB|64 KiB"])
    assert best(found) == {"window": "1 MiB"}
    said = " ".join(justification(found))
    assert "larger or with more changes: window" in said


@pytest.mark.parametrize(
    ("goal", "feasible", "reason", "words"),
    [
        (
            [10.0, 10.1, 10.2],
            None,
            "undecided: rtt.p95 < 80 ms",
            "Reliability low: 3 repetitions do not",
        ),
        ([10.0, 10.1, 10.2], True, "", "Reliability high: 3 repetitions, the constraints hold."),
        (
            [10.0, 10.0, 10.0],
            True,
            "",
            "Deterministic: 3 repetitions gave the same value, the constraints hold.",
        ),
    ],
)
def test_reliability_is_that_of_goal_and_constraints_together(
    tmp_path: Path, goal: list[float], feasible: bool | None, reason: str, words: str
) -> None:
    expression, sign = parse_goal("goodput")
    asked = Goal("goodput", expression, sign, (parse("rtt.p95 < 80 ms"),))
    one = Placed("a", Measured(np.array(goal) * 1e6, feasible, reason), None, "")
    found = Tuned(tmp_path, (), asked, (one,), one, {"a": {"window": "1 MiB"}}, pl.DataFrame())
    said = justification(found)
    assert said[-1].startswith(words)
    assert reason in said[-1]
    assert ("±" in said[0]) is (len(set(goal)) > 1)


@pytest.mark.parametrize(
    ("goal", "constraint", "message"),
    [
        ("goodput(flow=blk)", "rtt < 1 s", "goodput(flow=blk): unknown flow `blk`; did you mean `bulk`?"),
        ("goodput", "rtt(flow=x) < 1 s", "rtt(flow=x) < 1 s: unknown flow `x` (flows: bulk)"),
        ("goodput(cc=reno)", "rtt < 1 s", "`goodput(cc=reno)` selects candidates"),
        ("goodput", "goodput >= goodput(baseline)", "`goodput(baseline)` selects candidates"),
    ],
)
def test_goals_and_constraints_select_flows_of_the_scenario(
    tmp_path: Path, goal: str, constraint: str, message: str
) -> None:
    with pytest.raises(GoalError, match=re.escape(message)):
        tuned(tmp_path, ["cc=reno|cubic"], constraint, goal=goal)
    assert not (tmp_path / "out").exists()


def test_a_small_quotient_has_its_digits(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["streams=1|2"], goal="minimize retransmits / transferred")
    assert float(goal_text(found.goal, found.placed[0]).split()[0]) == pytest.approx(
        float(-found.placed[0].measured.goal.mean()), rel=0.01
    )


@pytest.mark.parametrize(
    ("goal", "before", "after", "change"),
    [
        ("goodput", [10e6, 10e6], [15e6, 15e6], "+50.0 % (deterministic)"),
        ("minimize rtt.p95", [40e6, 40e6], [30e6, 30e6], "-25.0 % (deterministic)"),
        ("minimize rtt.p95", [40e6, 40e6], [29e6, 30e6, 31e6], "-25.0 % (p 0.0033)"),
        (
            "minimize retransmits",
            [0, 0],
            [4, 4],
            "4.000 segments, where it has 0.000 segments (deterministic)",
        ),
    ],
)
def test_the_change_is_of_the_metric(
    tmp_path: Path, goal: str, before: list[float], after: list[float], change: str
) -> None:
    expression, sign = parse_goal(goal)
    plain = Placed("a", Measured(sign * np.array(before), True), 1, "fails a constraint")
    best = Placed("b", Measured(sign * np.array(after), True), None, "")
    labels = {"a": {"cc": "unchanged"}, "b": {"cc": "bbr1"}}
    found = Tuned(tmp_path, (), Goal(goal, expression, sign, ()), (best, plain), best, labels, pl.DataFrame())
    assert justification(found)[1] == f"Compared with the unchanged scenario: {change}."


def test_a_search_that_was_cut_off_is_resumed(tmp_path: Path) -> None:
    scenario = tmp_path / "long.yaml"
    scenario.write_text(SCENARIO)
    goal = Goal("goodput", *parse_goal("goodput"), ())

    class Stops(Quiet):
        def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
            ran.append(cell.id)
            search._stop.set()

    ran: list[str] = []
    search = Tuning(scenario, ["streams=1|2|4"], goal, tmp_path / "out")
    cut = search.run(watcher=Stops(), jobs=1)
    assert cut.interrupted
    # Stopped between its manifest and its figures.
    (done,) = (tmp_path / "out").glob("cells/*/run-1/metrics.json")
    done.unlink()
    for seal in done.parent.glob("SHA256SUMS"):
        seal.unlink()
    assert search._measured(ran[0], 1).goal.size == 0
    with pytest.raises(ResultsError, match="holds another search"):
        Tuning(scenario, ["streams=1|2"], goal, tmp_path / "out", resume=True)
    found = Tuning(scenario, ["streams=1|2|4"], goal, tmp_path / "out", resume=True).run(watcher=Quiet())
    assert (len(found.placed), found.interrupted) == (3, False)
    assert all(len(one.measured.goal) >= 2 for one in found.placed)


PLAN: Any = {"flows": [{"name": "bulk", "kind": "tcp"}, {"name": "noise", "kind": "udp"}]}


def test_knobs_have_usual_values_and_the_scenario_s_own() -> None:
    (knob,) = read(["cc"], PLAN)
    assert knob.values["unchanged"] == {}
    assert knob.values["bbr1"] == {"flows.bulk.cc": "bbr1"}


def test_a_path_with_values_is_a_knob() -> None:
    (knob,) = read(["network.path.queue=50 ms|200 ms"], PLAN)
    assert knob.name == "queue"
    assert knob.values["200 ms"] == {"network.path.queue": "200 ms"}


def test_paths_that_end_in_the_same_key_are_called_as_a_whole() -> None:
    first, second, mss = read(["flows.a.cc=reno|cubic", "flows.b.cc=reno", "network.hosts.mss=536 B"], PLAN)
    assert (first.name, second.name, mss.name) == ("flows.a.cc", "flows.b.cc", "mss")


def test_a_value_with_commas_is_one() -> None:
    queue = "network.path.queue={kind: codel}|{kind: prio, bands: [{dscp: [ef, af41]}, {limit: 9 packets}]}"
    assert listed(f"cc , {queue},window=64 KiB|1 MiB,") == ["cc", queue, "window=64 KiB|1 MiB"]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        (["windw"], "did you mean `window`?"),
        (["network.path.queue"], "a path with values"),
        (["cc=cubic|"], "a value is missing"),
        (["cc", "cc=reno"], "parameter `cc` is named twice"),
        (["flows.a.cc=reno", "flows.a.cc=cubic"], "parameter `flows.a.cc` is named twice"),
    ],
)
def test_an_unknown_parameter_is_reported(over: list[str], message: str) -> None:
    with pytest.raises(KnobError, match=message.replace("?", r"\?")):
        read(over, PLAN)


def test_a_space_of_fewer_candidates_than_trials_is_raced_whole(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["streams=1|2"], trials=4)
    assert (found.sampled, found.space, len(found.placed)) == (0, 2, 2)


def test_the_goal_is_confirmed_on_the_other_engine(tmp_path: Path) -> None:
    expression, sign = parse_goal("goodput / rtt.p95")
    asked = Goal("goodput / rtt.p95", expression, sign, ())
    one = Placed("a", Measured(np.array([0.2, 0.21]), True), None, "")
    ran = Confirmed("kernel", np.array([0.25, 0.26, 0.27]), np.array([0.125, 0.125, 0.125]), "", 0)
    labels = {"a": {"cc": "bbr1"}}
    found = Tuned(tmp_path, (), asked, (one,), one, labels, pl.DataFrame(), confirmed=ran)
    (said,) = confirmation(found)
    assert said == "On the other engine: goodput / rtt.p95 0.260, against 0.125 of the unchanged scenario."
    said = confirmation(replace(found, confirmed=replace(ran, overloaded=2)))[1]
    assert said.startswith("The machine was overloaded in 2 of these 6 runs")


def test_advice_says_how_to_set_it_on_a_host() -> None:
    lines = "\n".join(advice({"window": "1 MiB", "cc": "bbr1", "streams": "unchanged"}))
    assert "net.core.rmem_max=1048576" in lines
    assert "tcp_congestion_control=bbr" in lines
    assert "parallel" not in lines


def test_a_higher_level_has_wider_intervals(tmp_path: Path) -> None:
    found = tuned(tmp_path, ["window=256 KiB|1 MiB"])
    best_one = next(one for one in found.placed if len(one.measured.goal) > 1)
    width = {level: goal_text(found.goal, best_one, level).split("± ")[1].split()[0] for level in (0.8, 0.99)}
    assert float(width[0.99]) > float(width[0.8])
