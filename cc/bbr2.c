// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * BBR, version 2 (draft-cardwell-iccrg-bbr-congestion-control-02): version 1's model of the path, and bounds on
 * rate and inflight learnt from loss. Sections below are the draft's, and so are the names.
 *
 * The draft goes by what each packet knew when it was sent: how much was in flight (P.tx_in_flight) and how much
 * had been lost (P.lost). Linux's rate_sample has neither, so they are derived:
 *  - on a path that keeps order, what was in flight when the sampled packet left is what was delivered or lost
 *    from then until it was delivered itself;
 *  - the count of losses at that time is looked up in a short history of (delivered, lost).
 * Loss is thus judged with the next delivery, not at the lost packet (sections 4.5.6.2: BBRHandleLostPacket and
 * BBRInflightHiFromLostPacket), and inflight_hi becomes what was in flight, not the part before the loss.
 * BBR.bw_hi never has a finite value in the draft and is left out; of ECN the draft says nothing.
 */
#define CONTROL bbr2
#define PHASES(PHASE)                                                                                  \
	PHASE(STARTUP) PHASE(DRAIN) PHASE(PROBE_BW_DOWN) PHASE(PROBE_BW_CRUISE)                         \
	PHASE(PROBE_BW_REFILL) PHASE(PROBE_BW_UP) PHASE(PROBE_RTT)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(loss_threshold, 20, 1, 500, 1000, "share of a flight lost that means too much in flight") \
	PARAMETER(beta, 717, 1, 1023, 1024, "factor of the bounds after a round with loss")              \
	PARAMETER(headroom, 150, 0, 900, 1000, "share of inflight_hi left to others while cruising")      \
	PARAMETER(probe_rtt_interval, 5000, 100, 600000, 1000, "time from ProbeRTT to ProbeRTT, seconds") \
	PARAMETER(min_rtt_window, 10000, 100, 600000, 1000, "age at which the least RTT is replaced, seconds") \
	PARAMETER(pacing_margin, 1, 0, 50, 100, "share of the bandwidth estimate left unused by pacing")
#include "tcplab_cc.h"

/* Gains are in 1/256, bandwidth is in packets a microsecond times 2^24. */
#define UNIT 256u
#define BW_SHIFT 24
/* 64 packets a microsecond, 700 Gbit/s: up to here every product below fits into 64 bits. */
#define BW_MOST (1ull << 30)
#define NO_BOUND ~0u
#define NO_BW_BOUND ~0ull
#define RTT_MOST (1u << 27)
#define INFLIGHT_MOST (1u << 28)
#define MIN_PIPE_CWND 4u                       /* section 4.6.4.3 */
#define STARTUP_PACING_GAIN (UNIT * 277 / 100) /* section 2.6 */
#define STARTUP_CWND_GAIN (UNIT * 2)
#define CWND_GAIN (UNIT * 2) /* section 4.6.1 */
#define STARTUP_LOSS_EVENTS 6 /* section 4.3.1.3 */
#define PROBE_RTT_MS 200     /* section 4.3.4.4 */
#define EXTRA_ACKED_ROUNDS 5
#define EXTRA_ACKED_MOST (1u << 20)
#define MARKS 16

/* How the ACKs that arrive relate to probing: section 4.3.3.6. */
enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

struct mark {
	u32 delivered;
	u32 lost;
};

struct state {
	TELEMETRY; /* its phase and gains are BBR.state, BBR.pacing_gain and BBR.cwnd_gain */

	/* Rounds, section 4.5.1. */
	u32 next_round_delivered;
	bool round_start;

	/* Bandwidth, section 4.5.2: the best of the last ProbeBW cycle and of this one. */
	u64 max_bw[2];
	u64 bw; /* max_bw within the lower bound */

	/* RTT, section 4.5.3. */
	u32 min_rtt; /* microseconds, all ones: none yet */
	u64 min_rtt_stamp;
	u32 probe_rtt_min_delay;
	u64 probe_rtt_min_stamp;
	bool probe_rtt_expired;
	u64 probe_rtt_done_stamp;
	bool probe_rtt_round_done;

	/* Startup, section 4.3.1. */
	bool filled_pipe;
	u32 full_bw_count;
	u64 full_bw;
	u32 loss_events_in_round;

	/* Congestion signals, section 4.5.6. */
	u32 loss_round_delivered;
	bool loss_round_start;
	bool loss_in_round;
	u64 bw_latest;
	u32 inflight_latest;
	u64 bw_lo;
	u32 inflight_lo;
	u32 inflight_hi;

