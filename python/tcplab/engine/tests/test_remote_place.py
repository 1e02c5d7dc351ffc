"""Where hosts are."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest

from tcplab import engine
from tcplab.engine.remote.place import Place, PlaceError, urls_of
from tcplab.engine.remote.service import TOKEN, TOKEN_FILE, ServiceConnection
from tcplab.scenario import expand, from_data
from tcplab.testbed.errors import TestbedError


def test_a_host_without_an_address_is_hinted_at_where_one_can_be_given() -> None:
    path = {"rate": "1 Mbit/s", "rtt": "1 ms"}
    flow = {"name": "f", "kind": "tcp", "cc": "cubic"}
    plan = expand(from_data({"tcplab": 1, "name": "t", "network": {"path": path}, "flows": [flow]}))
    in_scenario = [problem.fix for problem in engine.load("remote").check(plan)]
    assert "network.hosts_at.left: ssh://USER@HOST" in in_scenario
    by_option = [problem.fix for problem in engine.load("remote", {}).check(plan)]
    assert "--at 'left=ssh://USER@HOST'" in by_option


def test_a_capture_at_a_service_is_refused_before_the_run() -> None:
    scenario = {
        "tcplab": 1,
        "name": "t",
        "network": {"path": {"rate": "1 Mbit/s", "rtt": "1 ms"}},
        "flows": [{"name": "f", "kind": "tcp"}],
        "capture": "headers",
    }
    chosen = engine.load("remote", {"left": "local:", "right": "tcplab://right"})
    [problem] = [one for one in chosen.check(expand(from_data(scenario))) if one.where == "capture"]
    assert problem.fatal
    assert problem.message == "right runs `tcplab serve`, which makes no captures"
    assert problem.fix == "capture at the others: nodes: [left]"
    alone = expand(from_data({**scenario, "capture": {"what": "headers", "nodes": ["left"]}}))
    assert [one for one in chosen.check(alone) if one.where == "capture"] == []


def test_a_place_names_user_host_port_and_address() -> None:
    place = Place.read("ssh://alice@[2001:db8::1]:2222?address=192.0.2.7")
    assert place.destination() == ["-l", "alice", "-p", "2222", "--", "2001:db8::1"]
    assert place.address == "192.0.2.7"
    assert Place.read("ssh://right").destination() == ["--", "right"]


@pytest.mark.parametrize(
    "url",
    [
        "right",
        "https://right",
        "ssh://",
        "ssh://-oProxyCommand=reboot",
        "ssh://-l@right",
        "ssh://alice:secret@right",
        "ssh://right/path",
        "ssh://right:99999",
        "ssh://right?addresses=192.0.2.7",
        "ssh://right?address=elsewhere",
        "ssh://right?cpus=one",
        "local://right",
        "local:?certificate=00",
        "tcplab://token@right",
        "tcplab://right?certificate=00",
    ],
)
def test_a_text_that_is_not_a_place_is_rejected(url: str) -> None:
    with pytest.raises(PlaceError):
        Place.read(url)


def test_a_service_and_this_machine_are_places() -> None:
    digest = "AB:" * 31 + "AB"
    service = Place.read(f"tcplab://right:99?certificate={digest}")
    assert (service.scheme, service.host, service.port) == ("tcplab", "right", 99)
    assert service.certificate == "ab" * 32
    assert Place.read("local:?cpus=0,2").cpus == (0, 2)


def test_a_certificate_is_named_by_its_file_too(tmp_path: Path) -> None:
    made = tmp_path / "certificate.pem"
    # The contents of a PEM file are not checked: TLS does that.
    made.write_text(
        ssl.DER_cert_to_PEM_cert(b"the service's own") + ssl.DER_cert_to_PEM_cert(b"its issuer's")
    )
    service = Place.read(f"tcplab://right?certificate={made}")
    assert service.certificate == hashlib.sha256(b"the service's own").hexdigest()
    made.write_text("nothing")
    with pytest.raises(PlaceError, match="holds no certificate"):
        Place.read(f"tcplab://right?certificate={made}")
    with pytest.raises(PlaceError, match="No such file"):
        Place.read(f"tcplab://right?certificate={tmp_path}/other.pem")


def test_a_token_is_read_from_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ServiceConnection("right", Place.read("tcplab://right"))
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    with pytest.raises(TestbedError, match="No such file"):
        connection.prepare()
    (tmp_path / "token").write_text("of-the-file\n")
    assert connection.token() == "of-the-file"
    monkeypatch.setenv(TOKEN, "of-the-environment")
    assert connection.token() == "of-the-environment"


@pytest.mark.parametrize("given", [["ssh://right"], ["=ssh://right"], ["a=ssh://x", "a=ssh://y"]])
def test_each_host_has_one_place(given: list[str]) -> None:
    with pytest.raises(PlaceError):
        urls_of(given)


def test_the_url_of_a_web_server_names_what_is_asked_for() -> None:
    place = Place.read("http://right.example:8080/a%20file?who=me&ports=1")
    assert (place.host, place.port, place.ports) == ("right.example", 8080, None)
    assert place.target == {"host": "right.example:8080", "path": "/a%20file?who=me&ports=1"}
    assert Place.read("http://[2001:db8::7]").target == {"host": "[2001:db8::7]", "path": "/"}
    for url in ("http://alice@right/", "http://right/a b", "http://right/#part", "http:///path"):
        with pytest.raises(PlaceError):
            Place.read(url)
