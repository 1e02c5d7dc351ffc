"""The laws against their publications' own figures."""

import math

import pytest

from tcplab.analysis.laws import (
    Path,
    cubic_recovery,
    cubic_response,
    link_limit,
    mathis,
    pftk,
    reno_recovery,
    slow_start_time,
    window_limit,
)
from tcplab.analysis.laws.answer import answer

# RFC 9438, section 5.1, tables 1 and 2: mean windows of CUBIC with C = 0.4, in segments.
RESPONSE = {
    0.1: {1e-2: 12, 1e-3: 38, 1e-4: 187, 1e-5: 1054, 1e-6: 5926, 1e-7: 33325, 1e-8: 187400},
    0.01: {1e-2: 12, 1e-3: 38, 1e-4: 120, 1e-5: 379, 1e-6: 1200, 1e-7: 5926, 1e-8: 33325},
}


def segments(rate: float, path: Path) -> float:
    return rate * path.rtt / 8 / path.payload


@pytest.mark.parametrize(
    ("rtt", "loss", "window"), [(rtt, p, w) for rtt, row in RESPONSE.items() for p, w in row.items()]
)
def test_cubic_s_response_is_that_of_the_rfc(rtt: float, loss: float, window: float) -> None:
    path = Path(math.inf, rtt, loss)
    assert segments(cubic_response(path), path) == pytest.approx(window, rel=0.025)


@pytest.mark.parametrize(("loss", "window"), [(1e-2, 12), (1e-4, 120), (1e-6, 1200), (1e-8, 12000)])
def test_reno_s_response_is_that_of_the_rfc(loss: float, window: float) -> None:
    # RFC 3649, section 2: 1.2 / sqrt(p).
    path = Path(math.inf, 0.1, loss)
    assert segments(mathis(path), path) == pytest.approx(window, rel=0.03)


def test_a_loss_in_ten_billion_is_what_reno_needs_for_10_gbit_s() -> None:
    # RFC 3649, section 1: 10 Gbit/s, 1500 B and 100 ms take a loss every 5,000,000,000 packets at most.
    path = Path(math.inf, 0.1, 1 / 5e9, mss=1512)
    assert mathis(path) == pytest.approx(10e9, rel=0.05)


def test_timeouts_make_pftk_the_lower_law_and_the_same_at_little_loss() -> None:
    assert pftk(Path(1e9, 0.1, 0.1)) < 0.6 * mathis(Path(1e9, 0.1, 0.1))
    assert pftk(Path(1e9, 0.1, 1e-6)) == pytest.approx(mathis(Path(1e9, 0.1, 1e-6)), rel=0.01)


def test_pftk_is_the_paper_s_equation_30() -> None:
    # 2 %, b = 1, RTT 100 ms, RTO 300 ms: 0.1 √(0.04 / 3) + 0.3 · 3 √(0.06 / 8) · 0.02 · 1.0128 s a segment.
    assert pftk(Path(1e9, 0.1, 0.02)) == pytest.approx(1448 * 8 / 0.013126, rel=1e-4)


def test_pftk_is_capped_by_the_window() -> None:
    path = Path(1e9, 0.1, 1e-8)
    assert pftk(path, window=65536) == window_limit(path, 65536)


def test_a_window_a_round_trip() -> None:
    # The well-known 64 KiB over 100 ms.
    assert window_limit(Path(1e9, 0.1), 65536) == pytest.approx(5.24288e6)


def test_a_link_carries_payload_and_headers() -> None:
    assert link_limit(Path(100e6, 0.01)) == pytest.approx(95.641e6, rel=1e-5)


def test_recovery_takes_reno_minutes_where_cubic_takes_seconds() -> None:
    path = Path(1e9, 0.1)
    assert reno_recovery(path) == pytest.approx(path.pipe / 2 * 0.1)
    assert cubic_recovery(path) == pytest.approx((0.75 * path.pipe) ** (1 / 3))
    assert reno_recovery(path) > 20 * cubic_recovery(path)


def test_on_short_paths_cubic_recovers_as_reno_does() -> None:
    path = Path(10e6, 0.01)
    assert cubic_recovery(path) < 2 * reno_recovery(path)


@pytest.mark.parametrize(
    ("window", "streams", "segments"),
    [(None, 1, 4541), (None, 4, 4541 / 4), (65536.0, 1, 65536 / 1448), (65536.0, 1000, 4541 / 1000)],
)
def test_a_stream_fills_and_recovers_the_window_that_it_may_have(
    window: float | None, streams: int, segments: float
) -> None:
    path = Path(100e6, 0.55)
    found = {line.key: line.value for line in answer(path, window=window, streams=streams)}
    assert found["flight"] == pytest.approx(segments, rel=1e-3)
    assert found["reno_recovery"] == pytest.approx(segments / 2 * 0.55, rel=1e-3)
    assert found["cubic_recovery"] <= (0.75 * segments) ** (1 / 3) * 1.001
    assert found["slow_start"] == pytest.approx(max(0, math.log2(segments / 10)) * 0.55, rel=1e-3)


def test_slow_start_doubles_each_round_trip() -> None:
    path = Path(10 * 2**5 * 1514 * 8 / 0.1, 0.1)
    assert slow_start_time(path) == pytest.approx(0.5)
    assert slow_start_time(Path(1e6, 0.001)) == 0.0


def test_an_answer_has_a_formula_and_a_source_beside_each_figure() -> None:
    lines = answer(Path(100e6, 0.55, 1e-5), window=65536, streams=4)
    assert all(line.formula and line.source for line in lines)
    by_key = {line.key: line.value for line in lines}
    assert by_key["window"] == pytest.approx(4 * 65536 * 8 / 0.55)
    assert by_key["reno_streams"] == 12
    # Four windows as large as needed fill the link.
    assert 4 * by_key["window_needed"] * 8 / 0.55 == pytest.approx(by_key["link"])


@pytest.mark.parametrize("loss", [1e-4, 1e-3, 0.05, 0.5])
def test_as_many_streams_as_it_takes_fill_the_link_and_no_fewer(loss: float) -> None:
    path = Path(100e6, 0.1, loss)
    needed = {line.key: int(line.value) for line in answer(path) if line.unit == "streams"}
    for key, law in (("reno_streams", "pftk"), ("cubic_streams", "cubic")):
        for streams, fills in ((needed[key], True), (needed[key] - 1, False)):
            carried = next(line.value for line in answer(path, streams=streams) if line.key == law)
            assert (carried >= link_limit(path)) is fills, (key, streams)


def test_without_loss_and_window_only_the_link_limits() -> None:
    keys = {line.key for line in answer(Path(1e9, 0.05))}
    assert not keys & {"mathis", "pftk", "cubic", "window", "reno_streams"}
