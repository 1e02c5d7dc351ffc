// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): paces at the bandwidth that was measured to
 * be delivered, and bounds what is in flight by that bandwidth times the minimum round-trip time. Sections below
 * are the draft's, and so are the names. Additions of Linux 6.x to the draft are here too, and named as such. They
 * are compensation for aggregated ACKs, the estimate of a policer's rate, the count of packets still waiting to
 * be paced, and a pacing rate 1 % below the estimate.
 */
#define CONTROL bbr1
#define PHASES(PHASE) PHASE(STARTUP) PHASE(DRAIN) PHASE(PROBE_BW) PHASE(PROBE_RTT)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(pacing_margin, 1, 0, 50, 100, "share of the bandwidth estimate left unused by pacing")  \
	PARAMETER(cwnd_gain, 512, 256, 2048, 256, "window in ProbeBW, in bandwidth-delay products")       \
	PARAMETER(min_rtt_window, 10000, 100, 600000, 1000, "age of the minimum RTT that calls for ProbeRTT, seconds") \
	PARAMETER(probe_rtt_duration, 200, 0, 10000, 1000, "minimum stay in ProbeRTT, seconds")             \
	PARAMETER(policer, 1, 0, 1, 1, "1: recognise a policer and keep to its rate")                    \
	PARAMETER(ack_aggregation, 1, 0, 1, 1, "1: enlarge the window for ACKs that come in bursts")
#define GAUGES(GAUGE)                                                                               \
	GAUGE(cycle_index, cycle_index, 1, "", "phase of ProbeBW's gain cycle: 0 probes, 1 drains") \
	GAUGE(policed, policed, 1, "", "1: keeps to the rate of a policer that it has recognised")
#include "tcplab_cc.h"
#include "tcplab_bbr.h"
#include "tcplab_bbr_parts.h"

#define HIGH_GAIN (UNIT * 2885 / 1000 + 1) /* section 4.3.2.1: 2 / ln 2 */
#define DRAIN_GAIN (UNIT * 1000 / 2885)    /* section 4.3.3 */
#define FULL_BW_GROWTH (UNIT * 5 / 4)      /* section 4.3.2.2 */
#define FULL_BW_ROUNDS 3
#define BTL_BW_ROUNDS 10    /* section 2: BtlBwFilterLen */
#define GAIN_CYCLE_LENGTH 8 /* section 4.3.4.1 */

/* Linux: ACK aggregation is remembered for 5 to 10 rounds, and worth 100 ms of data at most. */
#define MAX_AGGREGATION_US 100000

/* Linux: a policer shows in two intervals of 4 to 16 rounds, each with 20 % loss, and at the same rate. */
#define POLICER_ROUNDS 4
#define MAX_POLICER_ROUNDS 16
#define POLICER_LOSS 50          /* in 1/256 */
#define POLICER_SAME_RATIO 8     /* rates within 1/8 of each other, */
#define POLICER_SAME_RATE 500    /* or within 500 byte/s */
#define POLICER_KEEP_ROUNDS 48

/* A value and the round it was seen in. */
struct in_round {
	u64 value;
	u32 round;
};

struct state {
	TELEMETRY; /* its phase and gains are BBR.state, BBR.pacing_gain and BBR.cwnd_gain */

	struct in_round btl_bw[3]; /* BBR.BtlBwFilter: best, and the best since, twice */
	u32 round_count;
	u32 next_round_delivered;
	bool round_start;

	u32 rt_prop;       /* microseconds, all ones: none yet */
	u64 rt_prop_stamp; /* microseconds */
	struct probe_rtt probe_rtt;

	bool filled_pipe;
	u32 full_bw_count;
	u64 full_bw;

	u32 cycle_index;
	u64 cycle_stamp;

	struct recovery recovery; /* section 4.2.3.4 */
	bool idle_restart;
	bool has_seen_rtt;

	struct aggregation aggregation;