	/* ProbeBW, section 4.3.3. */
	u8 ack_phase;
	bool bw_probe_samples;
	u32 rounds_since_bw_probe;
	u64 bw_probe_wait; /* microseconds */
	u64 cycle_stamp;
	u32 probe_up_rounds;
	u32 probe_up_acks;
	u32 probe_up_cnt;

	/* Window, section 4.6.4. */
	u32 prior_cwnd;
	u8 prior_ca_state;
	bool packet_conservation;
	bool idle_restart;
	bool has_seen_rtt;

	/* ACK aggregation, section 4.5.5. */
	u64 extra_acked_start;
	u32 extra_acked_delivered;
	u32 extra_acked[2];
	u32 extra_acked_rounds;
	u32 extra_acked_index;

	/* What the rate sample lacks. */
	struct mark marks[MARKS];
	u32 marks_made;
	u32 tx_in_flight; /* of the sampled packet */
	u32 lost;         /* since it was sent */
};

/* ---- What the rate sample lacks -------------------------------------------------------------- */

TL_INLINE void remember_losses(struct tcp_sock *tp, struct state *ca)
{
	struct mark *last = &ca->marks[(ca->marks_made - 1) & (MARKS - 1)];

	/* Half of the history is a window, so it reaches back to packets sent a round trip ago. */
	if (ca->marks_made && tp->delivered - last->delivered < max(tp->snd_cwnd / (MARKS / 2), 1u))
		return;
	last = &ca->marks[ca->marks_made & (MARKS - 1)];
	last->delivered = tp->delivered;
	last->lost = tp->lost;
	ca->marks_made++;
}

/* The count of losses when `delivered` packets had been delivered. */
TL_INLINE u32 losses_at(const struct state *ca, u32 delivered)
{
	u32 known = min(ca->marks_made, (u32)MARKS), lost = 0;

	for (u32 back = 1; back <= MARKS; back++) {
		const struct mark *mark = &ca->marks[(ca->marks_made - back) & (MARKS - 1)];

		if (back > known)
			break;
		lost = mark->lost;
		if (!after(mark->delivered, delivered))
			break;
	}
	return lost;
}

TL_INLINE bool is_valid(const struct rate_sample *rs)
{
	return rs->delivered >= 0 && rs->interval_us > 0;
}

TL_INLINE void derive_flight(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs)
{
	ca->lost = 0;
	ca->tx_in_flight = 0;
	if (!is_valid(rs))
		return;
	/* Bounds against samples that make no sense. */
	ca->lost = min(tp->lost - losses_at(ca, rs->prior_delivered), INFLIGHT_MOST);
	ca->tx_in_flight = min((u32)rs->delivered, INFLIGHT_MOST) + ca->lost;
}

/* Section 4.5.6.2, IsInflightTooHigh. */
TL_INLINE bool is_inflight_too_high(struct sock *sk, const struct state *ca)
{
	return (u64)ca->lost * 1000 > (u64)ca->tx_in_flight * PARAM(sk, loss_threshold);
}

/* ---- Estimates ------------------------------------------------------------------------------- */

TL_INLINE u64 bandwidth_of(u64 packets, u64 us)
{
	return us ? clamp((packets << BW_SHIFT) / us, 1ull, BW_MOST) : BW_MOST;
}

TL_INLINE u64 max_bw(const struct state *ca)
{
	return max(ca->max_bw[0], ca->max_bw[1]);
}

/* Section 4.6.4.2, BBRBDPMultiple. */
TL_INLINE u32 bdp_multiple(const struct state *ca, u64 bw, u32 gain)
{
	u64 packets;

	if (ca->min_rtt == ~0u)
		return TCP_INIT_CWND;
	packets = (bw * min(ca->min_rtt, RTT_MOST) >> 8) * gain;
	packets = (packets + (1u << BW_SHIFT) - 1) >> BW_SHIFT;
	return min(packets, (u64)INFLIGHT_MOST);
}

/* Section 4.6.3: below 1.2 Mbit/s each packet leaves alone. */
TL_INLINE u32 least_burst(struct sock *sk)
{
	return sk->sk_pacing_rate < 1200000 / 8 ? 1 : 2;
}

TL_INLINE u32 send_quantum(struct sock *sk)
{
	u64 bytes = min((u64)sk->sk_pacing_rate >> (sk->sk_pacing_shift & 31), 65215ull);

	return max((u32)bytes / max(tcp_sk(sk)->mss_cache, 1u), least_burst(sk));
}

