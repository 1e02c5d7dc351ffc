"""The comparisons lane by lane: every control in four situations, and the modes of hosts and flows."""

from __future__ import annotations

from typing import Any

from lanes import Group, Lane

CONTROLS = (
    *("reno", "cubic", "bbr1", "bbr2", "bbr3", "vegas", "westwood"),
    *("illinois", "hybla", "htcp", "ledbatpp", "copa", "dctcp"),
)


def _bulk(cc: str = "cubic", **more: Any) -> dict[str, Any]:
    return {"kind": "tcp", "cc": cc, **more}


# More lanes than this keep each other's receivers from a CPU, on two cores.
_TOGETHER = 7


def _groups(name: str, lanes: list[Lane], **more: Any) -> list[Group]:
    """Lanes in groups of which each fits into one run."""
    return [
        Group(name, lanes[first : first + _TOGETHER], **more) for first in range(0, len(lanes), _TOGETHER)
    ]


def _alone(**link: Any) -> list[Lane]:
    return [Lane("alone", [_bulk(cc)], link) for cc in CONTROLS]


CONTROL_GROUPS = [
    *_groups("no impairment", _alone()),
    *_groups("loss 0.5 %", _alone(forward={"loss": "0.5 %"})),
    *_groups("jitter 2 ms", _alone(forward={"jitter": "2 ms"})),
    *_groups(
        "beside CUBIC",
        [Lane(cc, [_bulk(cc), _bulk("cubic")]) for cc in CONTROLS if cc != "cubic"],
        queue="2 BDP",
        seconds=30,
    ),
]

_LOSS = {"forward": {"loss": {"every": "300 packets"}}}

MODE_GROUPS = [
    *_groups(
        "modes",
        [
            Lane("defaults", [_bulk()]),
            Lane("sack off", [_bulk()], hosts={"sack": "off"}),
            Lane("sack off, Reno, 1 in 300 lost", [_bulk("reno")], _LOSS, {"sack": "off"}),
            Lane("sack off, BBRv1, 1 in 300 lost", [_bulk("bbr1")], _LOSS, {"sack": "off"}),
            Lane("timestamps off", [_bulk()], hosts={"timestamps": "off"}),
            Lane("timestamps off, 1 in 300 lost", [_bulk()], _LOSS, {"timestamps": "off"}),
            Lane("gro on", [_bulk()], hosts={"gro": "on"}),
            Lane("tso and gso off", [_bulk()], hosts={"tso": "off", "gso": "off"}),
            Lane("delayed ACKs off", [_bulk()], hosts={"delayed_ack": "off"}),
            Lane(
                "ecn on, marks above 20 packets",
                [_bulk()],
                {"forward": {"queue": {"limit": "1 BDP", "mark_above": "20 packets"}}},
                {"ecn": "on"},
            ),
        ],
    ),
    *_groups(
        "traffic",
        [
            Lane("IPv6", [_bulk(ip=6)]),
            Lane("window 64 KiB", [_bulk(window="64 KiB")]),
            Lane("window 16 KiB", [_bulk(window="16 KiB")]),
            Lane("receive buffer 32 KiB", [_bulk(receive_buffer="32 KiB")]),
            Lane("send buffer 128 KiB", [_bulk(send_buffer="128 KiB")]),
            # Begun at the same instant, the simulator's two would mirror each other for good.
            Lane(
                "both ways",
                [_bulk(), _bulk(start="100 ms", **{"from": "right"})],
                {"queue": "1 BDP", "reverse": {}},
            ),
            Lane("four streams", [_bulk(streams=4)]),
            Lane("Reno and BBRv1", [_bulk("reno"), _bulk("bbr1")]),
            Lane(
                "request 100 B, response 100 kB",
                [{"kind": "request", "request": "100 B", "response": "100 kB"}],
            ),
            Lane(
                "request 100 B, response 1 kB", [{"kind": "request", "request": "100 B", "response": "1 kB"}]
            ),
            Lane("jitter 2 ms", [_bulk()], {"forward": {"jitter": "2 ms"}}),
        ],
    ),
]

# Default buffers on long fat paths: both controls in one run, for buffers, not the link, set their rate.
BUFFER_GROUPS = [
    Group(
        f"default buffers, {rate}, {rtt} ms",
        [Lane("3 BDP of queue", [_bulk(cc)]) for cc in ("cubic", "bbr1")],
        rate=rate,
        rtt_ms=rtt,
        queue="3 BDP",
        seconds=30,
    )
    for rate in ("100 Mbit/s", "400 Mbit/s", "1 Gbit/s")
    for rtt in (100, 260, 550)
]
