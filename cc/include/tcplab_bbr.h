/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Shared by the versions of BBR: units, the arithmetic of rates and volumes, and what Linux's
 * rate_sample lacks of what their drafts assume. Included by a control after tcplab_cc.h.
 */
#ifndef TCPLAB_BBR_H
#define TCPLAB_BBR_H

/* Gains are in 1/256, bandwidth is in packets a microsecond times 2^24. */
#define UNIT 256u
#define BW_SHIFT 24
/* 64 packets a microsecond, 700 Gbit/s: up to here every product below fits into 64 bits. */
#define MAX_BW (1ull << 30)
#define MAX_RTT (1u << 27)
#define MAX_INFLIGHT (1u << 28)
#define NO_RTT ~0u
#define NO_BOUND ~0u
#define NO_BW_BOUND ~0ull
#define MIN_PIPE_CWND 4u

TL_INLINE bool is_valid(const struct rate_sample *rs)
{
	return rs->delivered >= 0 && rs->interval_us > 0;
}

TL_INLINE u64 bandwidth_of(u64 packets, u64 us)
{
	return us ? clamp((packets << BW_SHIFT) / us, 1ull, MAX_BW) : MAX_BW;
}

/* The packets that `bw` delivers in this time. */
TL_INLINE u64 packets_in(u64 bw, u64 us)
{
	return bw * min(us, 1ull << 33) >> BW_SHIFT;
}

/* gain * bandwidth * RTT in packets, rounded up; the initial window while there is no RTT. */
TL_INLINE u32 bdp_of(u64 bw, u32 rtt_us, u32 gain)
{
	u64 packets;

	if (rtt_us == NO_RTT)
		return TCP_INIT_CWND;
	packets = (bw * min(rtt_us, MAX_RTT) >> 8) * gain;
	packets = (packets + (1u << BW_SHIFT) - 1) >> BW_SHIFT;
	return min(packets, (u64)MAX_INFLIGHT);
}

/* Bytes per second at `gain`, `margin` percent short: 10^6 / 100 / 2^24 is 625 / 2^20. */
TL_INLINE u64 bytes_per_second(const struct tcp_sock *tp, u64 bw, u32 gain, u32 margin)
{
	u64 rate = bw * (tp->mss_cache & 0xffff) * gain >> 8;

	return rate * (625 * (100 - margin)) >> 20;
}

/* The same as a pacing rate: never 0, at which nothing would leave, and within what the application allows. */
TL_INLINE u64 pacing_rate_of(struct sock *sk, u64 bw, u32 gain, u32 margin)
{
	return min(max(bytes_per_second(tcp_sk(sk), bw, gain, margin), 1ull), (u64)sk->sk_max_pacing_rate);
}

/* The rate to begin with: the window over the RTT, or over 1 ms while there is none. */
TL_INLINE u64 initial_bandwidth(const struct tcp_sock *tp)
{
	return bandwidth_of(tp->snd_cwnd, tp->srtt_us ? max(tp->srtt_us >> 3, 1u) : USEC_PER_MSEC);
}

/* Below 1.2 Mbit/s each packet leaves alone. */
TL_INLINE u32 min_burst(struct sock *sk)
{
	return sk->sk_pacing_rate < 1200000 / 8 ? 1 : 2;
}

/* Packets of a burst: what is paced out in about a millisecond, and what a GSO packet holds at most. */
TL_INLINE u32 send_quantum(struct sock *sk)
{
	u64 bytes = min((u64)sk->sk_pacing_rate >> (sk->sk_pacing_shift & 31), 65215ull);
	u32 segments = (u32)bytes / max(tcp_sk(sk)->mss_cache, 1u);

	return min(max(segments, min_burst(sk)), 127u);
}

/*
 * Linux: paced packets wait in the sender and count as in flight, though not in the network. How many will be in
 * the network when the next one leaves, `tcp_wstamp_ns`, given that `packets` are in flight now.
 */
TL_INLINE u32 in_network(struct sock *sk, u64 bw, u32 pacing_gain, u32 packets)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_clock_cache, departure = max((u64)tp->tcp_wstamp_ns, now);
	u64 leave = packets_in(bw, min((departure - now) / 1000, (u64)MAX_RTT));

	if (pacing_gain > UNIT)
		packets += send_quantum(sk);
	return leave < packets ? packets - leave : 0;
}

/* `bandwidth` of the telemetry, bit/s: 8 * 10^6 / 2^24 is 15625 / 2^15. */
TL_INLINE void publish(struct tl_telemetry *telemetry, const struct tcp_sock *tp, u64 bw, u32 min_rtt)
{
	telemetry->bandwidth = bw * (tp->mss_cache & 0xffff) * 15625 >> 15;
	telemetry->min_rtt_us = min_rtt == NO_RTT ? 0 : min_rtt;
}

/* ---- ACK aggregation ------------------------------------------------------------------------- */