/* Section 4.6.4.2, BBRQuantizationBudget, with section 4.5.4's offload budget. */
TL_INLINE u32 quantization_budget(struct sock *sk, const struct state *ca, u32 packets)
{
	packets = max(max(packets, 3 * send_quantum(sk)), MIN_PIPE_CWND);
	return ca->telemetry.phase == PROBE_BW_UP ? packets + 2 : packets;
}

TL_INLINE u32 inflight(struct sock *sk, const struct state *ca, u64 bw, u32 gain)
{
	return quantization_budget(sk, ca, bdp_multiple(ca, bw, gain));
}

/* Section 4.3.3.6, BBRInflightWithHeadroom. */
TL_INLINE u32 inflight_with_headroom(struct sock *sk, const struct state *ca)
{
	u32 headroom;

	if (ca->inflight_hi == NO_BOUND)
		return NO_BOUND;
	headroom = max((u32)((u64)ca->inflight_hi * PARAM(sk, headroom) / 1000), 1u);
	return ca->inflight_hi > headroom + MIN_PIPE_CWND ? ca->inflight_hi - headroom : MIN_PIPE_CWND;
}

/* Section 4.3.3.5.3, BBRTargetInflight. */
TL_INLINE u32 target_inflight(const struct tcp_sock *tp, const struct state *ca)
{
	return min(bdp_multiple(ca, ca->bw, UNIT), tp->snd_cwnd);
}

TL_INLINE bool is_in_probe_bw(const struct state *ca)
{
	return ca->telemetry.phase >= PROBE_BW_DOWN && ca->telemetry.phase <= PROBE_BW_UP;
}

/* Section 4.5.6.3, BBRIsProbingBW. */
TL_INLINE bool is_probing_bw(const struct state *ca)
{
	u32 phase = ca->telemetry.phase;

	return phase == STARTUP || phase == PROBE_BW_REFILL || phase == PROBE_BW_UP;
}

/* ---- Entering the states --------------------------------------------------------------------- */

TL_INLINE void start_round(struct tcp_sock *tp, struct state *ca)
{
	ca->next_round_delivered = tp->delivered;
}

TL_INLINE void reset_lower_bounds(struct state *ca)
{
	ca->bw_lo = NO_BW_BOUND;
	ca->inflight_lo = NO_BOUND;
}

/* Section 4.5.6, BBRResetCongestionSignals. */
TL_INLINE void reset_congestion_signals(struct state *ca)
{
	ca->loss_in_round = false;
	ca->bw_latest = 0;
	ca->inflight_latest = 0;
}

/* Section 4.3.3.6, BBRStartProbeBW_DOWN; section 4.3.3.5.3, BBRPickProbeWait. */
TL_INLINE void start_down(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	reset_congestion_signals(ca);
	ca->probe_up_cnt = NO_BOUND;
	ca->rounds_since_bw_probe = tl_random(sk) & 1;
	ca->bw_probe_wait = 2 * USEC_PER_SEC + tl_random(sk) % USEC_PER_SEC;
	ca->cycle_stamp = tp->tcp_mstamp;
	ca->ack_phase = ACKS_PROBE_STOPPING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_DOWN);
}

TL_INLINE void start_refill(struct tcp_sock *tp, struct state *ca)
{
	reset_lower_bounds(ca);
	ca->probe_up_rounds = 0;
	ca->probe_up_acks = 0;
	ca->ack_phase = ACKS_REFILLING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_REFILL);
}

/* Section 4.3.3.6, BBRRaiseInflightHiSlope: the growth doubles with each round. */
TL_INLINE void raise_inflight_hi_slope(struct tcp_sock *tp, struct state *ca)
{
	u32 growth = 1u << (ca->probe_up_rounds & 31);

	ca->probe_up_rounds = min(ca->probe_up_rounds + 1, 30u);
	ca->probe_up_cnt = max(tp->snd_cwnd / growth, 1u);
}

TL_INLINE void start_up(struct tcp_sock *tp, struct state *ca)
{
	ca->ack_phase = ACKS_PROBE_STARTING;
	start_round(tp, ca);
	ca->cycle_stamp = tp->tcp_mstamp;
	ENTER(ca, PROBE_BW_UP);
	raise_inflight_hi_slope(tp, ca);
}

