// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * BBR, version 3 (draft-ietf-ccwg-bbr-06), is based on version 2. Version 3 has another way of finding that the
 * pipe is full, of ending a probe for bandwidth, and of coming back from a spurious loss. Sections below are the
 * draft's, and so are the names (the bounds are inflight_longterm, inflight_shortterm and bw_shortterm; version 2
 * called them hi and lo). Fields that Linux's rate_sample lacks are derived in tcplab_bbr.h. The draft asks that
 * marks be taken for congestion (section 3.7) and leaves open how; how is described in tcplab_bbr.h too.
 */
#define CONTROL bbr3
#define PHASES(PHASE)                                                                                  \
	PHASE(STARTUP) PHASE(DRAIN) PHASE(PROBE_BW_DOWN) PHASE(PROBE_BW_CRUISE)                         \
	PHASE(PROBE_BW_REFILL) PHASE(PROBE_BW_UP) PHASE(PROBE_RTT)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(loss_threshold, 20, 1, 500, 1000, "share of a flight lost that means too much in flight") \
	PARAMETER(beta, 717, 1, 1023, 1024, "factor of the bounds after a round with loss")              \
	PARAMETER(headroom, 150, 0, 900, 1000, "share of inflight_longterm left to others while cruising") \
	PARAMETER(probe_rtt_interval, 5000, 100, 600000, 1000, "time from ProbeRTT to ProbeRTT, seconds") \
	PARAMETER(min_rtt_window, 10000, 100, 600000, 1000, "age at which the minimum RTT is replaced, seconds") \
	PARAMETER(pacing_margin, 1, 0, 50, 100, "share of the bandwidth estimate left unused by pacing")
#define GAUGES(GAUGE)                                                                                         \
	GAUGE(inflight_longterm, inflight_longterm, 1, "packets", "the bound of inflight that probing finds") \
	GAUGE(inflight_shortterm, shortterm.inflight, 1, "packets", "the bound of inflight after loss")       \
	GAUGE(ecn_alpha, ecn.alpha, ECN_UNIT, "", "share of marked packets, averaged over rounds")
#include "tcplab_cc.h"
#include "tcplab_bbr.h"
#include "tcplab_bbr_parts.h"

/* The gains of section 5.6.1. */
#define STARTUP_PACING_GAIN (UNIT * 277 / 100)
#define DRAIN_PACING_GAIN (UNIT / 2)
#define PROBE_DOWN_PACING_GAIN (UNIT * 9 / 10)
#define PROBE_UP_PACING_GAIN (UNIT * 5 / 4)
#define DEFAULT_CWND_GAIN (UNIT * 2)
#define PROBE_UP_CWND_GAIN (UNIT * 9 / 4)
#define PROBE_RTT_CWND_GAIN (UNIT / 2)

#define FULL_BW_ROUNDS 3       /* section 5.3.1.2 */
#define STARTUP_FULL_LOSS_CNT 6 /* section 5.3.1.3 */
#define DRAIN_ROUNDS 3         /* section 5.3.2 */
#define PROBE_RTT_MS 200       /* section 2.16.2: BBR.ProbeRTTDuration */

/* How the ACKs that arrive relate to probing: section 2.14. */
enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

/* BBR.undo_state; None is 0. */
enum undo_state { UNDO_NONE, UNDO_STARTUP, UNDO_PROBE_BW_UP };

struct state {
	TELEMETRY; /* its phase and gains are BBR.state, BBR.pacing_gain and BBR.cwnd_gain */

	/* Rounds, section 5.5.1. */
	u32 round_count;
	u32 next_round_delivered;
	bool round_start;

	/* Bandwidth, section 2.11: the best of the last ProbeBW cycle and of this one. */
	u64 max_bw[2];
	u64 bw;

	/* Section 2.16. */
	struct min_rtt min_rtt;
	struct probe_rtt probe_rtt;

	/* Startup and Drain, section 2.13. */
	bool full_bw_reached;
	bool full_bw_now;
	u8 full_bw_count;
	u64 full_bw;
	u32 loss_events_in_round;
	u32 drain_start_round;

