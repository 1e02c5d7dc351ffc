"""`doctor` grades what it finds, and names a remedy for all that is not well."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tcplab.testbed import controls, doctor
from tcplab.testbed.doctor import Finding, Grade, examine
from tcplab.testbed.probe import Probed

ABLE = Probed(privileged=True)
UNABLE = Probed(privileged=False, user_namespace="Operation not permitted")
NO_TUN = Probed(privileged=True, tun="No such file or directory")


def examined(monkeypatch: pytest.MonkeyPatch, probed: Probed) -> dict[str, Finding]:
    monkeypatch.setattr(doctor, "probe", lambda: probed)
    monkeypatch.setattr(doctor, "agent_missing", lambda: None)
    return {one.name: one for one in examine()}


@pytest.mark.parametrize("probed", [ABLE, UNABLE, NO_TUN])
def test_whatever_is_not_well_has_a_remedy(monkeypatch: pytest.MonkeyPatch, probed: Probed) -> None:
    for one in examined(monkeypatch, probed).values():
        assert one.message
        assert one.hint or one.grade is Grade.OK


def test_controls_that_a_killed_tcplab_had_left_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = {"controls": ["reno"], "not_built": None, "obstacle": None, "swept": ["tl_cubic_2"]}
    monkeypatch.setattr(controls, "loader", lambda: hello)
    said = examined(monkeypatch, ABLE)["tcplab's controls"].message
    assert said.endswith("tl_reno; removed, left by a tcplab that was killed: tl_cubic_2")


def test_controls_are_not_loaded_from_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CAP_BPF, and without what a network takes."""
    hello = {"controls": ["reno"], "not_built": None, "obstacle": None, "swept": []}
    monkeypatch.setattr(controls, "loader", lambda: hello)
    found = examined(monkeypatch, Probed(privileged=False))["tcplab's controls"]
    assert found.grade is Grade.WARN
    assert "CAP_SYS_ADMIN" in found.hint


def test_without_any_namespaces_the_sysctl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = "run as root, or: sudo sysctl -w user.max_user_namespaces=10000"
    monkeypatch.setattr(doctor, "remedy", lambda: closed)
    found = examined(monkeypatch, UNABLE)
    assert found["network namespaces"].grade is Grade.MISSING
    assert "user.max_user_namespaces" in found["user namespaces"].hint


def test_a_missing_tun_device_is_named_with_the_commands_that_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = examined(monkeypatch, NO_TUN)
    assert found["TUN"].grade is Grade.MISSING
    assert "mknod" in found["TUN"].hint
    assert found["veth"].grade is Grade.OK


def test_a_tun_device_that_is_closed_to_this_user_is_opened_by_chmod(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, Probed(privileged=False, tun="Permission denied (os error 13)"))
    assert found["TUN"].hint == "sudo chmod 666 /dev/net/tun"


def test_an_extension_module_without_the_agent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "probe", lambda: ABLE)
    monkeypatch.setattr(doctor, "agent_missing", lambda: "the agent is missing")
    found = {one.name: one for one in examine()}
    assert (found["agent"].grade, found["agent"].message) == (Grade.MISSING, "the agent is missing")


@pytest.mark.parametrize(("probed", "code"), [(ABLE, 0), (NO_TUN, 3)])
def test_the_exit_code_says_whether_the_kernel_engine_works(
    monkeypatch: pytest.MonkeyPatch, probed: Probed, code: int
) -> None:
    from tcplab.cli.app import app

    monkeypatch.setattr(doctor, "probe", lambda: probed)
    monkeypatch.setattr(doctor, "agent_missing", lambda: None)
    ended = CliRunner().invoke(app, ["doctor", "--json"])
    assert ended.exit_code == code
    assert json.loads(ended.stdout)["ok"] is (code == 0)