/* Section 4.6.1: the gains of each state. */
TL_INLINE void set_gains(struct state *ca)
{
	u32 pacing = UNIT, cwnd = CWND_GAIN;

	switch (ca->telemetry.phase) {
	case STARTUP:
		pacing = STARTUP_PACING_GAIN;
		cwnd = STARTUP_CWND_GAIN;
		break;
	case DRAIN:
		pacing = UNIT * UNIT / STARTUP_CWND_GAIN;
		cwnd = STARTUP_CWND_GAIN;
		break;
	case PROBE_BW_DOWN:
		pacing = UNIT * 9 / 10;
		break;
	case PROBE_BW_UP:
		pacing = UNIT * 5 / 4;
		break;
	case PROBE_RTT:
		cwnd = UNIT / 2;
		break;
	}
	ca->telemetry.pacing_gain = pacing;
	ca->telemetry.cwnd_gain = cwnd;
}

/* ---- Pacing: section 4.6.2 ------------------------------------------------------------------- */

/* 10^6 / 100 / 2^24 is 625 / 2^20. */
TL_INLINE u64 pacing_rate(struct sock *sk, u64 bw, u32 gain)
{
	u64 rate = bw * (tcp_sk(sk)->mss_cache & 0xffff) * gain >> 8;

	rate = rate * (625 * (100 - PARAM(sk, pacing_margin))) >> 20;
	return min(max(rate, 1ull), (u64)sk->sk_max_pacing_rate);
}

TL_INLINE void init_pacing_rate(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = USEC_PER_MSEC;

	if (tp->srtt_us) {
		rtt = max(tp->srtt_us >> 3, 1u);
		ca->has_seen_rtt = true;
	}
	sk->sk_pacing_rate = pacing_rate(sk, bandwidth_of(tp->snd_cwnd, rtt), STARTUP_PACING_GAIN);
}

