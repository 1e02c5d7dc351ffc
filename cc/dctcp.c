// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * DCTCP (RFC 8257): switches mark packets where their queue exceeds a threshold, and the receiver echoes exactly
 * which were marked. The sender reduces its window by the share of marks, so that queues stay short and full.
 * Between reductions the window grows as Reno's does. For networks where all hosts and switches take part; both
 * ends of a connection run DCTCP, and both halves are here.
 */
#define CONTROL dctcp
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(CWR) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(gain_shift, 4, 0, 10, 1, "g, the weight of the last window in alpha, is 2 to the minus this") \
	PARAMETER(initial_alpha, 1024, 0, 1024, 1024, "share of marks assumed before any was measured")
#define GAUGES(GAUGE) \
	GAUGE(alpha, alpha, UNIT, "", "share of marked packets, averaged over windows")
#include "tcplab_cc.h"

#define UNIT 1024u /* alpha and shares are in 1/1024 */

struct state {
	TELEMETRY;

	/* The sender, RFC 8257 section 3.3. */
	u32 alpha;        /* DCTCP.Alpha */
	u32 window_end;   /* DCTCP.WindowEnd */
	u32 delivered;    /* counts at the window's start, for DCTCP.BytesAcked */
	u32 delivered_ce; /* and DCTCP.BytesMarked */

	/* The receiver, section 3.2. */
	bool ce;     /* DCTCP.CE */
	u32 rcv_nxt; /* up to where that held */
};

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
}

/* Section 3.3, steps 6 and 7: the next window begins. */
TL_INLINE void begin_window(struct tcp_sock *tp, struct state *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

INIT(sk, tp, ca)
{
	/* Section 4.2: 1 is safest, the first mark then halves. */
	ca->alpha = PARAM(sk, initial_alpha);
	ca->rcv_nxt = tp->rcv_nxt;
	begin_window(tp, ca);
	enter_growth(tp, ca);
}

/*
 * Section 3.2: an ACK speaks for data of one kind only. When the mark changes, what waits for a delayed ACK is
 * acknowledged with the echo as it was, and the new data at once with the echo as it is.
 */
TL_INLINE void note_mark(struct tcp_sock *tp, struct state *ca, bool ce)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	if (ca->ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			tl_echo_congestion(tp, ca->ce);
			tl_send_ack(tp, ca->rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->rcv_nxt = tp->rcv_nxt;
	ca->ce = ce;
	tl_echo_congestion(tp, ce);
}

CWND_EVENT(sk, tp, ca, event)
{
	if (event == CA_EVENT_ECN_IS_CE)
		note_mark(tp, ca, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		note_mark(tp, ca, false);
	else if (event == CA_EVENT_LOSS)
		/* Section 3.5: loss is answered as ever, by half. The window is still that of before. */
		tp->snd_ssthresh = max(tp->snd_cwnd / 2, 2u);
}

/* Section 3.3, steps 1 to 7; packets stand for bytes, and an ACK's echo for all that it delivers. */
IN_ACK_EVENT(sk, tp, ca, flags)
{
	u32 shift = PARAM(sk, gain_shift) & 31;
	u32 acked, marked, share, faded;

	if (before(tp->snd_una, ca->window_end))
		return;
	acked = tp->delivered - ca->delivered;
	marked = tp->delivered_ce - ca->delivered_ce;
	share = (u64)min(marked, acked) * UNIT / max(acked, 1u);
	/*
	 * alpha = alpha * (1 - g) + g * M. Rounded as Linux rounds: it fades by whole units, rounded down. An alpha below
	 * 1 / g units, which would not fade so, becomes 0.
	 */
	faded = ca->alpha >> shift;
	ca->alpha -= faded ? faded : ca->alpha;
	ca->alpha = min(ca->alpha + (share >> shift), UNIT);
	begin_window(tp, ca);
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;

	/* Section 3.4: the window grows as without DCTCP. */
	tl_grow_as_reno(tp, acked);
	enter_growth(tp, ca);
}

/* Section 3.3, step 9: cwnd = cwnd * (1 - alpha / 2), once a window of data. */
SSTHRESH(sk, tp, ca)
{
	u32 cut = (u64)tp->snd_cwnd * ca->alpha / (2 * UNIT);

	return max(tp->snd_cwnd - cut, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state == TCP_CA_Recovery && tl_ca_state(sk) != TCP_CA_Recovery)
		/* Section 3.5, as at a timeout: half, whatever the share of marks. */
		tp->snd_ssthresh = max(tp->snd_cwnd / 2, 2u);
	if (state == TCP_CA_CWR)
		ENTER(ca, CWR);
	else if (state >= TCP_CA_Recovery)
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
	.cwnd_event = OP(cwnd_event),
	.in_ack_event = OP(in_ack_event),
	.undo_cwnd = OP(undo_cwnd),
	.flags = TCP_CONG_NEEDS_ECN,
);
