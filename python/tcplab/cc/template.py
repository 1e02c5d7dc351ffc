"""A control to begin with: Reno with one parameter, explained."""

from __future__ import annotations

import re

# Linux's TCP_CA_NAME_MAX is 16 with the final zero; `tl_` comes before the name.
LONGEST = 12


class BadNameError(Exception):
    """A control cannot be called so."""


def starting_file(name: str) -> str:
    """The text of a control called `name`; raises BadNameError."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}", name):
        near = re.sub(r"[^a-z0-9_]", "", name.lower())[:LONGEST].lstrip("0123456789_")
        hint = f"; did you mean `{near}`?" if near else ""
        raise BadNameError(
            f"`{name}` is not a name for a control: small letters, digits and _, a letter first, "
            f"at most {LONGEST}{hint}"
        )
    return _TEXT.replace("NAME", name)


_TEXT = """\
// SPDX-License-Identifier: MIT
/*
 * NAME: say here in a sentence what it does, and where it is published. `tcplab cc list` shows it.
 *
 *   tcplab cc check NAME.c        compiles it, has the kernel verify it, and tries it out
 *   cc: ./NAME.c                  in a scenario beside this file: the simulator and the kernel engine run it
 *   tcplab cc load NAME.c         offers it to every program of this machine, as tl_NAME
 *
 * As it stands it is Reno (RFC 5681): the window doubles in a round trip until it reaches ssthresh, then
 * grows by a segment a round trip, and shrinks to `beta` of itself after a loss.
 */
#define CONTROL NAME

/* Phases are drawn in the report. The first is the one it starts in. */
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(RECOVERY)

/*
 * Parameters, set where the control is used: `cc: {name: ./NAME.c, beta: 0.7}`. Numbers are whole: default,
 * minimum, maximum, and the scale by which the user's value is multiplied. Here 0.5 is 512 of 1024.
 */
#define PARAMETERS(PARAMETER) \\
	PARAMETER(beta, 512, 1, 1023, 1024, "window after a loss, as a fraction of the window before it")

/*
 * State that it shows: name, the member below, the scale by which it is divided, and the unit. Each is
 * recorded with every sample of the socket, in the table `gauges`, and drawn in the report.
 */
#define GAUGES(GAUGE) \\
	GAUGE(reductions, reductions, 1, "", "how often it has reduced the window")

#include "tcplab_cc.h"

/*
 * State of a connection: zero when it begins, as large as you like. TELEMETRY stays first: what
 * is written to ca->telemetry (bandwidth in bit/s, min_rtt_us, gains in 1/256) appears in the results.
 */
struct state {
	TELEMETRY;
	u32 reductions;
};

/* A helper of your own: TL_INLINE, because the kernel wants each operation in one piece. */
TL_INLINE void enter_growth(const struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
}

/* The connection begins. `sk` is the socket, `tp` the same as struct tcp_sock, `ca` the state above. */
INIT(sk, tp, ca)
{
	enter_growth(tp, ca);
}

/* `acked` packets were acknowledged: grow the window, tp->snd_cwnd, in packets. */
CONG_AVOID(sk, tp, ca, ack, acked)
{
	/* An unused window does not justify a larger one (RFC 7661). */
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	if (acked)
		tl_additive_increase(tp, tp->snd_cwnd, acked);
	enter_growth(tp, ca);
}

/* Packets were lost, once in a round trip at most: the threshold to shrink to, at least 2. */
SSTHRESH(sk, tp, ca)
{
	u32 reduced = (u64)tp->snd_cwnd * PARAM(sk, beta) >> 10;

	ca->reductions++;
	return max(reduced, 2u);
}

/* TCP enters one of TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss. */
SET_STATE(sk, tp, ca, state)
{
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else
		enter_growth(tp, ca);
}

/* The reduction proves spurious: the window to go back to. */
UNDO_CWND(sk, tp, ca)
{
	return tl_undo_cwnd(tp);
}

/*
 * The operations above. Others are listed in tcplab_cc.h: PKTS_ACKED for RTT samples, CONG_CONTROL with
 * delivery rates in place of CONG_AVOID, CWND_EVENT, ...
 *
 * The kernel asks for: whole numbers only, no signed division, loops that end after a constant number of
 * rounds, array indices compared with the array's size just before their use.
 */
CONGESTION_CONTROL(
	.init = OP(init),
	.cong_avoid = OP(cong_avoid),
	.ssthresh = OP(ssthresh),
	.set_state = OP(set_state),
	.undo_cwnd = OP(undo_cwnd),
);
"""
