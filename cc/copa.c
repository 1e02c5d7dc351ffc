// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Copa (V. Arun, H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018):
 * moves the window towards the rate 1 / (delta d_q). Here d_q is the queueing delay. The window moves faster the
 * longer it moves in one direction. Flows of Copa then keep a queue of a few packets that empties every five round
 * trips. Where the queue does not empty, something else fills the buffer, and Copa becomes as aggressive as that.
 * Names and sections below are the paper's.
 *
 * Points that the paper leaves open, or that it describes for packets that leave one by one:
 *  - In a round trip the window moves by at most its own size, as in slow start. The velocity is 1 again as soon as
 *    the target is on the other side, not only a round trip later. Otherwise the window swings ever wider on paths
 *    of many packets.
 *  - A queue is nearly empty, too, when no more waits than the sender's own last burst. TCP sends bursts of two
 *    packets and more. So even on an idle path most packets see a queue, and two flows of Copa would take each
 *    other for one that fills the buffer.
 *  - In the default mode losses change nothing (section 2.2 counts them in the competitive mode only). But when more
 *    than a tenth of a round trip's packets are lost, the window becomes what arrived. A timeout starts over from
 *    slow start.
 */
#define CONTROL copa
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(DEFAULT) PHASE(COMPETITIVE)
#define PARAMETERS(PARAMETER)                                                                      \
	PARAMETER(delta, 512, 4, 1024, 1024, "1 / delta packets are kept queued in the default mode") \
	PARAMETER(mode_switching, 1, 0, 1, 1, "1: compete with flows that fill the buffer")            \
	PARAMETER(min_rtt_window, 10, 1, 600, 1, "age at which a minimum RTT is forgotten, seconds")
#define GAUGES(GAUGE)                                                                             \
	GAUGE(velocity, velocity, 1, "", "velocity of the window")                                \
	GAUGE(inverse_delta, inverse_delta, 1024, "packets", "1 / delta, packets to keep queued") \
	GAUGE(queueing_delay, queueing_delay, USEC_PER_MSEC, "ms", "d_q, the queueing delay")
#include "tcplab_cc.h"

/* 1 / delta is in 1/1024. */
#define UNIT 1024u
#define MAX_INVERSE_DELTA (1u << 30)
#define MAX_VELOCITY (1u << 16)
#define MAX_RTT (1u << 27)
#define MIN_CWND 2u
#define MAX_PACING (1ull << 44)
/* Section 2.1: velocity doubles once the direction has been the same for three round trips. */
#define SAME_DIRECTION_ROUNDS 3
/* Section 2.2: the queue should be nearly empty, below a tenth of the RTT's swing, once in five round trips. */
#define EMPTY_ROUNDS 5
#define EMPTY_PART 10
#define MAX_BURST 16
/* Losses of more than a tenth of a round trip's packets are an overflow. */
#define OVERFLOW_PART 10

/* The minimum or maximum of the last one to two halves of a window of time. */
struct extremum {
	u32 now;    /* in this half; 0: none yet */
	u32 before; /* in the half before */
	u64 start;  /* of this half, microseconds */
};

struct state {
	TELEMETRY;

	u32 velocity;
	u32 inverse_delta;
	u32 queueing_delay; /* d_q, microseconds */
	bool rising;        /* direction of the last round trip */
	bool stepped_up;    /* direction of the last step */
	u32 same_direction; /* round trips */

	struct extremum min;      /* RTTmin */
	struct extremum standing; /* RTTstanding */
	struct extremum max;      /* RTTmax */
	u64 nearly_empty;         /* when the queue last was, microseconds */

	u64 credit; /* fraction of a packet of movement */
	u32 round_delivered; /* the round ends with a packet that was sent after so many were delivered */
	u32 round_cwnd; /* the window when it began */
	u32 round_lost;  /* packets lost in it */
};

TL_INLINE void advance(struct extremum *e, u64 now, u64 half)
{
	if (now - e->start < half)
		return;
	e->before = now - e->start < 2 * half ? e->now : 0;
	e->now = 0;
	e->start = now;
}

TL_INLINE u32 minimum(struct extremum *e, u32 value, u64 now, u64 half)
{
	advance(e, now, half);
	e->now = e->now ? min(e->now, value) : value;
	return e->before ? min(e->now, e->before) : e->now;
}

TL_INLINE u32 maximum(struct extremum *e, u32 value, u64 now, u64 half)
{
	advance(e, now, half);
	e->now = max(e->now, value);
	return max(e->now, e->before);
}

