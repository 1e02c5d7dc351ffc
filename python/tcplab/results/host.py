"""Description of the machine, read from /proc and /sys; nothing is changed."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from tcplab.results.manifest import Host

_SYSCTLS = Path("/proc/sys/net")
_CORE = ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "default_qdisc", "netdev_max_backlog")
# Entries that are not settings: keys and long lists of names.
_SKIP = {"tcp_fastopen_key", "tcp_available_ulp", "tcp_mem"}


def describe_host() -> Host:
    """Describe this machine; what cannot be read is left null."""
    uname = platform.uname()
    return Host(
        name=uname.node,
        kernel=f"{uname.system} {uname.release} {uname.version} {uname.machine}",
        cpu=_cpu_model(),
        cores=_cores(),
        memory=_memory(),
        governor=_read(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        sysctls=_sysctls(),
    )


def _cpu_model() -> str | None:
    text = _read(Path("/proc/cpuinfo")) or ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor() or None


def _cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def _memory() -> int | None:
    for line in (_read(Path("/proc/meminfo")) or "").splitlines():
        key, _, value = line.partition(":")
        if key == "MemTotal":
            return int(value.split()[0]) * 1024
    return None


def _sysctls() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted((_SYSCTLS / "ipv4").glob("tcp_*")):
        value = None if path.name in _SKIP else _read(path)
        if value is not None:
            found[f"net.ipv4.{path.name}"] = " ".join(value.split())
    for name in _CORE:
        value = _read(_SYSCTLS / "core" / name)
        if value is not None:
            found[f"net.core.{name}"] = " ".join(value.split())
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
