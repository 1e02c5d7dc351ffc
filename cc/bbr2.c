// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * BBR, version 2 (draft-cardwell-iccrg-bbr-congestion-control-02): version 1's model of the path, and bounds on
 * rate and inflight learnt from loss. Sections below are the draft's, and so are the names; what Linux's
 * rate_sample lacks is derived in tcplab_bbr.h. BBR.bw_hi never has a finite value in the draft and is left out.
 * Of ECN the draft says nothing; the response is described in tcplab_bbr.h too.
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
#include "tcplab_bbr.h"

#define STARTUP_PACING_GAIN (UNIT * 277 / 100) /* section 2.6 */
#define STARTUP_CWND_GAIN (UNIT * 2)
#define CWND_GAIN (UNIT * 2) /* section 4.6.1 */
#define STARTUP_LOSS_EVENTS 6 /* section 4.3.1.3 */
#define PROBE_RTT_MS 200     /* section 4.3.4.4 */

/* How the ACKs that arrive relate to probing: section 4.3.3.6. */
enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

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

	struct aggregation aggregation; /* section 4.5.5 */
	struct flight flight;
	struct ecn ecn;
};

/* Section 4.5.6.2, IsInflightTooHigh. */
TL_INLINE bool is_inflight_too_high(struct sock *sk, const struct state *ca, const struct rate_sample *rs)
{
	return is_loss_too_high(&ca->flight, PARAM(sk, loss_threshold)) || is_ecn_too_high(rs);
}

/* ---- Estimates ------------------------------------------------------------------------------- */

TL_INLINE u64 max_bw(const struct state *ca)
{
	return max(ca->max_bw[0], ca->max_bw[1]);
}