#define AGGREGATION_ROUNDS 5
#define MAX_AGGREGATION_EPOCH (1u << 20)

/* Packets acknowledged beyond what the bandwidth explains, at most, over the last 5 to 10 rounds. */
struct aggregation {
	u64 epoch_start;
	u32 epoch_acked;
	u32 extra[2]; /* in this window of rounds and in the last */
	u32 rounds;
	u32 index;
};

TL_INLINE void restart_aggregation(struct aggregation *a, u64 now)
{
	a->epoch_start = now;
	a->epoch_acked = 0;
}

/* `rounds` is how long a window is. */
TL_INLINE void update_aggregation(struct aggregation *a, const struct tcp_sock *tp, u64 now, u64 bw, u32 acked,
				  bool round_start, u32 rounds)
{
	u64 expected;
	u32 extra;

	if (round_start && ++a->rounds >= rounds) {
		a->rounds = 0;
		a->index ^= 1;
		a->extra[a->index & 1] = 0;
	}
	expected = packets_in(bw, now > a->epoch_start ? now - a->epoch_start : 0);
	if (a->epoch_acked <= expected || a->epoch_acked + acked >= MAX_AGGREGATION_EPOCH) {
		restart_aggregation(a, now);
		expected = 0;
	}
	a->epoch_acked = min(a->epoch_acked + acked, MAX_AGGREGATION_EPOCH - 1);
	extra = min(a->epoch_acked - (u32)expected, tp->snd_cwnd);
	if (extra > a->extra[a->index & 1])
		a->extra[a->index & 1] = extra;
}

TL_INLINE u32 extra_acked(const struct aggregation *a)
{
	return max(a->extra[0], a->extra[1]);
}

/* ---- What the rate sample lacks -------------------------------------------------------------- */

/*
 * The drafts go by what each packet knew when it was sent: how much was in flight (P.tx_in_flight) and how much
 * had been lost (P.lost). Linux's rate_sample has neither, and a control does not learn which packets are lost. So:
 *  - On a path that keeps order, what was in flight when the sampled packet left, itself included, is what was
 *    delivered or lost from then until it was delivered.
 *  - The count of losses at that time is known in the simulator (tl_prior_lost). In the kernel the count is looked
 *    up in a short history of (delivered, lost). A point of the history is made when losses are found.
 *  - A loss is seen with the packet whose delivery reveals it (or the next that makes a valid sample). Losses that
 *    are seen at once are taken for one packet that was sent last.
 */
#define CHECKPOINTS 64
/* Points are at least this share of a window apart. */
#define CHECKPOINT_SPACING (CHECKPOINTS / 2)

struct loss_checkpoint {
	u32 delivered;
	u32 lost;
};

struct flight {
	struct loss_checkpoint checkpoints[CHECKPOINTS];
	u32 checkpoints_made;
	u32 tx_in_flight; /* RS.tx_in_flight, of the sampled packet */
	u32 lost;         /* RS.lost, since it was sent */
	u32 newly_lost;   /* and not seen yet */
	u32 seen_lost;
};

/*
 * With every ACK, when it has been dealt with. A point is made when losses were found, but not within 1/32 window of
 * the last point. The history thus reaches back two windows at least: to packets sent a round trip ago. So losses_at
 * is exact in windows of up to 32 packets and wherever ACKs that reveal losses are 1/32 window apart. Elsewhere
 * losses_at lacks at most the losses found in 1/32 window.
 */
TL_INLINE void remember_losses(struct flight *f, const struct tcp_sock *tp)
{
	struct loss_checkpoint *last = &f->checkpoints[(f->checkpoints_made - 1) & (CHECKPOINTS - 1)];

	if (f->checkpoints_made && (tp->lost == last->lost ||
			      tp->delivered - last->delivered < max(tp->snd_cwnd / CHECKPOINT_SPACING, 1u)))
		return;
	last = &f->checkpoints[f->checkpoints_made & (CHECKPOINTS - 1)];
	last->delivered = tp->delivered;
	last->lost = tp->lost;
	f->checkpoints_made++;
}

/* The count of losses when `delivered` packets had been delivered. */
TL_INLINE u32 losses_at(const struct flight *f, u32 delivered)
{
	u32 known = min(f->checkpoints_made, (u32)CHECKPOINTS), lost = 0;

	for (u32 back = 1; back <= CHECKPOINTS; back++) {
		const struct loss_checkpoint *checkpoint = &f->checkpoints[(f->checkpoints_made - back) & (CHECKPOINTS - 1)];

		if (back > known)
			break;
		lost = checkpoint->lost;
		if (!after(checkpoint->delivered, delivered))
			break;
	}
	return lost;
}

TL_INLINE void init_flight(struct flight *f, const struct tcp_sock *tp)
{
	f->seen_lost = tp->lost;
	remember_losses(f, tp);
}

