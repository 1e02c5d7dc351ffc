"""Settings that are valid but seldom meant, to be told before a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def warnings(plan: Mapping[str, Any]) -> list[str]:
    """What a person should know about a plan before running it, one sentence each."""
    from tcplab import _core

    return _core.warnings(json.dumps(plan))
