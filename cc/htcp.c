// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * H-TCP (D. Leith, "H-TCP: TCP Congestion Control for High Bandwidth-Delay Product Paths",
 * draft-leith-tcp-htcp-06): the longer since the last loss, the faster the window grows. After a loss the window is
 * cut only by as much as empties the queue.
 *
 * The names are the draft's: alpha is the increase in packets a round trip, and beta the part of the window that a
 * loss leaves. Delta is the time since the last loss, and B the throughput.
 *
 * Seven points are as in Linux's htcp. The throughput compared is the most within an epoch. The adaptive cut is for
 * paths above 10 ms, where RTTs can be distinguished. The greatest RTT fades so that a change of route is forgotten.
 * Delta begins when the recovery from a loss has ended. Where the loss proves spurious, Delta goes on. Packets
 * acknowledged are counted from zero after each increase of the window, so that it grows somewhat slower than by alpha.
 * Alpha is in whole packets, before the factor of beta, and computed anew only as the window grows and with a loss.
 */
#define CONTROL htcp
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(LOW_SPEED) PHASE(HIGH_SPEED) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(use_rtt_scaling, 1, 0, 1, 1, "1: make the increase per second independent of the RTT")  \
	PARAMETER(use_bandwidth_switch, 1, 0, 1, 1, "1: halve where the throughput has changed by a fifth") \
	PARAMETER(delta_l, 1000, 0, 60000, 1000, "seconds after a loss in which the window grows as Reno's") \
	PARAMETER(beta_min, 128, 26, 255, 256, "minimum part of the window left by a loss")                 \
	PARAMETER(beta_max, 204, 26, 255, 256, "most part of the window left by a loss")
#define GAUGES(GAUGE)                                                       \
	GAUGE(alpha, alpha, 256, "packets/RTT", "increase a round trip")    \
	GAUGE(beta, beta, 256, "", "part of the window that a loss leaves") \
	GAUGE(rtt_max, rtt_max, USEC_PER_MSEC, "ms", "greatest RTT, fading")
#include "tcplab_cc.h"

/* alpha and beta are in 1/256. */
#define UNIT 256u
#define RTT_REFERENCE (100 * USEC_PER_MSEC)
#define RTT_DISTINCT (10 * USEC_PER_MSEC)
#define MAX_RTT (1u << 27)
/* An RTT so much above the greatest is an outlier, not a longer queue (Linux). */
#define RTT_STEP (20 * USEC_PER_MSEC)
#define BW_SHIFT 24
/* Round trips after a loss in which the throughput is measured anew (Linux). */
#define SETTLING_ROUNDS 3
/* Larger Delta make no difference any more, 1/1024 s. */
#define MAX_DELTA (1u << 20)

struct state {
	TELEMETRY; /* its bandwidth is B, the throughput over the last round trips */

	u32 alpha;
	u32 beta;
	u64 last_loss; /* when Delta began, microseconds */
	u64 before_loss; /* and before the loss that is being recovered from; 0: none is */
	u32 acked; /* packets since the window grew */
	u32 rtt_min; /* microseconds; 0: none yet */
	u32 rtt_max; /* in this epoch and, fading, those before */

	/* Throughput, packets a microsecond times 2^24. */
	u64 rate;
	u64 rate_max; /* within this epoch */
	u64 rate_max_before; /* within the one before */
	u64 interval_start; /* microseconds */
	u32 interval_delivered;
	bool adaptive; /* one epoch of steady throughput has passed */
};

TL_INLINE void begin_interval(struct tcp_sock *tp, struct state *ca)
{
	ca->interval_start = tp->tcp_mstamp;
	ca->interval_delivered = tp->delivered;
}

/*
 * The throughput, an interval of a round trip and of a window at a time, smoothed as Linux does. That of a recovery says
 * nothing. Just after it the rate begins anew, or that before the loss would be taken for the new epoch's.
 */
TL_INLINE void measure_throughput(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u64 now = tp->tcp_mstamp, elapsed = now - ca->interval_start;
	u32 delivered = tp->delivered - ca->interval_delivered;
	u64 rate;

	if (tl_ca_state(sk) >= TCP_CA_CWR) {
		begin_interval(tp, ca);
		return;
	}
	if (!ca->rtt_min || elapsed < ca->rtt_min || delivered + max(ca->alpha / UNIT, 1u) < tp->snd_cwnd)
		return;
	rate = ((u64)delivered << BW_SHIFT) / elapsed;
	if (now - ca->last_loss < (SETTLING_ROUNDS + 1) * (u64)ca->rtt_min)
		ca->rate = ca->rate_max = rate;
	else
		ca->rate = (3 * ca->rate + rate) / 4;
	ca->rate_max = max(ca->rate_max, ca->rate);
	begin_interval(tp, ca);
	/* Packets a microsecond times 2^24 are bit/s by 10^6 / 2^24 = 15625 / 2^18. */
	ca->telemetry.bandwidth = (min(ca->rate, 1ull << 30) * (tp->mss_cache & 0xffff) >> 8) * 15625 * 8 >> 10;
}

