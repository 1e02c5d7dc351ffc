"""The substitute for accurate ECN on a kernel without it, and the controls that need it."""

from typing import Any

from tcplab.engine import kernel_ecn
from tcplab.testbed.probe import Probed

WITHOUT = Probed(privileged=True, accecn="net.ipv4.tcp_ecn cannot be 3")
WITH = Probed(privileged=True)


def plan(cc: dict[str, Any], ecn: str) -> Any:
    hosts = [{"name": name, "kind": "host", "tcp": {"ecn": ecn}} for name in ("left", "right")]
    return {"nodes": [*hosts, {"name": "middle", "kind": "switch"}], "flows": [{"name": "bulk", "cc": cc}]}


def test_hosts_fall_back_to_classic_ecn_with_a_warning() -> None:
    asked = plan({"name": "cubic"}, "accecn")
    assert kernel_ecn.asks(asked)
    said = list(kernel_ecn.problems(asked, WITHOUT))
    assert [(one.where, one.fatal) for one in said] == [("nodes.left.ecn", False), ("nodes.right.ecn", False)]
    assert "tcp_ecn cannot be 3" in said[0].message
    instead = kernel_ecn.without(asked)
    assert [node["tcp"]["ecn"] for node in instead["nodes"] if node["kind"] == "host"] == ["on", "on"]
    assert kernel_ecn.asks(asked), "the plan given is left as it is"
    assert not list(kernel_ecn.problems(asked, WITH))


def test_a_control_that_sends_ect1_is_refused_with_the_reason() -> None:
    for probed, reason in ((WITHOUT, "has no accurate ECN"), (WITH, "no eBPF control")):
        found = list(kernel_ecn.problems(plan({"name": "prague"}, "on"), probed))
        assert [(one.where, one.fatal) for one in found] == [("flows.bulk.cc", True)]
        assert reason in found[0].message
    assert not list(kernel_ecn.problems(plan({"name": "dctcp"}, "on"), WITHOUT))


def test_a_file_of_the_users_own_is_read_for_it() -> None:
    for source, sends in (("/* .flags = TCP_CONG_ECT_1 */", True), ("/* none */", False)):
        assert kernel_ecn.sends_ect1({"name": "mine", "file": "/mine.c", "source": source}) is sends