/* With every ACK, before anything else: true if there are losses, and a sample to see them with. */
TL_INLINE bool derive_flight(struct flight *f, struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* A timeout takes all for lost and reduces the window by itself. */
	if (tl_ca_state(sk) == TCP_CA_Loss)
		f->newly_lost = 0;
	else
		f->newly_lost = min(f->newly_lost + (tp->lost - f->seen_lost), MAX_INFLIGHT);
	f->seen_lost = tp->lost;
	f->lost = 0;
	f->tx_in_flight = 0;
	if (!is_valid(rs))
		return false;
	/* Bounds against samples that make no sense. */
	f->lost = min(tp->lost - (TL_KNOWS_PRIOR_LOST ? tl_prior_lost(rs) : losses_at(f, rs->prior_delivered)),
		      MAX_INFLIGHT);
	f->tx_in_flight = min((u32)rs->delivered, MAX_INFLIGHT) + f->lost;
	return f->newly_lost != 0;
}

/* Whether more than this share, in 1/1000, of the flight was lost. */
TL_INLINE bool is_loss_too_high(const struct flight *f, u32 threshold)
{
	return (u64)f->lost * 1000 > (u64)f->tx_in_flight * threshold;
}

/*
 * The packets in flight when losses crossed the threshold, perhaps in the middle of those now seen:
 * (lost_prev + x) / (inflight_prev + x) = threshold, solved for x.
 */
TL_INLINE u32 inflight_at_loss(const struct flight *f, u32 threshold)
{
	u32 size = min(f->newly_lost, f->lost);
	u32 inflight_prev = f->tx_in_flight - size, lost_prev = f->lost - size;
	u64 allowed = (u64)inflight_prev * threshold, lost = (u64)lost_prev * 1000;

	if (lost >= allowed)
		return inflight_prev;
	return inflight_prev + (u32)min((allowed - lost) / (1000 - threshold), (u64)size);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

/*
 * The response to ECN. The drafts leave the response open but for the requirement that marks be taken for
 * congestion. The response here is that of the authors' own implementations (presented at IETF 105 and 106, iccrg).
 * As in DCTCP, alpha averages the share of marked packets by rounds. A round with marks outside of probing cuts the
 * short-term bound of inflight by a third of alpha. More than half of a round marked means too much in flight.
 *
 * The share is exact where the receiver echoes exactly which packets were marked, as dctcp's does. A receiver as
 * of RFC 3168 echoes until it learns of the reduction, so a single mark counts for a round trip.
 */
#define ECN_UNIT 1024u
#define ECN_GAIN_SHIFT 4 /* alpha moves by 1/16 of the difference a round */
#define ECN_FACTOR 341   /* of alpha, in 1/1024: a third */
#define ECN_STARTUP_ROUNDS 2

struct ecn {
	u32 alpha; /* in 1/1024 */
	u32 delivered;
	u32 delivered_ce;
	u32 seen_ce;
	bool in_round; /* marks in this round of losses */
	bool too_high; /* in the last round */
	u8 rounds_too_high;
};

TL_INLINE void init_ecn(struct ecn *e, const struct tcp_sock *tp)
{
	e->alpha = ECN_UNIT;
	e->delivered = tp->delivered;
	e->delivered_ce = e->seen_ce = tp->delivered_ce;
}

/* With every ACK; the share is taken when a round ends. */
TL_INLINE void update_ecn(struct ecn *e, const struct tcp_sock *tp, bool round_start)
{
	u32 delivered = tp->delivered - e->delivered, marked = tp->delivered_ce - e->delivered_ce, share;

	if (tp->delivered_ce != e->seen_ce)
		e->in_round = true;
	e->seen_ce = tp->delivered_ce;
	if (!round_start || !delivered)
		return;
	share = (u64)min(marked, delivered) * ECN_UNIT / delivered;
	e->alpha -= (e->alpha + (1u << ECN_GAIN_SHIFT) - 1) >> ECN_GAIN_SHIFT;
	e->alpha = min(e->alpha + (share >> ECN_GAIN_SHIFT), ECN_UNIT);
	e->too_high = share > ECN_UNIT / 2;
	e->rounds_too_high = e->too_high ? min(e->rounds_too_high + 1, 255) : 0;
	e->delivered = tp->delivered;
	e->delivered_ce = tp->delivered_ce;
}

/* Whether more than half of the sampled packet's flight was marked. */
TL_INLINE bool is_ecn_too_high(const struct rate_sample *rs)
{
	return rs->delivered_ce > 0 && (s64)rs->delivered_ce * 2 > rs->delivered;
}

/* The short-term bound of inflight after a round with marks. */
TL_INLINE u32 ecn_reduced(const struct ecn *e, u32 inflight)
{
	u32 keep = ECN_UNIT - (e->alpha * ECN_FACTOR >> 10);

	return (u64)inflight * keep >> 10;
}

#endif
