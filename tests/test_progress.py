"""How far a run has come, in words."""

from __future__ import annotations

import pytest

from tcplab.engine.base import Progress
from tcplab.progress import _position


@pytest.mark.parametrize(
    ("duration", "said"),
    [(30_008_300_000, "0.0 of 30 s"), (2_500_000_000, "0.0 of 2.5 s"), (50_000_000, "0.0 of 0.05 s")],
)
def test_a_repetition_s_length_is_rounded(duration: int, said: str) -> None:
    assert _position(Progress(0, duration)) == said
