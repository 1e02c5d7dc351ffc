"""Steps in a curve are named after what causes them."""

import numpy as np

from tcplab.echo import Path, Series, explain, statistics

LINK = Path(mss=1448, rate=1e8, rate_back=1e8, delay=2e5)


def kinds(series: list[Series], path: Path = LINK, clients: int = 1) -> dict[str, str]:
    echoes = statistics(series, clients=clients, iterations=len(series[0].rtts))
    return {step.kind: step.text for step in explain(echoes, path)}


def ideal(size: int, count: int = 50) -> Series:
    expected = LINK.expected(size)
    assert expected is not None
    return Series(0, size, np.full(count, expected))


def test_the_segment_boundary_and_serialisation_are_seen_on_a_slow_link() -> None:
    found = kinds([ideal(size) for size in (1, 1024, 2048, 65536)])
    assert "up to 1024 B" in found["segment"]
    assert "2048 B are 2 segments" in found["segment"]
    assert "explains 100% of it" in found["serialisation"]
    assert "From 2048 B on it outweighs" in found["serialisation"]
    assert "delayed ACK" not in found
    assert "timeout" not in found


def test_a_few_stalls_near_40_ms_are_counted_and_named() -> None:
    slow = ideal(2048)
    slow.rtts[[7, 30]] += 41.3e6
    assert kinds([ideal(1), slow])["delayed ACK"].startswith(
        "2 round trips (at 2048 B) took about 40 ms longer"
    )


def test_a_stall_in_every_exchange_is_known_by_the_path() -> None:
    slow = ideal(4096)
    slow.rtts[:] += 40e6
    assert "in nearly every exchange" in kinds([ideal(1), slow])["delayed ACK"]


def test_a_retransmission_timeout_is_not_taken_for_a_delayed_ack() -> None:
    lost = ideal(4096)
    lost.rtts[3] += 204e6
    found = kinds([ideal(1), lost])
    assert "timeout" in found
    assert "delayed ACK" not in found


def test_a_wide_distribution_is_no_stall() -> None:
    rng = np.random.default_rng(1)
    wide = Series(0, 1, rng.exponential(30e6, 5000))
    assert "delayed ACK" not in kinds([wide], Path(mss=1448))


def test_the_window_is_named_where_the_first_large_message_is_slow() -> None:
    grown = ideal(65536)
    grown.rtts[0] *= 3
    found = kinds([ideal(1), grown])
    assert "3 times the median" in found["window"]
    assert "no longer than the others" in kinds([ideal(1), ideal(65536)])["window"]


def test_first_round_trips_are_named() -> None:
    cold = ideal(1)
    cold.rtts[0] *= 5
    assert "5 times the median" in kinds([cold])["first"]


def test_clients_that_fill_the_link_share_it() -> None:
    one_way = LINK.frames(65536) * 80
    series = [Series(client, 65536, np.full(20, 8.0 * one_way)) for client in range(8)]
    assert "8 clients fill 9" in kinds(series, clients=8)["sharing"]


def test_without_knowing_the_path_nothing_is_claimed_about_it() -> None:
    assert kinds([ideal(1), ideal(65536)], Path()) == {}
