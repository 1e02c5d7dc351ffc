/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Parts of BBR's state machine that two or three of its versions have in common, each with the state it keeps. Which
 * section of its draft one implements stands where a control uses it. Included after tcplab_bbr.h.
 */
#ifndef TCPLAB_BBR_PARTS_H
#define TCPLAB_BBR_PARTS_H

/* ---- Recovery, versions 1 and 2 ---------------------------------------------------------------- */

struct recovery {
	u32 prior_cwnd;
	u8 prior_ca_state;
	bool packet_conservation;
};

/* BBRSaveCwnd: the window as it was before recovery or ProbeRTT cut it. */
TL_INLINE void save_prior_cwnd(struct recovery *r, const struct tcp_sock *tp, bool probing_rtt)
{
	if (r->prior_ca_state < TCP_CA_Recovery && !probing_rtt)
		r->prior_cwnd = tp->snd_cwnd;
	else
		r->prior_cwnd = max(r->prior_cwnd, tp->snd_cwnd);
}

/* BBRModulateCwndForRecovery and what leads to it; a recovery begins a round, which ends at `next_round`. */
TL_INLINE u32 modulate_cwnd_for_recovery(struct recovery *r, struct sock *sk, u32 *next_round, u32 cwnd,
					 u32 acked, s32 losses)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 conserved = tcp_packets_in_flight(tp) + acked;
	u8 was = r->prior_ca_state, is = tl_ca_state(sk);

	if (losses > 0)
		cwnd = cwnd > (u32)losses ? cwnd - losses : 1;
	if (is == TCP_CA_Recovery && was != TCP_CA_Recovery) {
		r->packet_conservation = true;
		*next_round = tp->delivered;
		cwnd = conserved;
	} else if (is < TCP_CA_Recovery && was >= TCP_CA_Recovery) {
		r->packet_conservation = false;
		cwnd = max(cwnd, r->prior_cwnd);
	}
	r->prior_ca_state = is;
	return r->packet_conservation ? max(cwnd, conserved) : cwnd;
}

/* ---- The stay in ProbeRTT ---------------------------------------------------------------------- */

struct probe_rtt {
	u64 done_stamp; /* microseconds; 0: what is in flight has not come down yet */
	bool round_done;
	/* Where TCP cannot be notified: counts of delivered packets between which we last restrained ourselves. */
	bool restrained;
	u32 restrained_from;
	u32 restrained_until;
};

/*
* Packets sent from now until all that is in flight has arrived show our restraint, not the path. TCP is notified as
 * if the application had been the limit. A kernel that does not let us leaves it to us to remember.
 */
TL_INLINE void mark_restraint(struct probe_rtt *p, struct tcp_sock *tp, u32 in_flight)
{
	u32 until = max(tp->delivered + in_flight, 1u);

	if (TL_WRITES_APP_LIMITED) {
		tp->app_limited = until;
		return;
	}
	if (!p->restrained || after(tp->delivered, p->restrained_until))
		p->restrained_from = tp->delivered;
	p->restrained_until = until;
	p->restrained = true;
}

/* Whether the application, or we ourselves, kept the path from being full when the sampled packet was sent. */
TL_INLINE bool is_app_limited(const struct probe_rtt *p, const struct rate_sample *rs)
{
	if (TL_WRITES_APP_LIMITED || rs->is_app_limited)
		return rs->is_app_limited;
	return p->restrained && !before(rs->prior_delivered, p->restrained_from) &&
	       !after(rs->prior_delivered, p->restrained_until);
}

/* HandleProbeRTT: true once a round has passed with at most `maximum` packets in flight. */
TL_INLINE bool probe_rtt_round_done(struct probe_rtt *p, struct tcp_sock *tp, u32 maximum, u64 duration,
				    bool round_start, u32 *next_round)
{
	u32 in_flight = tcp_packets_in_flight(tp);

	mark_restraint(p, tp, in_flight);
	if (!p->done_stamp) {
		if (in_flight > maximum)
			return false;
		p->done_stamp = tp->tcp_mstamp + duration;
		p->round_done = false;
		*next_round = tp->delivered;
		return false;
	}
	if (round_start)
		p->round_done = true;
	return p->round_done;
}

TL_INLINE bool is_probe_rtt_over(const struct probe_rtt *p, u64 now)
{
	return p->done_stamp && now > p->done_stamp;
}

/* ---- The minimum RTT, versions 2 and 3 ----------------------------------------------------------- */

/* ProbeRTT looks for a new one more often than the old one is given up. */
struct min_rtt {
	u32 rtt; /* microseconds, all ones: none yet */
	u64 stamp;
	u32 probe_rtt; /* BBR.probe_rtt_min_delay */
	u64 probe_stamp;
	bool expired; /* BBR.probe_rtt_expired */
};

TL_INLINE void init_min_rtt(struct min_rtt *m, const struct tcp_sock *tp)
{
	m->rtt = m->probe_rtt = tcp_min_rtt(tp);
	m->stamp = m->probe_stamp = tp->tcp_mstamp;
}

