// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Illinois (S. Liu, T. Başar, R. Srikant, "TCP-Illinois: A loss- and delay-based congestion control algorithm for
 * high-speed networks", Performance Evaluation 65(6-7), 2008): loss decides whether the window grows or shrinks,
 * queueing delay by how much.
 *
 * The names are the paper's: alpha = f1(d_a) is the increase in packets a round trip, and beta = f2(d_a) the part
 * that a loss takes away. The mean queueing delay of a round trip is d_a, and the greatest seen is d_m. Constants
 * are the paper's, section 3, which are Linux's too. As in Linux, beta is in whole 1/64, rounded down.
 */
#define CONTROL illinois
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(FAST) PHASE(CAREFUL) PHASE(RENO) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(alpha_max, 2560, 256, 25600, 256, "increase on an empty path, packets a round trip")    \
	PARAMETER(alpha_min, 77, 1, 256, 256, "increase at the greatest delay, packets a round trip")     \
	PARAMETER(beta_min, 32, 1, 255, 256, "part of the window that a loss takes away on an empty path") \
	PARAMETER(beta_max, 128, 1, 255, 256, "part of the window that a loss takes away at the greatest delay") \
	PARAMETER(theta, 5, 1, 100, 1, "round trips of small delay before the greatest increase returns") \
	PARAMETER(win_thresh, 15, 2, 10000, 1, "window, packets, below which all is as in Reno")
#define GAUGES(GAUGE)                                                           \
	GAUGE(alpha, alpha, 256, "packets/RTT", "increase a round trip")        \
	GAUGE(beta, beta, 256, "", "part of the window that a loss takes away") \
	GAUGE(queueing_delay, queueing_delay, USEC_PER_MSEC, "ms", "d_a, the mean queueing delay of a round trip")
#include "tcplab_cc.h"

/* alpha and beta are in 1/256. */
#define UNIT 256u
#define BETA_STEP (UNIT / 64)
#define MAX_RTT (1u << 27)

struct state {
	TELEMETRY;

	u32 alpha;
	u32 beta;
	u32 queueing_delay; /* d_a, microseconds */
	u64 credit;
	u32 base_rtt; /* minimum RTT, microseconds; 0: none yet */
	u32 max_rtt;

	u32 round_end; /* the round ends when this is acknowledged */
	u32 round_samples;
	u64 round_rtt_sum;
	u32 rounds_small; /* successive ones of small delay */
	bool was_above;   /* the delay has not been small since */
};

TL_INLINE void begin_round(struct tcp_sock *tp, struct state *ca)
{
	ca->round_end = tp->snd_nxt;
	ca->round_samples = 0;
	ca->round_rtt_sum = 0;
}

TL_INLINE void as_reno(struct state *ca)
{
	ca->alpha = UNIT;
	ca->beta = UNIT / 2;
}

/* f1: alpha_max up to d_1 = d_m / 100, then k1 / (k2 + d_a), which is alpha_min at d_m. */
TL_INLINE void update_alpha(struct sock *sk, struct state *ca, u32 da, u32 dm)
{
	u32 maximum = PARAM(sk, alpha_max), minimum = PARAM(sk, alpha_min), d1 = dm / 100;
	u64 range;

	if (da <= d1) {
		/* One quiet round may be chance, so the increase returns only after theta of them. */
		if (!ca->was_above || ++ca->rounds_small >= PARAM(sk, theta)) {
			ca->was_above = false;
			ca->rounds_small = 0;
			ca->alpha = maximum;
		}
		return;
	}
	ca->was_above = true;
	ca->rounds_small = 0;
	range = dm - d1;
	ca->alpha = range * maximum / (range + (u64)(da - d1) * (maximum - minimum) / minimum);
}

/* f2: beta_min up to d_2 = d_m / 10, beta_max from d_3 = 8 d_m / 10, a straight line between. */
TL_INLINE void update_beta(struct sock *sk, struct state *ca, u32 da, u32 dm)
{
	u32 minimum = PARAM(sk, beta_min), maximum = max(PARAM(sk, beta_max), minimum);
	u32 d2 = dm / 10, d3 = (u64)dm * 8 / 10;

	if (da <= d2 || d3 <= d2)
		ca->beta = minimum;
	else if (da >= d3)
		ca->beta = maximum;
	else
		ca->beta = minimum + (u64)(maximum - minimum) * (da - d2) / (d3 - d2) / BETA_STEP * BETA_STEP;
}

/* Once a round trip. */
TL_INLINE void judge_round(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u32 dm = ca->max_rtt - ca->base_rtt;
	u32 mean;

	if (ca->round_samples) {
		mean = ca->round_rtt_sum / ca->round_samples;
		ca->queueing_delay = mean > ca->base_rtt ? mean - ca->base_rtt : 0;
		if (tp->snd_cwnd < PARAM(sk, win_thresh)) {
			as_reno(ca);
		} else {
			u32 da = min(ca->queueing_delay, dm);

			update_alpha(sk, ca, da, dm);
			update_beta(sk, ca, da, dm);
		}
	}
	begin_round(tp, ca);
}

TL_INLINE void enter_growth(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	if (tcp_in_slow_start(tp))
		ENTER(ca, SLOW_START);
	else if (tp->snd_cwnd < PARAM(sk, win_thresh))
		ENTER(ca, RENO);
	else
		ENTER(ca, ca->alpha > UNIT ? FAST : CAREFUL);
}

INIT(sk, tp, ca)
{
	/* Until something is known of the delay, the paper's greatest increase and Reno's cut (Linux). */
	ca->alpha = PARAM(sk, alpha_max);
	ca->beta = UNIT / 2;
	begin_round(tp, ca);
	enter_growth(sk, tp, ca);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = min(max((u32)sample->rtt_us, 1u), MAX_RTT);
	if (!ca->base_rtt || rtt < ca->base_rtt)
		ca->base_rtt = rtt;
	ca->max_rtt = max(ca->max_rtt, rtt);
	ca->telemetry.min_rtt_us = ca->base_rtt;
	ca->round_samples++;
	ca->round_rtt_sum += rtt;
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (after(tp->snd_una, ca->round_end))
		judge_round(sk, tp, ca);
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	/* Never faster than slow start. */
	if (acked)
		tl_increase(tp, &ca->credit, (u32)min((u64)ca->alpha, (u64)tp->snd_cwnd << 8), acked);
	enter_growth(sk, tp, ca);
}

SSTHRESH(sk, tp, ca)
{
	u32 cut = (u64)tp->snd_cwnd * ca->beta >> 8;

	ca->credit = 0;
	return max(tp->snd_cwnd - cut, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	/* After a timeout nothing measured before counts, nor do the rounds of a recovery. */
	if (state == TCP_CA_Loss) {
		as_reno(ca);
		ca->was_above = false;
		ca->rounds_small = 0;
		begin_round(tp, ca);
	}
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else
		enter_growth(sk, tp, ca);
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
	.pkts_acked = OP(pkts_acked),
	.undo_cwnd = OP(undo_cwnd),
);
