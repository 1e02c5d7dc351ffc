import pytest

from tcplab.study.expect import (
    Constant,
    ExpectationError,
    Figure,
    Operation,
    evaluate,
    figures,
    parse,
    parse_goal,
)


def test_a_statement_compares_metrics_of_cells() -> None:
    found = parse("goodput(cc=bbr1, rtt=100 ms) > 5 * goodput(cc=cubic, flow=bulk)")
    left, right = [next(figures(side)) for side in (found.left, found.right)]
    assert (left.metric, dict(left.where), left.flow) == ("goodput", {"cc": "bbr1", "rtt": "100 ms"}, None)
    assert (dict(right.where), right.flow) == ({"cc": "cubic"}, "bulk")
    assert found.comparison == ">"


def test_quantities_carry_their_units() -> None:
    found = parse("rtt.p95 < 120 ms")
    assert found.right == Constant(120e6, "ns")
    assert next(figures(found.left)).metric == "rtt_p95"
    assert parse("goodput >= 9.5 Mbit/s").right == Constant(9.5e6, "bit/s")
    assert parse("retransmission_rate < 1 %").right == Constant(0.01, "%")


def test_jain_of_the_flows_is_jain() -> None:
    assert parse("jain(flows) >= 0.9").left == Figure("jain")


def test_equivalence_has_a_margin() -> None:
    found = parse("equivalent(goodput(engine=sim), goodput(engine=kernel), 5 %)")
    assert found.comparison == "equivalent"
    assert found.margin == Constant(0.05, "%")


def test_products_bind_closer_than_sums() -> None:
    goodput = Figure("goodput")
    found = parse("goodput + 2 * goodput / 4 - (goodput - goodput) > 0 Mbit/s")
    assert evaluate(found.left, {goodput: 8.0}) == 12.0


def test_quoted_labels_may_hold_anything() -> None:
    (found,) = figures(parse("goodput(case='1 %, both (ways)') > 0 Mbit/s").left)
    assert dict(found.where) == {"case": "1 %, both (ways)"}


@pytest.mark.parametrize(
    "text", ["rtt > 0", "utilization > 0.9", "rtos < 3", "goodput / goodput(cc=reno) > 2"]
)
def test_a_bare_number_is_a_count_a_share_a_ratio_or_zero(text: str) -> None:
    parse(text)


def test_division_by_zero_is_infinite() -> None:
    goodput = Figure("goodput")
    assert evaluate(Operation("/", Constant(1, ""), goodput), {goodput: 0.0}) == float("inf")


@pytest.mark.parametrize(
    ("text", "message", "suggestion"),
    [
        ("godput > 1 Mbit/s", "unknown metric `godput`", "goodput"),
        ("goodput", "expected a comparison, found the end", ""),
        ("goodput = 3 Mbit/s", "expected a comparison, found `=`", ""),
        ("goodput > rtt", "compares bit/s with ns", ""),
        ("goodput > 20 ms", "compares bit/s with ns", ""),
        ("rtt.p95 < 300", "`300` has no unit: write it as in `300 ms`", ""),
        ("5 < goodput(cc=reno)", "`5` has no unit: write it as in `5 Mbit/s`", ""),
        ("goodput + rtt > 1", "`+` joins bit/s and ns", ""),
        ("goodput(cc=cubic > 3 Mbit/s", "the bracket behind `goodput` is not closed", "goodput(cc=cubic)"),
        ("goodput(cubic) > 3 Mbit/s", "`cubic` selects nothing", ""),
        ("goodput(cc=) > 3 Mbit/s", "`cc=` has no value", ""),
        ("3 > 2", "the statement names no metric", ""),
        ("goodput > 3 Mbit/s goodput", "`goodput` after the end", ""),
        ("equivalent(goodput, goodput(cc=reno))", "expected `,`, found", ""),
        ("equivalent(goodput, goodput(cc=reno), rtt)", "its margin", ""),
        ("", "it ends early", ""),
        ("> 3", "expected a metric or a number, found `>`", ""),
    ],
)
def test_what_cannot_be_read_is_reported(text: str, message: str, suggestion: str) -> None:
    with pytest.raises(ExpectationError) as refused:
        parse(text)
    assert message in str(refused.value)
    assert refused.value.suggestion == suggestion


def test_a_goal_joins_figures_of_one_unit() -> None:
    for text in ("goodput / rtt.p95", "goodput / 1 Mbit/s - rtt / 1 ms", "minimize rtt.p95 - rtt.min"):
        parse_goal(text)
    with pytest.raises(ExpectationError, match="`-` joins bit/s and ns"):
        parse_goal("goodput - rtt.p95")
