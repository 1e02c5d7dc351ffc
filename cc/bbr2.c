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
	PARAMETER(min_rtt_window, 10000, 100, 600000, 1000, "age at which the minimum RTT is replaced, seconds") \
	PARAMETER(pacing_margin, 1, 0, 50, 100, "share of the bandwidth estimate left unused by pacing")
#define GAUGES(GAUGE)                                                                             \
	GAUGE(inflight_hi, inflight_hi, 1, "packets", "the bound of inflight that probing finds") \
	GAUGE(inflight_lo, lo.inflight, 1, "packets", "the bound of inflight after loss")         \
	GAUGE(ecn_alpha, ecn.alpha, ECN_UNIT, "", "share of marked packets, averaged over rounds")
#include "tcplab_cc.h"
#include "tcplab_bbr.h"
#include "tcplab_bbr_parts.h"

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

	struct min_rtt min_rtt;     /* section 4.5.3 */
	struct probe_rtt probe_rtt; /* section 4.3.4 */

	/* Startup, section 4.3.1. */
	bool filled_pipe;
	u32 full_bw_count;
	u64 full_bw;
	u32 loss_events_in_round;

	/* Congestion signals, section 4.5.6. */
	bool loss_in_round;
	struct latest latest; /* BBR.bw_latest, BBR.inflight_latest */
	struct shortterm lo;  /* BBR.bw_lo, BBR.inflight_lo */
	u32 inflight_hi;

	/* ProbeBW, section 4.3.3. */
	u8 ack_phase;
	bool bw_probe_samples;
	u32 rounds_since_bw_probe;
	u64 bw_probe_wait; /* microseconds */
	u64 cycle_stamp;
	struct probe_up probe_up;

	struct recovery recovery; /* section 4.6.4.4 */
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
	return bdp_of(bw, ca->min_rtt.rtt, gain);
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

/* The draft's packets_in_flight, of `packets`: those that the pacer still holds are none yet. */
TL_INLINE u32 in_path(struct sock *sk, const struct state *ca, u32 packets)
{
	return in_network(sk, ca->bw, UNIT, packets);
}

/* Section 4.3.3.6, BBRInflightWithHeadroom. */
TL_INLINE u32 inflight_with_headroom(struct sock *sk, const struct state *ca)
{
	return with_headroom(ca->inflight_hi, PARAM(sk, headroom));
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

/* Section 4.5.6.3, BBRResetCongestionSignals. */
TL_INLINE void reset_congestion_signals(struct state *ca)
{
	ca->loss_in_round = false;
	reset_latest(&ca->latest);
}

/* Section 4.3.3.6, BBRStartProbeBW_DOWN; section 4.3.3.5.3, BBRPickProbeWait. */
TL_INLINE void start_down(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	reset_congestion_signals(ca);
	ca->probe_up.acked_per_inc = NO_BOUND;
	ca->rounds_since_bw_probe = tl_random(sk) & 1;
	ca->bw_probe_wait = 2 * USEC_PER_SEC + tl_random(sk) % USEC_PER_SEC;
	ca->cycle_stamp = tp->tcp_mstamp;
	ca->ack_phase = ACKS_PROBE_STOPPING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_DOWN);
}

TL_INLINE void start_refill(struct tcp_sock *tp, struct state *ca)
{
	reset_shortterm(&ca->lo);
	ca->probe_up.rounds = 0;
	ca->probe_up.acked = 0;
	ca->ack_phase = ACKS_REFILLING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_REFILL);
}

TL_INLINE void start_up(struct tcp_sock *tp, struct state *ca)
{
	ca->ack_phase = ACKS_PROBE_STARTING;
	start_round(tp, ca);
	ca->cycle_stamp = tp->tcp_mstamp;
	ENTER(ca, PROBE_BW_UP);
	raise_slope(&ca->probe_up, tp);
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
		ca->recovery.packet_conservation = false;
	}
	if (!is_app_limited(&ca->probe_rtt, rs) || bw >= max_bw(ca))
		ca->max_bw[1] = max(ca->max_bw[1], bw);
}

