"""Every shipped scenario gives the same tables when run again, and others with another seed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import tcplab
from tcplab.results import TABLES

SCENARIOS = sorted((Path(__file__).parent.parent / "scenarios").glob("*.yaml"))


def digests(scenario: Path, out: Path, seed: int | None = None) -> dict[str, str]:
    """A digest of every table's bytes on disk."""
    tcplab.run(scenario, output=out, seed=seed, repeat=1)
    return {name: _digest(out / "run-1" / f"{name}.parquet") for name in TABLES}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"


def anything_random(plan: Any) -> bool:
    """Whether a random stream is ever drawn from.

    That is: a chance to lose, damage, repeat, reorder or delay; random pauses or intervals; BBR, which begins
    PROBE_BW in a phase picked at random (section 4.3.4.3 of its first draft); the backoffs of a medium's
    stations; a link that changes while routing protocols run, whose timers have random phases.
    """
    if plan.get("media"):
        return True
    changing = any(link[way]["changes"] for link in plan["links"] for way in ("forward", "backward"))
    if changing and any(node.get("routing") for node in plan["nodes"]):
        return True
    return any(_random_flow(flow) for flow in plan["flows"]) or any(
        _random_direction(settings)
        for link in plan["links"]
        for direction in (link["forward"], link["backward"])
        for settings in (direction, *direction["changes"])
    )


def _random_flow(flow: Any) -> bool:
    pauses = (flow.get("pattern") or {}).get("distribution")
    return "exponential" in (pauses, flow.get("spacing")) or (flow.get("cc") or {}).get("name") == "bbr1"


def _random_direction(settings: dict[str, Any]) -> bool:
    loss = settings.get("loss")
    drawn = loss is not None and loss["model"]["kind"] not in ("list", "every")
    return drawn or any(settings.get(key) for key in ("jitter", "reorder", "corrupt", "duplicate"))


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) > 10


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_the_same_seed_gives_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    first = digests(scenario, tmp_path / "first")
    assert first["flows"] != "absent"
    assert digests(scenario, tmp_path / "second") == first


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_another_seed_gives_another_run_where_anything_is_random(scenario: Path, tmp_path: Path) -> None:
    first = digests(scenario, tmp_path / "first", seed=1)
    second = digests(scenario, tmp_path / "second", seed=2)
    if anything_random(tcplab.load(tmp_path / "first").plan):
        assert first != second
    else:
        assert first == second
