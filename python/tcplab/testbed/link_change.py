"""Settings of a link that is up: the present ones, and new ones as someone writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tcplab.plan.describe import describe_direction, limit_words
from tcplab.plan.types import Change, Direction

# Those that may change, in the order in which a direction's words have them.
_IMPAIRMENTS = ("loss", "corrupt", "duplicate", "jitter", "reorder")
_KEYS = {
    "both": ("forward", "backward"),
    "forward": ("forward",),
    "reverse": ("backward",),
    "backward": ("backward",),  # As it was called before.
}


def directions(word: str) -> tuple[str, ...]:
    """The keys in a link's plan of `both`, `forward` or `reverse`; none for any other word."""
    return _KEYS.get(word, ())


def changed(now: Direction, settings: Mapping[str, str]) -> Change:
    """The change of a direction whose plan is `now`; raises ScenarioErrors.

    Keys and values are those of a link's `at` in a scenario. Its own words and checks are used. The settings
    are read as those of a link of the same rate and delay, and of the same kind of queue if that needs no
    settings.
    """
    from tcplab.scenario import ScenarioErrors, expand, from_data

    link: dict[str, Any] = {"ends": ["a", "b"], "delay": f"{now['delay']} ns", "at": {"1 s": {}}}
    link["queue"] = now["queue"]["kind"]
    if now["rate"]:
        link["rate"] = f"{now['rate']} bit/s"
    data = {
        "tcplab": 1,
        "name": "set",
        "network": {"nodes": ["a", "b"], "links": [link]},
        "flows": [{"name": "f", "kind": "ping", "from": "a", "to": "b"}],
    }
    try:
        from_data(data)
    except ScenarioErrors:
        del link["queue"]
    sets = [f"network.links.a-b.at.1 s.{key}={value}" for key, value in settings.items()]
    plan = expand(from_data(data, sets=sets))
    found: Change = plan["links"][0]["forward"]["changes"][0]
    return found


def present(direction: Direction, elapsed: int) -> Direction:
    """A direction with what has changed until `elapsed` ns after its start; limits of its queue aside."""
    passed = _passed(direction, elapsed)
    return cast("Direction", direction | {key: passed[key] for key in passed if key in direction})


def recorded(direction: Direction, change: Change, elapsed: int) -> Direction:
    """A direction that changes now; changes that have passed become one, with the latest of each setting."""
    now = _passed(direction, elapsed) | dict(change) | {"at": elapsed}
    later = [one for one in direction["changes"] if one["at"] > elapsed]
    return cast("Direction", direction | {"changes": [now, *later]})


def present_words(direction: Direction, elapsed: int) -> dict[str, str]:
    """The present settings by their keys in a link's `at`; absent impairments have none."""
    now, passed = present(direction, elapsed), _passed(direction, elapsed)
    # Without what else would be among the impairments.
    rest = {key: value for key, value in now.items() if key not in ("overhead", "policer")}
    words = describe_direction(cast("Direction", rest | {"up": True}))
    queue = limit_words(passed["limit"]) if "limit" in passed else words.queue
    if "mark_above" in passed:
        queue += f", marks above {limit_words(passed['mark_above'])}"
    impaired = [key for key in _IMPAIRMENTS if rest[key] is not None]
    return {
        "rate": words.rate,
        "delay": words.delay,
        "queue": queue,
        **dict(zip(impaired, words.impairments, strict=True)),
        "up": "on" if now["up"] else "off",
    }


def _passed(direction: Direction, elapsed: int) -> dict[str, Any]:
    """The latest of each setting that has changed until then."""
    passed: dict[str, Any] = {}
    for change in direction["changes"]:
        if change["at"] <= elapsed:
            passed |= change
    return passed
