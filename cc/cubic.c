// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * CUBIC (RFC 9438): after a loss the window returns to where the loss was along a cubic function of time,
 * stays there for a while, then probes beyond. Sections below are those of RFC 9438.
 *
 * Slow start (section 4.10) is left by HyStart as in Linux's own cubic, with ACK trains and delay, so that the two
 * controls can be compared. RFC 9406's HyStart++ is not used. For the same reason:
 *  - RTT in W_cubic(t + RTT) is the minimum RTT seen.
 *  - The additive factor of the Reno-friendly region stays unchanged when W_est passes the window before the loss.
 *    Section 4.3 says that the factor SHOULD then become 1; `reno_above_prior` does as section 4.3 says.
 *  - Before the first loss the window grows by at least 5 % a round trip.
 */
#define CONTROL cubic
#define PHASES(PHASE) \
	PHASE(SLOW_START) PHASE(RENO_FRIENDLY) PHASE(CONCAVE) PHASE(CONVEX) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(beta, 717, 1, 1023, 1024, "window after a loss, as a fraction of the window before it") \
	PARAMETER(beta_ecn, 0, 0, 1023, 1024, "window after an ECN mark, as a fraction (ABE); 0: as after a loss") \
	PARAMETER(c, 410, 10, 4096, 1024, "C, segments per second cubed: how fast the window grows")     \
	PARAMETER(fast_convergence, 1, 0, 1, 1, "1: release bandwidth faster when the share shrinks")    \
	PARAMETER(reno_friendly, 1, 0, 1, 1, "1: grow no slower than Reno would")                        \
	PARAMETER(reno_above_prior, 0, 0, 1, 1, "1: Reno's own growth once past the window before the loss") \
	PARAMETER(hystart, 1, 0, 1, 1, "1: leave slow start before the first loss")                      \
	PARAMETER(hystart_low_window, 16, 2, 100000, 1, "minimum window, segments, at which HyStart acts")
#define GAUGES(GAUGE)                                                                             \
	GAUGE(w_max, w_max, 1, "segments", "W_max, the window before the last loss; 0: none yet") \
	GAUGE(w_est, w_est, 1, "segments", "W_est, the window that Reno would have")              \
	GAUGE(k, k, 1024, "s", "K, from an epoch's start until the window is W_max again")
#include "tcplab_cc.h"

struct state {
	TELEMETRY;

	/* The cubic function, section 4.2. */
	u64 epoch_start; /* when it began, microseconds; 0: with the next ACK */
	u32 w_max;       /* window before the last loss, segments */
	u32 origin;      /* where the function is flat, segments: W_max, or the window if that is larger */
	u32 k;           /* when it gets there, 1/1024 s after its start */
	u32 ack_interval; /* ACKed packets for a packet of growth */
	u64 updated;     /* when `ack_interval` was computed, microseconds */
	u32 updated_cwnd; /* for which window */

	/* Reno's window, section 4.3. */
	u32 w_est;
	u32 w_est_acked; /* packets acknowledged since `w_est` grew */
	u32 cwnd_prior;

	u32 marked;    /* packets marked until the last cut */
	u32 delay_min; /* minimum RTT, microseconds; 0: none yet */

	/* HyStart. */
	u32 round_end;     /* the round ends when this is acknowledged */
	u32 round_samples; /* RTT samples in it */
	u32 round_rtt;     /* minimum of them, microseconds */
	u64 round_start;   /* microseconds */
	u64 last_ack;      /* last ACK of the train that began the round, microseconds */
	bool exit_found;
};

/* Window and ACK counts of the cubic function never need be computed more often, microseconds. */
#define RECOMPUTE_AFTER (USEC_PER_SEC / 32)
/* An ACK later than this after the one before is not of the same train, microseconds. */
#define TRAIN_GAP 2000
/* A round says something about its delay after so many samples. */
#define ROUND_SAMPLES 8
/* The delay may grow by an eighth of the minimum RTT, within these bounds, microseconds. */
#define MIN_DELAY 4000u
#define MAX_DELAY 16000u
/* Larger windows than this are beyond what the arithmetic needs to distinguish. */
#define MAX_DISTANCE (1u << 24)
#define MAX_TIME (1u << 21)

/*
 * Largest integer whose cube is at most `x` < 2^63, a binary digit a step from the highest. The digit comes
 * from the sign of a difference: with a branch, the verifier would follow each of the 2^22 ways through.
 */
TL_INLINE u32 cube_root(u64 x)
{
	u64 root = 0;

	for (int shift = 63; shift >= 0; shift -= 3) {
		u64 step, digit;

		root <<= 1;
		/* (root + 1)^3 - root^3 */
		step = 3 * root * (root + 1) + 1;
		digit = 1 ^ ((x >> shift) - step) >> 63;
		x -= (step << shift) & -digit;
		root += digit;
	}
	return root;
}