	/* Policer. */
	bool policer_sampling;
	bool policed;
	u32 policer_rounds;
	u32 policer_delivered; /* counts at the interval's start */
	u32 policer_lost;
	u64 policer_stamp; /* microseconds */
	u64 policed_bw;
};

/* ---- The bandwidth filter: section 4.1.1 ----------------------------------------------------- */

/*
 * The maximum over a window of rounds, by Kathleen Nichols' method as Linux's win_minmax has it. Three samples,
 * each the best of what came after the one before, are moved up as they grow too old.
 */
TL_INLINE void filter_max(struct in_round best[3], u32 window, u32 round, u64 value)
{
	struct in_round new = { value, round };
	u32 age;

	if (value >= best[0].value || round - best[2].round > window) {
		best[0] = best[1] = best[2] = new;
		return;
	}
	if (value >= best[1].value)
		best[1] = best[2] = new;
	else if (value >= best[2].value)
		best[2] = new;

	age = round - best[0].round;
	if (age > window) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = new;
		if (round - best[0].round > window) {
			best[0] = best[1];
			best[1] = best[2];
		}
	} else if (best[1].round == best[0].round && age > window / 4) {
		/* A quarter of the window without a second best: this must do. */
		best[1] = best[2] = new;
	} else if (best[2].round == best[1].round && age > window / 2) {
		best[2] = new;
	}
}

/* The delivery rate of the network: the filter's maximum, or a policer's rate. */
TL_INLINE u64 bandwidth(const struct state *ca)
{
	return ca->policed ? ca->policed_bw : ca->btl_bw[0].value;
}

/* ---- Control parameters: section 4.2 --------------------------------------------------------- */

TL_INLINE u64 pacing_rate(struct sock *sk, u64 bw, u32 gain)
{
	return pacing_rate_of(sk, bw, gain, PARAM(sk, pacing_margin));
}

/* Section 4.2.1, BBRInitPacingRate. */
TL_INLINE void init_pacing_rate(struct sock *sk, struct state *ca)
{
	ca->has_seen_rtt = tcp_sk(sk)->srtt_us != 0;
	sk->sk_pacing_rate = pacing_rate(sk, initial_bandwidth(tcp_sk(sk)), HIGH_GAIN);
}