	/* Congestion, section 2.10. */
	bool is_loss_in_round;
	struct latest latest;       /* BBR.bw_latest, BBR.inflight_latest */
	struct shortterm shortterm; /* BBR.bw_shortterm, BBR.inflight_shortterm */
	u32 inflight_longterm;

	/* ProbeBW, section 2.14. */
	u8 ack_phase;
	bool is_bw_probe_sample;
	bool prev_probe_too_high;
	bool prev_probe_precautionary;
	u32 rounds_since_probe_up;
	u64 bw_probe_wait; /* microseconds */
	u64 cycle_stamp;
	struct probe_up probe_up;

	/* Undo, section 2.15. */
	u8 undo_state;
	struct shortterm undo_shortterm;
	u32 undo_inflight_longterm;

	/* Window, section 5.6.4. */
	u32 prior_cwnd;
	u8 prior_ca_state;
	bool idle_restart;
	bool has_seen_rtt;

	struct aggregation aggregation; /* section 2.12 */
	struct flight flight;
	struct ecn ecn;
};

/* ---- Volumes: section 5.6.4.2 ---------------------------------------------------------------- */

TL_INLINE u64 max_bw(const struct state *ca)
{
	return max(ca->max_bw[0], ca->max_bw[1]);
}

TL_INLINE u32 bdp_multiple(const struct state *ca, u32 gain)
{
	return bdp_of(ca->bw, ca->min_rtt.rtt, gain);
}

/* Section 5.6.3, SetSendQuantum: two segments at least, whatever the rate. */
TL_INLINE u32 quantum(struct sock *sk)
{
	return max(send_quantum(sk), 2u);
}

/* QuantizationBudget, with section 5.5.8's offload budget. */
TL_INLINE u32 quantization_budget(struct sock *sk, const struct state *ca, u32 cap)
{
	cap = max(max(cap, 3 * quantum(sk)), MIN_PIPE_CWND);
	return ca->telemetry.phase == PROBE_BW_UP ? cap + 2 : cap;
}

TL_INLINE u32 inflight(struct sock *sk, const struct state *ca, u64 bw, u32 gain)
{
	return quantization_budget(sk, ca, bdp_of(bw, ca->min_rtt.rtt, gain));
}

TL_INLINE u32 max_inflight(struct sock *sk, const struct state *ca)
{
	u32 cap = bdp_multiple(ca, ca->telemetry.cwnd_gain);

	return quantization_budget(sk, ca, cap + extra_acked(&ca->aggregation));
}

/* C.inflight, of `packets`: those that the pacer still holds are not in the network yet. */
TL_INLINE u32 in_path(struct sock *sk, const struct state *ca, u32 packets)
{
	return in_network(sk, ca->bw, UNIT, packets);
}

/* Section 5.3.3.9, InflightWithHeadroom. */
TL_INLINE u32 inflight_with_headroom(struct sock *sk, const struct state *ca)
{
	return with_headroom(ca->inflight_longterm, PARAM(sk, headroom));
}

/* Section 5.3.3.8.3, TargetInflight. */
TL_INLINE u32 target_inflight(const struct tcp_sock *tp, const struct state *ca)
{
	return min(bdp_multiple(ca, UNIT), tp->snd_cwnd);
}

/* ---- The phases: sections 5.3.1 to 5.3.4 ----------------------------------------------------- */

TL_INLINE bool is_in_a_probe_bw_state(const struct state *ca)
{
	return ca->telemetry.phase >= PROBE_BW_DOWN && ca->telemetry.phase <= PROBE_BW_UP;
}

TL_INLINE bool is_probing_bw(const struct state *ca)
{
	u32 phase = ca->telemetry.phase;

	return phase == STARTUP || phase == PROBE_BW_REFILL || phase == PROBE_BW_UP;
}

/* Section 5.6.1: the gains of each. */
TL_INLINE void set_gains(struct state *ca)
{
	u32 pacing = UNIT, cwnd = DEFAULT_CWND_GAIN;

	switch (ca->telemetry.phase) {
	case STARTUP:
		pacing = STARTUP_PACING_GAIN;
		break;
	case DRAIN:
		pacing = DRAIN_PACING_GAIN;
		break;
	case PROBE_BW_DOWN:
		pacing = PROBE_DOWN_PACING_GAIN;
		break;
	case PROBE_BW_UP:
		pacing = PROBE_UP_PACING_GAIN;
		cwnd = PROBE_UP_CWND_GAIN;
		break;
	case PROBE_RTT:
		cwnd = PROBE_RTT_CWND_GAIN;
		break;
	}
	ca->telemetry.pacing_gain = pacing;
	ca->telemetry.cwnd_gain = cwnd;
}

