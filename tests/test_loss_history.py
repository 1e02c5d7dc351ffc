"""How far BBR's history of losses, which the kernel's side goes by, is from what the simulator knows."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcplab

# A constant window; RS.lost of each sample as the history has it, and as it is, summed up.
CONTROL = """\
#define CONTROL history
#define PARAMETERS(PARAMETER) PARAMETER(window, 32, 2, 10000, 1, "packets")
#define GAUGES(GAUGE)                                                     \\
	GAUGE(looked_up, looked_up, 1, "packets", "RS.lost by the history") \\
	GAUGE(known, known, 1, "packets", "RS.lost")
#include "tcplab_cc.h"
#include "tcplab_bbr.h"
struct state { TELEMETRY; struct flight flight; u64 looked_up; u64 known; };
INIT(sk, tp, ca) { init_flight(&ca->flight, tp); }
CONG_CONTROL(sk, tp, ca, rs)
{
	tp->snd_cwnd = PARAM(sk, window);
	if (is_valid(rs)) {
		ca->looked_up += tp->lost - losses_at(&ca->flight, rs->prior_delivered);
		ca->known += tp->lost - tl_prior_lost(rs);
	}
	remember_losses(&ca->flight, tp);
}
SSTHRESH(sk, tp, ca) { return TCP_INFINITE_SSTHRESH; }
UNDO_CWND(sk, tp, ca) { return tp->snd_cwnd; }
CONGESTION_CONTROL(.init = OP(init), .cong_control = OP(cong_control), .ssthresh = OP(ssthresh),
	.undo_cwnd = OP(undo_cwnd));
"""


def sums(tmp_path: Path, window: int, loss: str) -> tuple[float, float]:
    (tmp_path / "history.c").write_text(CONTROL, encoding="utf-8")
    run = tcplab.run(
        {
            "tcplab": 1,
            "name": "history",
            "network": {"path": {"rate": "1 Gbit/s", "rtt": "40 ms", "queue": "4 BDP", "loss": loss}},
            "flows": [
                {
                    "name": "bulk",
                    "kind": "tcp",
                    "cc": {"name": str(tmp_path / "history.c"), "window": window},
                    "duration": "20 s",
                }
            ],
        },
        output=tmp_path / f"run-{window}",
    )
    last = {name: run.gauges.filter(name=name)["value"].to_list()[-1] for name in ("looked_up", "known")}
    return last["looked_up"], last["known"]


@pytest.mark.parametrize("window", [20, 200, 1000])
def test_the_history_overstates_losses_by_at_most_a_thirty_second(tmp_path: Path, window: int) -> None:
    """It lacks what was lost within 1/32 window before a point, and RS.lost is of about a window."""
    looked_up, known = sums(tmp_path, window, "2 %")
    assert known > 500
    assert -0.01 * known <= looked_up - known <= known / 32