/* Section 4.2.1, BBRSetPacingRateWithGain: until the pipe was full, the rate only rises. */
TL_INLINE void set_pacing_rate(struct sock *sk, struct state *ca, u32 gain)
{
	u64 rate = pacing_rate(sk, bandwidth(ca), gain);

	if (!ca->has_seen_rtt && tcp_sk(sk)->srtt_us)
		init_pacing_rate(sk, ca);
	if (ca->filled_pipe || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

/* Section 4.2.3.2: gain * BDP. */
TL_INLINE u32 bdp(const struct state *ca, u64 bw, u32 gain)
{
	return bdp_of(bw, ca->rt_prop, gain);
}

/*
 * Section 4.2.3.2: three quanta more, for both ends' offloads. Linux: an even number, so that the last ACK is not
 * delayed; and two more while probing, so that a small BDP is exceeded at all.
 */
TL_INLINE u32 with_quanta(struct sock *sk, const struct state *ca, u32 packets)
{
	packets += 3 * send_quantum(sk);
	packets = (packets + 1) & ~1u;
	if (ca->telemetry.phase == PROBE_BW && ca->cycle_index == 0)
		packets += 2;
	return packets;
}

/* Section 4.2.3.2, BBRInflight. */
TL_INLINE u32 inflight(struct sock *sk, const struct state *ca, u32 gain)
{
	return with_quanta(sk, ca, bdp(ca, ca->btl_bw[0].value, gain));
}

/* Linux: packets in flight, but for those that the pacer still holds. */
TL_INLINE u32 in_path(struct sock *sk, const struct state *ca, u32 packets)
{
	return in_network(sk, bandwidth(ca), ca->telemetry.pacing_gain, packets);
}

/* Linux: what ACKs that come in bursts add to the window. */
TL_INLINE u32 aggregation_allowance(struct sock *sk, const struct state *ca)
{
	u64 maximum = bandwidth(ca) * MAX_AGGREGATION_US >> BW_SHIFT;

	if (!PARAM(sk, ack_aggregation) || !ca->filled_pipe)
		return 0;
	return min((u64)extra_acked(&ca->aggregation), maximum);
}

/* Section 4.2.3.6, BBRSetCwnd, with section 4.2.3.5 at its end. */
TL_INLINE void set_cwnd(struct sock *sk, struct state *ca, u32 acked, s32 losses)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	if (acked) {
		cwnd = modulate_cwnd_for_recovery(&ca->recovery, sk, &ca->next_round_delivered, cwnd, acked,
						  losses);
		if (!ca->recovery.packet_conservation) {
			u32 target = bdp(ca, bandwidth(ca), ca->telemetry.cwnd_gain);

			target = with_quanta(sk, ca, target + aggregation_allowance(sk, ca));
			if (ca->filled_pipe)
				cwnd = min(cwnd + acked, target);
			else if (cwnd < target || tp->delivered < TCP_INIT_CWND)
				cwnd += acked;
			cwnd = max(cwnd, MIN_PIPE_CWND);
		}
	}
	cwnd = min(cwnd, tp->snd_cwnd_clamp);
	if (ca->telemetry.phase == PROBE_RTT)
		cwnd = min(cwnd, MIN_PIPE_CWND);
	tp->snd_cwnd = cwnd;
}

/* ---- State machine: section 4.3 -------------------------------------------------------------- */

/* Section 4.3.4.3, BBRAdvanceCyclePhase. */
TL_INLINE void advance_cycle_phase(struct tcp_sock *tp, struct state *ca)
{
	ca->cycle_stamp = tp->delivered_mstamp;
	ca->cycle_index = (ca->cycle_index + 1) & (GAIN_CYCLE_LENGTH - 1);
}

/* Section 4.3.4.3, BBREnterProbeBW: any phase but the draining one, section 4.3.4.2. */
TL_INLINE void enter_probe_bw(struct sock *sk, struct state *ca)
{
	ENTER(ca, PROBE_BW);
	ca->cycle_index = GAIN_CYCLE_LENGTH - 1 - tl_random(sk) % (GAIN_CYCLE_LENGTH - 1);
	advance_cycle_phase(tcp_sk(sk), ca);
}

/* Section 4.3.5, BBRExitProbeRTT. */
TL_INLINE void exit_probe_rtt(struct sock *sk, struct state *ca)
{
	if (ca->filled_pipe)
		enter_probe_bw(sk, ca);
	else
		ENTER(ca, STARTUP);
}

/* The gains that go with the state and, in ProbeBW, with the phase of the cycle: section 4.3.4.1. */
TL_INLINE void set_gains(struct sock *sk, struct state *ca)
{
	u32 pacing = UNIT, cwnd = UNIT;

	switch (ca->telemetry.phase) {
	case STARTUP:
		pacing = cwnd = HIGH_GAIN;
		break;
	case DRAIN:
		pacing = DRAIN_GAIN;
		cwnd = HIGH_GAIN;
		break;
	case PROBE_BW:
		if (!ca->policed && ca->cycle_index == 0)
			pacing = UNIT * 5 / 4;
		else if (!ca->policed && ca->cycle_index == 1)
			pacing = UNIT * 3 / 4;
		cwnd = PARAM(sk, cwnd_gain);
		break;
	}
	ca->telemetry.pacing_gain = pacing;
	ca->telemetry.cwnd_gain = cwnd;
}

/* ---- Linux's estimate of a policer ----------------------------------------------------------- */

TL_INLINE void policer_begin_interval(struct tcp_sock *tp, struct state *ca)
{
	ca->policer_stamp = tp->delivered_mstamp;
	ca->policer_delivered = tp->delivered;
	ca->policer_lost = tp->lost;
	ca->policer_rounds = 0;
}

TL_INLINE void policer_forget(struct tcp_sock *tp, struct state *ca)
{
	ca->policed = false;
	ca->policed_bw = 0;
	ca->policer_sampling = false;
	policer_begin_interval(tp, ca);
}

TL_INLINE void policer_interval_done(struct tcp_sock *tp, struct state *ca, u64 bw)
{
	u64 last = ca->policed_bw;
	u64 difference = bw > last ? bw - last : last - bw;

	if (last && (difference * POLICER_SAME_RATIO <= last ||
		     bytes_per_second(tp, difference, UNIT, 1) <= POLICER_SAME_RATE)) {
		ca->policed_bw = (bw + last) / 2;
		ca->policed = true;
		ca->policer_rounds = 0;
		ca->telemetry.pacing_gain = UNIT;
		return;
	}
	ca->policed_bw = bw;
	policer_begin_interval(tp, ca);
}

/*
 * A token bucket lets a burst through and then loses all that exceeds its rate, which a maximum filter does not
 * see. So the mean rate between two losses is taken where loss is heavy, and kept to when it comes out the same
 * twice.
 */
TL_INLINE void update_policer(struct sock *sk, struct state *ca, bool losses, bool app_limited)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered, lost;
	u64 us;

	if (!PARAM(sk, policer))
		return;
	if (ca->policed) {
		if (ca->telemetry.phase == PROBE_BW && ca->round_start &&
		    ++ca->policer_rounds >= POLICER_KEEP_ROUNDS) {
			policer_forget(tp, ca);
			enter_probe_bw(sk, ca);
		}
		return;
	}

	/* With the first loss the bucket is empty. */
	if (!ca->policer_sampling) {
		if (!losses)
			return;
		policer_begin_interval(tp, ca);
		ca->policer_sampling = true;
	}
	if (app_limited) {
		policer_forget(tp, ca);
		return;
	}
	if (ca->round_start)
		ca->policer_rounds++;
	if (ca->policer_rounds < POLICER_ROUNDS)
		return;
	if (ca->policer_rounds > MAX_POLICER_ROUNDS) {
		policer_forget(tp, ca);
		return;
	}
	/* The interval ends with a loss too, when the bucket is empty again. */
	if (!losses)
		return;
	lost = tp->lost - ca->policer_lost;
	delivered = tp->delivered - ca->policer_delivered;
	if (!delivered || (u64)lost * UNIT < (u64)delivered * POLICER_LOSS)
		return;
	us = tp->delivered_mstamp - ca->policer_stamp;
	if (us < USEC_PER_MSEC)
		return;
	policer_interval_done(tp, ca, bandwidth_of(delivered, us));
}

