import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab
from tcplab.analysis.samples import Samples
from tcplab.plan.paths import Hop
from tcplab.present import compare, summary
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import NONE
from tcplab.results import RunWriter, load
from tcplab.results.tests.synthetic import MS, SECOND, plan, write_result, write_run


def made(path: Path, repetitions: int = 1, **how: Any) -> Any:
    flows = how.pop("flows", {"one": "reno", "two": "cubic"})
    return load(write_result(path, plan(flows, **{"seconds": 10, **how}), repetitions))


def test_goodput_is_what_arrived_after_the_warm_up(tmp_path: Path) -> None:
    run = made(tmp_path, omit=2 * SECOND)
    row = summary(run).flows[0]
    every = run.intervals.filter(flow="one")
    late = every.filter(every["time"] - every["duration"] >= 2 * SECOND)
    expected = late["bytes_received"].sum() * 8 / (late["duration"].sum() / 1e9)
    assert row.figures["goodput"].value == pytest.approx(expected)


def test_the_whole_flow_counts_when_nothing_is_omitted(tmp_path: Path) -> None:
    run = made(tmp_path, omit=0)
    row = summary(run).flows[0]
    total = run.flows.filter(flow="one")["bytes_received"].sum()
    assert row.figures["goodput"].value == pytest.approx(total * 8 / 10)
    assert "no warm-up" in summary(run).notes[0]


def test_the_end_that_stopped_first_does_not_count_as_time_in_which_nothing_arrived(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=1)
    sender = {"time": 90 * MS, "duration": 90 * MS, "bytes_sent": 400_000}
    receiver = {"time": 120 * MS, "duration": 120 * MS, "bytes_received": 400_000, "goodput": 26.7e6}
    ends = {"flow": "one", "stream": 0}
    writer = RunWriter(tmp_path, made)
    writer.write_table("intervals", pl.DataFrame([{**ends, **sender}, {**ends, **receiver}]))
    lasted = {"start": 0, "end": 100 * MS, "bytes_received": 400_000, "goodput": 32e6}
    writer.write_table(
        "flows", pl.DataFrame([{**ends, "kind": "tcp", "from": "left", "to": "right", **lasted}])
    )
    run = load(tmp_path)
    # No interval of the receiver lies within the flow, so its own figure counts.
    assert summary(run).flows[0].figures["goodput"].value == 32e6
    samples = Samples(run, 1)
    assert samples.goodput("one").value.tolist() == [26.7e6]
    assert samples.goodput("one", 0).value.tolist() == [26.7e6]


def test_the_interval_in_which_a_flow_ends_counts_up_to_its_last_byte(tmp_path: Path) -> None:
    """20 kB over 80 ms: the window of 10 segments, and the rest a round trip later, at 201 ms."""
    made = plan({"one": "reno"}, seconds=1)
    ends = {"flow": "one", "stream": 0}
    cut = [(100, 100, 0, 14_480, 0), (200, 100, 14_480, 5_520, 0), (281, 81, 5_520, 0, 5)]
    writer = RunWriter(tmp_path, made)
    writer.write_table(
        "intervals",
        pl.DataFrame(
            {**ends, "time": time * MS, "duration": duration * MS, "bytes_received": received,
             "bytes_sent": sent, "retransmits": again, "goodput": received * 8e3 / duration}
            for time, duration, received, sent, again in cut
        ),
    )  # fmt: skip
    writer.write_table("sockets", pl.DataFrame([{**ends, "time": 100 * MS, "node": "one-a", "mss": 1000}]))
    whole = {"kind": "tcp", "start": 0, "end": 201 * MS, "bytes_received": 20_000}
    writer.write_table("flows", pl.DataFrame([{**ends, **whole, "from": "one-a", "to": "one-b"}]))
    figures = summary(load(tmp_path)).flows[0].figures
    assert figures["goodput"].value == pytest.approx(20_000 * 8 / 0.201)
    assert figures["retransmission_rate"].value == pytest.approx(5 / 25)