TL_INLINE u32 default_inverse_delta(struct sock *sk)
{
	return UNIT * 1024 / max(PARAM(sk, delta), 1u);
}

/* Section 2.1: twice the window over RTTstanding, which breaks bursts up and does not limit the rate. */
TL_INLINE void set_pacing_rate(struct sock *sk, struct tcp_sock *tp, u32 rtt)
{
	u64 rate = (u64)min(tp->snd_cwnd, TL_MAX_CWND) * (tp->mss_cache & 0xffff) * 2000 / max(rtt, 1u);

	rate = min(rate, MAX_PACING / 1000) * 1000;
	sk->sk_pacing_rate = min(max(rate, 1ull), (u64)sk->sk_max_pacing_rate);
}

/* Packets of a paced burst that wait for the burst's first, about 1 ms of the pacing rate (tcp_tso_autosize). */
TL_INLINE u32 burst_queue(struct sock *sk, struct tcp_sock *tp)
{
	u64 bytes = (u64)sk->sk_pacing_rate >> (sk->sk_pacing_shift & 31);

	return clamp(bytes / max(tp->mss_cache, 1u), 2ull, (u64)MAX_BURST) - 1;
}

/* Section 2.2, once a round trip: 1 / delta as a Reno flow's window, or its default. */
TL_INLINE void choose_mode(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u32 srtt = min(tp->srtt_us >> 3, MAX_RTT), inverse = default_inverse_delta(sk);

	if (!PARAM(sk, mode_switching) || tp->tcp_mstamp - ca->nearly_empty <= EMPTY_ROUNDS * (u64)srtt) {
		ENTER(ca, DEFAULT);
		ca->inverse_delta = inverse;
		return;
	}
	ENTER(ca, COMPETITIVE);
	if (ca->round_lost)
		ca->inverse_delta = max(ca->inverse_delta / 2, inverse);
	else
		ca->inverse_delta = min(ca->inverse_delta + UNIT, MAX_INVERSE_DELTA);
}

/* Section 2.1, once a round trip: velocity doubles while the window keeps its direction. */
TL_INLINE void update_velocity(struct tcp_sock *tp, struct state *ca)
{
	bool rising = tp->snd_cwnd > ca->round_cwnd;

	if (rising != ca->rising) {
		ca->velocity = 1;
		ca->same_direction = 0;
	} else if (++ca->same_direction >= SAME_DIRECTION_ROUNDS) {
		ca->velocity = min(ca->velocity * 2, MAX_VELOCITY);
	}
	ca->rising = rising;
}

TL_INLINE void begin_round(struct tcp_sock *tp, struct state *ca)
{
	ca->round_delivered = tp->delivered;
	ca->round_cwnd = tp->snd_cwnd;
	ca->round_lost = 0;
}

/*
 * A window beyond path and buffer together loses what exceeds them, all at once. The queue then fills and empties
 * within each round trip. The queue's delay, now small and now large, no longer says which way to go.
 */
TL_INLINE void end_overflow(struct tcp_sock *tp, struct state *ca)
{
	u32 delivered = tp->delivered - ca->round_delivered;

	if ((u64)ca->round_lost * OVERFLOW_PART <= (u64)delivered + ca->round_lost)
		return;
	tp->snd_cwnd = max(min(tp->snd_cwnd, delivered), MIN_CWND);
	if (ca->telemetry.phase == SLOW_START)
		ENTER(ca, DEFAULT);
}

/* Whether the rate, cwnd / RTTstanding, is at most the target, 1 / (delta d_q). */
TL_INLINE bool below_target(const struct tcp_sock *tp, const struct state *ca, u32 standing)
{
	u64 queued = (u64)min(tp->snd_cwnd, TL_MAX_CWND) * ca->queueing_delay;

	return queued <= (u64)ca->inverse_delta * standing >> 10;
}

/* Section 2.1: v / (delta cwnd) packets up or down for each one acknowledged. */
TL_INLINE void move(struct tcp_sock *tp, struct state *ca, bool up, u32 acked)
{
	u32 cwnd = max(tp->snd_cwnd, 1u), maximum = min(acked, cwnd), steps;
	u64 whole = (u64)cwnd << 10;

	if (up != ca->stepped_up) {
		ca->stepped_up = up;
		ca->credit = 0;
		ca->velocity = 1;
		ca->same_direction = 0;
	}
	ca->credit += min((u64)ca->velocity * ca->inverse_delta, whole) * maximum;
	steps = ca->credit / whole;
	ca->credit -= steps * whole;
	if (up)
		cwnd = min(cwnd + steps, TL_MAX_CWND);
	else
		cwnd = cwnd > steps ? cwnd - steps : 0;
	tp->snd_cwnd = min(max(cwnd, MIN_CWND), max(tp->snd_cwnd_clamp, MIN_CWND));
}