TL_INLINE void set_pacing_rate(struct sock *sk, struct state *ca, u32 gain)
{
	u64 rate = pacing_rate(sk, ca->bw, gain);

	if (!ca->has_seen_rtt && tcp_sk(sk)->srtt_us)
		init_pacing_rate(sk, ca);
	if (ca->filled_pipe || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

/* ---- The model: section 4.5 ------------------------------------------------------------------ */

/* Section 4.5.6, BBRUpdateLatestDeliverySignals. */
TL_INLINE void update_latest_delivery_signals(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs,
					      u64 bw)
{
	ca->loss_round_start = false;
	if (!is_valid(rs))
		return;
	ca->bw_latest = max(ca->bw_latest, bw);
	ca->inflight_latest = max(ca->inflight_latest, min((u32)rs->delivered, INFLIGHT_MOST));
	if (!before(rs->prior_delivered, ca->loss_round_delivered)) {
		ca->loss_round_delivered = tp->delivered;
		ca->loss_round_start = true;
	}
}

/* Sections 4.5.1 and 4.5.2.4, BBRUpdateRound and BBRUpdateMaxBw. */
TL_INLINE void update_max_bw(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs, u64 bw)
{
	ca->round_start = false;
	if (!is_valid(rs))
		return;
	if (!before(rs->prior_delivered, ca->next_round_delivered)) {
		start_round(tp, ca);
		ca->rounds_since_bw_probe++;
		ca->round_start = true;
		ca->packet_conservation = false;
	}
	if (!rs->is_app_limited || bw >= max_bw(ca))
		ca->max_bw[1] = max(ca->max_bw[1], bw);
}

/* Section 4.5.6.3, BBRAdaptLowerBoundsFromCongestion: once a round, and not while probing. */
TL_INLINE void adapt_lower_bounds(struct sock *sk, struct state *ca)
{
	u32 beta = PARAM(sk, beta);

	if (is_probing_bw(ca) || !ca->loss_in_round)
		return;
	if (ca->bw_lo == NO_BW_BOUND)
		ca->bw_lo = max_bw(ca);
	if (ca->inflight_lo == NO_BOUND)
		ca->inflight_lo = tcp_sk(sk)->snd_cwnd;
	ca->bw_lo = max(max(ca->bw_latest, ca->bw_lo * beta >> 10), 1ull);
	ca->inflight_lo = max(ca->inflight_latest, (u32)((u64)ca->inflight_lo * beta >> 10));
}

/* Section 4.5.6, BBRUpdateCongestionSignals. */
TL_INLINE void update_congestion_signals(struct sock *sk, struct state *ca, const struct rate_sample *rs, u64 bw)
{
	update_max_bw(tcp_sk(sk), ca, rs, bw);
	if (rs->losses > 0) {
		ca->loss_in_round = true;
		/* The draft counts runs of lost packets; the nearest to be had are ACKs that reveal losses. */
		ca->loss_events_in_round = min(ca->loss_events_in_round + 1, 1u << 16);
	}
	if (!ca->loss_round_start)
		return;
	adapt_lower_bounds(sk, ca);
	ca->loss_in_round = false;
}

/* Section 4.5.5, BBRUpdateACKAggregation; the ten rounds' maximum as two windows of five. */
TL_INLINE void update_ack_aggregation(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs)
{
	u32 acked = rs->acked_sacked, extra;
	u64 since, expected;

	if (!acked || !is_valid(rs))
		return;
	if (ca->round_start && ++ca->extra_acked_rounds >= EXTRA_ACKED_ROUNDS) {
		ca->extra_acked_rounds = 0;
		ca->extra_acked_index ^= 1;
		ca->extra_acked[ca->extra_acked_index & 1] = 0;
	}
	since = tp->tcp_mstamp > ca->extra_acked_start ? tp->tcp_mstamp - ca->extra_acked_start : 0;
	expected = ca->bw * min(since, 1ull << 33) >> BW_SHIFT;
	if (ca->extra_acked_delivered <= expected || ca->extra_acked_delivered + acked >= EXTRA_ACKED_MOST) {
		ca->extra_acked_delivered = 0;
		ca->extra_acked_start = tp->tcp_mstamp;
		expected = 0;
	}
	ca->extra_acked_delivered = min(ca->extra_acked_delivered + acked, EXTRA_ACKED_MOST - 1);
	extra = min(ca->extra_acked_delivered - (u32)expected, tp->snd_cwnd);
	if (extra > ca->extra_acked[ca->extra_acked_index & 1])
		ca->extra_acked[ca->extra_acked_index & 1] = extra;
}

/* Section 4.3.1.2, BBRCheckStartupFullBandwidth. */
TL_INLINE void check_startup_full_bandwidth(struct state *ca, const struct rate_sample *rs)
{
	if (ca->filled_pipe || !ca->round_start || rs->is_app_limited)
		return;
	if (max_bw(ca) >= ca->full_bw * 5 / 4) {
		ca->full_bw = max_bw(ca);
		ca->full_bw_count = 0;
		return;
	}
	if (++ca->full_bw_count >= 3)
		ca->filled_pipe = true;
}

/* Section 4.3.1.3, BBRCheckStartupHighLoss. */
TL_INLINE void check_startup_high_loss(struct sock *sk, struct state *ca)
{
	bool high = ca->loss_round_start && tl_ca_state(sk) == TCP_CA_Recovery &&
		    ca->loss_events_in_round >= STARTUP_LOSS_EVENTS && is_inflight_too_high(sk, ca);

	if (high && !ca->filled_pipe) {
		ca->filled_pipe = true;
		ca->inflight_hi = max(inflight(sk, ca, max_bw(ca), UNIT), ca->inflight_latest);
	}
	if (ca->loss_round_start)
		ca->loss_events_in_round = 0;
}

/* Section 4.3.2, BBRCheckDrain, after section 4.3.1.1, BBRCheckStartupDone. */
TL_INLINE void check_drain(struct sock *sk, struct state *ca)
{
	if (ca->telemetry.phase == STARTUP && ca->filled_pipe)
		ENTER(ca, DRAIN);
	if (ca->telemetry.phase == DRAIN &&
	    tcp_packets_in_flight(tcp_sk(sk)) <= inflight(sk, ca, max_bw(ca), UNIT))
		start_down(sk, ca);
}

/* Section 4.5.6.2, BBRHandleInflightTooHigh. */
TL_INLINE void handle_inflight_too_high(struct sock *sk, struct state *ca, bool app_limited)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 reduced = (u64)target_inflight(tp, ca) * PARAM(sk, beta) >> 10;

	ca->bw_probe_samples = false;
	if (!app_limited)
		ca->inflight_hi = max(ca->tx_in_flight, reduced);
	if (ca->telemetry.phase == PROBE_BW_UP)
		start_down(sk, ca);
}

/* Section 4.3.3.6, BBRProbeInflightHiUpward. */
TL_INLINE void probe_inflight_hi_upward(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u32 steps;

	if (!tl_cwnd_limited(tp) || tp->snd_cwnd < ca->inflight_hi)
		return;
	ca->probe_up_acks = min(ca->probe_up_acks + acked, INFLIGHT_MOST);
	steps = ca->probe_up_acks / max(ca->probe_up_cnt, 1u);
	ca->probe_up_acks -= steps * ca->probe_up_cnt;
	ca->inflight_hi = min(ca->inflight_hi + steps, INFLIGHT_MOST);
	if (ca->round_start)
		raise_inflight_hi_slope(tp, ca);
}

/* Section 4.3.3.6, BBRAdaptUpperBounds. */
TL_INLINE void adapt_upper_bounds(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->ack_phase == ACKS_PROBE_STARTING && ca->round_start)
		ca->ack_phase = ACKS_PROBE_FEEDBACK;
	if (ca->ack_phase == ACKS_PROBE_STOPPING && ca->round_start) {
		ca->bw_probe_samples = false;
		ca->ack_phase = ACKS_INIT;
		/* Section 4.5.2.5, BBRAdvanceMaxBwFilter; a cycle without a sample is none. */
		if (is_in_probe_bw(ca) && !rs->is_app_limited && ca->max_bw[1]) {
			ca->max_bw[0] = ca->max_bw[1];
			ca->max_bw[1] = 0;
		}
	}

	if (is_inflight_too_high(sk, ca)) {
		if (ca->bw_probe_samples)
			handle_inflight_too_high(sk, ca, rs->is_app_limited);
		return;
	}
	if (ca->inflight_hi == NO_BOUND)
		return;
	ca->inflight_hi = max(ca->inflight_hi, ca->tx_in_flight);
	if (ca->telemetry.phase == PROBE_BW_UP)
		probe_inflight_hi_upward(tp, ca, rs->acked_sacked);
}