/* ---- The model: section 4.1, and the transitions it leads to --------------------------------- */

/* Section 4.1.1.3, BBRUpdateRound, and section 4.1.1.5, BBRUpdateBtlBw. */
TL_INLINE void update_btl_bw(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 bw;

	ca->round_start = false;
	if (!is_valid(rs))
		return;
	if (!before(rs->prior_delivered, ca->next_round_delivered)) {
		ca->next_round_delivered = tp->delivered;
		ca->round_count++;
		ca->round_start = true;
		ca->recovery.packet_conservation = false;
	}
	update_policer(sk, ca, rs->losses > 0, is_app_limited(&ca->probe_rtt, rs));

	/* Section 4.1.1.4: a sample the application limited counts only where it shows more bandwidth. */
	bw = bandwidth_of((u32)rs->delivered, rs->interval_us);
	if (!is_app_limited(&ca->probe_rtt, rs) || bw >= ca->btl_bw[0].value)
		filter_max(ca->btl_bw, BTL_BW_ROUNDS, ca->round_count, bw);
}

/* Linux: packets acknowledged beyond what the bandwidth explains. */
TL_INLINE void update_ack_aggregation(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (PARAM(sk, ack_aggregation) && rs->acked_sacked && is_valid(rs))
		update_aggregation(&ca->aggregation, tp, tp->delivered_mstamp, bandwidth(ca), rs->acked_sacked,
				   ca->round_start, AGGREGATION_ROUNDS);
}