/* Section 4.6.4.2, BBRBDPMultiple. */
TL_INLINE u32 bdp_multiple(const struct state *ca, u64 bw, u32 gain)
{
	return bdp_of(bw, ca->min_rtt, gain);
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

/* What the draft calls packets_in_flight, of `packets`: those that the pacer still holds are none yet. */
TL_INLINE u32 in_path(struct sock *sk, const struct state *ca, u32 packets)
{
	return in_network(sk, ca->bw, UNIT, packets);
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

TL_INLINE u64 pacing_rate(struct sock *sk, u64 bw, u32 gain)
{
	return pacing_rate_of(sk, bw, gain, PARAM(sk, pacing_margin));
}

TL_INLINE void init_pacing_rate(struct sock *sk, struct state *ca)
{
	ca->has_seen_rtt = tcp_sk(sk)->srtt_us != 0;
	sk->sk_pacing_rate = pacing_rate(sk, initial_bandwidth(tcp_sk(sk)), STARTUP_PACING_GAIN);
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

/* Section 4.5.6.3, BBRLossLowerBounds. */
TL_INLINE void loss_lower_bounds(struct sock *sk, struct state *ca)
{
	u32 beta = PARAM(sk, beta);

	if (ca->bw_lo == NO_BW_BOUND)
		ca->bw_lo = max_bw(ca);
	ca->bw_lo = max(max(ca->bw_latest, ca->bw_lo * beta >> 10), 1ull);
	ca->inflight_lo = max(ca->inflight_latest, (u32)((u64)ca->inflight_lo * beta >> 10));
}

/* Section 4.5.6.3, BBRAdaptLowerBoundsFromCongestion: once a round, and not while probing. */
TL_INLINE void adapt_lower_bounds(struct sock *sk, struct state *ca)
{
	u32 by_marks = NO_BOUND;

	if (is_probing_bw(ca) || !(ca->loss_in_round || ca->ecn.in_round))
		return;
	if (ca->inflight_lo == NO_BOUND)
		ca->inflight_lo = tcp_sk(sk)->snd_cwnd;
	if (ca->ecn.in_round)
		by_marks = ecn_reduced(&ca->ecn, ca->inflight_lo);
	if (ca->loss_in_round)
		loss_lower_bounds(sk, ca);
	ca->inflight_lo = min(ca->inflight_lo, by_marks);
}

/* Section 4.5.6, BBRUpdateCongestionSignals. */
TL_INLINE void update_congestion_signals(struct sock *sk, struct state *ca, const struct rate_sample *rs, u64 bw,
					 bool losses)
{
	update_max_bw(tcp_sk(sk), ca, rs, bw);
	update_ecn(&ca->ecn, tcp_sk(sk), ca->round_start);
	if (losses) {
		ca->loss_in_round = true;
		/* The draft counts runs of lost packets; the nearest to be had are ACKs that reveal losses. */
		ca->loss_events_in_round = min(ca->loss_events_in_round + 1, 1u << 16);
	}
	if (!ca->loss_round_start)
		return;
	adapt_lower_bounds(sk, ca);
	ca->loss_in_round = false;
	ca->ecn.in_round = false;
}

/* Section 4.5.5, BBRUpdateACKAggregation; the ten rounds' maximum as two windows of five. */
TL_INLINE void update_ack_aggregation(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs)
{
	if (rs->acked_sacked && is_valid(rs))
		update_aggregation(&ca->aggregation, tp, tp->tcp_mstamp, ca->bw, rs->acked_sacked,
				   ca->round_start, AGGREGATION_ROUNDS);
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

/* Section 4.3.1.3, BBRCheckStartupHighLoss; marks in most of two rounds say the same. */
TL_INLINE void check_startup_high_loss(struct sock *sk, struct state *ca)
{
	bool high = ca->loss_round_start && tl_ca_state(sk) == TCP_CA_Recovery &&
		    ca->loss_events_in_round >= STARTUP_LOSS_EVENTS &&
		    is_loss_too_high(&ca->flight, PARAM(sk, loss_threshold));

	if (ca->round_start && ca->ecn.rounds_too_high >= ECN_STARTUP_ROUNDS)
		high = true;
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
	    in_path(sk, ca, tcp_packets_in_flight(tcp_sk(sk))) <= inflight(sk, ca, max_bw(ca), UNIT))
		start_down(sk, ca);
}

/* Section 4.5.6.2, BBRHandleInflightTooHigh, with what was in flight as in BBRInflightHiFromLostPacket. */
TL_INLINE void handle_inflight_too_high(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 reduced = (u64)target_inflight(tp, ca) * PARAM(sk, beta) >> 10;
	u32 safe = ca->flight.tx_in_flight;

	if (ca->flight.newly_lost)
		safe = inflight_at_loss(&ca->flight, PARAM(sk, loss_threshold));

	ca->bw_probe_samples = false;
	if (!rs->is_app_limited)
		ca->inflight_hi = max(safe, reduced);
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

	if (is_inflight_too_high(sk, ca, rs)) {
		if (ca->bw_probe_samples)
			handle_inflight_too_high(sk, ca, rs);
		return;
	}
	if (ca->inflight_hi == NO_BOUND)
		return;
	ca->inflight_hi = max(ca->inflight_hi, ca->flight.tx_in_flight);
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
	u32 in_flight = in_path(sk, ca, rs->prior_in_flight);

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
		/* In the section's order, which makes BBRSaveCwnd keep what an earlier recovery saved if larger. */
		ENTER(ca, PROBE_RTT);
		save_cwnd(tp, ca);
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
			u32 extra = extra_acked(&ca->aggregation);
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
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	ca->inflight_hi = NO_BOUND;
	ca->probe_up_cnt = NO_BOUND;
	reset_lower_bounds(ca);
	init_flight(&ca->flight, tp);
	init_ecn(&ca->ecn, tp);
	set_gains(ca);
	init_pacing_rate(sk, ca);
	tl_request_pacing(sk);
}

/* Section 4.2.3, BBRUpdateOnACK. */
CONG_CONTROL(sk, tp, ca, rs)
{
	u64 bw = is_valid(rs) ? bandwidth_of((u32)rs->delivered, rs->interval_us) : 0;
	bool losses = derive_flight(&ca->flight, sk, rs);

	update_latest_delivery_signals(tp, ca, rs, bw);
	update_congestion_signals(sk, ca, rs, bw, losses);
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
	if (is_valid(rs))
		ca->flight.newly_lost = 0;
	remember_losses(&ca->flight, tp);
	publish(&ca->telemetry, tp, ca->bw, ca->min_rtt);
}

/* Section 4.4.3, BBRHandleRestartFromIdle. */
CWND_EVENT(sk, tp, ca, event)
{
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = true;
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
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
	if (state != TCP_CA_Loss)
		return;
	ca->loss_in_round = true;
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
