"""A user's own controls on the kernel: what they need not write, and what both engines make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcplab import control_trial
from tcplab.cc.compiler import Source
from tcplab.cc.smoke import Smoke
from tcplab.cc.template import starting_file
from tcplab.control_trial import Verdict, steps
from tcplab.testbed.control_loading import Held
from tcplab.testbed.controls import Ours, loader

pytestmark = pytest.mark.alone

# Scalable TCP (Kelly, 2003) without INIT and with nothing to set.
SCALABLE = """\
#define CONTROL scalable
#define PARAMETERS(PARAMETER)
#define GAUGES(GAUGE) GAUGE(grown, grown, 1, "", "packets acknowledged")
#include "tcplab_cc.h"
struct state { TELEMETRY; u32 grown; };
CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;
	ca->grown += acked;
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	if (acked)
		tl_additive_increase(tp, min(tp->snd_cwnd, 100u), acked);
}
SSTHRESH(sk, tp, ca) { return max(tp->snd_cwnd - (tp->snd_cwnd >> 3), 2u); }
UNDO_CWND(sk, tp, ca) { return tl_undo_cwnd(tp); }
CONGESTION_CONTROL(.cong_avoid = OP(cong_avoid), .ssthresh = OP(ssthresh), .undo_cwnd = OP(undo_cwnd));
"""
NAME = "does the same on both"


@pytest.fixture(autouse=True)
def loading() -> None:
    """Skip with the reason where controls cannot be loaded."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])


def checked(file: Path) -> dict[str, control_trial.Step]:
    return {step.name: step for step in steps(file)}


def test_a_control_without_init_or_parameters_does_the_same_on_both(tmp_path: Path) -> None:
    file = tmp_path / "scalable.c"
    file.write_text(SCALABLE, encoding="utf-8")
    found = checked(file)
    assert {step.verdict for step in found.values()} <= {Verdict.OK, Verdict.SKIPPED}, found
    if found[NAME].verdict is Verdict.SKIPPED:
        pytest.skip(found[NAME].message)


def test_a_control_that_does_something_else_on_the_kernel_fails_the_check(tmp_path: Path) -> None:
    text = starting_file("mine").replace(
        "\tif (acked)\n", "#ifdef __bpf__\n\ttp->snd_cwnd = 4;\n\treturn;\n#endif\n\tif (acked)\n"
    )
    file = tmp_path / "mine.c"
    file.write_text(text, encoding="utf-8")
    found = checked(file)
    if found[NAME].verdict is Verdict.SKIPPED:
        pytest.skip(found[NAME].message)
    assert found[NAME].verdict is Verdict.FAILED
    assert "Mbit/s in the simulator" in found[NAME].message


def test_a_control_needs_no_parameters(tmp_path: Path) -> None:
    with Held(Ours("scalable.c", source=Source(tmp_path / "scalable.c", SCALABLE))) as held:
        assert held.registered.startswith("tl_scalable")


def test_what_judges_is_the_factor_between_the_engines() -> None:
    def verdict(simulated: float, ran: float, overload: str = "") -> Verdict:
        smoke = Smoke(simulated, 0, ())
        return control_trial._agreement(smoke, control_trial._Ran(ran, overload)).verdict

    assert verdict(10e6, 14e6) is verdict(14e6, 10e6) is Verdict.OK
    assert verdict(18.2e6, 2.12e6) is verdict(0.59e6, 10.65e6) is Verdict.FAILED
    assert verdict(18.2e6, 2.12e6, "2 % late") is Verdict.SKIPPED