/* Section 4.3.3.5.3, BBRCheckTimeToProbeBW: after 2 to 3 s, or when Reno would have had a loss. */
TL_INLINE bool is_time_to_probe_bw(struct tcp_sock *tp, struct state *ca)
{
	return tp->tcp_mstamp > ca->cycle_stamp + ca->bw_probe_wait ||
	       ca->rounds_since_bw_probe >= min(target_inflight(tp, ca), 63u);
}

/* Section 4.3.3.6, BBRUpdateProbeBWCyclePhase. */
TL_INLINE void update_probe_bw_cycle_phase(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	if (!ca->filled_pipe)
		return;
	adapt_upper_bounds(sk, ca, rs);

	switch (ca->telemetry.phase) {
	case PROBE_BW_DOWN:
		if (is_time_to_probe_bw(tp, ca))
			start_refill(tp, ca);
		else if (in_flight <= inflight_with_headroom(sk, ca) &&
			 in_flight <= inflight(sk, ca, max_bw(ca), UNIT))
			ENTER(ca, PROBE_BW_CRUISE);
		break;
	case PROBE_BW_CRUISE:
		if (is_time_to_probe_bw(tp, ca))
			start_refill(tp, ca);
		break;
	case PROBE_BW_REFILL:
		/* A round after refilling, the samples show what probing does. */
		if (ca->round_start) {
			ca->bw_probe_samples = true;
			start_up(tp, ca);
		}
		break;
	case PROBE_BW_UP:
		if (tp->tcp_mstamp > ca->cycle_stamp + ca->min_rtt &&
		    in_flight > inflight(sk, ca, max_bw(ca), UNIT * 5 / 4))
			start_down(sk, ca);
		break;
	}
}

/* Section 4.3.4.4, BBRUpdateMinRTT. */
TL_INLINE void update_min_rtt(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	u64 now = tcp_sk(sk)->tcp_mstamp;

	ca->probe_rtt_expired = now > ca->probe_rtt_min_stamp + (u64)PARAM(sk, probe_rtt_interval) * USEC_PER_MSEC;
	if (rs->rtt_us >= 0 &&
	    (rs->rtt_us < ca->probe_rtt_min_delay || (ca->probe_rtt_expired && !rs->is_ack_delayed))) {
		ca->probe_rtt_min_delay = rs->rtt_us;
		ca->probe_rtt_min_stamp = now;
	}
	if (ca->probe_rtt_min_delay < ca->min_rtt ||
	    now > ca->min_rtt_stamp + (u64)PARAM(sk, min_rtt_window) * USEC_PER_MSEC) {
		ca->min_rtt = ca->probe_rtt_min_delay;
		ca->min_rtt_stamp = ca->probe_rtt_min_stamp;
	}
}

/* ---- ProbeRTT: section 4.3.4 ----------------------------------------------------------------- */

/* Section 4.6.4.4, BBRSaveCwnd. */
TL_INLINE void save_cwnd(struct tcp_sock *tp, struct state *ca)
{
	if (ca->prior_ca_state < TCP_CA_Recovery && ca->telemetry.phase != PROBE_RTT)
		ca->prior_cwnd = tp->snd_cwnd;
	else
		ca->prior_cwnd = max(ca->prior_cwnd, tp->snd_cwnd);
}

/* Section 4.6.4.5, BBRProbeRTTCwnd: half the bandwidth-delay product. */
TL_INLINE u32 probe_rtt_cwnd(const struct state *ca)
{
	return max(bdp_multiple(ca, ca->bw, UNIT / 2), MIN_PIPE_CWND);
}