INIT(sk, tp, ca)
{
	u32 rtt = tp->srtt_us >> 3;

	ca->velocity = 1;
	ca->inverse_delta = default_inverse_delta(sk);
	ca->nearly_empty = tp->tcp_mstamp;
	ca->min.start = ca->max.start = ca->standing.start = tp->tcp_mstamp;
	begin_round(tp, ca);
	ca->telemetry.pacing_gain = 2 * 256;
	tl_request_pacing(sk);
	set_pacing_rate(sk, tp, rtt ? rtt : USEC_PER_MSEC);
}

CONG_CONTROL(sk, tp, ca, rs)
{
	u64 now = tp->tcp_mstamp;
	u32 acked = min(rs->acked_sacked, TL_MAX_CWND), srtt = min(tp->srtt_us >> 3, MAX_RTT);
	u32 rtt, standing, base_rtt, greatest;
	bool up;

	if (rs->losses > 0)
		ca->round_lost = min(ca->round_lost + (u32)rs->losses, TL_MAX_CWND);
	if (rs->rtt_us >= 0) {
		rtt = clamp((u64)rs->rtt_us, 1ull, (u64)MAX_RTT);
		/* RTTmin over ten seconds, RTTstanding over half an RTT, RTTmax over four RTTs. */
		base_rtt = minimum(&ca->min, rtt, now, PARAM(sk, min_rtt_window) * (u64)USEC_PER_SEC / 2);
		standing = minimum(&ca->standing, rtt, now, srtt / 4);
		greatest = maximum(&ca->max, rtt, now, 2 * (u64)srtt);
		ca->queueing_delay = standing > base_rtt ? standing - base_rtt : 0;
		ca->telemetry.min_rtt_us = base_rtt;
		if ((u64)ca->queueing_delay * EMPTY_PART <= greatest - min(base_rtt, greatest) ||
		    (u64)ca->queueing_delay * tp->snd_cwnd <= (u64)standing * burst_queue(sk, tp))
			ca->nearly_empty = now;
	}
	standing = ca->telemetry.min_rtt_us + ca->queueing_delay;
	if (!acked)
		return;
	/* After a timeout TCP leaves one packet. */
	tp->snd_cwnd = max(tp->snd_cwnd, MIN_CWND);
	if (!standing)
		return;

	/* Counted by deliveries: the cumulative ACK may stand still for many round trips while losses are repaired. */
	if (!before(rs->prior_delivered, ca->round_delivered)) {
		end_overflow(tp, ca);
		if (ca->telemetry.phase != SLOW_START) {
			update_velocity(tp, ca);
			choose_mode(sk, tp, ca);
		}
		begin_round(tp, ca);
	}

	up = below_target(tp, ca, standing);
	if (ca->telemetry.phase == SLOW_START) {
		/* Section 2.1: the window doubles each round trip until the rate passes the target. */
		if (!up)
			ENTER(ca, DEFAULT);
		else if (tcp_is_cwnd_limited(tp))
			tp->snd_cwnd = min(min(tp->snd_cwnd + acked, TL_MAX_CWND), tp->snd_cwnd_clamp);
	}
	/* An unused window does not justify a larger one (RFC 7661 section 4.1). */
	if (ca->telemetry.phase != SLOW_START && (!up || tcp_is_cwnd_limited(tp)))
		move(tp, ca, up, acked);
	set_pacing_rate(sk, tp, standing);
}

SSTHRESH(sk, tp, ca)
{
	return max(tp->snd_ssthresh, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state != TCP_CA_Loss)
		return;
	ENTER(ca, SLOW_START);
	ca->velocity = 1;
	ca->same_direction = 0;
	ca->inverse_delta = default_inverse_delta(sk);
	ca->nearly_empty = tp->tcp_mstamp;
}

UNDO_CWND(sk, tp, ca)
{
	return tl_undo_cwnd(tp);
}

CONGESTION_CONTROL(
	.init = OP(init),
	.ssthresh = OP(ssthresh),
	.set_state = OP(set_state),
	.cong_control = OP(cong_control),
	.undo_cwnd = OP(undo_cwnd),
);
