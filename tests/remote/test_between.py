"""`tcplab bulk`, `ping` and `doctor`: other ends of every kind."""

from __future__ import annotations

import json
import subprocess
import sys

import polars as pl
import pytest

from tcplab.cli.between import place_of

from .hosts import Hosts


def command(hosts: Hosts, *words: str) -> subprocess.CompletedProcess[str]:
    return hosts.us.run(sys.executable, "-m", "tcplab", *words, check=False)


def test_ping_needs_no_tcplab_at_the_other_end(hosts: Hosts) -> None:
    """So no path is measured."""
    done = command(hosts, "ping", "discard://10.77.0.2", "--count", "3", "--interval", "20 ms", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["sent"], said["lost"], said["path"]) == (3, 0, None)
    assert "3 probes, 0 lost" in command(hosts, "ping", "http://10.77.0.2", "--count", "3").stdout


def test_a_host_without_tcplab_cannot_be_examined(hosts: Hosts) -> None:
    done = command(hosts, "doctor", "iperf3://10.77.0.2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "'iperf3://10.77.0.2': a host without tcplab" in done.stderr


def test_the_other_end_may_be_this_machine(hosts: Hosts) -> None:
    assert "2 probes, 0 lost" in command(hosts, "ping", "local:", "--count", "2").stdout


def test_a_bulk_transfer_has_segments_as_large_as_the_path_carries(hosts: Hosts) -> None:
    """Loopback carries more than an Ethernet."""
    out = hosts.us.folder / "bulk"
    done = command(hosts, "bulk", "run", "local:", "--duration", "1 s", "--output", f"/run/keep/{out.name}")
    assert done.returncode == 0, done.stderr
    assert (pl.read_parquet(out / "run-1/sockets.parquet")["mss"] > 9000).all()


def test_the_datagrams_of_bulk_fit_either_version_of_ip(hosts: Hosts) -> None:
    out = hosts.us.folder / "datagrams"
    words = "bulk", "run", "local:", "--udp", "1 Mbit/s", "--duration", "1 s"
    done = command(hosts, *words, "--output", f"/run/keep/{out.name}")
    assert done.returncode == 0, done.stderr
    [sent] = pl.read_parquet(out / "run-1/flows.parquet").select("bytes_sent", "segments_sent").iter_rows()
    assert sent[0] == sent[1] * 1448


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("server.example", "tcplab://server.example"),
        ("192.0.2.1:5231", "tcplab://192.0.2.1:5231"),
        ("2001:db8::1", "tcplab://[2001:db8::1]"),
        ("[2001:db8::1]:5231", "tcplab://[2001:db8::1]:5231"),
        ("ssh://server", "ssh://server"),
        ("local:?cpus=1", "local:?cpus=1"),
    ],
)
def test_a_bare_name_or_address_is_that_of_a_service(given: str, url: str) -> None:
    assert place_of(given) == url