def test_a_transfer_that_the_end_of_the_run_cut_off_is_named(tmp_path: Path) -> None:
    of = plan({"one": "reno", "two": "reno"}, seconds=10)
    of["flows"][1]["bytes"] = 1_000_000
    run = load(write_result(tmp_path / "whole", of, 2))
    assert (run.flows["bytes_received"] > 1_000_000).all()
    assert not any("had arrived" in note for note in summary(run).notes)
    of["flows"][1]["bytes"] = 1_000_000_000
    (said,) = [
        note for note in summary(load(write_result(tmp_path / "cut", of, 2))).notes if "arrived" in note
    ]
    assert said == "two: ended before all bytes had arrived."


def test_a_transfer_whose_receiver_does_not_count_is_named_only_if_it_was_not_all_sent(
    tmp_path: Path,
) -> None:
    """As one to a host without tcplab that discards what comes."""
    of = plan({"one": "reno", "two": "reno"}, seconds=2)
    of["flows"][0]["bytes"] = of["flows"][1]["bytes"] = 20_000
    writer = RunWriter(tmp_path, of)
    ends = {"stream": 0, "kind": "tcp", "start": 0, "end": SECOND, "from": "one-a", "to": "one-b"}
    flows = [{**ends, "flow": flow, "bytes_sent": sent} for flow, sent in (("one", 20_000), ("two", 9_000))]
    writer.write_table("flows", pl.DataFrame(flows))
    (said,) = [note for note in summary(load(tmp_path)).notes if "arrived" in note]
    assert said == "two: ended before all bytes had arrived."


def test_a_flow_of_which_nothing_arrived_is_named(tmp_path: Path) -> None:
    scenario = (
        "tcplab: 1\nname: silent\nnetwork: {path: {rate: 10 Mbit/s, rtt: 20 ms, loss: 100 %}}\n"
        "flows: [{name: bulk, kind: tcp}, {name: probe, kind: ping}]\nduration: 2 s\n"
    )
    notes = summary(tcplab.run(scenario, output=tmp_path / "run")).notes
    assert "bulk: no payload arrived in the steady state." in notes


