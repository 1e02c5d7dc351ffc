"""Parts of a plan that this machine cannot do, and how to fix each."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tcplab.engine import frr_files, kernel_ecn
from tcplab.engine.base import Problem
from tcplab.plan.kinds import node_kind
from tcplab.plan.types import Flow, Plan
from tcplab.testbed import netem
from tcplab.testbed.agent import agent_missing
from tcplab.testbed.agents import Json
from tcplab.testbed.controls import available, kernel_name, lab_loader, load_command, ours, wanted
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import LARGEST_MTU, Layout, lay_out
from tcplab.testbed.namespaces import CAP_NET_ADMIN, has_capability, in_first_user_namespace, remedy
from tcplab.testbed.probe import SYSCTLS_HINT, Probed, probe, tun_hint
from tcplab.testbed.tools import IPERF3, iperf3_version, located

# Where Debian's package has FRR's daemons.
FRR = Path("/usr/lib/frr/zebra")
# A node takes a process of about this size with its namespace, bytes.
_NODE_MEMORY = 24 << 20
# A stream takes a thread at each end.
_MAX_STREAMS = 4000
# Proxies of a router by their keys.
_PROXIES = {"accelerate": "an accelerator", "cache": "a cache"}
# Programs that bring connections to them, and their packages.
_DIVERTING = (("nft", "nftables"), ("ip", "iproute2"))
_MAX_NODES = 500
# The kernel doubles a buffer's size into an int.
_LARGEST_BUFFER = (1 << 30) - 1
# The limit net.core.NAME by the setting it binds.
_BUFFERS = {"wmem_max": "send_buffer", "rmem_max": "receive_buffer"}
# The largest TCP_MAXSEG (MAX_TCP_WINDOW), and the largest -M of iperf3 (MAX_MSS).
_LARGEST_MSS = {"native": 32_767, "iperf3": 9_216}
_FASTEST_SAMPLING = 1_000_000


def problems(plan: Plan) -> list[Problem]:
    """Everything that stands in the way, and what the user should know beforehand."""
    if sys.platform != "linux":
        return [Problem("engine", f"{platform.system()} is not Linux", "use `--engine sim`")]
    layout = lay_out(plan)
    probed = probe(_sysctls(plan))
    found = [*_machine(layout, probed), *_agent(), *_routing(plan), *frr_files.problems(plan)]
    found += [*_size(plan), *_nodes(plan, probed), *_links(layout)]
    found += kernel_ecn.problems(plan, probed)
    if plan["emulator"] == "netem":
        found += _netem(plan, probed)
    controls = available()
    loading = lab_loader(privileged=probed.privileged) if wanted(plan) else {}
    for flow in plan["flows"]:
        found += [*_control(flow, controls, loading), *_generator(flow), *_family(flow, probed)]
        found += [*_segments(flow), *_polling(flow)]
    return [*found, *_windows(plan["flows"]), *_sampling(plan)]


def _machine(layout: Layout, probed: Probed) -> Iterator[Problem]:
    if probed.user_namespace or probed.namespace:
        why = probed.user_namespace or probed.namespace
        kind = "user" if probed.user_namespace else "network"
        yield Problem(
            "engine",
            f"this machine does not let you make {kind} namespaces: {why}",
            remedy(),
        )
        return
    if probed.sysctls:
        message = f"hosts and routers need settings of their own: {probed.sysctls}"
        yield Problem("engine", message, SYSCTLS_HINT)
        return
    if layout.emulated and probed.tun:
        yield Problem(
            f"links.{layout.emulated[0].name}",
            f"links with settings need TUN devices, which cannot be made: {probed.tun}",
            tun_hint(probed.tun),
        )
    cable = next((wire for wire in layout.wires if not wire.emulated), None)
    if cable is not None and probed.veth:
        yield Problem(
            f"links.{cable.name}",
            f"links without settings need veth devices, and there are none: {probed.veth}",
            "sudo modprobe veth",
        )
    switch = next((one for one in layout.namespaces if node_kind(one.kind).bridges), None)
    if switch is not None and probed.bridge:
        yield Problem(
            f"nodes.{switch.node}",
            f"switches need bridges, and there are none: {probed.bridge}",
            "sudo modprobe bridge",
        )


def _routing(plan: Plan) -> Iterator[Problem]:
    router = next((node["name"] for node in plan["nodes"] if node.get("routing")), None)
    if router is not None and not FRR.exists():
        message = "routing protocols need FRR, which is not installed"
        yield Problem(f"nodes.{router}.routing", message, "sudo apt-get install frr")


def _agent() -> Iterator[Problem]:
    missing = agent_missing()
    if missing:
        yield Problem(
            "engine", missing, "install tcplab again: uv sync, or pip install --force-reinstall tcplab"
        )


def _size(plan: Plan) -> Iterator[Problem]:
    nodes = len(plan["nodes"])
    if nodes > _MAX_NODES:
        yield Problem(
            "nodes",
            f"{nodes} nodes are more than this machine should hold ({_MAX_NODES})",
            "use `--engine sim`",
        )
    room = _free_memory()
    if room is not None and nodes * _NODE_MEMORY > room:
        yield Problem(
            "nodes",
            f"{nodes} nodes take about {nodes * _NODE_MEMORY >> 20} MiB of memory; {room >> 20} MiB are free",
            "end other programs, or use `--engine sim`",
        )
    streams = sum(flow["streams"] for flow in plan["flows"])
    if streams > _MAX_STREAMS:
        yield Problem(
            "flows",
            f"{streams} streams are too many, each takes two threads: {_MAX_STREAMS} at most",
            "use fewer streams, or `--engine sim`",
        )
    if len(os.sched_getaffinity(0)) < 2:
        yield Problem(
            "engine",
            "hosts and links share one CPU: results will depend on it",
            fatal=False,
        )


def _nodes(plan: Plan, probed: Probed) -> Iterator[Problem]:
    usable = os.sched_getaffinity(0)
    for node in plan["nodes"]:
        for key, proxy in _PROXIES.items():
            for program, package in _DIVERTING if node.get(key) is not None else ():
                if located(program) is None:
                    yield Problem(
                        f"nodes.{node['name']}.{key}",
                        f"{proxy} needs `{program}`, which is missing",
                        f"sudo apt install {package}",
                    )
        if node.get("nic") and located("tc") is None:
            message = "the rate of an interface is set with `tc`, which is missing"
            yield Problem(f"nodes.{node['name']}.nic", message, "sudo apt install iproute2")
        foreign = sorted(set(node["cpus"]) - usable)
        if foreign:
            yield Problem(
                f"nodes.{node['name']}.cpus",
                f"there is no CPU {foreign[0]} for this process",
                f"use {_ranges(sorted(usable))}",
            )
        for name in node["sysctls"]:
            where = f"nodes.{node['name']}.sysctls.{name}"
            if not name.startswith("net."):
                yield Problem(
                    where, f"{name} is not a network setting: it applies to the whole machine", _by_hand(name)
                )
            elif name in probed.read_only and not probed.sysctls:
                yield Problem(
                    where, f"{name} applies to the whole machine, not to a network namespace", _by_hand(name)
                )
            elif name in probed.absent and ".conf.eth" not in name and ".neigh.eth" not in name:
                yield Problem(
                    where, f"this kernel has no setting {name} in a network namespace", "leave it out"
                )


def _by_hand(name: str) -> str:
    return f"leave it out, and set it yourself: sudo sysctl -w {name}=VALUE"


def _links(layout: Layout) -> Iterator[Problem]:
    for wire in layout.emulated:
        if wire.plan["mtu"] > LARGEST_MTU:
            yield Problem(
                f"links.{wire.name}.mtu",
                f"an emulated link carries IP packets of {LARGEST_MTU} bytes at most",
                f"set `mtu: {LARGEST_MTU} B`, or use `--engine sim`",
            )


def _netem(plan: Plan, probed: Probed) -> Iterator[Problem]:
    """Problems that netem, or its absence, causes."""
    own = "leave `emulator` out: tcplab's own needs no module"
    if probed.netem:
        yield Problem(
            "emulator", f"this kernel has no netem: {probed.netem}", f"sudo modprobe sch_netem, or {own}"
        )
    elif located("tc") is None:
        yield Problem(
            "emulator", "netem is configured by tc, which is not installed", "sudo apt-get install iproute2"
        )
    for link in plan["links"]:
        if "medium" in link:
            message = f"netem has no shared medium such as {link['medium']}"
            yield Problem(f"links.{link['name']}.medium", message, own)
        for way in ("forward", "backward"):
            for one in netem.unlike(link["mtu"], link[way]):
                where = f"links.{link['name']}.{way}.{one.key}"
                yield Problem(where, one.message, one.hint, fatal=one.refused)
    if plan["sample"]["packets"]:
        yield Problem("sample.packets", "netem reports no packet events", own)
    for node in plan["nodes"]:
        if node.get("nic"):
            where = f"nodes.{node['name']}.nic"
            yield Problem(where, "netem takes the place of the queue of a host's interface", own)
    if plan["capture"] and plan["capture"]["at"] == "wire":
        yield Problem("capture.at", "netem cannot be captured on the wire", "use `capture: {at: host}`")


def _control(flow: Flow, there_are: list[str], loading: Json) -> Iterator[Problem]:
    cc = flow.get("cc")
    if cc is None:
        return
    where, name = f"flows.{flow['name']}.cc", str(cc["name"])
    if (control := ours(cc)) is not None:
        obstacle = loading["obstacle"] or (loading["not_built"] if control.source is None else None)
        if obstacle is not None:
            message = f"{name} would have to be loaded into the kernel: {obstacle['message']}"
            yield Problem(where, message, obstacle["hint"])
        elif control.source is not None:
            try:
                load_command(control)
            except TestbedError as problem:
                yield Problem(where, problem.message, problem.hint)
        elif control.name not in (*loading["controls"], "bbr"):
            # Another lab may have loaded some of ours.
            names = ", ".join(dict.fromkeys([*there_are, *(f"tl_{one}" for one in loading["controls"])]))
            message = f"neither Linux {platform.release()} here nor tcplab has a control called {name!r}"
            yield Problem(where, message, f"use one of {names}")
    elif kernel_name(name) not in there_are:
        module = kernel_name(name)
        message = f"this kernel (Linux {platform.release()}) has not loaded its control {module!r}"
        yield Problem(where, message, f"sudo modprobe tcp_{module}")
    elif cc.get("params"):
        names = ", ".join(cc["params"])
        yield Problem(
            where, f"the kernel's own {name} takes no parameters ({names})", f"use tl_{name}, tcplab's own"
        )


def _family(flow: Flow, probed: Probed) -> Iterator[Problem]:
    if flow["ip"] == 6 and probed.ipv6:
        yield Problem(
            f"flows.{flow['name']}.ip",
            f"this kernel has no IPv6: {probed.ipv6}",
            "use `ip: 4`, or boot without ipv6.disable=1",
        )


def _windows(flows: Sequence[Flow]) -> Iterator[Problem]:
    limits = {name: _limit(name) for name in _BUFFERS}
    # One command shall do for all flows.
    needed = {name: max(_buffer(flow, name) for flow in flows) for name in _BUFFERS}
    unlimited = _unlimited()
    for flow in flows:
        for name, key in _BUFFERS.items():
            where, size = f"flows.{flow['name']}.{key}", _buffer(flow, name)
            # iperf3 asks in the ordinary way, which the limits bind whoever asks.
            bound = not unlimited or flow.get("generator") == "iperf3"
            if size > _LARGEST_BUFFER:
                yield Problem(
                    where, f"Linux has no buffers of {size} bytes: {_LARGEST_BUFFER} at most", "ask for less"
                )
            elif bound and size > limits[name]:
                yield Problem(
                    where,
                    f"a buffer of {size} bytes would be cut to net.core.{name} = {limits[name]} bytes",
                    f"sudo sysctl -w net.core.{name}={needed[name]}",
                )


def _buffer(flow: Flow, name: str) -> int:
    """The larger buffer that the two ends of a flow ask for; 0 where the kernel tunes it."""
    ends = (flow.get("sender") or {}, flow.get("receiver") or {})
    return max(int(end.get(_BUFFERS[name]) or 0) for end in ends)


def _generator(flow: Flow) -> Iterator[Problem]:
    if flow.get("generator") != "iperf3":
        return
    where = f"flows.{flow['name']}.generator"
    if flow.get("pattern"):
        yield Problem(where, "iperf3 sends without pauses", "leave out `pattern` or `generator`")
    if flow.get("spacing") == "exponential":
        yield Problem(where, "iperf3 sends at equal intervals", "leave out `spacing` or `generator`")
    wanted = ".".join(map(str, IPERF3))
    program = located("iperf3")
    if program is None:
        yield Problem(where, "iperf3 is not installed", "sudo apt-get install iperf3")
        return
    found = iperf3_version(program)
    if found is None or found < IPERF3:
        has = "an unknown version" if found is None else ".".join(map(str, found))
        yield Problem(
            where, f"iperf3 is too old: {program} is {has}", f"install {wanted} or newer from a backport"
        )


def _segments(flow: Flow) -> Iterator[Problem]:
    generator = flow.get("generator", "native")
    mss = max(int(end.get("mss", 0)) for end in (flow.get("sender") or {}, flow.get("receiver") or {}))
    if mss > _LARGEST_MSS[generator]:
        most, who = _LARGEST_MSS[generator], "iperf3" if generator == "iperf3" else "Linux"
        yield Problem(
            f"flows.{flow['name']}.mss",
            f"{who} takes no MSS of {mss} B: {most} B at most",
            f"set `mss: {most} B`, a smaller `mtu`, or use `--engine sim`",
        )


def _polling(flow: Flow) -> Iterator[Problem]:
    ends, cpus = 2 * flow["streams"], len(os.sched_getaffinity(0))
    if flow.get("busy_poll") and ends > cpus:
        yield Problem(
            f"flows.{flow['name']}.busy_poll",
            f"{ends} ends that poll share {cpus} CPUs with the links, so they wait for each other",
            "use `busy_poll: off`, or fewer clients",
            fatal=False,
        )


def _sampling(plan: Plan) -> Iterator[Problem]:
    interval = plan["sample"]["sockets"]
    if interval and interval < _FASTEST_SAMPLING:
        yield Problem(
            "sample.sockets",
            f"a real kernel is sampled once in 1 ms at most; {interval / 1e6:g} ms will be missed",
            "use `sample: {sockets: 1 ms}`",
            fatal=False,
        )


def _sysctls(plan: Plan) -> list[str]:
    return sorted({name for node in plan["nodes"] for name in node["sysctls"]})


def _unlimited() -> bool:
    """Whether buffers may exceed the limits (SO_SNDBUFFORCE asks for CAP_NET_ADMIN over the machine)."""
    return has_capability(CAP_NET_ADMIN) and in_first_user_namespace()


def _limit(name: str) -> int:
    return int(Path(f"/proc/sys/net/core/{name}").read_text(encoding="ascii"))


def _free_memory() -> int | None:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _ranges(numbers: list[int]) -> str:
    if numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
