"""Accurate ECN (RFC 9768) on the running kernel: what is used in its place where there is none."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from typing import Any

from tcplab.cc.describe import known_as, shipped
from tcplab.cc.plans import source_of
from tcplab.engine.base import Problem
from tcplab.plan.kinds import node_kind
from tcplab.plan.types import Node, Plan
from tcplab.testbed.probe import Probed

_ASKED = "accecn"
_INSTEAD = "on"
# The flag by which a control has its packets sent with ECT(1) (tcplab_cc.h).
_ECT1 = "TCP_CONG_ECT_1"


def asks(plan: Plan) -> bool:
    """Whether any host of the plan is to use it."""
    return any(_asks(node) for node in plan["nodes"])


def without(plan: Plan) -> Plan:
    """The plan with classic ECN (RFC 3168) wherever it has accurate ECN."""
    nodes: list[Node] = [
        {**node, "tcp": node["tcp"] | {"ecn": _INSTEAD}} if _asks(node) else node for node in plan["nodes"]
    ]
    return {**plan, "nodes": nodes}


def problems(plan: Plan, probed: Probed) -> Iterator[Problem]:
    """Hosts that do without, and controls that cannot."""
    for node in plan["nodes"]:
        if _asks(node) and probed.accecn:
            yield Problem(
                f"nodes.{node['name']}.ecn",
                f"{_kernel()} has no accurate ECN ({probed.accecn}); the host uses `ecn: on`",
                "use `--engine sim`",
                fatal=False,
            )
    for flow in plan["flows"]:
        cc = flow.get("cc")
        if cc is not None and sends_ect1(cc):
            missing = (
                f"has no accurate ECN ({probed.accecn})" if probed.accecn else "lets no eBPF control send it"
            )
            message = f"{cc['name']} needs packets with ECT(1) and accurate ECN; {_kernel()} {missing}"
            yield Problem(f"flows.{flow['name']}.cc", message, "use `--engine sim`, or dctcp")


def _kernel() -> str:
    return f"Linux {platform.release()} here"


def _asks(node: Node) -> bool:
    return node_kind(node["kind"]).ends_flows and bool(node["tcp"]["ecn"] == _ASKED)


def sends_ect1(cc: Mapping[str, Any]) -> bool:
    """Whether a plan's control has its packets sent with ECT(1)."""
    from tcplab import _core

    source = source_of(cc)
    if source is not None:
        return _ECT1 in source.text
    name = known_as(str(cc["name"]))
    if name not in shipped():
        return False
    _, text = _core.control_files(name)
    return _ECT1 in (text or "")
