"""Notes of a summary."""

import pytest

from tcplab.analysis.summaries import _seconds_range


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1.5e9, 1.5e9), "1.5 s"),
        ((1.5e9, 1.500000008e9), "1.5 s"),
        ((0, 0.496e9), "0 to 0.496 s"),
    ],
)
def test_warm_ups_that_read_the_same_are_named_once(values: tuple[float, ...], said: str) -> None:
    assert _seconds_range(values) == said
