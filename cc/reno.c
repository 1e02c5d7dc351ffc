// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Reno: slow start, congestion avoidance and halving (RFC 5681), with NewReno's way of leaving recovery
 * (RFC 6582). Leaving recovery is the endpoint's part. The endpoint keeps a recovery going until everything
 * sent before the loss is acknowledged, and calls `ssthresh` once for that recovery.
 */
#define CONTROL reno
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER) \
	PARAMETER(beta, 512, 1, 1023, 1024, "window after a loss, as a fraction of the window before it") \
	PARAMETER(beta_ecn, 0, 0, 1023, 1024, "window after an ECN mark, as a fraction (ABE); 0: as after a loss")
#include "tcplab_cc.h"

struct state {
	TELEMETRY;
	u32 marked; /* packets marked until the last cut */
};

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
}

INIT(sk, tp, ca)
{
	enter_growth(tp, ca);
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	/* RFC 5681 section 4.1 and RFC 7661 section 4.1: an unused window does not justify a larger one. */
	if (!tcp_is_cwnd_limited(tp))
		return;

	/* RFC 5681 section 3.1: slow start below ssthresh, congestion avoidance above. */
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	if (acked)
		/* RFC 5681 section 3.1: a segment a round trip, counting what is acknowledged. */
		tl_additive_increase(tp, tp->snd_cwnd, acked);
	enter_growth(tp, ca);
}

SSTHRESH(sk, tp, ca)
{
	/*
	 * RFC 5681 section 3.1, equation (4), on the window as in Linux, not on FlightSize. The two differ
	 * only where the window was not used, and then the window has not grown either.
	 */
	u32 beta = PARAM(sk, beta);
	u32 reduced;

	/* RFC 8511 section 3: a mark comes from a short queue, so that a smaller cut empties it; 0.8 is advised. */
	if (tl_only_marked(tp, &ca->marked) && PARAM(sk, beta_ecn))
		beta = PARAM(sk, beta_ecn);
	reduced = (u64)tp->snd_cwnd * beta >> 10;
	return max(reduced, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else
		enter_growth(tp, ca);
}

UNDO_CWND(sk, tp, ca)
{
	return tl_undo_cwnd(tp);
}

CONGESTION_CONTROL(
	.init = OP(init),
	.ssthresh = OP(ssthresh),
	.cong_avoid = OP(cong_avoid),
	.set_state = OP(set_state),
	.undo_cwnd = OP(undo_cwnd),
);
