"""Captures made by the simulator, whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcplab

EXCHANGE = """\
tcplab: 1
name: exchange
network:
  path: {rate: 100 Mbit/s, rtt: 2 ms, queue: {kind: droptail, limit: 100 packets}}
flows:
  - {name: messages, kind: request, request: 2048 B, response: 2048 B, count: 1}
duration: 1 s
capture: full
"""
LOSSY = """\
tcplab: 1
name: lossy
network:
  path: {rate: 20 Mbit/s, rtt: 40 ms, queue: {kind: droptail, limit: 200 kB}, loss: 0.5 %}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
  - {name: noise, kind: udp, rate: 1 Mbit/s}
  - {name: probe, kind: ping}
duration: 4 s
capture: headers
"""


@pytest.fixture(scope="session")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of one request and its answer, 2048 bytes each."""
    return tcplab.run(EXCHANGE, output=tmp_path_factory.mktemp("exchange") / "result").path / "run-1"


@pytest.fixture(scope="session")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a bulk flow over a lossy path, beside UDP and ping."""
    return tcplab.run(LOSSY, output=tmp_path_factory.mktemp("lossy") / "result").path / "run-1"