/* Section 4.3.4.3, BBRIsNextCyclePhase and BBRCheckCyclePhase. */
TL_INLINE void check_cycle_phase(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 gain = ca->telemetry.pacing_gain;
	bool next = tp->delivered_mstamp > ca->cycle_stamp + ca->rt_prop;

	if (ca->telemetry.phase != PROBE_BW)
		return;
	if (gain > UNIT)
		next = next && (rs->losses > 0 ||
				in_path(sk, ca, rs->prior_in_flight) >= inflight(sk, ca, gain));
	else if (gain < UNIT)
		next = next || in_path(sk, ca, rs->prior_in_flight) <= inflight(sk, ca, UNIT);
	if (next)
		advance_cycle_phase(tp, ca);
}

/* Section 4.3.2.2, BBRCheckFullPipe. */
TL_INLINE void check_full_pipe(struct state *ca, const struct rate_sample *rs)
{
	u64 bw = ca->btl_bw[0].value;

	if (ca->filled_pipe || !ca->round_start || is_app_limited(&ca->probe_rtt, rs))
		return;
	if (bw >= ca->full_bw * FULL_BW_GROWTH / UNIT) {
		ca->full_bw = bw;
		ca->full_bw_count = 0;
		return;
	}
	if (++ca->full_bw_count >= FULL_BW_ROUNDS)
		ca->filled_pipe = true;
}

/* Section 4.3.3, BBRCheckDrain. */
TL_INLINE void check_drain(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->telemetry.phase == STARTUP && ca->filled_pipe) {
		ENTER(ca, DRAIN);
		/* Linux: published as the threshold, though nothing here goes by it. */
		tp->snd_ssthresh = inflight(sk, ca, UNIT);
	}
	if (ca->telemetry.phase == DRAIN &&
	    in_path(sk, ca, tcp_packets_in_flight(tp)) <= inflight(sk, ca, UNIT))
		enter_probe_bw(sk, ca);
}

/* Section 4.3.5: 200 ms and a round are over. */
TL_INLINE void check_probe_rtt_done(struct sock *sk, struct state *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!is_probe_rtt_over(&ca->probe_rtt, tp->tcp_mstamp))
		return;
	ca->rt_prop_stamp = tp->tcp_mstamp;
	/* Section 4.2.3.4, BBRRestoreCwnd. */
	tp->snd_cwnd = max(tp->snd_cwnd, ca->recovery.prior_cwnd);
	exit_probe_rtt(sk, ca);
}

/* Section 4.3.5, BBRHandleProbeRTT. */
TL_INLINE void handle_probe_rtt(struct sock *sk, struct state *ca)
{
	u64 duration = (u64)PARAM(sk, probe_rtt_duration) * USEC_PER_MSEC;

	if (probe_rtt_round_done(&ca->probe_rtt, tcp_sk(sk), MIN_PIPE_CWND, duration, ca->round_start,
				 &ca->next_round_delivered))
		check_probe_rtt_done(sk, ca);
}

