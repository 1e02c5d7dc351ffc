"""Features of this machine, finding by finding, each with the command that fixes it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tcplab.cc import compiler
from tcplab.testbed import controls, tools
from tcplab.testbed.agent import agent_missing
from tcplab.testbed.namespaces import CAP_NET_ADMIN, has_capability, in_first_user_namespace, remedy
from tcplab.testbed.probe import SYSCTLS_HINT, Probed, probe, tun_hint


class Grade(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARN = "warn"
    """Something works less well, or one feature does not work."""
    MISSING = "missing"
    """The kernel engine does not work without it."""


@dataclass(frozen=True)
class Finding:
    """One thing about the machine."""

    name: str
    grade: Grade
    message: str
    """The finding, and its meaning."""
    hint: str = ""
    """The exact command, or what else to do."""


# Memory for four hosts' buffers of a path of 1 Gbit/s and 550 ms; with less, large windows are refused.
_AMPLE_BUFFER = 128 << 20
_CONTROLS = ("reno", "cubic", "bbr")


def examine() -> list[Finding]:
    """Everything there is to say. Nothing is changed; what is tried out is gone afterwards."""
    if sys.platform != "linux":
        return [
            Finding(
                "kernel", Grade.MISSING, f"{platform.system()}: only the simulator works here", "use Linux"
            )
        ]
    probed = probe()
    found = [_kernel(), _privileges(probed), _namespaces(probed), _user_namespaces(probed)]
    found += [_device("TUN", "links with settings", probed.tun, tun_hint(probed.tun or ""))]
    found += [_device("veth", "links without settings", probed.veth, "sudo modprobe veth")]
    found += [_device("bridge", "switches", probed.bridge, "sudo modprobe bridge")]
    found += [_device("packet sockets", "captures at hosts", probed.capture, "sudo modprobe af_packet")]
    found += [_device("sysctls", "settings of hosts and routers", probed.sysctls, SYSCTLS_HINT)]
    found += [_agent(), *_controls(), _loading(probed), *_compilers()]
    found += [*_buffers(), _cores(), _clock(), _timer(), _ipv6(probed)]
    return [*found, _accecn(probed), _netem(probed), *_tools()]


def _kernel() -> Finding:
    release = platform.release()
    try:
        version = tuple(int(part) for part in release.split("-")[0].split(".")[:2])
    except ValueError:
        version = (0, 0)
    if version < (5, 11):
        return Finding(
            "kernel", Grade.MISSING, f"Linux {release}: the emulator needs 5.11 (epoll_pwait2)", "upgrade"
        )
    return Finding("kernel", Grade.OK, f"Linux {release}")


def _privileges(probed: Probed) -> Finding:
    if probed.privileged:
        return Finding("privileges", Grade.OK, "this process may make network namespaces itself")
    if probed.user_namespace is None:
        return Finding("privileges", Grade.OK, "none, and none needed: a user namespace gives what it takes")
    return Finding("privileges", Grade.MISSING, "none, and no user namespace either", remedy())


def _namespaces(probed: Probed) -> Finding:
    if probed.user_namespace or probed.namespace:
        why = probed.namespace or "missing privileges"
        hint = "run as root; in a container, one started with --cap-add=SYS_ADMIN --cap-add=NET_ADMIN"
        return Finding("network namespaces", Grade.MISSING, why, hint)
    return Finding("network namespaces", Grade.OK, "each host gets one")


def _user_namespaces(probed: Probed) -> Finding:
    if not probed.privileged:
        if probed.user_namespace:
            return Finding("user namespaces", Grade.MISSING, probed.user_namespace, remedy())
        return Finding("user namespaces", Grade.OK, "in use here")
    if remedy() != "run as root":
        said = "not allowed: ordinary users need root for networks"
        return Finding("user namespaces", Grade.WARN, said, remedy())
    return Finding("user namespaces", Grade.OK, "ordinary users can make networks too")


def _device(name: str, needed_for: str, why: str | None, hint: str) -> Finding:
    if why is None:
        return Finding(name, Grade.OK, f"{needed_for} work")
    return Finding(name, Grade.MISSING, f"{needed_for} do not work: {why}", hint)


def _agent() -> Finding:
    missing = agent_missing()
    if missing:
        return Finding("agent", Grade.MISSING, missing, "uv sync, or: pip install --force-reinstall tcplab")
    return Finding("agent", Grade.OK, "part of this installation")


def _controls() -> Iterator[Finding]:
    there_are = controls.available()
    modules = controls.loadable(platform.release())
    yield Finding("controls", Grade.OK, f"available: {', '.join(there_are) or 'none'}")
    for name in sorted({*_CONTROLS, *modules} - set(there_are)):
        if name in modules:
            yield Finding(f"control {name}", Grade.WARN, "not loaded", f"sudo modprobe tcp_{name}")
        else:
            hint = "use a kernel with it, or the simulator"
            yield Finding(f"control {name}", Grade.WARN, "this kernel does not have it", hint)


def _loading(probed: Probed) -> Finding:
    hello = controls.lab_loader(privileged=probed.privileged)
    obstacle = hello["obstacle"] or hello["not_built"]
    if obstacle is not None:
        said = f"controls cannot be loaded into the kernel: {obstacle['message']}"
        return Finding("tcplab's controls", Grade.WARN, said, obstacle["hint"])
    names = ", ".join(f"tl_{name}" for name in hello["controls"])
    said = f"can be loaded into the kernel: {names}"
    if hello["swept"]:
        said += f"; removed, left by a tcplab that was killed: {', '.join(hello['swept'])}"
    return Finding("tcplab's controls", Grade.OK, said)


def _compilers() -> Iterator[Finding]:
    missing = compiler.missing()
    for problem in missing:
        said = f"{problem.message}; controls of your own need it"
        yield Finding("compiler", Grade.WARN, said, problem.hint)
    if not missing:
        yield Finding("compilers", Grade.OK, "controls of your own can be compiled for both engines")


def _buffers() -> Iterator[Finding]:
    forced = has_capability(CAP_NET_ADMIN) and in_first_user_namespace()
    for name in ("rmem_max", "wmem_max"):
        text = _read(f"/proc/sys/net/core/{name}")
        if text is None:
            yield Finding(f"net.core.{name}", Grade.WARN, "cannot be read", "mount /proc")
            continue
        size = f"{int(text):,} B"
        if forced:
            yield Finding(
                f"net.core.{name}", Grade.OK, f"{size}; does not bind this process, which is privileged"
            )
        elif int(text) < _AMPLE_BUFFER:
            yield Finding(
                f"net.core.{name}", Grade.WARN, f"{size}: a larger `window` is rejected",
                f"sudo sysctl -w net.core.{name}={_AMPLE_BUFFER}",
            )  # fmt: skip
        else:
            yield Finding(f"net.core.{name}", Grade.OK, size)


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0))
    if usable < 2:
        return Finding(
            "CPUs", Grade.WARN, "1: hosts and links share it, expect overload", "give the machine another"
        )
    return Finding("CPUs", Grade.OK, f"{usable}")


def _clock() -> Finding:
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    if source in ("tsc", "arch_sys_counter", "kvm-clock"):
        return Finding("clock", Grade.OK, f"{source}: read without a system call")
    others = (_read("/sys/devices/system/clocksource/clocksource0/available_clocksource") or "").split()
    better = next((name for name in ("tsc", "kvm-clock") if name in others), None)
    hint = (
        f"echo {better} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        if better
        else "boot with tsc=reliable if the CPU's counter is sound"
    )
    return Finding("clock", Grade.WARN, f"{source}: reading it is slow, so fast links will be late", hint)


def _timer() -> Finding:
    resolution = time.clock_getres(time.CLOCK_MONOTONIC)
    if resolution > 1e-6:
        return Finding(
            "timers", Grade.WARN, f"resolution {resolution * 1e6:g} µs: delays are off by as much",
            "boot without highres=off",
        )  # fmt: skip
    late = _oversleep()
    said = (
        f"resolution {resolution * 1e9:g} ns; a sleep of 1 ms lasts {late * 1e6:.0f} µs longer (median of 50)"
    )
    if late > 500e-6:
        return Finding("timers", Grade.WARN, said, "end other programs, or give the machine more CPUs")
    return Finding("timers", Grade.OK, said)


def _oversleep() -> float:
    late = []
    for _ in range(50):
        began = time.monotonic()
        time.sleep(0.001)
        late.append(time.monotonic() - began - 0.001)
    return sorted(late)[len(late) // 2]


def _accecn(probed: Probed) -> Finding:
    if probed.accecn is None:
        return Finding("accurate ECN", Grade.OK, "`ecn: accecn` works (RFC 9768)")
    said = (
        f"none ({probed.accecn}): hosts with `ecn: accecn` use classic ECN, and `prague` needs the simulator"
    )
    return Finding("accurate ECN", Grade.OK, said, "a kernel whose net.ipv4.tcp_ecn may be 3")


def _netem(probed: Probed) -> Finding:
    if probed.netem is None:
        return Finding("netem", Grade.OK, "available: `emulator: netem` works; nothing else needs it")
    said = f"none, so `emulator: netem` does not work ({probed.netem}); tcplab's own emulator needs none"
    return Finding("netem", Grade.OK, said, "sudo modprobe sch_netem, if your distribution has it")


def _ipv6(probed: Probed) -> Finding:
    if probed.ipv6 is None:
        return Finding("IPv6", Grade.OK, "flows with `ip: 6` work")
    return Finding(
        "IPv6", Grade.WARN, f"flows with `ip: 6` do not work: {probed.ipv6}", "boot without ipv6.disable=1"
    )


def _tools() -> Iterator[Finding]:
    for name, needed_for, package in (
        ("iperf3", "`generator: iperf3`", "iperf3"),
        ("tshark", "looking into captures", "tshark"),
        ("bpftool", "looking at loaded controls", "bpftool"),
        ("clang", "compiling controls for the kernel", "clang"),
        ("tc", "`emulator: netem`, and looking at interfaces", "iproute2"),
        ("zebra", "routing protocols (FRR)", "frr"),
    ):
        program = tools.located(name) or shutil.which(name, path="/usr/lib/frr")
        if program is None:
            yield Finding(
                name, Grade.WARN, f"not installed: for {needed_for}", f"sudo apt-get install {package}"
            )
            continue
        version = tools.iperf3_version(program) if name == "iperf3" else None
        if name == "iperf3" and (version is None or version < tools.IPERF3):
            has = ".".join(map(str, version)) if version else "of an unknown version"
            wanted = ".".join(map(str, tools.IPERF3))
            yield Finding(name, Grade.WARN, f"{program} is {has}: {wanted} is needed", "install a newer one")
        else:
            yield Finding(name, Grade.OK, program + (f", {'.'.join(map(str, version))}" if version else ""))


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