/* alpha_H(d) = 1 + 10 d + (d / 2)^2 a time d after Delta_L, in 1/1024 s; in whole packets, as in Linux. */
TL_INLINE u64 alpha_h(u64 d)
{
	return 1 + ((10 * d + (d * d >> 12)) >> 10);
}

/* RTT scaling: times RTT over 100 ms, from 0.1 to 2. As in Linux the scale is in eighths, and what remains whole packets. */
TL_INLINE u64 scaled_by_rtt(u64 packets, u32 rtt)
{
	u64 eighths = clamp((u64)(8 * RTT_REFERENCE / rtt), 4ull, 80ull);

	return max(8 * packets / eighths, 1ull);
}

/* alpha = 2 (1 - beta) alpha_H, where alpha_H is 1 up to Delta_L. */
TL_INLINE void update_alpha(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u64 begin = ca->last_loss + (u64)PARAM(sk, delta_l) * 1000;
	u64 late = tp->tcp_mstamp > begin ? ((tp->tcp_mstamp - begin) << 10) / USEC_PER_SEC : 0;
	u64 packets = alpha_h(min(late, (u64)MAX_DELTA));

	if (PARAM(sk, use_rtt_scaling) && ca->rtt_min)
		packets = scaled_by_rtt(packets, ca->rtt_min);
	ca->alpha = max(2 * (UNIT - ca->beta) * packets, 1ull);
}

/* beta = RTTmin / RTTmax empties the queue and no more; 1/2 where the throughput is not what it was. */
TL_INLINE void update_beta(struct sock *sk, struct state *ca)
{
	u64 now = ca->rate_max, before = ca->rate_max_before;
	u32 minimum = PARAM(sk, beta_min), maximum = max(PARAM(sk, beta_max), minimum);
	bool changed = 5 * now < 4 * before || 5 * now > 6 * before;

	ca->rate_max_before = now;
	ca->beta = minimum;
	if (PARAM(sk, use_bandwidth_switch) && changed) {
		ca->adaptive = false;
		return;
	}
	if (ca->adaptive && ca->rtt_min > RTT_DISTINCT && ca->rtt_max)
		ca->beta = clamp((u32)((u64)ca->rtt_min * UNIT / ca->rtt_max), minimum, maximum);
	ca->adaptive = true;
}

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	if (tcp_in_slow_start(tp))
		ENTER(ca, SLOW_START);
	else
		ENTER(ca, ca->alpha > UNIT ? HIGH_SPEED : LOW_SPEED);
}

INIT(sk, tp, ca)
{
	ca->alpha = UNIT;
	ca->beta = PARAM(sk, beta_min);
	ca->last_loss = tp->tcp_mstamp;
	begin_interval(tp, ca);
	enter_growth(tp, ca);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt;

	measure_throughput(sk, tp, ca);
	if (sample->rtt_us < 0)
		return;
	rtt = min(max((u32)sample->rtt_us, 1u), MAX_RTT);
	if (!ca->rtt_min || rtt < ca->rtt_min)
		ca->rtt_min = rtt;
	ca->telemetry.min_rtt_us = ca->rtt_min;
	/* That of a recovery does not count (Linux). */
	if (tl_ca_state(sk) == TCP_CA_Open) {
		ca->rtt_max = max(ca->rtt_max, ca->rtt_min);
		if (rtt <= ca->rtt_max + RTT_STEP)
			ca->rtt_max = max(ca->rtt_max, rtt);
	}
}

/* Linux: the ACK that grows the window is not counted itself, and alpha is computed only here and with a loss. */
TL_INLINE void increase(struct sock *sk, struct tcp_sock *tp, struct state *ca, u32 acked)
{
	if ((u64)ca->acked * ca->alpha < (u64)tp->snd_cwnd << 8) {
		ca->acked += acked;
		return;
	}
	tp->snd_cwnd = min(tp->snd_cwnd + 1, tp->snd_cwnd_clamp);
	ca->acked = 0;
	update_alpha(sk, tp, ca);
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	if (acked)
		increase(sk, tp, ca, acked);
	enter_growth(tp, ca);
}

SSTHRESH(sk, tp, ca)
{
	u32 faded;

	update_beta(sk, ca);
	update_alpha(sk, tp, ca);
	/* The greatest RTT moves a twentieth of the way to the minimum with each loss (Linux). */
	if (ca->rtt_max > ca->rtt_min) {
		faded = (u64)(ca->rtt_max - ca->rtt_min) * 95 / 100;
		ca->rtt_max = ca->rtt_min + faded;
	}
	ca->before_loss = ca->last_loss;
	ca->last_loss = tp->tcp_mstamp;
	ca->acked = 0;
	return max((u32)((u64)tp->snd_cwnd * ca->beta >> 8), 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state >= TCP_CA_CWR) {
		ENTER(ca, RECOVERY);
		return;
	}
	/* Linux: Delta begins here. */
	if (state == TCP_CA_Open && ca->before_loss) {
		ca->last_loss = tp->tcp_mstamp;
		ca->before_loss = 0;
	}
	enter_growth(tp, ca);
}

UNDO_CWND(sk, tp, ca)
{
	/* Linux: Delta goes on, for there was no loss. */
	if (ca->before_loss) {
		ca->last_loss = ca->before_loss;
		ca->before_loss = 0;
	}
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
