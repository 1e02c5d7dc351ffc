// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP made fit for the Internet, the scalable control of
 * L4S (RFC 9330). Queues mark its packets often and early; it reduces its window by the share of marks, and keeps the
 * queue short. Unlike DCTCP it keeps growing while it reduces, takes about the same rate at short round trips as at
 * 25 ms, paces, and answers a loss as others do.
 *
 * Packets are ECT(1), by which an L4S queue knows them, so both ends must speak accurate ECN (RFC 9768). With an end
 * that does not, packets are ECT(0) or not ECN-capable, and each mark is answered as a loss is, as Reno would.
 */
#define CONTROL prague
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(CWR) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(gain_shift, 4, 0, 10, 1, "g, the weight of the last round in alpha, is 2 to the minus this") \
	PARAMETER(rtt_virtual, 25000, 0, 1000000, 1000, "shorter round trips count as this long, in ms; 0: as they are") \
	PARAMETER(rtt_transition, 500, 0, 100000, 1, "round trips after which that begins")             \
	PARAMETER(beta, 128, 26, 255, 256, "factor of the window at a loss: 0.5 as Reno, 0.7 as CUBIC")  \
	PARAMETER(pacing_ss, 512, 256, 1024, 256, "pacing rate in slow start, in windows a round trip") \
	PARAMETER(pacing_ca, 256, 256, 1024, 256, "pacing rate otherwise")
#define GAUGES(GAUGE)                                                                                  \
	GAUGE(alpha, alpha, UNIT, "", "share of marked packets, averaged over rounds")                 \
	GAUGE(virtual_rtt, virtual_us, 1000, "ms", "the round trip that it acts by")
#include "tcplab_cc.h"

#define UNIT (1u << 20)     /* alpha and shares are in 1/UNIT */
#define FRACTION_SHIFT 16   /* windows are in 1/65536 packets */
#define MIN_CWND 2u       /* as Linux */
#define MAX_RATE (1ull << 40) /* beyond what any link carries, bytes per second */
#define HEADERS 52u         /* of a packet: IPv4, TCP and its timestamps */
#define BURST_SHIFT 12      /* section 2.5.2: a burst is what leaves in a quarter of a millisecond */

struct state {
	TELEMETRY;
	u32 fraction; /* of the window, beside snd_cwnd */

	/* Section 2.3.2, the moving average. */
	u32 alpha;
	u32 round_end;
	u32 round_delivered;
	u32 round_delivered_ce;
	u64 round_us;
	bool saw_mark;

	/* Section 2.4.2, the reduction: one a round. */
	u32 seen_ce;
	u32 cut_end;
	u64 cut_us;
	u64 cut; /* of the window, for a loss in the same round */

	/* Section 2.4.4 */
	u32 rounds;
	u32 virtual_us;
};

TL_INLINE bool accurate(const struct tcp_sock *tp)
{
	return tp->ecn_flags & TCP_ECN_MODE_ACCECN;
}

TL_INLINE u64 window(const struct tcp_sock *tp, const struct state *ca)
{
	return ((u64)tp->snd_cwnd << FRACTION_SHIFT) + ca->fraction;
}

TL_INLINE void set_window(struct tcp_sock *tp, struct state *ca, u64 w)
{
	w = clamp(w, (u64)MIN_CWND << FRACTION_SHIFT, (u64)TL_MAX_CWND << FRACTION_SHIFT);
	ca->fraction = w & ((1u << FRACTION_SHIFT) - 1);
	tp->snd_cwnd = min((u32)(w >> FRACTION_SHIFT), tp->snd_cwnd_clamp);
}

TL_INLINE u32 srtt_us(const struct tcp_sock *tp)
{
	return max(tp->srtt_us >> 3, 1u);
}