/* Section 4.1.2.3, BBRUpdateRTprop, and section 4.3.5, BBRCheckProbeRTT. */
TL_INLINE void update_rt_prop(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 window = (u64)PARAM(sk, min_rtt_window) * USEC_PER_MSEC;
	bool expired = tp->tcp_mstamp > ca->rt_prop_stamp + window;

	/*
	 * Linux: an equal RTT, which the draft takes too, leaves the estimate's age as it is; and a delayed ACK is a
	 * poor replacement for an expired one.
	 */
	if (rs->rtt_us >= 0 && (rs->rtt_us < ca->rt_prop || (expired && !rs->is_ack_delayed))) {
		ca->rt_prop = rs->rtt_us;
		ca->rt_prop_stamp = tp->tcp_mstamp;
	}
	if (expired && !ca->idle_restart && ca->telemetry.phase != PROBE_RTT) {
		/* In the section's order, which makes BBRSaveCwnd keep what an earlier recovery saved if larger. */
		ENTER(ca, PROBE_RTT);
		save_prior_cwnd(&ca->recovery, tp, true);
		ca->probe_rtt.done_stamp = 0;
	}
	if (ca->telemetry.phase == PROBE_RTT)
		handle_probe_rtt(sk, ca);
	if (rs->delivered > 0)
		ca->idle_restart = false;
}

/* ---- The operations -------------------------------------------------------------------------- */

/* Section 4.3.1, BBRInit. */
INIT(sk, tp, ca)
{
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	ca->recovery.prior_ca_state = TCP_CA_Open;
	/* Linux: the first round begins now, also where the control is chosen in mid-connection. */
	ca->next_round_delivered = tp->delivered;
	ca->rt_prop = tcp_min_rtt(tp);
	ca->rt_prop_stamp = tp->tcp_mstamp;
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	policer_forget(tp, ca);
	set_gains(sk, ca);
	init_pacing_rate(sk, ca);
	tl_request_pacing(sk);
}

/* Section 3.5.2, BBRUpdateOnACK. */
CONG_CONTROL(sk, tp, ca, rs)
{
	update_btl_bw(sk, ca, rs);
	update_ack_aggregation(sk, ca, rs);
	check_cycle_phase(sk, ca, rs);
	check_full_pipe(ca, rs);
	check_drain(sk, ca);
	update_rt_prop(sk, ca, rs);
	set_gains(sk, ca);

	set_pacing_rate(sk, ca, ca->telemetry.pacing_gain);
	set_cwnd(sk, ca, rs->acked_sacked, rs->losses);

	publish(&ca->telemetry, tp, bandwidth(ca), ca->rt_prop);
}

/* Section 4.3.4.4, BBRHandleRestartFromIdle. */
CWND_EVENT(sk, tp, ca, event)
{
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	ca->idle_restart = true;
	restart_aggregation(&ca->aggregation, tp->tcp_mstamp);
	if (ca->telemetry.phase == PROBE_BW)
		set_pacing_rate(sk, ca, UNIT);
	else if (ca->telemetry.phase == PROBE_RTT)
		check_probe_rtt_done(sk, ca);
}

/* Section 4.2.3.4: entering recovery the window is remembered; there is no threshold. */
SSTHRESH(sk, tp, ca)
{
	save_prior_cwnd(&ca->recovery, tp, ca->telemetry.phase == PROBE_RTT);
	return tp->snd_ssthresh;
}

SET_STATE(sk, tp, ca, state)
{
	if (state != TCP_CA_Loss)
		return;
	/* Linux: a timeout ends the round, and what was thought of the pipe's fullness. */
	ca->recovery.prior_ca_state = TCP_CA_Loss;
	ca->full_bw = 0;
	ca->round_start = true;
	update_policer(sk, ca, true, false);
}

/* Linux: a spurious loss says nothing of a full pipe or a policer; BBRSetCwnd restores the window. */
UNDO_CWND(sk, tp, ca)
{
	ca->full_bw = 0;
	ca->full_bw_count = 0;
	policer_forget(tp, ca);
	return tp->snd_cwnd;
}

MIN_TSO_SEGS(sk, tp, ca)
{
	return min_burst(sk);
}

/* Linux: room for a window in flight, one being retransmitted, and one from the application. */
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
