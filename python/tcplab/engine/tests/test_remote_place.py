"""Where hosts are."""

from __future__ import annotations

import pytest

from tcplab.engine.remote.place import Place, PlaceError, urls_of


def test_a_place_names_user_host_port_and_address() -> None:
    place = Place.read("ssh://alice@[2001:db8::1]:2222?address=192.0.2.7")
    assert place.destination() == ["-l", "alice", "-p", "2222", "--", "2001:db8::1"]
    assert place.address == "192.0.2.7"
    assert Place.read("ssh://right").destination() == ["--", "right"]


@pytest.mark.parametrize(
    "url",
    [
        "right",
        "http://right",
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
def test_what_is_no_place_is_refused(url: str) -> None:
    with pytest.raises(PlaceError):
        Place.read(url)


def test_a_service_and_this_machine_are_places() -> None:
    digest = "AB:" * 31 + "AB"
    service = Place.read(f"tcplab://right:99?certificate={digest}")
    assert (service.scheme, service.host, service.port) == ("tcplab", "right", 99)
    assert service.certificate == "ab" * 32
    assert Place.read("local:?cpus=0,2").cpus == (0, 2)


@pytest.mark.parametrize("given", [["ssh://right"], ["=ssh://right"], ["a=ssh://x", "a=ssh://y"]])
def test_each_host_has_one_place(given: list[str]) -> None:
    with pytest.raises(PlaceError):
        urls_of(given)