/* UpdateMinRTT; interval and window in milliseconds. */
TL_INLINE void update_min_rtt(struct min_rtt *m, u64 now, const struct rate_sample *rs, u32 interval, u32 window)
{
	m->expired = now > m->probe_stamp + (u64)interval * USEC_PER_MSEC;
	/* Linux: a delayed ACK is a poor replacement for an expired estimate. */
	if (rs->rtt_us >= 0 && (rs->rtt_us < m->probe_rtt || (m->expired && !rs->is_ack_delayed))) {
		m->probe_rtt = rs->rtt_us;
		m->probe_stamp = now;
	}
	if (m->probe_rtt < m->rtt || now > m->stamp + (u64)window * USEC_PER_MSEC) {
		m->rtt = m->probe_rtt;
		m->stamp = m->probe_stamp;
	}
}

/* ---- The latest delivery signals, versions 2 and 3 --------------------------------------------- */

/* The most of a round, or so, that is counted for losses. */
struct latest {
	u32 round_delivered; /* BBR.loss_round_delivered */
	bool round_start;    /* BBR.loss_round_start */
	u64 bw;              /* BBR.bw_latest */
	u32 inflight;        /* BBR.inflight_latest */
};

/* UpdateLatestDeliverySignals. */
TL_INLINE void update_latest(struct latest *l, const struct tcp_sock *tp, const struct rate_sample *rs, u64 bw)
{
	l->round_start = false;
	if (!is_valid(rs))
		return;
	l->bw = max(l->bw, bw);
	l->inflight = max(l->inflight, min((u32)rs->delivered, MAX_INFLIGHT));
	if (!before(rs->prior_delivered, l->round_delivered)) {
		l->round_delivered = tp->delivered;
		l->round_start = true;
	}
}

/* AdvanceLatestDeliverySignals. */
TL_INLINE void advance_latest(struct latest *l, const struct rate_sample *rs, u64 bw)
{
	if (!l->round_start)
		return;
	l->bw = bw;
	l->inflight = min((u32)rs->delivered, MAX_INFLIGHT);
}

TL_INLINE void reset_latest(struct latest *l)
{
	l->bw = 0;
	l->inflight = 0;
}

/* ---- The bound of inflight that probing finds, versions 2 and 3 -------------------------------- */

/* InflightWithHeadroom: `headroom` / 1000 of it are left to others. */
TL_INLINE u32 with_headroom(u32 bound, u32 headroom)
{
	u32 left;

	if (bound == NO_BOUND)
		return NO_BOUND;
	left = max((u32)((u64)bound * headroom / 1000), 1u);
	return bound > left + MIN_PIPE_CWND ? bound - left : MIN_PIPE_CWND;
}

struct probe_up {
	u32 rounds;
	u32 acked;
	u32 acked_per_inc; /* packets acknowledged for each one that the bound is raised by */
};

/* RaiseInflightHiSlope, RaiseInflightLongtermSlope: the growth doubles with each round. */
TL_INLINE void raise_slope(struct probe_up *p, const struct tcp_sock *tp)
{
	u32 growth = 1u << (p->rounds & 31);

	p->rounds = min(p->rounds + 1, 30u);
	p->acked_per_inc = max(tp->snd_cwnd / growth, 1u);
}

/* ProbeInflightHiUpward, ProbeInflightLongtermUpward: the bound after `acked` more packets. */
TL_INLINE u32 probe_upward(struct probe_up *p, const struct tcp_sock *tp, u32 bound, u32 acked, bool round_start)
{
	u32 steps;

	if (!tl_cwnd_limited(tp) || tp->snd_cwnd < bound)
		return bound;
	p->acked = min(p->acked + acked, MAX_INFLIGHT);
	steps = p->acked / max(p->acked_per_inc, 1u);
	p->acked -= steps * p->acked_per_inc;
	if (round_start)
		raise_slope(p, tp);
	return min(bound + steps, MAX_INFLIGHT);
}

/* ---- The bounds after a round with loss or marks, versions 2 and 3 ----------------------------- */

struct shortterm {
	u64 bw;       /* BBR.bw_lo, BBR.bw_shortterm */
	u32 inflight; /* BBR.inflight_lo, BBR.inflight_shortterm */
};

TL_INLINE void reset_shortterm(struct shortterm *s)
{
	s->bw = NO_BW_BOUND;
	s->inflight = NO_BOUND;
}

/* InitLowerBounds and LossLowerBounds; beta in 1/1024. Marks cut what is in flight only. */
TL_INLINE void lower_bounds(struct shortterm *s, const struct latest *l, const struct ecn *e, bool lost, u64 max_bw,
			    u32 cwnd, u32 beta)
{
	u32 by_marks = NO_BOUND;

	if (s->inflight == NO_BOUND)
		s->inflight = cwnd;
	if (e->in_round)
		by_marks = ecn_reduced(e, s->inflight);
	if (lost) {
		if (s->bw == NO_BW_BOUND)
			s->bw = max_bw;
		s->bw = max(max(l->bw, s->bw * beta >> 10), 1ull);
		s->inflight = max(l->inflight, (u32)((u64)s->inflight * beta >> 10));
	}
	s->inflight = min(s->inflight, by_marks);
}

#endif