TL_INLINE u64 to_1024ths(u64 us)
{
	return (us << 10) / USEC_PER_SEC;
}

TL_INLINE void begin_epoch(struct sock *sk, struct state *ca, u32 cwnd, u64 now)
{
	ca->epoch_start = now;
	ca->w_est = cwnd;
	ca->w_est_acked = 0;

	if (ca->w_max <= cwnd) {
		/* Also the first stage after a timeout, section 4.8, for that clears w_max. */
		ca->k = 0;
		ca->origin = cwnd;
	} else {
		/* Section 4.2, equation (2): C is in 1/1024, K in 1/1024 s, so K^3 = distance / C * 2^40. */
		u64 distance = min(ca->w_max - cwnd, MAX_DISTANCE);

		ca->k = cube_root((1ull << 40) / PARAM(sk, c) * distance);
		ca->origin = ca->w_max;
	}
}

/* Section 4.2, equation (1): the window in a round trip from now. */
TL_INLINE u64 w_cubic(struct sock *sk, struct state *ca, u64 now)
{
	u64 t = to_1024ths(now - ca->epoch_start + ca->delay_min);
	u64 offset = t < ca->k ? ca->k - t : t - ca->k;
	u64 delta;

	offset = min(offset, (u64)MAX_TIME);
	/* 1/1024 segments/s^3 times 1/1024^3 s^3 is 2^-40 segments; shifted in two steps, for it has 75 bits. */
	delta = ((offset * offset * offset >> 20) * PARAM(sk, c)) >> 20;
	if (t >= ca->k)
		return ca->origin + delta;
	return delta < ca->origin ? ca->origin - delta : 0;
}

/* Section 4.3, equation (4): W_est grows by alpha for each window acknowledged. */
TL_INLINE void grow_w_est(struct sock *sk, struct state *ca, u32 cwnd)
{
	/* cwnd / alpha, alpha = 3 (1 - beta) / (1 + beta), computed in 1/8 as Linux does. */
	u32 beta = PARAM(sk, beta);
	u32 inverse_alpha = 8 * (1024 + beta) / 3 / (1024 - beta);
	u32 interval = (u64)cwnd * inverse_alpha >> 3;
	u32 steps;

	if (PARAM(sk, reno_above_prior) && ca->w_est >= ca->cwnd_prior)
		interval = cwnd;
	interval = max(interval, 1u);
	/* A step waits for one packet more than the interval, as in Linux. */
	if (ca->w_est_acked <= interval)
		return;
	steps = (ca->w_est_acked - 1) / interval;
	ca->w_est_acked -= steps * interval;
	ca->w_est += steps;
}

/* Computes how many packets must be acknowledged for a packet of growth. */
TL_INLINE void update(struct sock *sk, struct state *ca, u32 cwnd, u32 acked, u64 now)
{
	u64 target;

	ca->w_est_acked += acked;
	if (ca->epoch_start && ca->updated_cwnd == cwnd && now - ca->updated <= RECOMPUTE_AFTER)
		return;
	ca->updated_cwnd = cwnd;
	ca->updated = now;

	if (!ca->epoch_start) {
		begin_epoch(sk, ca, cwnd, now);
		ca->w_est_acked = acked;
	}

	/* Sections 4.4 and 4.5: (target - cwnd) / cwnd for each ACK; at or below the target, hardly anything. */
	target = w_cubic(sk, ca, now);
	if (target > cwnd)
		ca->ack_interval = cwnd / (u32)min(target - cwnd, (u64)cwnd);
	else
		ca->ack_interval = 100 * cwnd;
	ENTER(ca, cwnd < ca->w_max ? CONCAVE : CONVEX);

	if (!ca->w_max)
		ca->ack_interval = min(ca->ack_interval, 20u);

	/* Section 4.3: grow to W_est where that is larger. */
	if (PARAM(sk, reno_friendly)) {
		grow_w_est(sk, ca, cwnd);
		if (ca->w_est > cwnd)
			ca->ack_interval = min(ca->ack_interval, cwnd / (ca->w_est - cwnd));
		if (ca->w_est > target)
			ENTER(ca, RENO_FRIENDLY);
	}

	/* Section 4.2: the target is at most 1.5 windows. */
	ca->ack_interval = max(ca->ack_interval, 2u);
}

TL_INLINE void hystart_begin_round(struct tcp_sock *tp, struct state *ca)
{
	ca->round_start = tp->tcp_mstamp;
	ca->last_ack = tp->tcp_mstamp;
	ca->round_end = tp->snd_nxt;
	ca->round_rtt = ~0u;
	ca->round_samples = 0;
}

