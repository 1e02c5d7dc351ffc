"""`tcplab serve` as a process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.cli.bulk import path_line

from .test_echo import Ended

Start = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_its_process_alone_ends_it(ending: signal.Signals, start: Start, here: Path) -> None:
    server = start("serve", "--bind", "127.0.0.1", "--port", "0", "--state", here / "state")
    assert server.stdout is not None
    assert server.stdout.readline().startswith("listening on 127.0.0.1:")
    server.send_signal(ending)
    _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (0, "")


def test_an_address_of_another_machine_is_said_to_be_so(tcplab: Callable[..., Ended], here: Path) -> None:
    """Another port would not help."""
    done = tcplab("serve", "--bind", "192.0.2.1", "--state", here / "state")
    assert done.returncode == 3, done.stderr
    assert "cannot listen on 192.0.2.1:5230" in done.stderr
    assert "hint: give an address of this machine: --bind" in done.stderr


@pytest.mark.parametrize("command", ["bulk run", "echo run", "ping", "doctor"])
def test_a_url_that_cannot_be_read_is_wrong_input(command: str, tcplab: Callable[..., Ended]) -> None:
    for url, why in (
        ("tcplab://[::1", "Invalid IPv6 URL"),
        ("tcplab://right?foo=1", "unknown setting 'foo'"),
        (f"tcplab://{'a' * 70}", "is not the name of a host"),
    ):
        done = tcplab(*command.split(), url)
        assert done.returncode == 2, done.stderr
        assert why in done.stderr
        assert "internal error" not in done.stderr


def test_an_empty_host_is_not_this_machine(tcplab: Callable[..., Ended]) -> None:
    done = tcplab("doctor", "")
    assert (done.returncode, "'' is not a host" in done.stderr) == (2, True), done.stderr


def test_an_empty_option_is_not_its_default(tcplab: Callable[..., Ended], here: Path) -> None:
    """Of a shell's variable that is not set: it would open a service to all."""
    for command, option in (
        ("serve", "--bind"),
        ("serve", "--ports"),
        ("serve", "--max-rate"),
        ("echo serve", "--bind"),
        ("ui", "--bind"),
    ):
        done = tcplab(*command.split(), option, "")
        assert (done.returncode, "''" in done.stderr.replace("`", "'")) == (2, True), done.stderr


def test_quantities_of_a_transfer_are_read_before_it_begins(tcplab: Callable[..., Ended]) -> None:
    for option, value, why in (
        ("--udp", "10", "--udp: `10` has no unit"),
        ("--udp", "", "--udp: `` is not a rate"),
        ("--duration", "5", "--duration: `5` has no unit"),
    ):
        done = tcplab("bulk", "run", "tcplab://127.0.0.1:1", option, value)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("option", ["--allow", "--target"])
def test_a_network_that_cannot_be_read_is_wrong_input(
    option: str, tcplab: Callable[..., Ended], here: Path
) -> None:
    state = ("--state", here / "state")
    for network in ("10.0.0.0/33", "192.0.2.0/255.255.255.0", "localhost", "2001:db8::/-1"):
        done = tcplab("serve", *state, option, "192.0.2.0/24", option, network)
        assert done.returncode == 2, done.stderr
        assert f"{option}: {network!r} is not a network" in done.stderr
    assert not (here / "state").exists()


def test_a_fast_path_is_described_in_units_that_people_use() -> None:
    path = {"rtt": 24_900, "mtu": 65_535, "hops": 1, "bandwidth": 4.62e10}
    assert (
        path_line(path)
        == "path     idle RTT 0.0249 ms, MTU 65535 B, 1 hop, about 46.2 Gbit/s at the bottleneck"
    )
