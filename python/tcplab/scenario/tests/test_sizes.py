"""Sizes of echoed messages, as a person writes them."""

import pytest

from tcplab.scenario import QuantityError, expand, from_data
from tcplab.scenario.quantity import value_of


@pytest.mark.parametrize(
    ("written", "sizes"),
    [
        ("1..65536", tuple(2**k for k in range(17))),
        ("1 KiB..4 KiB", (1024, 2048, 4096)),
        ("3..20", (3, 6, 12)),
        ([1, "1 kB", "64 KiB"], (1, 1000, 65536)),
        ("1,1024", (1, 1024)),
        (1448, (1448,)),
        ("64 KiB", (65536,)),
    ],
)
def test_all_forms_are_read(written: object, sizes: tuple[int, ...]) -> None:
    assert tuple(value_of("sizes", written)) == sizes


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("65536..1", "goes down"),
        (0, "must be above zero"),
        ("20 ms", "is a time, not a size"),
        ([], "no size is given"),
        ([8, 1, 8], "duplicate size"),
        ("17 MiB", "longer than"),
        (True, "`true` is not a size"),
        ("1..", "`` is not a size"),
    ],
)
def test_what_makes_no_sense_is_refused(written: object, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        value_of("sizes", written)


def test_an_echo_flow_is_as_long_as_its_messages_take() -> None:
    scenario = from_data(
        {
            "tcplab": 1,
            "name": "test",
            "network": {"path": {"rate": "100 Mbit/s", "rtt": "1 ms"}},
            "flows": [{"name": "e", "kind": "echo", "sizes": "1..4", "iterations": 50, "clients": 3}],
        }
    )
    (flow,) = expand(scenario)["flows"]
    assert (flow["kind"], flow["streams"], flow["sizes"], flow["iterations"]) == ("echo", 3, [1, 2, 4], 50)
    assert flow["stop"] is None
    assert (flow["warmup"], flow["interval"], flow["busy_poll"]) == (0, 0, False)