/* Section 2.4.4: a young flow acts by its own round trip, and so catches up fast. */
TL_INLINE void update_virtual_rtt(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	ca->virtual_us = srtt_us(tp);
	if (ca->rounds >= PARAM(sk, rtt_transition))
		ca->virtual_us = max(ca->virtual_us, PARAM(sk, rtt_virtual));
}

TL_INLINE void begin_round(struct tcp_sock *tp, struct state *ca)
{
	ca->round_end = tp->snd_nxt;
	ca->round_delivered = tp->delivered;
	ca->round_delivered_ce = tp->delivered_ce;
	ca->round_us = tp->tcp_mstamp;
}

/* Section 2.3.2: alpha = alpha * (1 - g) + g * F, once a (virtual) round trip. */
TL_INLINE void update_alpha(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u32 shift = PARAM(sk, gain_shift) & 31;
	u32 acked, marked, share;

	if (before(tp->snd_una, ca->round_end))
		return;
	if (ca->rounds < PARAM(sk, rtt_transition))
		ca->rounds++;
	update_virtual_rtt(sk, tp, ca);
	if (tp->tcp_mstamp - ca->round_us < ca->virtual_us) {
		/* A virtual round is several of the path's. */
		ca->round_end = tp->snd_nxt;
		return;
	}
	acked = tp->delivered - ca->round_delivered;
	marked = tp->delivered_ce - ca->round_delivered_ce;
	share = (u64)min(marked, acked) * UNIT / max(acked, 1u);
	ca->alpha -= (ca->alpha + (1u << shift) - 1) >> shift;
	ca->alpha = min(ca->alpha + (share >> shift), UNIT);
	begin_round(tp, ca);
}

/* Section 2.4.2: W = W * (1 - alpha / 2) at the first mark, and then none for a round trip. */
TL_INLINE void reduce(struct tcp_sock *tp, struct state *ca)
{
	u32 alpha;

	if (before(tp->snd_una, ca->cut_end) || tp->tcp_mstamp - ca->cut_us < ca->virtual_us)
		return;
	/* Section 2.3.2: the first mark ends slow start, and halves. */
	if (!ca->saw_mark) {
		ca->saw_mark = true;
		ca->alpha = UNIT;
	}
	alpha = accurate(tp) ? ca->alpha : UNIT;
	ca->cut = window(tp, ca) * alpha / (2 * UNIT);
	set_window(tp, ca, window(tp, ca) - ca->cut);
	tp->snd_ssthresh = tp->snd_cwnd;
	ca->cut_end = tp->snd_nxt;
	ca->cut_us = tp->tcp_mstamp;
}

/*
 * Section 2.4.3: a packet a round trip, for unmarked packets only, and while the window is reduced too. By section 2.4.4
 * the rate of a short path grows as that of a path of the virtual round trip does: (RTT / virtual RTT)^2 of a packet.
 */
TL_INLINE void increase(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u64 ratio = ((u64)srtt_us(tp) << FRACTION_SHIFT) / max(ca->virtual_us, 1u);
	u64 factor;

	ratio = min(ratio, 1ull << FRACTION_SHIFT);
	factor = ratio * ratio >> FRACTION_SHIFT;
	set_window(tp, ca, window(tp, ca) + factor * acked / max(tp->snd_cwnd, 1u));
}

/*
 * Section 2.5.1; the kernel's own pacing does not know the fraction of the window. The gains are those of the authors'
 * implementation for Linux, and packets count with their headers as there. TCP's pacing counts payload, so counting
 * headers leaves a margin of a thirtieth. Without that margin, pacing and not the window would limit the rate.
 */
TL_INLINE void pace(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u32 gain = tp->snd_cwnd < tp->snd_ssthresh / 2 ? PARAM(sk, pacing_ss) : PARAM(sk, pacing_ca);
	u64 bytes = window(tp, ca) * (tp->mss_cache + HEADERS) >> FRACTION_SHIFT;
	u64 rate = bytes * gain / 256 * USEC_PER_SEC / srtt_us(tp);

	if (tp->srtt_us)
		sk->sk_pacing_rate = min(min(rate, MAX_RATE), sk->sk_max_pacing_rate);
}

