"""`tcplab pcap` as a person runs it."""

from __future__ import annotations

import gzip
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcplab as library

Command = Callable[..., Any]

SCENARIO = """\
tcplab: 1
name: lossy
network:
  path: {rate: 20 Mbit/s, rtt: 40 ms, queue: {kind: droptail, limit: 200 kB}, loss: 0.5 %}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
  - {name: noise, kind: udp, rate: 1 Mbit/s}
duration: 3 s
capture: headers
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result directory with captures of both ends."""
    return library.run(SCENARIO, output=tmp_path_factory.mktemp("made") / "result").path


@pytest.fixture
def capture(made: Path, here: Path) -> Path:
    """A capture of 3 s: a bulk TCP flow that loses packets, and UDP."""
    return Path(shutil.copy(made / "run-1" / "left-path.pcapng", here / "c.pcapng"))


def on_terminal(here: Path, columns: int, *arguments: str) -> str:
    """The output of the command on a terminal of so many columns."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tcplab", "pcap", *arguments],
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
    ):
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux's answer when the other side has closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_the_flows_are_a_table(capture: Path, tcplab: Command) -> None:
    ended = tcplab("pcap", capture)
    assert ended.returncode == 0, ended.stderr
    first, _, heading, *rows = ended.stdout.splitlines()
    assert "packets of" in first
    assert heading.split()[:3] == ["#", "flow", "proto"]
    assert rows[0].startswith("1  10.0.0.1:40000 -> 10.0.0.2:5001  tcp")
    assert rows[1].startswith("2  10.0.0.1:40001 -> 10.0.0.2:5002  udp")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_fits_the_terminal_and_says_what_it_left_out(
    capture: Path, here: Path, columns: int
) -> None:
    text = on_terminal(here, columns, "c.pcapng")
    assert max(map(len, text.splitlines())) <= columns
    assert "goodput" in text
    assert "too narrow for" in text


def test_a_result_directory_stands_for_its_captures(made: Path, tcplab: Command) -> None:
    ended = tcplab("pcap", made)
    assert ended.returncode == 0
    assert "left-path.pcapng:" in ended.stdout
    assert "captured near the receiver of the data (flow 1)" in ended.stdout


def test_one_flow_is_reported_in_both_directions(capture: Path, tcplab: Command) -> None:
    ended = tcplab("pcap", capture, "--flow", 1)
    assert "handshake   RTT 40.1 ms" in ended.stdout
    assert "MSS announced" in ended.stdout
    assert "10.0.0.2:5001 ->" in ended.stdout


def test_sorting_filtering_and_limits(capture: Path, tcplab: Command) -> None:
    numbers = [
        flow["number"]
        for flow in json.loads(tcplab("pcap", capture, "--sort", "rtt", "--json").stdout)["captures"][0][
            "flows"
        ]
    ]
    assert numbers == [1, 2]
    filtered = json.loads(tcplab("pcap", capture, "--filter", "udp and port 5002", "--json").stdout)
    assert [flow["protocol"] for flow in filtered["captures"][0]["flows"]] == ["udp"]
    assert "1 more flow (" in tcplab("pcap", capture, "--limit", 1).stdout


def test_a_mistake_in_a_filter_is_shown_at_its_place(capture: Path, tcplab: Command) -> None:
    for view in ([], ["packets"], ["packets", "--flow", "1"]):
        ended = tcplab("pcap", *view, capture, "--filter", "tcp and hots 1")
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[1:] == ["  tcp and hots 1", "          ^^^^"]


def test_csv_and_parquet(capture: Path, here: Path, tcplab: Command) -> None:
    import polars as pl

    assert tcplab("pcap", capture, "--csv", "f.csv", "--parquet", "f.parquet").returncode == 0
    for frame in (pl.read_csv(here / "f.csv"), pl.read_parquet(here / "f.parquet")):
        assert frame["flow"].to_list() == [1, 2]
        assert frame["forward_rtt_p50"][0] > 40_000_000


def test_the_packet_list(capture: Path, tcplab: Command) -> None:
    ended = tcplab("pcap", "packets", capture, "--flow", 1)
    heading, *rows = ended.stdout.splitlines()
    assert heading.split() == ["number", "time", "(s)", "source", "destination", "proto", "length", "info"]
    assert "40000 -> 5001 [SYN] seq 0 win 64240 len 0 mss 1460 sackOK" in rows[0]
    assert any("[fast retransmission]" in row for row in rows)
    assert not any(" UDP " in row for row in rows)
    limited = json.loads(tcplab("pcap", "packets", capture, "--limit", 3, "--json").stdout)["packets"]
    assert [row["number"] for row in limited] == [1, 2, 3]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_the_packet_list_agrees_with_tshark(capture: Path, tcplab: Command) -> None:
    names = (
        "ip.src",
        "ip.dst",
        "frame.len",
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        "tcp.options.sack_le",
        "udp.length",
    )
    printed = subprocess.run(
        ["tshark", "-r", capture, "-T", "fields", *(word for name in names for word in ("-e", name))],
        check=True,
        capture_output=True,
        text=True,
    )
    ours = json.loads(tcplab("pcap", "packets", capture, "--json").stdout)["packets"]
    theirs = printed.stdout.splitlines()
    assert len(ours) == len(theirs) > 1000
    for row, line in zip(ours, theirs, strict=True):
        source, destination, length, seq, ack, payload, sacks, udp = line.split("\t")
        assert (row["source"], row["destination"], row["length"]) == (source, destination, int(length))
        info = row["info"]
        if udp:
            assert info.endswith(f" len {int(udp) - 8}")
            continue
        assert f"seq {seq} " in info
        assert f"len {payload}" in info
        assert "[SYN] " in info or f"ack {ack} " in info
        blocks = info.partition(" sack ")[2].split()
        assert [block.split("-")[0] for block in blocks] == (sacks.split(",") if sacks else [])


def test_one_packet_field_by_field(capture: Path, tcplab: Command) -> None:
    ended = tcplab("pcap", "packets", capture, "--packet", 1)
    lines = ended.stdout.splitlines()
    assert "    34     40  TCP                       40000 -> 5001 [SYN], 0 bytes of data" in lines
    assert any(line.startswith("    24      2    Checksum") and line.endswith("(correct)") for line in lines)
    assert lines[-1].startswith("    64  ")
    printed = json.loads(tcplab("pcap", "packets", capture, "--packet", 1, "--json").stdout)
    assert (printed["wire_len"], printed["fields"][0]["name"]) == (74, "Ethernet")
    missing = tcplab("pcap", "packets", capture, "--packet", 10**6)
    assert missing.returncode == 2
    assert "there is no packet 1000000: the capture has" in missing.stderr


def test_the_ladder_needs_to_know_the_flow(capture: Path, here: Path, tcplab: Command) -> None:
    assert tcplab("pcap", "ladder", capture).returncode == 2
    rows = tcplab("pcap", "ladder", capture, "--flow", 1, "--limit", 9).stdout.splitlines()
    assert len(rows) == 1 + 9 + 1
    assert tcplab("pcap", "ladder", capture, "--flow", 1, "--output", "l.svg").returncode == 0
    short = (here / "l.svg").read_text()
    assert short.startswith("<svg ")
    assert tcplab("pcap", "ladder", capture, "--flow", 1, "--limit", 0, "--output", "l.svg").returncode == 0
    assert len((here / "l.svg").read_text()) > len(short)


def test_plots_are_pages_and_images(capture: Path, here: Path, tcplab: Command) -> None:
    assert tcplab("pcap", "plot", capture, "--flow", 1, "--output", "page.html").returncode == 0
    assert "Time and sequence numbers" in (here / "page.html").read_text()
    assert tcplab("pcap", "plot", capture, "--kind", "rtt", "--output", "rtt.png").returncode == 0
    assert (here / "rtt-rtt.png").exists()
    unknown = tcplab("pcap", "plot", capture, "--kind", "speed")
    assert unknown.returncode == 2
    assert "'throughput', 'inflight'" in unknown.stderr


def test_segmentation_and_both_ends(made: Path, tcplab: Command) -> None:
    left, right = (made / "run-1" / f"{end}-path.pcapng" for end in ("left", "right"))
    assert "headers 66.0 bytes per packet, so 95.6 % of" in tcplab("pcap", "segmentation", left).stdout
    ended = tcplab("pcap", "match", left, right)
    assert "both timed by one clock" in ended.stdout
    assert "lost ACKs" in ended.stdout


def test_segmentation_of_a_capture_without_flows_says_so(capture: Path, tcplab: Command) -> None:
    nothing = ("pcap", "segmentation", capture, "--filter", "port 9")
    ended = tcplab(*nothing)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("no flows\n")
    assert json.loads(tcplab(*nothing, "--json").stdout)["flows"] == []


def test_from_a_pipe_compressed_or_not(capture: Path, here: Path, process: Command) -> None:
    (here / "c.pcapng.gz").write_bytes(gzip.compress(capture.read_bytes()))
    assert "2 flows" in process("pcap", "c.pcapng.gz").stdout
    for arguments in (["-"], ["packets", "-"], ["segmentation", "-"], ["ladder", "-", "--flow", "1"]):
        with capture.open("rb") as stdin:
            ended = subprocess.run(
                [sys.executable, "-m", "tcplab", "pcap", *arguments],
                stdin=stdin,
                capture_output=True,
                text=True,
                check=False,
                cwd=here,
            )
        assert ended.returncode == 0, ended.stderr
        assert "10.0.0.1" in ended.stdout


def test_what_cannot_be_read_is_bad_input(capture: Path, here: Path, tcplab: Command) -> None:
    (here / "text").write_text("hello, world")
    (here / "empty.pcap").touch()
    (here / "cut.pcapng").write_bytes(capture.read_bytes()[:50_001])
    for name, said in (
        ("text", "not a pcap or pcapng file (magic 68 65 6c 6c)"),
        ("empty.pcap", "it has 0 bytes"),
        ("nothing.pcap", "nothing.pcap: No such file or directory"),
        (".", "holds no captures"),
    ):
        if name == ".":
            (here / "bare").mkdir()
            name = "bare"
        ended = tcplab("pcap", name)
        assert ended.returncode == 2
        assert said in ended.stderr
    cut = tcplab("pcap", "cut.pcapng")
    assert cut.returncode == 0
    assert "the capture is cut off in the middle of a record" in cut.stdout


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (["FILE", "--packets", "-l", "3"], ["packets", "FILE", "--limit", "3"]),
        (["--packet", "2", "FILE"], ["packets", "FILE", "--packet", "2"]),
        (["FILE", "--ladder", "-f", "1", "--limit", "9"], ["ladder", "FILE", "--flow", "1", "--limit", "9"]),
        (["FILE", "--segmentation"], ["segmentation", "FILE"]),
        (["FILE", "--with", "OTHER", "--same-clock"], ["match", "FILE", "OTHER", "--same-clock"]),
        (
            ["FILE", "--with=OTHER", "--plot=delay", "-o", "d.svg"],
            ["match", "FILE", "OTHER", "--plot", "-o", "d.svg"],
        ),
        (["FILE", "--plot", "rtt", "-o", "r.svg"], ["plot", "FILE", "--kind", "rtt", "-o", "r.svg"]),
    ],
)
def test_views_as_options_work_as_before_with_a_warning(
    before: list[str], now: list[str], made: Path, tcplab: Command
) -> None:
    names = {
        end: str(made / "run-1" / f"{place}-path.pcapng")
        for end, place in (("FILE", "left"), ("OTHER", "right"))
    }

    def named(words: list[str]) -> list[str]:
        return [word.replace("OTHER", names["OTHER"]).replace("FILE", names["FILE"]) for word in words]

    old, new = tcplab("pcap", *named(before)), tcplab("pcap", *named(now))
    assert (old.returncode, old.stdout) == (0, new.stdout)
    assert old.stderr.startswith("tcplab: warning: pcap --")
    assert new.stderr == ""


def test_a_capture_shows_its_flows_in_a_notebook(capture: Path) -> None:
    from tcplab import captures

    page = captures.read(capture)._repr_html_()
    assert page.count("<tr>") == 3
    assert "10.0.0.1:40000 -&gt; 10.0.0.2:5001" in page


def test_streams_are_found_in_captures_by_their_ports(tmp_path: Path) -> None:
    from tcplab.captures.capture_comparison import capture_part
    from tcplab.captures.summary import summarise

    done = library.run(
        """
        tcplab: 1
        name: twins
        network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
        flows:
          - {name: bulk, kind: tcp, cc: reno, bytes: 100 kB, streams: 2}
          - {name: six, kind: tcp, cc: reno, bytes: 100 kB, ip: 6}
          - {name: ask, kind: request, cc: reno, request: 10 B, response: 100 kB, count: 1}
          - {name: noise, kind: udp, rate: 1 Mbit/s}
          - {name: idle, kind: ping}
        duration: 3 s
        capture: headers
        """,
        output=tmp_path / "twins",
    )
    rows = {(row["flow"], row["stream"]): row for row in done.flows.to_dicts()}
    assert rows["idle", 0]["from_port"] is None
    assert rows["idle", 0]["to_port"] is None
    captured = summarise(done.path / "run-1" / "left-path.pcapng").flows
    for key in (("bulk", 0), ("bulk", 1), ("six", 0), ("ask", 0), ("noise", 0)):
        ports = [rows[key]["from_port"], rows[key]["to_port"]]
        assert sum([half.port for half in flow.halves] == ports for flow in captured) == 1, key
    found = capture_part(done)
    assert found is not None
    # Flow, stream, capture and the flow's number in it: all of equal size, and none twice.
    cells = [row[:3] for row in found.grid.rows]
    assert [cell[:2] for cell in cells] == [("bulk", "0"), ("bulk", "1"), ("six", "0"), ("ask", "0")]
    assert len({cell[2] for cell in cells}) == len(cells)


def test_the_report_of_a_run_says_what_its_captures_say(made: Path) -> None:
    from tcplab.captures.capture_comparison import capture_part

    found = capture_part(library.load(made))
    assert found is not None
    (row,) = found.grid.rows
    heads = [(head.label, head.unit) for head in found.grid.headings]
    cell = dict(zip(heads, row, strict=True))
    assert cell["Flow", ""] == "bulk"
    assert cell["Capture", ""] == "left-path.pcapng, flow 1"
    assert cell["Retransmitted", "capture"] == cell["Retransmitted", "socket"]
    assert int(cell["Lost", "links"]) > 0
    assert [figure.name for figure in found.figures] == [
        "throughput",
        "inflight",
        "rtt",
        "rtt-sequence",
        "sequence",
    ]
