"""Settings of a link, as someone writes them, to the command of an emulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcplab.plan.types import Change, Direction

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
