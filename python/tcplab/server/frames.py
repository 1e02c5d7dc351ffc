"""Series on the wire: a JSON header, then the numbers as 64-bit floats, little-endian.

The first four bytes are the header's length; the header is padded so that the numbers are aligned. In it
`arrays` gives the length of each array that follows, in order; everything else is the sender's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEDIA_TYPE = "application/x-tcplab-frame"


def encode(header: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """A header and arrays as one message."""
    head = json.dumps({**header, "arrays": [len(array) for array in arrays]}, separators=(",", ":")).encode()
    head += b" " * (-(len(head) + 4) % 8)
    parts = [len(head).to_bytes(4, "little"), head]
    parts += [np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays]
    return b"".join(parts)