/* Sections 4.3.4.4 and 4.3.4.5, BBRCheckProbeRTTDone and BBRExitProbeRTT. */
TL_INLINE void check_probe_rtt_done(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ca->probe_rtt_done_stamp || tp->tcp_mstamp <= ca->probe_rtt_done_stamp)
		return;
	ca->probe_rtt_min_stamp = tp->tcp_mstamp;
	tp->snd_cwnd = max(tp->snd_cwnd, ca->prior_cwnd);
	reset_lower_bounds(ca);
	if (ca->filled_pipe) {
		start_down(sk, ca);
		ENTER(ca, PROBE_BW_CRUISE);
	} else {
		ENTER(ca, STARTUP);
	}
}

/* Section 4.3.4.4, BBRHandleProbeRTT. */
TL_INLINE void handle_probe_rtt(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp);

	tp->app_limited = max(tp->delivered + in_flight, 1u);
	if (!ca->probe_rtt_done_stamp) {
		if (in_flight > probe_rtt_cwnd(ca))
			return;
		ca->probe_rtt_done_stamp = tp->tcp_mstamp + PROBE_RTT_MS * USEC_PER_MSEC;
		ca->probe_rtt_round_done = false;
		start_round(tp, ca);
		return;
	}
	if (ca->round_start)
		ca->probe_rtt_round_done = true;
	if (ca->probe_rtt_round_done)
		check_probe_rtt_done(sk, ca);
}

/* Section 4.3.4.4, BBRCheckProbeRTT. */
TL_INLINE void check_probe_rtt(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->telemetry.phase != PROBE_RTT && ca->probe_rtt_expired && !ca->idle_restart) {
		save_cwnd(tp, ca);
		ENTER(ca, PROBE_RTT);
		ca->probe_rtt_done_stamp = 0;
		ca->ack_phase = ACKS_PROBE_STOPPING;
		start_round(tp, ca);
	}
	if (ca->telemetry.phase == PROBE_RTT)
		handle_probe_rtt(sk, ca);
	if (rs->delivered > 0)
		ca->idle_restart = false;
}

/* ---- Window: section 4.6.4 ------------------------------------------------------------------- */

/* Section 4.6.4.4, BBRModulateCwndForRecovery and what leads to it. */
TL_INLINE u32 modulate_cwnd_for_recovery(struct sock *sk, struct state *ca, u32 cwnd, u32 acked, s32 losses)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 conserved = tcp_packets_in_flight(tp) + acked;
	u8 was = ca->prior_ca_state, is = tl_ca_state(sk);

	if (losses > 0)
		cwnd = cwnd > (u32)losses ? cwnd - losses : 1;
	if (is == TCP_CA_Recovery && was != TCP_CA_Recovery) {
		ca->packet_conservation = true;
		start_round(tp, ca);
		cwnd = conserved;
	} else if (is < TCP_CA_Recovery && was >= TCP_CA_Recovery) {
		ca->packet_conservation = false;
		cwnd = max(cwnd, ca->prior_cwnd);
	}
	ca->prior_ca_state = is;
	return ca->packet_conservation ? max(cwnd, conserved) : cwnd;
}

/* Section 4.6.4.7, BBRBoundCwndForModel. */
TL_INLINE u32 bound_cwnd_for_model(struct sock *sk, const struct state *ca, u32 cwnd)
{
	u32 phase = ca->telemetry.phase, cap = NO_BOUND;

	if (phase == PROBE_RTT || phase == PROBE_BW_CRUISE)
		cap = inflight_with_headroom(sk, ca);
	else if (is_in_probe_bw(ca))
		cap = ca->inflight_hi;
	cap = max(min(cap, ca->inflight_lo), MIN_PIPE_CWND);
	return min(cwnd, cap);
}

/* Section 4.6.4.6, BBRSetCwnd. */
TL_INLINE void set_cwnd(struct sock *sk, struct state *ca, u32 acked, s32 losses)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	if (acked) {
		cwnd = modulate_cwnd_for_recovery(sk, ca, cwnd, acked, losses);
		if (!ca->packet_conservation) {
			u32 extra = max(ca->extra_acked[0], ca->extra_acked[1]);
			u32 target = bdp_multiple(ca, ca->bw, ca->telemetry.cwnd_gain);

			target = quantization_budget(sk, ca, target + (ca->filled_pipe ? extra : 0));
			if (ca->filled_pipe)
				cwnd = min(cwnd + acked, target);
			else if (cwnd < target || tp->delivered < TCP_INIT_CWND)
				cwnd += acked;
			cwnd = max(cwnd, MIN_PIPE_CWND);
		}
	}
	if (ca->telemetry.phase == PROBE_RTT)
		cwnd = min(cwnd, probe_rtt_cwnd(ca));
	cwnd = bound_cwnd_for_model(sk, ca, cwnd);
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
}