TL_INLINE void start_round(struct tcp_sock *tp, struct state *ca)
{
	ca->next_round_delivered = tp->delivered;
}

/* Section 5.3.1.2. */
TL_INLINE void reset_full_bw(struct state *ca)
{
	ca->full_bw = 0;
	ca->full_bw_count = 0;
	ca->full_bw_now = false;
}

/* Section 5.5.10.3. */
TL_INLINE void reset_congestion_signals(struct state *ca)
{
	ca->is_loss_in_round = false;
	reset_latest(&ca->latest);
}

/* Section 5.3.3.8.3. */
TL_INLINE void pick_probe_wait(struct sock *sk, struct state *ca)
{
	ca->rounds_since_probe_up = tl_random(sk) & 1;
	ca->bw_probe_wait = 2 * USEC_PER_SEC + tl_random(sk) % USEC_PER_SEC;
}

/* Section 5.3.3.9, StartProbeBW_DOWN and those that follow. */
TL_INLINE void start_down(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	reset_congestion_signals(ca);
	ca->probe_up.acked_per_inc = NO_BOUND;
	pick_probe_wait(sk, ca);
	ca->cycle_stamp = tp->tcp_mstamp;
	ca->ack_phase = ACKS_PROBE_STOPPING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_DOWN);
}

TL_INLINE void start_refill(struct tcp_sock *tp, struct state *ca)
{
	reset_shortterm(&ca->shortterm);
	ca->probe_up.rounds = 0;
	ca->probe_up.acked = 0;
	ca->prev_probe_precautionary = false;
	ca->ack_phase = ACKS_REFILLING;
	start_round(tp, ca);
	ENTER(ca, PROBE_BW_REFILL);
}

TL_INLINE void start_up(struct tcp_sock *tp, struct state *ca, u64 delivery_rate)
{
	ca->ack_phase = ACKS_PROBE_STARTING;
	start_round(tp, ca);
	reset_full_bw(ca);
	ca->full_bw = delivery_rate;
	ENTER(ca, PROBE_BW_UP);
	raise_slope(&ca->probe_up, tp);
}

/* ---- Saving and restoring: sections 5.6.4.4 and 5.5.11 --------------------------------------- */

TL_INLINE void save_cwnd(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tl_ca_state(sk) < TCP_CA_Recovery && ca->telemetry.phase != PROBE_RTT)
		ca->prior_cwnd = tp->snd_cwnd;
	else
		ca->prior_cwnd = max(ca->prior_cwnd, tp->snd_cwnd);
}

TL_INLINE void restore_cwnd(struct tcp_sock *tp, struct state *ca)
{
	tp->snd_cwnd = max(tp->snd_cwnd, ca->prior_cwnd);
}

/* Section 5.5.11.1. */
TL_INLINE void save_state_upon_loss(struct sock *sk, struct state *ca)
{
	save_cwnd(sk, ca);
	ca->undo_state = UNDO_NONE;
	ca->undo_shortterm = ca->shortterm;
	ca->undo_inflight_longterm = ca->inflight_longterm;
}

/* Section 5.5.11.2. */
TL_INLINE void handle_spurious_loss_detection(struct tcp_sock *tp, struct state *ca)
{
	bool probing_rtt = ca->telemetry.phase == PROBE_RTT;

	ca->is_loss_in_round = false;
	reset_full_bw(ca);
	ca->shortterm.bw = max(ca->shortterm.bw, ca->undo_shortterm.bw);
	ca->shortterm.inflight = max(ca->shortterm.inflight, ca->undo_shortterm.inflight);
	ca->inflight_longterm = max(ca->inflight_longterm, ca->undo_inflight_longterm);
	if (ca->undo_state == UNDO_STARTUP && ca->telemetry.phase != STARTUP) {
		ca->full_bw_reached = false;
		if (!probing_rtt)
			ENTER(ca, STARTUP);
	} else if (ca->undo_state == UNDO_PROBE_BW_UP && ca->telemetry.phase != PROBE_BW_UP && !probing_rtt) {
		start_refill(tp, ca);
	}
	ca->undo_state = UNDO_NONE;
}

