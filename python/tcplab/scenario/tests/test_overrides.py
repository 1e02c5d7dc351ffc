"""`--set`: what it reaches, and how it refuses."""

from pathlib import Path
from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, load

TEXT = """tcplab: 1
name: test
network:
  path: {rate: 10 Mbit/s, rtt: 40 ms, queue: 50 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
  - {name: noise, kind: udp, rate: 1 Mbit/s}
"""


def plan(*sets: str) -> Any:
    return expand(load(TEXT, sets))


def refusal(*sets: str) -> str:
    with pytest.raises(ScenarioErrors) as refused:
        plan(*sets)
    return str(refused.value)


def test_a_flow_is_named_or_numbered() -> None:
    assert plan("flows.bulk.cc=bbr2")["flows"][0]["cc"]["name"] == "bbr2"
    assert plan("flows.1.rate=2 Mbit/s")["flows"][1]["rate"] == 2_000_000


def test_the_last_override_wins() -> None:
    assert plan("seed=2", "seed=3")["seed"] == 3


def test_a_key_that_was_not_given_is_added_with_all_above_it() -> None:
    made = plan("network.path.reverse.rate=1 Mbit/s", "sample.sockets=1 ms")
    assert made["links"][0]["backward"]["rate"] == 1_000_000
    assert made["sample"]["sockets"] == 1_000_000


def test_a_short_form_grows_where_needed() -> None:
    made = plan("flows.bulk.cc.beta=0.8", "network.path.queue.kind=droptail")
    assert made["flows"][0]["cc"] == {"name": "cubic", "params": {"beta": 0.8}}
    assert made["links"][0]["forward"]["queue"]["limit"] == {"time": 50_000_000}


def test_a_value_may_be_a_mapping_or_a_list() -> None:
    made = plan("network.path.loss={rate: 1 %, correlation: 25 %}", "flows=[{name: only, kind: ping}]")
    assert made["links"][0]["forward"]["loss"]["model"]["chance"]["correlation"] == 250_000_000
    assert [flow["name"] for flow in made["flows"]] == ["only"]


def test_links_and_nodes_are_named_too() -> None:
    text = """tcplab: 1
name: test
network:
  nodes: [a, {name: b, window: 1 MB}]
  links: [{ends: [a, b], rate: 1 Mbit/s}]
flows: [{name: bulk, kind: tcp, from: a, to: b}]
"""
    made = expand(load(text, ["network.links.a-b.rate=5 Mbit/s", "network.nodes.b.window=2 MB"]))
    assert made["links"][0]["forward"]["rate"] == 5_000_000
    assert made["nodes"][1]["tcp"]["receive_buffer"] == 2_000_000


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "flows.blk.cc=reno",
            "--set:1:7: flows.blk: unknown flow `blk`\n"
            "  1 | flows.blk.cc=reno\n"
            "    |       ^^^\n"
            "  did you mean `bulk`?",
        ),
        (
            "network.path.rate=50mbps",
            "--set:1:19: network.path.rate: `50mbps`: unknown unit `mbps`\n"
            "  1 | network.path.rate=50mbps\n"
            "    |                   ^^^^^^\n"
            "  did you mean `50 Mbit/s`?",
        ),
        (
            "netwrk.path.rate=50 Mbit/s",
            "--set:1:1: netwrk: unknown key `netwrk`\n"
            "  1 | netwrk.path.rate=50 Mbit/s\n"
            "    | ^^^^^^\n"
            "  did you mean `network`?",
        ),
    ],
)
def test_a_refused_override_looks_like_any_other_error(override: str, message: str) -> None:
    assert refusal(override) == message


@pytest.mark.parametrize(
    "override", ["", "=", "seed", "seed=", ".=1", "a..b=1", "seed.x=1", "flows.9.cc=reno", 'a="']
)
def test_a_malformed_override_is_refused(override: str) -> None:
    assert refusal(override).startswith("--set:1:")


def test_errors_of_file_and_overrides_come_together(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    file.write_text(TEXT.replace("40 ms", "40"), encoding="utf-8")
    with pytest.raises(ScenarioErrors) as refused:
        load(file, ["seed=x"])
    assert [error.file for error in refused.value.errors] == [str(file), "--set"]
