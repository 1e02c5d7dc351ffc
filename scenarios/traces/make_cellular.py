"""Compute `cellular.down`: a made-up cellular downlink of 16 s between 0.5 and 8 Mbit/s.

A slow swing (a moving receiver), a faster one (fading), and two short gaps (handovers). Run it as
`python make_cellular.py > cellular.down`.
"""

import math
import sys

PERIOD_MS = 16_000
BITS = 1500 * 8


def rate(ms: int) -> float:
    """Capacity at a millisecond, in Mbit/s."""
    seconds = ms / 1000
    if 6.0 <= seconds < 6.3 or 12.5 <= seconds < 12.7:
        return 0.0
    slow = 4 + 2.8 * math.sin(2 * math.pi * seconds / 16)
    fast = 1 + 0.35 * math.sin(2 * math.pi * seconds / 1.3) + 0.2 * math.sin(2 * math.pi * seconds / 0.47)
    return min(8.0, max(0.5, slow * fast))


def opportunities() -> list[int]:
    """The milliseconds at which 1500 bytes may leave; the last one is the period."""
    times, credit = [], 0.0
    for ms in range(1, PERIOD_MS + 1):
        credit += rate(ms) * 1000
        while credit >= BITS:
            credit -= BITS
            times.append(ms)
    return times if times[-1] == PERIOD_MS else [*times, PERIOD_MS]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{ms}\n" for ms in opportunities()))