/* ---- Loss: section 5.5.10 -------------------------------------------------------------------- */

/* Section 5.5.10.2, IsInflightTooHigh, but for marks. Without SACK a round trip reveals one loss, whatever it lost. */
TL_INLINE bool has_lost_too_much(struct sock *sk, const struct state *ca)
{
	return (ca->flight.lost && !tcp_is_sack(tcp_sk(sk))) ||
	       is_loss_too_high(&ca->flight, PARAM(sk, loss_threshold));
}

TL_INLINE bool is_inflight_too_high(struct sock *sk, const struct state *ca, const struct rate_sample *rs)
{
	return has_lost_too_much(sk, ca) || is_ecn_too_high(rs);
}

TL_INLINE void handle_inflight_too_high(struct sock *sk, struct state *ca, bool app_limited, u32 tx_in_flight)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 reduced = (u64)target_inflight(tp, ca) * PARAM(sk, beta) >> 10;

	ca->prev_probe_too_high = true;
	ca->is_bw_probe_sample = false;
	if (!app_limited)
		ca->inflight_longterm = max(tx_in_flight, reduced);
	if (ca->telemetry.phase == PROBE_BW_UP) {
		ca->undo_state = UNDO_PROBE_BW_UP;
		start_down(sk, ca);
	}
}

/* NoteLoss, but for the saving of state. */
TL_INLINE void note_loss(struct tcp_sock *tp, struct state *ca)
{
	if (!ca->is_loss_in_round)
		ca->latest.round_delivered = tp->delivered;
	ca->is_loss_in_round = true;
}

/* NoteLoss and HandleLostPacket, for what was newly found to be lost. */
TL_INLINE void handle_lost_packets(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	u32 threshold = PARAM(sk, loss_threshold);

	/* The draft counts runs of lost packets; the nearest to be had are ACKs that reveal losses. */
	ca->loss_events_in_round = min(ca->loss_events_in_round + 1, 1u << 16);
	if (!ca->is_loss_in_round)
		save_state_upon_loss(sk, ca);
	note_loss(tcp_sk(sk), ca);
	if (ca->is_bw_probe_sample && has_lost_too_much(sk, ca))
		handle_inflight_too_high(sk, ca, is_app_limited(&ca->probe_rtt, rs),
					 inflight_at_loss(&ca->flight, threshold));
	ca->flight.newly_lost = 0;
}

/* Section 5.5.10.3, AdaptLowerBoundsFromCongestion: once a round, and not while probing. */
TL_INLINE void adapt_lower_bounds_from_congestion(struct sock *sk, struct state *ca)
{
	if (is_probing_bw(ca) || !(ca->is_loss_in_round || ca->ecn.in_round))
		return;
	lower_bounds(&ca->shortterm, &ca->latest, &ca->ecn, ca->is_loss_in_round, max_bw(ca),
		     tcp_sk(sk)->snd_cwnd, PARAM(sk, beta));
}

/* ---- The model: section 5.5 ------------------------------------------------------------------ */

/* Section 5.5.1, UpdateRound. */
TL_INLINE void update_round(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs)
{
	ca->round_start = is_valid(rs) && !before(rs->prior_delivered, ca->next_round_delivered);
	if (!ca->round_start)
		return;
	start_round(tp, ca);
	ca->round_count++;
	ca->rounds_since_probe_up++;
}

/* Section 5.5.5, UpdateMaxBw. */
TL_INLINE void update_max_bw(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs, u64 delivery_rate)
{
	update_round(tp, ca, rs);
	if (delivery_rate && (!is_app_limited(&ca->probe_rtt, rs) || delivery_rate >= max_bw(ca)))
		ca->max_bw[1] = max(ca->max_bw[1], delivery_rate);
}

