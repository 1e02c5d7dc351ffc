"""Which controls are the kernel's own, and which are loaded for a run."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.testbed import controls
from tcplab.testbed.controls import Loaded, Ours, ours, wanted


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with four controls, one of them not loaded yet."""
    monkeypatch.setattr(controls, "available", lambda: ["reno", "cubic", "bbr", "tl_reno"])
    monkeypatch.setattr(controls, "loadable", lambda release: ["vegas"])


def cc(name: str, **params: float) -> Any:
    return {"name": name, "params": params}


@pytest.mark.parametrize("name", ["reno", "cubic", "bbr1", "vegas"])
def test_what_the_kernel_has_is_the_kernels(name: str) -> None:
    assert ours(cc(name)) is None


@pytest.mark.parametrize(("name", "known"), [("tl_cubic", "cubic"), ("tl_reno", "reno"), ("bbr2", "bbr2")])
def test_what_it_lacks_and_what_says_so_is_tcplabs(name: str, known: str) -> None:
    assert ours(cc(name)) == Ours(known)


def test_each_set_of_parameters_is_loaded_once() -> None:
    flows = [
        {"name": "a", "cc": cc("tl_cubic", beta=0.5)},
        {"name": "b", "cc": cc("tl_cubic")},
        {"name": "c", "cc": cc("tl_cubic", beta=0.5)},
        {"name": "d", "cc": cc("cubic")},
        {"name": "e"},
    ]
    plan: Any = {"flows": flows}
    assert wanted(plan) == [Ours("cubic", (("beta", 0.5),)), Ours("cubic")]


def test_a_flow_chooses_the_name_under_which_its_control_was_registered() -> None:
    state = {"registered": "tl_cubic_1", "state": 7, "phases": []}
    loaded = Loaded({Ours("cubic", (("beta", 0.5),)): state})
    assert loaded.name(cc("tl_cubic", beta=0.5)) == "tl_cubic_1"
    assert loaded.name(cc("bbr1")) == "bbr"
    assert loaded.states == [state]
