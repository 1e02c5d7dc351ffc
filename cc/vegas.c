// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Vegas (L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC
 * 13(8), 1995): keeps a few packets in the path's queues. It compares the throughput that the window would have on
 * an empty path with the throughput it has. The difference, which is what waits in the queues, is kept between
 * alpha and beta packets. Sections below are that paper's.
 *
 * As Linux's vegas, and other than the paper:
 *  - thresholds are packets in the queue, the paper's "extra buffers", not a difference of rates;
 *  - Diff is the window times (RTT - BaseRTT) / BaseRTT, not / RTT: behind a long queue it says more than waits there,
 *    so that the window shrinks further;
 *  - the threshold of slow start is at least three quarters of the window after each round;
 *  - BaseRTT is measured anew when the sender begins again with nothing in flight: after a pause, and also where a
 *    window of a few packets is acknowledged at once. Beside a flow that fills the queue it then takes the queue's
 *    delay for the path's, and grows;
 *  - slow start doubles the window each round trip, not every other; `alternate_rounds` does as the paper;
 *  - the window grows, too, while the application does not use it: short queues say nothing of how much it takes to
 *    fill the path. After a while of little data a burst of the whole window may leave;
 *  - retransmission and the halving after a loss are TCP's own (RFC 5681), not those of section III-A;
 *  - a round with fewer than three RTT samples says nothing: it grows as Reno's.
 */
#define CONTROL vegas
#define PHASES(PHASE) \
	PHASE(SLOW_START) PHASE(INCREASE) PHASE(HOLD) PHASE(DECREASE) PHASE(RENO) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                      \
	PARAMETER(alpha, 2, 1, 1000, 1, "with fewer packets than this in the path's queues the window grows") \
	PARAMETER(beta, 4, 1, 1000, 1, "with more packets than this in the path's queues it shrinks")  \
	PARAMETER(gamma, 1, 1, 1000, 1, "more packets than this in the path's queues end slow start")  \
	PARAMETER(alternate_rounds, 0, 0, 1, 1, "1: slow start grows in every other round trip only")
#define GAUGES(GAUGE)                                                           \
	GAUGE(diff, queued, 1, "packets", "Diff, packets in the path's queues") \
	GAUGE(expected, expected, 1000000, "Mbit/s", "Expected, the throughput on an empty path")
#include "tcplab_cc.h"

struct state {
	TELEMETRY; /* its bandwidth is the paper's Actual */

	u32 base_rtt;  /* minimum RTT, the paper's BaseRTT, microseconds; 0: none yet */
	u32 queued;    /* the paper's Diff, as packets in the path's queues */
	u64 expected;  /* the paper's Expected, bit/s */

	u32 round_end; /* the round ends when this is acknowledged */
	u32 round_rtt; /* minimum RTT in it, microseconds */
	u32 round_samples;
	bool measuring; /* false in recovery, where RTTs show the loss */
	bool odd_round; /* in which an alternating slow start does not grow */
};

/* A delayed ACK may stretch one or two samples of a round, so the minimum of fewer than this means nothing. */
#define ROUND_SAMPLES 3
#define MAX_RTT (1u << 27)

TL_INLINE void begin_round(struct tcp_sock *tp, struct state *ca)
{
	ca->round_end = tp->snd_nxt;
	ca->round_rtt = MAX_RTT;
	ca->round_samples = 0;
	ca->odd_round = !ca->odd_round;
}

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : RENO);
}

TL_INLINE void grow_as_reno(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;
	enter_growth(tp, ca);
	tl_grow_as_reno(tp, acked);
}

TL_INLINE void slow_start(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	ENTER(ca, SLOW_START);
	tl_slow_start(tp, acked);
}

/* The threshold goes with the window, so that no slow start follows. */
TL_INLINE void shrink(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = max(cwnd, 2u);
	tp->snd_ssthresh = min(tp->snd_ssthresh, tp->snd_cwnd);
}

/* Once a round trip, sections III-B and III-C. */
TL_INLINE void judge_round(struct sock *sk, struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u32 cwnd = tp->snd_cwnd, rtt = ca->round_rtt;
	u32 base = max(ca->base_rtt, 1u);
	/* At the rate Actual the path holds so many; the rest waits. */
	u32 fitting = (u64)cwnd * base / max(rtt, 1u);

	/* Expected - Actual is cwnd / base - cwnd / rtt. In packets it is that times the RTT; the paper's is times BaseRTT. */
	ca->queued = (u64)cwnd * (rtt - base) / base;
	ca->expected = tl_bits_per_second(tp, cwnd, base);
	ca->telemetry.bandwidth = tl_bits_per_second(tp, cwnd, rtt);

	if (tcp_in_slow_start(tp)) {
		if (ca->queued <= PARAM(sk, gamma)) {
			slow_start(tp, ca, acked);
			return;
		}
		/* Section III-C: a queue is building up, so back to what the path itself holds. */
		shrink(tp, min(cwnd, fitting + 1));
		ENTER(ca, DECREASE);
	} else if (ca->queued > PARAM(sk, beta)) {
		shrink(tp, cwnd - 1);
		ENTER(ca, DECREASE);
	} else if (ca->queued < PARAM(sk, alpha)) {
		ENTER(ca, INCREASE);
		tp->snd_cwnd = min(cwnd + 1, tp->snd_cwnd_clamp);
	} else {
		ENTER(ca, HOLD);
	}
	tp->snd_ssthresh = max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

TL_INLINE void begin(struct tcp_sock *tp, struct state *ca)
{
	ca->base_rtt = 0;
	begin_round(tp, ca);
	ca->measuring = true;
}

INIT(sk, tp, ca)
{
	begin(tp, ca);
	enter_growth(tp, ca);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = min(max((u32)sample->rtt_us, 1u), MAX_RTT);
	if (!ca->base_rtt || rtt < ca->base_rtt)
		ca->base_rtt = rtt;
	ca->telemetry.min_rtt_us = ca->base_rtt;
	ca->round_rtt = min(ca->round_rtt, rtt);
	ca->round_samples++;
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!ca->measuring) {
		grow_as_reno(tp, ca, acked);
		return;
	}
	if (after(tp->snd_una, ca->round_end)) {
		if (ca->round_samples < ROUND_SAMPLES)
			grow_as_reno(tp, ca, acked);
		else
			judge_round(sk, tp, ca, acked);
		begin_round(tp, ca);
	} else if (tcp_in_slow_start(tp) && !(PARAM(sk, alternate_rounds) && ca->odd_round)) {
		slow_start(tp, ca, acked);
	}
}

SSTHRESH(sk, tp, ca)
{
	/* RFC 5681 section 3.1, equation (4), on the window as Linux does it. */
	return max(tp->snd_cwnd / 2, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	/* A measurement around a loss says nothing: the rounds begin anew after it. */
	ca->measuring = state == TCP_CA_Open;
	if (ca->measuring)
		begin_round(tp, ca);
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else if (ca->telemetry.phase == RECOVERY)
		enter_growth(tp, ca);
}

CWND_EVENT(sk, tp, ca, event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		begin(tp, ca);
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
	.pkts_acked = OP(pkts_acked),
	.undo_cwnd = OP(undo_cwnd),
);