/* Section 4.5.6.3, BBRAdaptLowerBoundsFromCongestion: once a round, and not while probing. */
TL_INLINE void adapt_lower_bounds(struct sock *sk, struct state *ca)
{
	if (is_probing_bw(ca) || !(ca->loss_in_round || ca->ecn.in_round))
		return;
	lower_bounds(&ca->lo, &ca->latest, &ca->ecn, ca->loss_in_round, max_bw(ca), tcp_sk(sk)->snd_cwnd,
		     PARAM(sk, beta));
}

/* Section 4.5.6.3, BBRUpdateCongestionSignals. */
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
	if (!ca->latest.round_start)
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
	if (ca->filled_pipe || !ca->round_start || is_app_limited(&ca->probe_rtt, rs))
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
	bool high = ca->latest.round_start && tl_ca_state(sk) == TCP_CA_Recovery &&
		    ca->loss_events_in_round >= STARTUP_LOSS_EVENTS &&
		    is_loss_too_high(&ca->flight, PARAM(sk, loss_threshold));

	if (ca->round_start && ca->ecn.rounds_too_high >= ECN_STARTUP_ROUNDS)
		high = true;
	if (high && !ca->filled_pipe) {
		ca->filled_pipe = true;
		ca->inflight_hi = max(inflight(sk, ca, max_bw(ca), UNIT), ca->latest.inflight);
	}
	if (ca->latest.round_start)
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
	if (!is_app_limited(&ca->probe_rtt, rs))
		ca->inflight_hi = max(safe, reduced);
	if (ca->telemetry.phase == PROBE_BW_UP)
		start_down(sk, ca);
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
		if (is_in_probe_bw(ca) && !is_app_limited(&ca->probe_rtt, rs) && ca->max_bw[1]) {
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
		ca->inflight_hi = probe_upward(&ca->probe_up, tp, ca->inflight_hi, rs->acked_sacked,
					       ca->round_start);
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
		if (tp->tcp_mstamp > ca->cycle_stamp + ca->min_rtt.rtt &&
		    in_flight > inflight(sk, ca, max_bw(ca), UNIT * 5 / 4))
			start_down(sk, ca);
		break;
	}
}

/* ---- ProbeRTT: section 4.3.4 ----------------------------------------------------------------- */

/* Section 4.6.4.5, BBRProbeRTTCwnd: half the bandwidth-delay product. */
TL_INLINE u32 probe_rtt_cwnd(const struct state *ca)
{
	return max(bdp_multiple(ca, ca->bw, UNIT / 2), MIN_PIPE_CWND);
}

/* Sections 4.3.4.4 and 4.3.4.5, BBRCheckProbeRTTDone and BBRExitProbeRTT. */
TL_INLINE void check_probe_rtt_done(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!is_probe_rtt_over(&ca->probe_rtt, tp->tcp_mstamp))
		return;
	ca->min_rtt.probe_stamp = tp->tcp_mstamp;
	tp->snd_cwnd = max(tp->snd_cwnd, ca->recovery.prior_cwnd);
	reset_shortterm(&ca->lo);
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
	if (probe_rtt_round_done(&ca->probe_rtt, tcp_sk(sk), probe_rtt_cwnd(ca), PROBE_RTT_MS * USEC_PER_MSEC,
				 ca->round_start, &ca->next_round_delivered))
		check_probe_rtt_done(sk, ca);
}

