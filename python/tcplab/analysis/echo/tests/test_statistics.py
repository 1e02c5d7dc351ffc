"""Statistics of echoes: from round trips one by one, and from histograms with batches."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tcplab.analysis.echo import Series, from_events, from_tables, statistics, tables
from tcplab.results.tables import conform


def test_bounds_are_students_over_all_clients() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(1e6, 1e5, (2, 200))
    (one,) = statistics([Series(0, 8, a), Series(1, 8, b)], clients=2, iterations=200, level=0.98).sizes
    values = np.concatenate([a, b])
    low, high = stats.t.interval(0.98, len(values) - 1, values.mean(), stats.sem(values))
    assert (one.mean, one.deviation) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert (one.low, one.high) == pytest.approx((low, high))
    assert one.first == (a[0] + b[0]) / 2
    assert one.rate == pytest.approx(1e9 / a.mean() + 1e9 / b.mean())
    assert not one.autocorrelated


def test_the_warm_up_is_left_out_only_if_asked_and_both_are_kept() -> None:
    series = [Series(0, 8, np.array([100.0, *[10.0] * 9]))]
    plain = statistics(series, clients=1, iterations=10)
    assert plain.sizes == plain.whole
    assert plain.sizes[0].mean == 19
    asked = statistics(series, clients=1, iterations=10, warmup=1)
    assert (asked.sizes[0].mean, asked.whole[0].mean) == (10, 19)
    assert asked.sizes[0].first == 100


def test_a_histogram_gives_what_the_round_trips_would() -> None:
    rng = np.random.default_rng(2)
    values = np.round(rng.gamma(4, 25_000, 5_000))
    buckets = np.round(values / 500) * 500
    distinct, counts = np.unique(buckets, return_counts=True)
    batches = np.array([(part.mean(), len(part)) for part in np.split(values[100:], 490)])
    whole = Series(0, 1, values)
    kept = Series(
        0,
        1,
        values[:100],
        np.column_stack(np.unique(buckets[100:], return_counts=True)).astype(float),
        batches,
    )
    assert kept.count == whole.count == counts.sum()
    (a,), (b,) = (statistics([one], clients=1, iterations=5000).sizes for one in (whole, kept))
    assert b.mean == pytest.approx(a.mean, rel=1e-9)
    for name in ("deviation", "low", "high", "median", "p99", "maximum"):
        assert getattr(b, name) == pytest.approx(getattr(a, name), rel=0.01), name
    assert b.batch_high - b.batch_low == pytest.approx(a.batch_high - a.batch_low, rel=0.5)
    assert len(distinct) < 2000


def test_dependence_of_one_round_trip_on_the_next_widens_the_bounds() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1e4, 4000)
    series = np.empty(4000)
    series[0] = noise[0]
    for at in range(1, 4000):
        series[at] = 0.95 * series[at - 1] + noise[at]
    (one,) = statistics([Series(0, 1, series + 1e6)], clients=1, iterations=4000).sizes
    assert one.autocorrelated
    # An AR(1) series' mean is uncertain by sqrt((1 + 0.95) / (1 - 0.95)) = 6.2 times as much.
    assert 3 < (one.batch_high - one.batch_low) / (one.high - one.low) < 10


def test_tables_and_events_give_the_same_series() -> None:
    rows = [("e", 0, 8, i, 10 * i, 100 + i, 1) for i in range(3)] + [("e", 0, 8, None, None, 200, 7)]
    columns = ["flow", "client", "size", "iteration", "time", "rtt", "count"]
    echoes = conform("echoes", pl.DataFrame(rows, schema=columns, orient="row"))
    batch = {"flow": "e", "client": 0, "size": 8, "iteration": 3, "time": 30, "count": 7, "rtt_mean": 200.0}
    batches = conform("echo_batches", pl.DataFrame([{**batch, "rtt_max": 200}]))
    (summarized,) = from_tables(echoes, batches)
    (received,) = from_events(
        [
            {"event": "progress"},
            {
                "event": "series",
                "client": 0,
                "size": 8,
                "done": 10,
                "rounds": [[0, 100], [10, 101], [20, 102]],
                "buckets": [[200, 7]],
                "batches": [[3, 30, 7, 200.0, 200]],
            },
        ]
    )
    for one in (summarized, received):
        assert (one.client, one.size, one.count) == (0, 8, 10)
        assert one.rtts.tolist() == [100, 101, 102]
        assert one.batches.tolist() == [[200, 7]]
        assert one.total == 303 + 1400


def test_a_warm_up_of_everything_leaves_nothing() -> None:
    (one,) = statistics([Series(0, 8, np.ones(3))], clients=1, iterations=3, warmup=3).sizes
    assert (one.count, one.rate) == (0, 0)
    assert np.isnan(one.mean)
    assert one.first == 1


def test_percentiles_are_those_of_the_round_trips() -> None:
    values = np.random.default_rng(4).permutation(np.arange(1.0, 10_001.0))
    (one,) = statistics([Series(0, 1, values)], clients=1, iterations=10_000).sizes
    found = [one.minimum, one.median, one.p90, one.p99, one.p999, one.maximum]
    assert found == pytest.approx([1, 5_000, 9_000, 9_900, 9_990, 10_000], abs=1)


def test_a_warm_up_is_taken_from_the_single_ones_and_leaves_the_many() -> None:
    batches = np.array([[20.0, 4.0], [30.0, 4.0], [90.0, 1.0]])
    series = Series(0, 1, np.array([500.0, 10.0, 10.0]), np.array([[25.0, 9.0]]), batches)
    kept = series.without(1)
    assert (kept.count, kept.total) == (11, 20 + 80 + 120 + 90)
    # A last batch of fewer round trips would count as much as a whole one.
    assert kept.in_order().tolist() == [20, 30]


def test_rows_in_any_order_and_of_any_repetition_are_the_same_series() -> None:
    single = [(repetition, i, 100.0 * repetition + i, 1) for repetition in (1, 2) for i in range(4)]
    many = [(repetition, None, 300.0, 8) for repetition in (1, 2)]
    columns = ["repetition", "iteration", "rtt", "count"]
    echoes = pl.DataFrame([*single, *many], schema=columns, orient="row").with_columns(
        pl.lit(0).alias("client"), pl.lit(8).alias("size")
    )
    batches = pl.DataFrame(
        [(1, 4, 4, 301.0), (1, 8, 4, 299.0), (2, 4, 8, 300.0)],
        schema=["repetition", "iteration", "count", "rtt_mean"],
        orient="row",
    ).with_columns(pl.lit(0).alias("client"), pl.lit(8).alias("size"))
    first, second = from_tables(echoes.reverse(), batches.reverse())
    assert (first.client, second.client) == (0, 1), "a repetition's clients are further clients"
    assert first.rtts.tolist() == [100, 101, 102, 103]
    assert second.rtts.tolist() == [200, 201, 202, 203]
    assert first.batches.tolist() == [[301, 4], [299, 4]]
    assert second.batches.tolist() == [[300, 8]]
    assert (first.repetition, second.repetition) == (1, 2)


def test_the_rate_is_that_of_one_repetition() -> None:
    """Three runs do not carry three times as much as one."""
    steady = np.full(10, 1e6)
    series = [Series(number, 8, steady, repetition=1 + number // 2) for number in range(6)]
    test = statistics(series, clients=2, iterations=10, warmup=1)
    assert (test.sizes[0].count, test.whole[0].count) == (54, 60)
    assert test.sizes[0].rate == test.whole[0].rate == pytest.approx(2000)
    assert test.sizes[0].throughput == pytest.approx(2000 * 8 * 8)
    names = [name for name, _ in tables(test)[-1].rows]
    assert names[1:3] == ["client 1, repetition 1", "client 2, repetition 2"]
