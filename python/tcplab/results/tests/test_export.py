import csv
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.results import ResultsError, Run, load
from tcplab.results.export import export
from tcplab.results.tests.synthetic import plan, write_result


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = plan({"bulk": "cubic"}, seconds=5, streams=2)
    return load(write_result(tmp_path_factory.mktemp("single") / "result", made))


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = plan({"one": "reno", "two": "cubic"}, shared=True, seconds=5)
    return load(write_result(tmp_path_factory.mktemp("repeated") / "result", made, repetitions=2))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_csv_has_a_file_per_table_with_its_columns(single: Run, tmp_path: Path) -> None:
    paths = export(single, "csv", tmp_path / "csv")
    assert {path.stem for path in paths} == {"flows", "intervals", "sockets", "queues", "events"}
    with (tmp_path / "csv" / "flows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["stream"] for row in rows] == ["0", "1"]
    assert rows[0]["cpu_sender"] == ""


def test_json_has_everything_in_one_document(repeated: Run, tmp_path: Path) -> None:
    (path,) = export(repeated, "json", tmp_path / "all.json")
    document = read(path)
    assert document["tables"]["flows"]["flow"] == ["one", "two", "one", "two"]
    assert document["units"]["sockets"]["srtt"] == "ns"
    assert set(document["manifests"]) == {"1", "2"}


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_json_has_null_for_what_it_cannot_hold(value: float, tmp_path: Path) -> None:
    result = write_result(tmp_path / "result", plan({"bulk": "cubic"}, seconds=5))
    table = result / "run-1" / "flows.parquet"
    pl.read_parquet(table).with_columns(rtt_mean=pl.lit(value)).write_parquet(table)
    (path,) = export(load(result), "json", tmp_path / "all.json")
    assert read(path)["tables"]["flows"]["rtt_mean"] == [None]


def test_iperf3_adds_streams_up(single: Run, tmp_path: Path) -> None:
    (path,) = export(single, "iperf3", tmp_path / "out.json")
    document = read(path)
    assert document["start"]["test_start"]["num_streams"] == 2
    assert len(document["intervals"]) == 50
    first = document["intervals"][0]
    assert first["sum"]["bytes"] == sum(stream["bytes"] for stream in first["streams"])
    received = document["end"]["sum_received"]
    total = sum(single.flows["bytes_received"])
    assert received["bytes"] == total
    assert received["bits_per_second"] == pytest.approx(total * 8 / 5)
    assert document["end"]["sender_tcp_congestion"] == "cubic"


def test_iperf3_has_windows_in_bytes_and_round_trip_times_in_microseconds(
    single: Run, tmp_path: Path
) -> None:
    (path,) = export(single, "iperf3", tmp_path / "out.json")
    stream = read(path)["intervals"][-1]["streams"][0]
    last = single.sockets.filter(stream=0).sort("time").tail(1).to_dicts()[0]
    assert stream["snd_cwnd"] == last["cwnd"] * last["mss"]
    assert stream["rtt"] == last["srtt"] // 1000


def test_iperf3_has_the_ports_path_and_end_of_the_flow(tmp_path: Path) -> None:
    made = plan({"bulk": "cubic"}, seconds=5, streams=2)
    made["flows"][0] |= {"bytes": 1_000_000, "dscp": 46, "ip": 6}
    made["links"][0]["mtu"] = 9000
    result = write_result(tmp_path / "result", made)
    table = result / "run-1" / "flows.parquet"
    local = pl.Series("from_port", [50_001, 50_002])
    pl.read_parquet(table).with_columns(local, to_port=pl.lit(80, pl.Int64)).write_parquet(table)
    run = load(result)
    (path,) = export(run, "iperf3", tmp_path / "out.json")
    start = read(path)["start"]
    assert [(one["local_port"], one["remote_port"]) for one in start["connected"]] == [
        (50_001, 80),
        (50_002, 80),
    ]
    assert start["connecting_to"]["port"] == 80
    test = start["test_start"]
    assert (test["tos"], test["bytes"], test["duration"]) == (46 << 2, 1_000_000, 0)
    assert read(path)["intervals"][0]["streams"][0]["pmtu"] == 9000
    (path,) = export(run, "flent", tmp_path / "out.flent")
    assert read(path)["metadata"]["IP_VERSION"] == 6


# The keys that `iperf3 -J` prints, version 3.12.
_START = {"connected", "version", "system_info", "timestamp", "connecting_to", "cookie", "target_bitrate"}
_BUFFERS = {"sock_bufsize", "sndbuf_actual", "rcvbuf_actual"}
_TEST = {"protocol", "num_streams", "blksize", "omit", "duration", "bytes", "blocks", "reverse", "tos"}
_SPAN = {"start", "end", "seconds", "bytes", "bits_per_second", "sender"}
_DATAGRAMS = _SPAN | {"jitter_ms", "lost_packets", "packets", "lost_percent"}
_END = {
    "tcp": {"sum_sent": _SPAN | {"retransmits"}, "sum_received": _SPAN},
    "udp": dict.fromkeys(("sum", "sum_sent", "sum_received"), _DATAGRAMS),
}


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_iperf3_has_every_key_that_iperf3_prints(kind: str, tmp_path: Path) -> None:
    made = plan({"bulk": "cubic"}, seconds=5, streams=2)
    if kind == "udp":
        made["flows"][0] |= {"kind": "udp", "rate": 1_000_000, "payload": 1000}
    (path,) = export(load(write_result(tmp_path / "result", made)), "iperf3", tmp_path / "out.json")
    start, end = read(path)["start"], read(path)["end"]
    assert set(start) >= _START | _BUFFERS
    assert set(start["test_start"]) == _TEST | {"target_bitrate"}
    assert start["test_start"]["target_bitrate"] == (1_000_000 if kind == "udp" else 0)
    for name, keys in _END[kind].items():
        assert set(end[name]) == keys, name


def test_iperf3_tells_datagrams_received_from_those_sent(tmp_path: Path) -> None:
    made = plan({"bulk": "cubic"}, seconds=5, streams=2)
    made["flows"][0] |= {"kind": "udp", "rate": 1_000_000, "payload": 1000}
    result = write_result(tmp_path / "result", made)
    flows, intervals = result / "run-1" / "flows.parquet", result / "run-1" / "intervals.parquet"
    counts = {"bytes_sent": 600_000, "bytes_received": 590_000, "segments_sent": 600}
    columns = [pl.lit(value, pl.Int64).alias(name) for name, value in counts.items()]
    pl.read_parquet(flows).with_columns(columns).write_parquet(flows)
    found = pl.read_parquet(intervals)
    # Of 10 lost datagrams, 9 are found missing: the last one has none behind it.
    first = (pl.col("time") == found["time"].min()).cast(pl.Int64)
    found = found.with_columns(lost=9 * first, out_of_order=0 * first, jitter=500_000 * first)
    found.write_parquet(intervals)
    (path,) = export(load(result), "iperf3", tmp_path / "out.json")
    end = read(path)["end"]
    sent, received = end["sum_sent"], end["sum_received"]
    assert (sent["bytes"], sent["packets"], sent["lost_packets"]) == (1_200_000, 1200, 0)
    assert (received["bytes"], received["packets"], received["lost_packets"]) == (1_180_000, 1198, 18)
    assert received["bits_per_second"] == pytest.approx(1_180_000 * 8 / 5)
    assert received["lost_percent"] == pytest.approx(100 * 18 / 1198)
    assert (sent["sender"], received["sender"]) == (True, False)
    assert end["sum"]["bytes"] == 1_200_000


def test_iperf3_has_the_time_at_which_the_flow_started(tmp_path: Path) -> None:
    result = write_result(tmp_path / "result", plan({"bulk": "cubic"}, seconds=5))
    begun = read(next(iter(export(load(result), "iperf3", tmp_path / "at-once.json"))))["start"]["timestamp"]
    table = result / "run-1" / "flows.parquet"
    pl.read_parquet(table).with_columns(start=pl.lit(3_000_000_000)).write_parquet(table)
    later = read(next(iter(export(load(result), "iperf3", tmp_path / "later.json"))))["start"]["timestamp"]
    assert later["timesecs"] - begun["timesecs"] == 3
    assert later["time"] != begun["time"]


def test_iperf3_has_a_document_per_flow_and_repetition(repeated: Run, tmp_path: Path) -> None:
    names = [path.name for path in export(repeated, "iperf3", tmp_path / "out.json")]
    assert names == [f"out-{flow}-run-{n}.json" for n in (1, 2) for flow in ("one", "two")]


def test_iperf3_has_no_document_of_probes_and_says_so(tmp_path: Path) -> None:
    made = plan({"probe": "cubic"}, seconds=1)
    made["flows"][0]["kind"] = "ping"
    run = load(write_result(tmp_path / "result", made))
    with pytest.raises(ResultsError, match="none of its flows is tcp or udp"):
        export(run, "iperf3", tmp_path / "out.json")


def test_a_name_that_ends_in_gz_is_of_a_compressed_file_as_flent_s_own_are(
    single: Run, repeated: Run, tmp_path: Path
) -> None:
    (path,) = export(single, "flent", tmp_path / "one.flent.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["metadata"]["NAME"] == "tcp_nup"
    paths = export(repeated, "flent", tmp_path / "out.flent.gz")
    assert [path.name for path in paths] == ["out-run-1.flent.gz", "out-run-2.flent.gz"]
    assert all(path.read_bytes().startswith(b"\x1f\x8b") for path in paths)


def test_flent_series_are_as_long_as_its_x_values(repeated: Run, tmp_path: Path) -> None:
    paths = export(repeated, "flent", tmp_path / "out.flent")
    assert [path.name for path in paths] == ["out-run-1.flent", "out-run-2.flent"]
    document = read(paths[0])
    assert document["version"] == 3
    assert document["metadata"]["NAME"] == "tcp_nup"
    lengths = {len(values) for values in document["results"].values()}
    assert lengths == {len(document["x_values"])} == {50}


def test_flent_has_datagrams_under_their_own_name_and_not_as_an_upload_of_tcp(tmp_path: Path) -> None:
    made = plan({"one": "reno", "two": "reno"}, shared=True, seconds=5)
    made["flows"][1].update(kind="udp", rate=1_000_000, payload=1472)
    document = read(export(load(write_result(tmp_path / "run", made)), "flent", tmp_path / "out.flent")[0])
    results = document["results"]
    assert results["TCP upload sum"] == results["TCP upload::1"] == results["one"]
    assert "TCP upload::2" not in results
    assert "two" in results
    assert document["metadata"]["TEST_PARAMETERS"] == {"upload_streams": "1"}


def test_flent_s_sum_is_the_sum_of_its_flows_in_mbit_s(repeated: Run, tmp_path: Path) -> None:
    document = read(export(repeated, "flent", tmp_path / "out.flent")[0])
    results = document["results"]
    at = 30
    parts = results["TCP upload::1"][at] + results["TCP upload::2"][at]
    assert results["TCP upload sum"][at] == pytest.approx(parts)
    assert results["TCP upload avg"][at] == pytest.approx(parts / 2)
    assert 8 < parts < 10
    assert 100 <= results["Ping (ms) ICMP"][at] <= 160


def test_intervals_of_ends_that_report_at_times_of_their_own_count_once(tmp_path: Path) -> None:
    """As those of iperf3 do: what one end does not know is null in the other's rows."""
    result = write_result(tmp_path / "result", plan({"bulk": "cubic"}, seconds=5))
    whole = export(load(result), "iperf3", tmp_path / "whole.json")[0]
    together = export(load(result), "flent", tmp_path / "whole.flent")[0]
    table = result / "run-1" / "intervals.parquet"
    rows = pl.read_parquet(table)
    none = pl.lit(None)
    sender = rows.with_columns(bytes_received=none, goodput=none)
    receiver = rows.with_columns(bytes_sent=none, retransmits=none, time=pl.col("time") + 50_000)
    pl.concat([sender, receiver], how="vertical_relaxed").write_parquet(table)
    path = export(load(result), "iperf3", tmp_path / "apart.json")[0]
    assert read(path)["intervals"] == read(whole)["intervals"]
    path = export(load(result), "flent", tmp_path / "apart.flent")[0]
    upload, expected = (read(one)["results"]["TCP upload::1"][1:] for one in (path, together))
    assert upload == pytest.approx(expected, rel=0.01)


def test_flent_has_no_figure_of_a_goodput_that_is_unknown(tmp_path: Path) -> None:
    """As of a flow to a host that discards what comes."""
    result = write_result(tmp_path / "result", plan({"bulk": "cubic"}, seconds=5))
    table = result / "run-1" / "intervals.parquet"
    pl.read_parquet(table).with_columns(bytes_received=None, goodput=None).write_parquet(table)
    document = read(export(load(result), "flent", tmp_path / "out.flent")[0])
    assert set(document["results"]["TCP upload::1"]) == {None}


def test_an_unknown_format_is_refused(single: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="xml"):
        export(single, "xml", tmp_path / "out")