/* Half the time a train lasts that fills the path, and what TSO and GRO add to it, microseconds. */
TL_INLINE u32 hystart_train_length(struct sock *sk, struct state *ca)
{
	u64 rate = sk->sk_pacing_rate;
	u64 bursts = rate ? min((u64)USEC_PER_MSEC, 4ull * 65536 * USEC_PER_SEC / rate) : 0;
	u32 length = ca->delay_min + (u32)bursts;

	/* Unpaced, a window leaves at twice the rate at which slow start's ACKs come back. */
	return sk->sk_pacing_status == SK_PACING_NONE ? length / 2 : length;
}

/*
 * HyStart: slow start ends when the ACKs of a window come as one train as long as the path's delay, or when the RTT
 * has grown. Source: S. Ha and I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011.
 */
TL_INLINE void hystart(struct sock *sk, struct tcp_sock *tp, struct state *ca, u32 rtt)
{
	u64 now = tp->tcp_mstamp;

	if (after(tp->snd_una, ca->round_end))
		hystart_begin_round(tp, ca);
	if (tp->snd_cwnd < PARAM(sk, hystart_low_window))
		return;

	if (now - ca->last_ack <= TRAIN_GAP) {
		ca->last_ack = now;
		if (now - ca->round_start > hystart_train_length(sk, ca))
			ca->exit_found = true;
	}

	ca->round_rtt = min(ca->round_rtt, rtt);
	if (ca->round_samples < ROUND_SAMPLES)
		ca->round_samples++;
	else if (ca->round_rtt > ca->delay_min + clamp(ca->delay_min / 8, MIN_DELAY, MAX_DELAY))
		ca->exit_found = true;

	if (ca->exit_found)
		tp->snd_ssthresh = tp->snd_cwnd;
}

/* Forgets the path, at the start and after a timeout (section 4.8). */
TL_INLINE void forget(struct tcp_sock *tp, struct state *ca)
{
	ca->epoch_start = 0;
	ca->w_max = 0;
	ca->updated = 0;
	ca->updated_cwnd = 0;
	ca->ack_interval = 0;
	ca->delay_min = 0;
	ca->exit_found = false;
	hystart_begin_round(tp, ca);
}

INIT(sk, tp, ca)
{
	forget(tp, ca);
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	/* Section 5.8: an unused window does not grow. */
	if (!tcp_is_cwnd_limited(tp))
		return;

	if (tcp_in_slow_start(tp)) {
		ENTER(ca, SLOW_START);
		acked = tl_slow_start(tp, acked);
		if (!acked)
			return;
	}
	update(sk, ca, tp->snd_cwnd, acked, tp->tcp_mstamp);
	tl_additive_increase(tp, ca->ack_interval, acked);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	/* The queue that a loss left behind would be taken for the path's delay. */
	if (ca->epoch_start && tp->tcp_mstamp - ca->epoch_start < USEC_PER_SEC)
		return;

	rtt = max((u32)sample->rtt_us, 1u);
	if (!ca->delay_min || ca->delay_min > rtt)
		ca->delay_min = rtt;
	ca->telemetry.min_rtt_us = ca->delay_min;

	if (PARAM(sk, hystart) && !ca->exit_found && tcp_in_slow_start(tp))
		hystart(sk, tp, ca, rtt);
}

SSTHRESH(sk, tp, ca)
{
	u32 cwnd = tp->snd_cwnd;
	u32 beta = PARAM(sk, beta);
	u32 reduced;

	/* RFC 8511 section 3: a mark comes from a short queue, so that a smaller cut empties it; 0.85 is advised. */
	if (tl_only_marked(tp, &ca->marked) && PARAM(sk, beta_ecn))
		beta = PARAM(sk, beta_ecn);
	reduced = (u64)cwnd * beta >> 10;

	/* Section 4.7, fast convergence; otherwise section 4.6. */
	if (PARAM(sk, fast_convergence) && cwnd < ca->w_max)
		ca->w_max = (u64)cwnd * (1024 + beta) >> 11;
	else
		ca->w_max = cwnd;
	ca->cwnd_prior = cwnd;
	ca->epoch_start = 0;

	/* Section 4.6, on the window as Linux does it; CONG_AVOID is the other measure it then asks for. */
	return max(reduced, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state == TCP_CA_Loss)
		forget(tp, ca);
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else if (tcp_in_slow_start(tp))
		ENTER(ca, SLOW_START);
}

CWND_EVENT(sk, tp, ca, event)
{
	/*
	 * Section 4.2: t leaves out the time in which the application sent nothing. Linux counts it from the last
	 * transmission, which is when the last packet delivered had been sent.
	 */
	if (event == CA_EVENT_TX_START && ca->epoch_start && tp->tcp_mstamp > tp->first_tx_mstamp)
		ca->epoch_start = min(ca->epoch_start + (tp->tcp_mstamp - tp->first_tx_mstamp), tp->tcp_mstamp);
}

UNDO_CWND(sk, tp, ca)
{
	/* Section 4.9, of which Linux restores the window and the threshold. */
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