/* Section 5.5.6; a cycle without a sample is none. */
TL_INLINE void advance_max_bw_filter(struct state *ca)
{
	if (!ca->max_bw[1])
		return;
	ca->max_bw[0] = ca->max_bw[1];
	ca->max_bw[1] = 0;
}

/* Section 5.5.10.3. */
TL_INLINE void update_congestion_signals(struct sock *sk, struct state *ca, const struct rate_sample *rs,
					 u64 delivery_rate)
{
	struct tcp_sock *tp = tcp_sk(sk);

	update_max_bw(tp, ca, rs, delivery_rate);
	update_ecn(&ca->ecn, tp, ca->round_start);
	if (!ca->latest.round_start)
		return;
	adapt_lower_bounds_from_congestion(sk, ca);
	ca->is_loss_in_round = false;
	ca->ecn.in_round = false;
}

/* Section 5.5.9; the ten rounds' maximum as two windows of five. In Startup a round's is remembered. */
TL_INLINE void update_ack_aggregation(struct tcp_sock *tp, struct state *ca, const struct rate_sample *rs)
{
	if (rs->acked_sacked && is_valid(rs))
		update_aggregation(&ca->aggregation, tp, tp->tcp_mstamp, ca->bw, rs->acked_sacked,
				   ca->round_start, ca->full_bw_reached ? AGGREGATION_ROUNDS : 1);
}

/* ---- Startup and Drain: sections 5.3.1 and 5.3.2 --------------------------------------------- */

/* Section 5.3.1.2, CheckFullBWReached. */
TL_INLINE void check_full_bw_reached(struct state *ca, const struct rate_sample *rs, u64 delivery_rate)
{
	if (ca->full_bw_now || !ca->round_start || is_app_limited(&ca->probe_rtt, rs))
		return;
	if (delivery_rate >= ca->full_bw * 5 / 4) {
		reset_full_bw(ca);
		ca->full_bw = delivery_rate;
		return;
	}
	ca->full_bw_now = ++ca->full_bw_count >= FULL_BW_ROUNDS;
	if (ca->full_bw_now)
		ca->full_bw_reached = true;
}

/* Section 5.3.1.3, CheckStartupHighLoss; marks in most of two rounds say the same. */
TL_INLINE void check_startup_high_loss(struct sock *sk, struct state *ca)
{
	bool high = false;

	/* Without SACK any loss in fast recovery. */
	if (tl_ca_state(sk) == TCP_CA_Recovery && !tcp_is_sack(tcp_sk(sk)))
		high = ca->loss_events_in_round > 0;
	else if (tl_ca_state(sk) == TCP_CA_Recovery && ca->latest.round_start)
		high = ca->loss_events_in_round >= STARTUP_FULL_LOSS_CNT && has_lost_too_much(sk, ca);
	if (ca->round_start && ca->ecn.rounds_too_high >= ECN_STARTUP_ROUNDS)
		high = true;
	if (high && ca->telemetry.phase == STARTUP && !ca->full_bw_reached) {
		ca->undo_state = UNDO_STARTUP;
		ca->full_bw_reached = true;
		ca->full_bw_now = true;
		ca->inflight_longterm = max(bdp_multiple(ca, UNIT), ca->latest.inflight);
	}
	if (ca->latest.round_start)
		ca->loss_events_in_round = 0;
}

/* Section 5.3.1.1, CheckStartupDone, and section 5.3.2, CheckDrainDone. */
TL_INLINE void check_startup_and_drain_done(struct sock *sk, struct state *ca)
{
	check_startup_high_loss(sk, ca);
	if (ca->telemetry.phase == STARTUP && ca->full_bw_reached) {
		ENTER(ca, DRAIN);
		ca->drain_start_round = ca->round_count;
	}
	if (ca->telemetry.phase != DRAIN)
		return;
	if (in_path(sk, ca, tcp_packets_in_flight(tcp_sk(sk))) <= inflight(sk, ca, ca->bw, UNIT) ||
	    ca->round_count - ca->drain_start_round > DRAIN_ROUNDS)
		start_down(sk, ca);
}

/* ---- ProbeBW: section 5.3.3 ------------------------------------------------------------------ */