INIT(sk, tp, ca)
{
	ca->seen_ce = tp->delivered_ce;
	ca->cut_end = tp->snd_una;
	update_virtual_rtt(sk, tp, ca);
	begin_round(tp, ca);
	tl_request_pacing(sk);
	tl_limit_bursts(sk, BURST_SHIFT);
	pace(sk, tp, ca);
	ENTER(ca, SLOW_START);
}

CONG_CONTROL(sk, tp, ca, rs)
{
	u32 marked = tp->delivered_ce - ca->seen_ce;
	u32 acked = min(rs->acked_sacked, TL_MAX_CWND);
	bool recovery = tl_ca_state(sk) == TCP_CA_Recovery;

	ca->seen_ce = tp->delivered_ce;
	update_alpha(sk, tp, ca);
	if (marked && !recovery)
		reduce(tp, ca);
	acked -= min(marked, acked);
	if (acked && !recovery && tcp_is_cwnd_limited(tp)) {
		/* Section 2.4.5: slow start as ever, till the first mark or loss. */
		if (tcp_in_slow_start(tp))
			acked = tl_slow_start(tp, acked);
		if (acked)
			increase(tp, ca, acked);
	}
	/* After a timeout TCP has set a window of one packet, and slow start knows no bound. */
	set_window(tp, ca, window(tp, ca));
	if (!recovery)
		ENTER(ca, before(tp->snd_una, ca->cut_end) ? CWR :
			  tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
	pace(sk, tp, ca);
}

/*
 * Section 2.4.1: a loss is answered as by Reno or CUBIC, whatever the share of marks. Cuts for marks of the
 * same round trip count.
 */
TL_INLINE u32 after_loss(struct sock *sk, const struct tcp_sock *tp, const struct state *ca)
{
	u64 cut = before(tp->snd_una, ca->cut_end) ? ca->cut : 0;
	u64 w = window(tp, ca);

	w = min(w, (w + cut) * PARAM(sk, beta) / 256);
	return max((u32)(w >> FRACTION_SHIFT), MIN_CWND);
}

/* Marks of the same round trip call for no further reduction. */
TL_INLINE void note_loss(struct tcp_sock *tp, struct state *ca)
{
	ca->fraction = 0;
	ca->cut = 0;
	ca->cut_end = tp->snd_nxt;
	ca->cut_us = tp->tcp_mstamp;
}

/* TCP asks at each mark too; CONG_CONTROL answers those. */
SSTHRESH(sk, tp, ca)
{
	return max(tp->snd_cwnd, MIN_CWND);
}

SET_STATE(sk, tp, ca, state)
{
	if (state == TCP_CA_Recovery && tl_ca_state(sk) != TCP_CA_Recovery) {
		tp->snd_ssthresh = after_loss(sk, tp, ca);
		tp->snd_cwnd = tp->snd_ssthresh;
		note_loss(tp, ca);
	}
	if (state >= TCP_CA_Recovery)
		ENTER(ca, RECOVERY);
}

CWND_EVENT(sk, tp, ca, event)
{
	if (event != CA_EVENT_LOSS)
		return;
	/* At a timeout the window is still that of before. */
	tp->snd_ssthresh = after_loss(sk, tp, ca);
	note_loss(tp, ca);
}

MIN_TSO_SEGS(sk, tp, ca)
{
	return 1;
}

UNDO_CWND(sk, tp, ca)
{
	return tl_undo_cwnd(tp);
}

CONGESTION_CONTROL(
	.init = OP(init),
	.ssthresh = OP(ssthresh),
	.set_state = OP(set_state),
	.cwnd_event = OP(cwnd_event),
	.cong_control = OP(cong_control),
	.min_tso_segs = OP(min_tso_segs),
	.undo_cwnd = OP(undo_cwnd),
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1,
);