/* ---- The operations -------------------------------------------------------------------------- */

/* Section 4.2.1, BBRInit. */
INIT(sk, tp, ca)
{
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	ca->min_rtt = tcp_min_rtt(tp);
	ca->probe_rtt_min_delay = ca->min_rtt;
	ca->min_rtt_stamp = tp->tcp_mstamp;
	ca->probe_rtt_min_stamp = tp->tcp_mstamp;
	ca->extra_acked_start = tp->tcp_mstamp;
	ca->inflight_hi = NO_BOUND;
	ca->probe_up_cnt = NO_BOUND;
	reset_lower_bounds(ca);
	remember_losses(tp, ca);
	set_gains(ca);
	init_pacing_rate(sk, ca);
	tl_request_pacing(sk);
}

/* Section 4.2.3, BBRUpdateOnACK. */
CONG_CONTROL(sk, tp, ca, rs)
{
	u64 bw = is_valid(rs) ? bandwidth_of((u32)rs->delivered, rs->interval_us) : 0;

	derive_flight(tp, ca, rs);
	update_latest_delivery_signals(tp, ca, rs, bw);
	update_congestion_signals(sk, ca, rs, bw);
	update_ack_aggregation(tp, ca, rs);
	check_startup_full_bandwidth(ca, rs);
	check_startup_high_loss(sk, ca);
	check_drain(sk, ca);
	update_probe_bw_cycle_phase(sk, ca, rs);
	update_min_rtt(sk, ca, rs);
	check_probe_rtt(sk, ca, rs);
	set_gains(ca);

	/* BBRAdvanceLatestDeliverySignals and, section 4.5.6, BBRBoundBWForModel. */
	if (ca->loss_round_start) {
		ca->bw_latest = bw;
		ca->inflight_latest = min((u32)rs->delivered, INFLIGHT_MOST);
	}
	ca->bw = min(max_bw(ca), ca->bw_lo);

	set_pacing_rate(sk, ca, ca->telemetry.pacing_gain);
	set_cwnd(sk, ca, rs->acked_sacked, rs->losses);
	remember_losses(tp, ca);

	/* Bit/s: 8 * 10^6 / 2^24 is 15625 / 2^15. */
	ca->telemetry.bandwidth = ca->bw * (tp->mss_cache & 0xffff) * 15625 >> 15;
	ca->telemetry.min_rtt_us = ca->min_rtt == ~0u ? 0 : ca->min_rtt;
}

/* Section 4.4.3, BBRHandleRestartFromIdle. */
CWND_EVENT(sk, tp, ca, event)
{
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = true;
	ca->extra_acked_start = tp->tcp_mstamp;
	ca->extra_acked_delivered = 0;
	if (is_in_probe_bw(ca))
		set_pacing_rate(sk, ca, UNIT);
	else if (ca->telemetry.phase == PROBE_RTT)
		check_probe_rtt_done(sk, ca);
}

/* Section 4.6.4.4: entering recovery the window is remembered; there is no threshold. */
SSTHRESH(sk, tp, ca)
{
	save_cwnd(tp, ca);
	return tp->snd_ssthresh;
}

SET_STATE(sk, tp, ca, state)
{
	if (state == TCP_CA_Loss)
		ca->prior_ca_state = TCP_CA_Loss;
}

/* Section 4.6.4.4: BBRSetCwnd restores the window; a spurious loss is no sign of congestion. */
UNDO_CWND(sk, tp, ca)
{
	ca->loss_in_round = false;
	ca->full_bw = 0;
	ca->full_bw_count = 0;
	return tp->snd_cwnd;
}

MIN_TSO_SEGS(sk, tp, ca)
{
	return least_burst(sk);
}

/* As version 1: a window in flight, one being retransmitted, and one from the application. */
SNDBUF_EXPAND(sk, tp, ca)
{
	return 3;
}

CONGESTION_CONTROL(
	.init = OP(init),
	.ssthresh = OP(ssthresh),
	.set_state = OP(set_state),
	.cwnd_event = OP(cwnd_event),
	.cong_control = OP(cong_control),
	.undo_cwnd = OP(undo_cwnd),
	.min_tso_segs = OP(min_tso_segs),
	.sndbuf_expand = OP(sndbuf_expand),
);