/* AdaptLongTermModel: true if it decided on a transition. */
TL_INLINE bool adapt_longterm_model(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->ack_phase == ACKS_PROBE_STARTING && ca->round_start)
		ca->ack_phase = ACKS_PROBE_FEEDBACK;
	if (ca->ack_phase == ACKS_PROBE_STOPPING && ca->round_start) {
		ca->is_bw_probe_sample = false;
		ca->ack_phase = ACKS_INIT;
		if (is_in_a_probe_bw_state(ca) && !is_app_limited(&ca->probe_rtt, rs))
			advance_max_bw_filter(ca);
		/* Section 5.3.3.6: the precautionary probe did no harm, so now a whole one. */
		if (is_in_a_probe_bw_state(ca) && ca->prev_probe_precautionary && !ca->prev_probe_too_high) {
			start_refill(tp, ca);
			return true;
		}
	}

	if (is_inflight_too_high(sk, ca, rs)) {
		/* Lost packets were dealt with where they were revealed; marks are here. */
		if (ca->is_bw_probe_sample && is_ecn_too_high(rs))
			handle_inflight_too_high(sk, ca, is_app_limited(&ca->probe_rtt, rs), ca->flight.tx_in_flight);
		return false;
	}
	if (ca->inflight_longterm == NO_BOUND)
		return false;
	ca->inflight_longterm = max(ca->inflight_longterm, ca->flight.tx_in_flight);
	if (ca->telemetry.phase == PROBE_BW_UP)
		ca->inflight_longterm = probe_upward(&ca->probe_up, tp, ca->inflight_longterm, rs->acked_sacked,
						     ca->round_start);
	return false;
}

/* Section 5.3.3.8.3, IsTimeToProbeBW: after 2 to 3 s, or when Reno would have had a loss. */
TL_INLINE bool is_time_to_probe_bw(struct tcp_sock *tp, struct state *ca)
{
	return tp->tcp_mstamp > ca->cycle_stamp + ca->bw_probe_wait ||
	       ca->rounds_since_probe_up >= min(target_inflight(tp, ca), 63u);
}

TL_INLINE bool is_time_to_cruise(struct sock *sk, const struct state *ca, u32 in_flight)
{
	return in_flight <= inflight_with_headroom(sk, ca) && in_flight <= inflight(sk, ca, max_bw(ca), UNIT);
}

TL_INLINE bool is_time_to_go_down(struct tcp_sock *tp, struct state *ca, u32 in_flight, u64 delivery_rate)
{
	if (ca->prev_probe_too_high && in_flight >= ca->inflight_longterm) {
		ca->prev_probe_precautionary = true;
		return true;
	}
	if (tl_cwnd_limited(tp) && tp->snd_cwnd >= ca->inflight_longterm) {
		/* The bandwidth is limited by inflight_longterm, so that it does not rise proves nothing. */
		reset_full_bw(ca);
		ca->full_bw = delivery_rate;
		return false;
	}
	return ca->full_bw_now;
}

/* Section 5.3.3.9, UpdateProbeBWCyclePhase. */
TL_INLINE void update_probe_bw_cycle_phase(struct sock *sk, struct state *ca, const struct rate_sample *rs,
					   u64 delivery_rate)
{
	struct tcp_sock *tp = tcp_sk(sk);
	/* Before this ACK, or else it would never reach a window that bounds it. */
	u32 in_flight = in_path(sk, ca, rs->prior_in_flight);

	if (!ca->full_bw_reached || adapt_longterm_model(sk, ca, rs))
		return;

	switch (ca->telemetry.phase) {
	case PROBE_BW_DOWN:
		if (is_time_to_probe_bw(tp, ca))
			start_refill(tp, ca);
		else if (is_time_to_cruise(sk, ca, in_flight))
			ENTER(ca, PROBE_BW_CRUISE);
		break;
	case PROBE_BW_CRUISE:
		if (is_time_to_probe_bw(tp, ca))
			start_refill(tp, ca);
		break;
	case PROBE_BW_REFILL:
		/* A round after refilling, the samples show what probing does. */
		if (ca->round_start) {
			ca->is_bw_probe_sample = true;
			start_up(tp, ca, delivery_rate);
		}
		break;
	case PROBE_BW_UP:
		if (is_time_to_go_down(tp, ca, in_flight, delivery_rate)) {
			ca->prev_probe_too_high = false;
			start_down(sk, ca);
		}
		break;
	}
}

