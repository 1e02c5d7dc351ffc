"""Warnings: settings that are valid but rarely intended."""

import random

import pytest

from tcplab._core import effective_loss
from tcplab.scenario import expand, load, warnings


def warned(settings: str, flow: str = "", more: str = "") -> list[str]:
    text = f"""tcplab: 1
name: test
network:
  path: {{{"" if "rate: u" in settings else "rate: 10 Mbit/s, "}rtt: 40 ms{settings}}}
flows:
  - {{name: bulk, kind: tcp{flow}}}
{more}
"""
    return warnings(expand(load(text)))


def test_an_ordinary_scenario_has_none() -> None:
    assert warned(", loss: {rate: 1 %, correlation: 25 %}") == []


def test_netems_model_is_reported_with_its_rate() -> None:
    (sentence,) = warned(", loss: {rate: 5 %, correlation: 25 %, model: netem}")
    assert sentence == (
        "link path forward: netem's model with 5 % loss and 25 % correlation loses about 0.19 %; "
        "`model: random` keeps the rate asked for"
    )
    assert "fewer than 1 in 10^6" in warned(", loss: {rate: 0.5 %, correlation: 25 %, model: netem}")[0]
    assert warned(", loss: {rate: 5 %, model: netem}") == []


def test_jitter_that_would_make_a_delay_negative_is_reported() -> None:
    (sentence,) = warned(", jitter: 25 ms")
    assert sentence == (
        "link path forward: uniform jitter of 25 ms is more than the delay of 20 ms has room for. No delay "
        "is below zero, so the mean is higher than asked"
    )
    assert warned(", jitter: 20 ms") == []
    assert "normal jitter of 11 ms" in warned(", jitter: {amount: 11 ms, distribution: normal}")[0]
    assert warned(", jitter: {amount: 50 ms, distribution: pareto}") == []
    (sentence,) = warned(", jitter: 5 ms, at: {9 s: {rtt: 2 ms}, 10 s: {jitter: 0 ms}}")
    assert "more than the delay of 1 ms has room for from 9 s" in sentence


def test_a_small_window_limits_the_rate() -> None:
    (sentence,) = warned("", ", window: 20 kB")
    assert sentence.startswith(
        "flow bulk: its window of 20 kB is below the path's bandwidth-delay product of 50 kB"
    )
    assert warned("", ", window: 20 kB, streams: 3") == []


def test_a_tiny_queue_is_reported() -> None:
    assert "1 full packet" in warned(", queue: 1 packet")[0]
    assert "no full packet" in warned(", queue: 1 kB")[0]
    assert "no full packet" in warned(", queue: 1 us")[0]
    assert warned(", queue: 2 packets") == []


def test_a_policer_that_no_full_frame_passes_is_reported() -> None:
    (sentence,) = warned(", policer: {rate: 1 Mbit/s, burst: 1500 B}")
    assert sentence == (
        "link path forward: the policer's bucket of 1.5 kB is smaller than a full frame of 1.514 kB, so that "
        "none ever passes"
    )
    assert warned(", policer: {rate: 1 Mbit/s, burst: 1514 B}") == []


def test_a_warm_up_that_a_flow_does_not_outlast_is_reported() -> None:
    more = "omit: 4 s\nduration: 10 s"
    (sentence,) = warned("", ", start: 2 s, stop: 6 s", more)
    assert sentence == (
        "flow bulk: `omit` of 4 s is at least as long as the flow (4 s at most): no warm-up is left out"
    )
    assert "the flow (3 s at most)" in warned("", ", start: 7 s", more)[0]
    assert warned("", ", start: 2 s, stop: 6.1 s", more) == []
    assert warned("", ", start: 2 s, stop: 6 s", "omit: 0 s\nduration: 10 s") == []


def test_a_queue_discipline_without_a_rate_is_reported() -> None:
    sentence = "link path forward: nothing ever waits in the queue: the link has no `rate`"
    assert warned(", rate: unlimited, queue: codel") == [sentence]
    assert warned(", rate: unlimited, queue: 50 packets") == []
    assert warned(", rate: unlimited, queue: {kind: tbf, rate: 1 Mbit/s, burst: 15 kB, queue: codel}") == []
    assert warned(", rate: unlimited, queue: codel, at: {1 s: {rate: 5 Mbit/s}}") == []


def test_an_echo_flow_that_is_all_warm_up_is_reported() -> None:
    def echoes(warmup: int) -> list[str]:
        return warned("", f"}}\n  - {{name: echo, kind: echo, iterations: 10, warmup: {warmup}")

    assert echoes(9) == []
    assert echoes(10) == ["flow echo: `warmup` leaves out all 10 messages of a size: there are no statistics"]


def test_what_comes_after_the_end_is_reported() -> None:
    sentences = warned(", at: {40 s: {up: off}}", ", duration: 50 s", "duration: 30 s")
    assert sentences == [
        "flow bulk: would go on to 50 s, but the run ends at 30 s",
        "link path forward, link path reverse: the change at 40 s comes after the run's end at 30 s",
    ]


@pytest.mark.parametrize(
    ("rate", "correlation"), [(0.05, 0.25), (0.01, 0.1), (0.1, 0.5), (0.5, 0.5), (0.3, 0.9)]
)
def test_netems_recursion_loses_what_its_distribution_says(rate: float, correlation: float) -> None:
    """Against the recursion itself: 200,000 draws, five standard errors of a correlated sample."""
    draw = random.Random(1).random
    value, lost, draws = draw(), 0, 200_000
    for _ in range(draws):
        value = (1 - correlation) * draw() + correlation * value
        lost += value < rate
    expected = effective_loss(rate, correlation)
    error = (expected * (1 - expected) / draws * (1 + correlation) / (1 - correlation)) ** 0.5
    assert abs(lost / draws - expected) < 5 * error + 1e-6


def test_without_correlation_netem_keeps_the_rate() -> None:
    assert effective_loss(0.25, 0) == 0.25
