"""Messages of agents that are not what this version expects."""

from __future__ import annotations

import socket

import pytest

from tcplab.testbed.agents import Agents
from tcplab.testbed.errors import TestbedError


def agents(said: bytes) -> Agents:
    ours, theirs = socket.socketpair()
    theirs.sendall(said)
    theirs.close()
    return Agents({"a": ours})


def test_a_key_that_another_version_does_not_send_is_named_with_a_hint() -> None:
    [hello] = agents(b'{"event":"hello","protocol":1,"about":{}}\n').greet().values()
    for message in (hello, hello["about"]):
        with pytest.raises(TestbedError, match="lacks 'version': it is of another version") as refused:
            message["version"]
        assert "scripts/agent" in refused.value.hint


@pytest.mark.parametrize("said", [b"[1]\n", b"Welcome\n"])
def test_a_line_that_is_not_a_message_is_quoted(said: bytes) -> None:
    with pytest.raises(TestbedError, match=r"a: said b'"):
        agents(said).greet()