/* ---- ProbeRTT: section 5.3.4 ----------------------------------------------------------------- */

/* Section 5.6.4.5. */
TL_INLINE u32 probe_rtt_cwnd(const struct state *ca)
{
	return max(bdp_multiple(ca, PROBE_RTT_CWND_GAIN), MIN_PIPE_CWND);
}

/* Section 5.3.4.4, ExitProbeRTT. */
TL_INLINE void exit_probe_rtt(struct sock *sk, struct state *ca)
{
	reset_shortterm(&ca->shortterm);
	if (ca->full_bw_reached) {
		start_down(sk, ca);
		ENTER(ca, PROBE_BW_CRUISE);
	} else {
		ENTER(ca, STARTUP);
	}
}

/* Section 5.3.4.3. */
TL_INLINE void check_probe_rtt_done(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!is_probe_rtt_over(&ca->probe_rtt, tp->tcp_mstamp))
		return;
	ca->min_rtt.probe_stamp = tp->tcp_mstamp;
	restore_cwnd(tp, ca);
	exit_probe_rtt(sk, ca);
}

TL_INLINE void handle_probe_rtt(struct sock *sk, struct state *ca)
{
	if (probe_rtt_round_done(&ca->probe_rtt, tcp_sk(sk), probe_rtt_cwnd(ca), PROBE_RTT_MS * USEC_PER_MSEC,
				 ca->round_start, &ca->next_round_delivered))
		check_probe_rtt_done(sk, ca);
}

TL_INLINE void check_probe_rtt(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	if (ca->telemetry.phase != PROBE_RTT && ca->min_rtt.expired && !ca->idle_restart) {
		/* In the section's order, which makes SaveCwnd keep what an earlier recovery saved if larger. */
		ENTER(ca, PROBE_RTT);
		set_gains(ca);
		save_cwnd(sk, ca);
		ca->probe_rtt.done_stamp = 0;
		ca->ack_phase = ACKS_PROBE_STOPPING;
		start_round(tcp_sk(sk), ca);
	}
	if (ca->telemetry.phase == PROBE_RTT)
		handle_probe_rtt(sk, ca);
	if (rs->delivered > 0)
		ca->idle_restart = false;
}

/* ---- Control parameters: section 5.6 --------------------------------------------------------- */

/* Section 5.6.2, InitPacingRate. */
TL_INLINE void init_pacing_rate(struct sock *sk, struct state *ca)
{
	u64 nominal = initial_bandwidth(tcp_sk(sk));

	ca->has_seen_rtt = tcp_sk(sk)->srtt_us != 0;
	sk->sk_pacing_rate = pacing_rate_of(sk, nominal, STARTUP_PACING_GAIN, PARAM(sk, pacing_margin));
}

