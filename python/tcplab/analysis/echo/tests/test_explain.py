"""Steps in a curve are named after what causes them."""

import numpy as np
import pytest

from tcplab.analysis.echo import Path, Series, explain, statistics

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
    assert "explains 100 % of it" in found["serialisation"]
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


def test_a_wide_distribution_is_not_a_stall() -> None:
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


def test_a_stall_on_each_way_is_known_too() -> None:
    slow = ideal(4096)
    slow.rtts[:] += 89e6
    assert "takes 89 ms longer" in kinds([ideal(1), slow])["delayed ACK"]


def test_each_direction_counts_at_its_own_rate() -> None:
    # Two frames of 1066 B: 85.28 us at 100 Mbit/s and ten times that at 10 Mbit/s.
    path = Path(mss=1448, rate=1e8, rate_back=1e7, delay=1e6)
    assert path.serialisation(1000) == pytest.approx(85_280 + 852_800)
    assert path.expected(1000) == pytest.approx(1_938_080)


def test_a_message_of_one_whole_segment_is_below_the_boundary() -> None:
    assert "up to 1448 B a message is one segment" in kinds([ideal(1448), ideal(1449)])["segment"]


def test_serialisation_explains_no_more_than_there_is() -> None:
    # An end that sends back what it has while the rest comes in takes less than one way after the other.
    quick = ideal(65536)
    quick.rtts[:] *= 0.6
    assert "explains 100 % of it" in kinds([ideal(1), quick])["serialisation"]


def test_messages_that_fit_the_initial_window_do_not_wait_for_it() -> None:
    assert "window" not in kinds([ideal(1), ideal(10 * 1448)])
    assert "window" in kinds([ideal(1), ideal(10 * 1448 + 1)])


def test_of_several_sizes_the_one_that_waited_longest_for_the_window_is_named() -> None:
    little, much = ideal(20_000), ideal(40_000)
    little.rtts[0] *= 1.5
    much.rtts[0] *= 4
    assert "The first one of 40000 B" in kinds([ideal(1), little, much])["window"]


def test_clients_that_leave_the_link_idle_do_not_share_it() -> None:
    one_way = LINK.frames(65536) * 80
    # Eight messages at a time fill the link for 8 of 20 parts.
    series = [Series(client, 65536, np.full(20, 20.0 * one_way)) for client in range(8)]
    assert "sharing" not in kinds(series, clients=8)


def test_what_several_clients_take_from_each_other_is_not_a_stall_of_the_path() -> None:
    series = [Series(client, 4096, np.full(20, 45e6)) for client in range(2)]
    assert "delayed ACK" not in kinds(series, clients=2)
    assert "delayed ACK" in kinds(series[:1])
