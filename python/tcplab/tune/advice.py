"""How a configuration is set on real hosts: sysctls, socket options, application switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcplab.quantities import plural
from tcplab.scenario import QuantityError
from tcplab.scenario.quantity import value_of
from tcplab.tune.knobs import UNCHANGED


def advice(labels: Mapping[str, str]) -> list[str]:
    """Commands and settings for a configuration, by knob and label; unchanged ones need none."""
    return [line for knob, label in labels.items() if label != UNCHANGED for line in _lines(knob, label)]


def _lines(knob: str, label: str) -> Iterator[str]:
    match knob:
        case "window" if (bytes_ := _bytes(label)) is not None:
            # The kernel doubles what SO_SNDBUF and SO_RCVBUF ask for, up to these limits (socket(7)).
            limits = f"net.core.wmem_max={bytes_} net.core.rmem_max={bytes_}"
            yield f"if the limits are lower: sysctl -w {limits}"
            yield f"in the application: SO_SNDBUF and SO_RCVBUF of {bytes_} (iperf3 -w {bytes_})"
        case "buffers" if (bytes_ := _bytes(label)) is not None:
            yield f'sysctl -w net.ipv4.tcp_wmem="4096 16384 {bytes_}"'
            yield f'sysctl -w net.ipv4.tcp_rmem="4096 131072 {bytes_}"'
        case "streams":
            yield f"in the application: {plural(int(label), 'parallel connection')} (iperf3 -P {label})"
        case "cc":
            kernel = {"bbr1": "bbr"}.get(label, label)
            yield f"sysctl -w net.ipv4.tcp_congestion_control={kernel}"
            yield f"or in the application: TCP_CONGESTION (iperf3 -C {kernel})"
            if kernel not in ("reno", "cubic", "bbr"):
                yield f"if the kernel lacks {kernel}: tcplab cc load {label}, which registers tl_{label}"
        case "initial_window":
            yield f"ip route change ROUTE initcwnd {label.split()[0]}"
        case "mss":
            yield f"ip route change ROUTE advmss {label.split()[0]}"
        case "pacing":
            yield f"tc qdisc replace dev DEV root {'fq' if label == 'on' else 'fq_codel'}"
        case _:
            yield f"{knob}: {label}"


def _bytes(label: str) -> int | None:
    try:
        return int(value_of("size", label))
    except QuantityError:
        return None