/* SetPacingRateWithGain. */
TL_INLINE void set_pacing_rate(struct sock *sk, struct state *ca, u32 gain)
{
	u64 rate = pacing_rate_of(sk, ca->bw, gain, PARAM(sk, pacing_margin));

	if (!ca->has_seen_rtt && tcp_sk(sk)->srtt_us)
		init_pacing_rate(sk, ca);
	if (ca->full_bw_reached || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

/* Section 5.6.4.7, BoundCwndForModel. */
TL_INLINE u32 bound_cwnd_for_model(struct sock *sk, const struct state *ca, u32 cwnd)
{
	u32 phase = ca->telemetry.phase, cap = NO_BOUND;

	if (phase == PROBE_RTT || phase == PROBE_BW_CRUISE)
		cap = inflight_with_headroom(sk, ca);
	else if (is_in_a_probe_bw_state(ca))
		cap = ca->inflight_longterm;
	cap = max(min(cap, ca->shortterm.inflight), MIN_PIPE_CWND);
	return min(cwnd, cap);
}

/* Section 5.6.4.6, SetCwnd. */
TL_INLINE void set_cwnd(struct sock *sk, struct state *ca, u32 newly_acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd, maximum = max_inflight(sk, ca);

	if (ca->full_bw_reached)
		cwnd = min(cwnd + newly_acked, maximum);
	else if (cwnd < maximum || tp->delivered < TCP_INIT_CWND)
		cwnd += newly_acked;
	cwnd = max(cwnd, MIN_PIPE_CWND);
	if (ca->telemetry.phase == PROBE_RTT)
		cwnd = min(cwnd, probe_rtt_cwnd(ca));
	cwnd = bound_cwnd_for_model(sk, ca, cwnd);
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
}

/* Section 5.6.4.4: a recovery that is over gives the window back. */
TL_INLINE void leave_recovery(struct sock *sk, struct state *ca)
{
	u8 was = ca->prior_ca_state, is = tl_ca_state(sk);

	if (is < TCP_CA_Recovery && was >= TCP_CA_Recovery)
		restore_cwnd(tcp_sk(sk), ca);
	ca->prior_ca_state = is;
}

/* ---- The operations -------------------------------------------------------------------------- */

/* Section 5.2.1, OnInit. */
INIT(sk, tp, ca)
{
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	init_min_rtt(&ca->min_rtt, tp);
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	ca->inflight_longterm = NO_BOUND;
	ca->probe_up.acked_per_inc = NO_BOUND;
	reset_shortterm(&ca->shortterm);
	init_flight(&ca->flight, tp);
	init_ecn(&ca->ecn, tp);
	set_gains(ca);
	init_pacing_rate(sk, ca);
	tl_request_pacing(sk);
}

/* Section 5.2.3, UpdateOnACK, after section 5.2.4's steps for what it reveals as lost. */
CONG_CONTROL(sk, tp, ca, rs)
{
	u64 delivery_rate = is_valid(rs) ? bandwidth_of((u32)rs->delivered, rs->interval_us) : 0;

	leave_recovery(sk, ca);
	if (derive_flight(&ca->flight, sk, rs))
		handle_lost_packets(sk, ca, rs);
	/* Section 5.5.10.3, UpdateLatestDeliverySignals. */
	update_latest(&ca->latest, tp, rs, delivery_rate);
	update_congestion_signals(sk, ca, rs, delivery_rate);
	update_ack_aggregation(tp, ca, rs);
	check_full_bw_reached(ca, rs, delivery_rate);
	check_startup_and_drain_done(sk, ca);
	update_probe_bw_cycle_phase(sk, ca, rs, delivery_rate);
	/* Section 5.3.4.3, UpdateMinRTT. */
	update_min_rtt(&ca->min_rtt, tp->tcp_mstamp, rs, PARAM(sk, probe_rtt_interval), PARAM(sk, min_rtt_window));
	check_probe_rtt(sk, ca, rs);
	advance_latest(&ca->latest, rs, delivery_rate);
	/* BoundBWForModel. */
	ca->bw = min(max_bw(ca), ca->shortterm.bw);
	set_gains(ca);

	set_pacing_rate(sk, ca, ca->telemetry.pacing_gain);
	set_cwnd(sk, ca, rs->acked_sacked);
	remember_losses(&ca->flight, tp);
	publish(&ca->telemetry, tp, ca->bw, ca->min_rtt.rtt);
}

/* Section 5.4.1, HandleRestartFromIdle. */
CWND_EVENT(sk, tp, ca, event)
{
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = true;
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	if (is_in_a_probe_bw_state(ca))
		set_pacing_rate(sk, ca, UNIT);
	else if (ca->telemetry.phase == PROBE_RTT)
		check_probe_rtt_done(sk, ca);
}

/* Section 5.6.4.4, OnEnterFastRecovery and OnEnterRTO; there is no threshold. */
SSTHRESH(sk, tp, ca)
{
	save_state_upon_loss(sk, ca);
	return tp->snd_ssthresh;
}

SET_STATE(sk, tp, ca, state)
{
	if (state != TCP_CA_Loss)
		return;
	/* SSTHRESH has saved the state. */
	note_loss(tp, ca);
	ca->prior_ca_state = TCP_CA_Loss;
}

/* Section 5.2.5. */
UNDO_CWND(sk, tp, ca)
{
	handle_spurious_loss_detection(tp, ca);
	return max(tp->snd_cwnd, ca->prior_cwnd);
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