def test_the_page_about_json_has_every_member_of_a_summary(tmp_path: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "json.md"
    if not page.is_file():
        pytest.skip("installed without its docs")
    text = page.read_text(encoding="utf-8").partition("## Summary")[2]
    assert {key for key in summary(made(tmp_path)).to_json() if f"`{key}`" not in text} == set()


def test_a_run_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    page = tcplab.load(made(tmp_path).path)._repr_html_()
    assert "<table>" in page
    assert "cubic" in page


def test_an_automatic_warm_up_is_found_and_printed(tmp_path: Path) -> None:
    table = summary(made(tmp_path, omit="auto"))
    # The synthetic flows start slowly for 1.5 s.
    assert 0.5 * SECOND <= table.flows[0].warm_up[0] <= 2 * SECOND
    assert f"one {table.flows[0].warm_up[0] / 1e9:.3g} s" in table.notes[0]


def test_an_automatic_warm_up_is_left_out(tmp_path: Path) -> None:
    run = made(tmp_path, omit="auto")
    row = summary(run).flows[0]
    every = run.intervals.filter(flow="one")
    late = every.filter(every["time"] - every["duration"] >= row.warm_up[0])
    assert len(late) < len(every)
    expected = late["bytes_received"].sum() * 8 / (late["duration"].sum() / 1e9)
    assert row.figures["goodput"].value == pytest.approx(expected)


def test_a_warm_up_longer_than_the_flow_leaves_it_whole_and_says_so(tmp_path: Path) -> None:
    table = summary(made(tmp_path), omit=60 * SECOND)
    assert table.flows[0].warm_up == (0.0,)
    assert any("one ended within the warm-up" in note for note in table.notes)


def test_repetitions_are_the_unit_of_inference(tmp_path: Path) -> None:
    figure = summary(made(tmp_path, repetitions=3)).flows[0].figures["goodput"]
    assert figure.n == 3
    assert figure.interval.method == "Student's t over 3 values"
    assert figure.grade == "high"


def test_one_repetition_has_batch_means_and_says_so(tmp_path: Path) -> None:
    table = summary(made(tmp_path))
    figure = table.flows[0].figures["goodput"]
    assert figure.n == 1
    assert figure.grade == "low"
    assert figure.interval.known
    assert any("batch means" in note for note in table.notes)


def test_flows_on_one_bottleneck_have_a_fairness_index(tmp_path: Path) -> None:
    (link,) = summary(made(tmp_path, shared=True)).links
    assert link.hop == Hop("path", "forward")
    assert link.flows == ("one", "two")
    assert 0.9 < link.figures["jain"].value <= 1


def test_flows_on_paths_of_their_own_have_none(tmp_path: Path) -> None:
    table = summary(made(tmp_path))
    assert [link.hop.link for link in table.links] == ["one-path", "two-path"]
    assert not any(link.figures["jain"].known for link in table.links)


def test_utilization_is_bytes_out_over_the_rate(tmp_path: Path) -> None:
    # The synthetic link carries 1.2 MB/s of its 10 Mbit/s.
    (link, _) = summary(made(tmp_path)).links
    assert link.figures["utilization"].value == pytest.approx(0.96, rel=1e-3)


def test_queueing_delay_is_the_mean_wait_of_packets(tmp_path: Path) -> None:
    run = made(tmp_path, omit=0)
    row = summary(run).flows[0]
    last = run.queues.filter(link="one-path").tail(1)
    assert row.figures["queueing_delay"].value == pytest.approx(last["waited"][0] / last["packets_out"][0])


def test_streams_of_a_flow_are_added_up(tmp_path: Path) -> None:
    run = made(tmp_path, flows={"bulk": "cubic"}, streams=4, omit=0)
    (row,) = summary(run).flows
    assert row.streams == 4
    assert row.figures["goodput"].value == pytest.approx(run.flows["bytes_received"].sum() * 8 / 10)
    assert "cubic \N{MULTIPLICATION SIGN} 4" in summary(run).to_text()


def test_the_text_has_a_line_per_flow_and_the_units(tmp_path: Path) -> None:
    text = summary(made(tmp_path, omit=2 * SECOND)).to_text()
    assert "Goodput (Mbit/s)" in text
    assert [line.split()[:2] for line in text.splitlines()[3:5]] == [["one", "reno"], ["two", "cubic"]]
    assert "the first 2 s of every flow are left out" in text


def test_printing_a_summary_prints_its_text(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert str(summary(run)) == summary(run).to_text()
    assert str(compare([run, run])) == compare([run, run]).to_text()


def test_json_is_in_base_units(tmp_path: Path) -> None:
    document = summary(made(tmp_path, shared=True)).to_json()
    flow = document["flows"][0]
    assert flow["goodput"]["value"] > 1e6
    assert flow["rtt_mean"]["value"] > 100 * MS
    assert flow["loss_rate"]["value"] is None
    assert document["links"][0]["flows"] == ["one", "two"]


def test_a_run_that_recorded_nothing_has_an_empty_summary(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "plan.yaml").write_text("{name: nothing, flows: [], links: [], nodes: []}\n")
    table = summary(load(tmp_path))
    assert table.flows == ()
    assert table.status == "interrupted"


def test_a_narrow_terminal_loses_minor_columns_first() -> None:
    grid = Grid(
        "t", (Heading("Flow"), Heading("RTT p50", minor=2), Heading("RTT", minor=1)), (("a", "1", "2"),)
    )
    assert [h.label for h in grid.fitted(100).headings] == ["Flow", "RTT p50", "RTT"]
    assert [h.label for h in grid.fitted(16).headings] == ["Flow", "RTT"]
    assert [h.label for h in grid.fitted(1).headings] == ["Flow"]


def test_copies_have_neither_interval_nor_grade_but_the_word_deterministic(tmp_path: Path) -> None:
    made_plan = plan({"one": "reno", "two": "cubic"}, seconds=10)
    for repetition in (1, 2):
        # The same noise in both.
        write_run(tmp_path / f"run-{repetition}", made_plan)
    copies = summary(load(tmp_path))
    text = copies.to_text()
    assert any(note.startswith("one, two: deterministic.") for note in copies.notes)
    assert " ± " not in "\n".join(grid.to_text() for grid in copies.grids())
    grades = [row[-1] for row in copies.grids()[0].rows]
    assert grades == ["deterministic", "deterministic"], text
    for flow in copies.to_json()["flows"]:
        assert flow["goodput"]["grade"] == flow["rtt_mean"]["grade"] == "deterministic"
        assert (flow["goodput"]["low"], flow["goodput"]["high"]) == (None, None)
    differing = summary(made(tmp_path / "other", repetitions=2))
    assert "deterministic" not in differing.to_text()


def test_copies_are_compared_without_p_and_effect(tmp_path: Path) -> None:
    for name, control in (("a", "reno"), ("b", "cubic")):
        made_plan = plan({"one": control}, seconds=10 if name == "a" else 8)
        for repetition in (1, 2, 3):
            write_run(tmp_path / name / f"run-{repetition}", made_plan)
    compared = compare([load(tmp_path / "a"), load(tmp_path / "b")])
    (grid,) = compared.grids()
    assert {(row[-2], row[-1]) for row in grid.rows} == {(NONE, "deterministic")}
    assert not any("±" in cell for row in grid.rows for cell in row)
    for one in compared.to_json()["differences"]:
        assert [one[key] for key in ("low", "high", "p", "p_holm", "effect")] == [None] * 5
        assert one["test"] == "deterministic"


def test_how_a_series_was_cut_is_reported_for_as_many_flows_as_a_reader_can_take_in(tmp_path: Path) -> None:
    few, many = (
        " ".join(summary(made(tmp_path / str(count), flows={f"f{at}": "reno" for at in range(count)})).notes)
        for count in (4, 5)
    )
    assert "(goodput: f0 " in few
    assert "f3 " in few
    assert "(goodput:" not in many


def test_links_that_change_make_an_average_over_different_conditions(tmp_path: Path) -> None:
    changing = plan({"one": "reno"}, seconds=10)
    said = "averages over different conditions"
    assert said not in " ".join(summary(load(write_result(tmp_path / "a", changing))).notes)
    changing["links"][0]["backward"]["changes"] = [{"at": SECOND, "delay": 5 * MS}]
    assert said in " ".join(summary(load(write_result(tmp_path / "b", changing))).notes)


def test_a_comparison_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one").path, made(tmp_path / "other").path
    page = tcplab.compare(one, other)._repr_html_()
    assert page.count("<table>") == 1
    # Names at the left, numbers at the right, whatever the notebook's own style does.
    assert re.search(r"text-align: left[^>]*>Goodput \(Mbit/s\)</td><td style=\"text-align: right", page)


def test_an_echo_s_round_trips_are_shown_by_message_size_and_its_goodput_is_explained(tmp_path: Path) -> None:
    flow = {"name": "e", "kind": "echo", "sizes": [1, 65536], "iterations": 20}
    path = {"rate": "100 Mbit/s", "rtt": "20 ms"}
    run = tcplab.run(
        {"tcplab": 1, "name": "t", "network": {"path": path}, "flows": [flow]}, output=tmp_path / "run"
    )
    found = summary(run)
    grid = found.grids()[-1]
    assert [row[:2] for row in grid.rows] == [("1", "20"), ("65536", "20")]
    mean = dict(run.echoes.group_by("size").agg(pl.col("rtt").mean()).iter_rows())
    for size, _, cell, *_ in grid.rows:
        assert float(cell) == pytest.approx(mean[int(size)] / 1e6, abs=0.01)
    assert grid.title in found.to_text()
    assert grid not in found.grids(echoes=False)
    assert "e: goodput is the payload of both directions together." in found.notes


def test_an_echo_s_round_trips_are_in_the_summary_for_programs(tmp_path: Path) -> None:
    flow = {"kind": "echo", "sizes": [1, 65536], "iterations": 20, "warmup": 5}
    path = {"rate": "100 Mbit/s", "rtt": "20 ms"}
    flows = [{"name": name, **flow} for name in ("a", "b")]
    run = tcplab.run(
        {"tcplab": 1, "name": "t", "network": {"path": path}, "flows": flows}, output=tmp_path / "r"
    )
    rows = summary(run, level=0.9).to_json()["echoes"]
    found = [(row["flow"], row["size"], row["count"]) for row in rows]
    assert found == [("a", 1, 15), ("a", 65536, 15), ("b", 1, 15), ("b", 65536, 15)]
    trips = run.echoes.filter(flow="a", size=1).sort("iteration")["rtt"].to_numpy()[5:]
    assert rows[0]["mean"] == pytest.approx(trips.mean())
    # The bounds have the level of the summary, by Student's t.
    half = 1.761 * trips.std(ddof=1) / math.sqrt(len(trips))
    assert rows[0]["high"] - rows[0]["mean"] == pytest.approx(half, rel=1e-3)