/* Section 4.3.4.4, BBRCheckProbeRTT. */
TL_INLINE void check_probe_rtt(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->telemetry.phase != PROBE_RTT && ca->min_rtt.expired && !ca->idle_restart) {
		/* In the section's order, which makes BBRSaveCwnd keep what an earlier recovery saved if larger. */
		ENTER(ca, PROBE_RTT);
		save_prior_cwnd(&ca->recovery, tp, true);
		ca->probe_rtt.done_stamp = 0;
		ca->ack_phase = ACKS_PROBE_STOPPING;
		start_round(tp, ca);
	}
	if (ca->telemetry.phase == PROBE_RTT)
		handle_probe_rtt(sk, ca);
	if (rs->delivered > 0)
		ca->idle_restart = false;
}

/* ---- Window: section 4.6.4 ------------------------------------------------------------------- */

/* Section 4.6.4.7, BBRBoundCwndForModel. */
TL_INLINE u32 bound_cwnd_for_model(struct sock *sk, const struct state *ca, u32 cwnd)
{
	u32 phase = ca->telemetry.phase, cap = NO_BOUND;

	if (phase == PROBE_RTT || phase == PROBE_BW_CRUISE)
		cap = inflight_with_headroom(sk, ca);
	else if (is_in_probe_bw(ca))
		cap = ca->inflight_hi;
	cap = max(min(cap, ca->lo.inflight), MIN_PIPE_CWND);
	return min(cwnd, cap);
}

/* Section 4.6.4.6, BBRSetCwnd. */
TL_INLINE void set_cwnd(struct sock *sk, struct state *ca, u32 acked, s32 losses)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	if (acked) {
		cwnd = modulate_cwnd_for_recovery(&ca->recovery, sk, &ca->next_round_delivered, cwnd, acked,
						  losses);
		if (!ca->recovery.packet_conservation) {
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

/* Section 4.2.1, BBROnInit. */
INIT(sk, tp, ca)
{
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	init_min_rtt(&ca->min_rtt, tp);
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	ca->inflight_hi = NO_BOUND;
	ca->probe_up.acked_per_inc = NO_BOUND;
	reset_shortterm(&ca->lo);
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

	/* Section 4.5.6.3, BBRUpdateLatestDeliverySignals. */
	update_latest(&ca->latest, tp, rs, bw);
	update_congestion_signals(sk, ca, rs, bw, losses);
	update_ack_aggregation(tp, ca, rs);
	check_startup_full_bandwidth(ca, rs);
	check_startup_high_loss(sk, ca);
	check_drain(sk, ca);
	update_probe_bw_cycle_phase(sk, ca, rs);
	update_min_rtt(&ca->min_rtt, tp->tcp_mstamp, rs, PARAM(sk, probe_rtt_interval), PARAM(sk, min_rtt_window));
	check_probe_rtt(sk, ca, rs);
	set_gains(ca);

	/* Section 4.5.6.3, BBRAdvanceLatestDeliverySignals and BBRBoundBWForModel. */
	advance_latest(&ca->latest, rs, bw);
	ca->bw = min(max_bw(ca), ca->lo.bw);

	set_pacing_rate(sk, ca, ca->telemetry.pacing_gain);
	set_cwnd(sk, ca, rs->acked_sacked, rs->losses);
	if (is_valid(rs))
		ca->flight.newly_lost = 0;
	remember_losses(&ca->flight, tp);
	publish(&ca->telemetry, tp, ca->bw, ca->min_rtt.rtt);
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
	save_prior_cwnd(&ca->recovery, tp, ca->telemetry.phase == PROBE_RTT);
	return tp->snd_ssthresh;
}

SET_STATE(sk, tp, ca, state)
{
	if (state != TCP_CA_Loss)
		return;
	ca->loss_in_round = true;
	ca->recovery.prior_ca_state = TCP_CA_Loss;
}

/* Section 4.6.4.4: BBRSetCwnd restores the window; a spurious loss does not signal congestion. */
UNDO_CWND(sk, tp, ca)
{
	ca->loss_in_round = false;
	ca->full_bw = 0;
	ca->full_bw_count = 0;
	return tp->snd_cwnd;
}

MIN_TSO_SEGS(sk, tp, ca)
{
	return min_burst(sk);
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
