"""The flow table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcplab.captures.columns import chosen, named, options, ordered
from tcplab.captures.details import lines as detail_lines
from tcplab.captures.summary import summarise
from tcplab.captures.table import lines
from tcplab.captures.warnings import remarks


@pytest.mark.parametrize("width", [50, 60, 80, 100, 140])
def test_the_most_important_columns_stay(lossy: Path, width: int) -> None:
    flows = summarise(lossy / "left-path.pcapng").flows
    picked = chosen(flows, width)
    assert {"flow", "name", "goodput"} <= {column.key for column in picked}
    if width >= 60:
        assert max(map(len, lines(picked, flows))) <= width
    wider = {column.key for column in chosen(flows, width + 20)}
    assert {column.key for column in picked} <= wider


def test_columns_that_say_nothing_make_room(lossy: Path) -> None:
    (tcp, udp) = summarise(lossy / "left-path.pcapng").flows
    assert "rtt" in {column.key for column in chosen([tcp, udp], 0)}
    assert "handshake" not in {column.key for column in chosen([udp], 0)}
    assert "protocol" not in {column.key for column in chosen([tcp], 0)}


def test_sorting_puts_the_greatest_first_and_the_unknown_last(lossy: Path) -> None:
    flows = summarise(lossy / "left-path.pcapng").flows
    by_goodput, by_rtt, by_number = (named(key) for key in ("goodput", "rtt", "flow"))
    assert by_goodput is not None
    assert by_rtt is not None
    assert by_number is not None
    assert [flow.number for flow in ordered(flows[::-1], by_goodput)] == [1, 2]
    assert [flow.number for flow in ordered(flows[::-1], by_rtt)] == [1, 2]
    assert [flow.number for flow in ordered(flows[::-1], by_number)] == [1, 2]
    assert named("speed") is None


def test_details_fit_and_show_both_directions(lossy: Path) -> None:
    flow = summarise(lossy / "left-path.pcapng").flow(1)
    for width in (60, 80, 0):
        text = list(detail_lines(flow, width))
        assert not width or max(map(len, text)) <= width
    assert any(line.startswith("duplicate ACKs") for line in text)


def test_remarks_count_what_is_in_no_flow() -> None:
    facts = {"ending": "complete", "not_ip": 1, "header_cut": 3, "malformed": 0}
    assert list(remarks(facts)) == [
        "1 packet other than IP (ARP, say), not in any flow",
        "3 packets too short to hold their headers, not in any flow",
    ]


@pytest.mark.parametrize(("setting", "named"), [("accecn", "AccECN"), ("on", "ECN")])
def test_options_name_the_kind_of_ecn(tmp_path: Path, setting: str, named: str) -> None:
    import tcplab

    scenario = """\
tcplab: 1
name: marks
network:
  path: {rate: 10 Mbit/s, rtt: 10 ms, queue: {kind: droptail, limit: 100 packets, mark_above: 5 packets}}
flows:
  - {name: bulk, kind: tcp}
duration: 1 s
capture: headers
"""
    run = tcplab.run(scenario, set={"network.hosts": {"ecn": setting}}, output=tmp_path / "result")
    flow = summarise(run.path / "run-1" / "left-path.pcapng").flow(1)
    assert options(flow).split()[-1] == named
    assert flow.ecn_negotiated
    receiver = flow.halves[1].tcp
    assert receiver is not None
    assert (receiver.ece == 0) == (setting == "accecn")
