// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Westwood+ (S. Mascolo, C. Casetti, M. Gerla, M. Sanadidi, R. Wang, "TCP Westwood: bandwidth estimation for
 * enhanced transport over wireless links", MobiCom 2001; L. Grieco, S. Mascolo, "Performance evaluation and
 * comparison of Westwood+, New Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004): shrinks to what the
 * path carries. The window grows as Reno's, but a loss sets it to what the path was just seen to carry, bandwidth
 * times minimum RTT, instead of half. A loss that no queue caused then costs next to nothing. The names BWE and
 * RTTmin are the papers'.
 *
 * The + is in the measurement: one sample of bandwidth a round trip, of all that was acknowledged in that round
 * trip. The first Westwood took one sample for each ACK and was misled by ACKs that come in bursts.
 */
#define CONTROL westwood
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                       \
	PARAMETER(history, 896, 0, 1023, 1024, "weight of the past in the bandwidth estimate, each round trip") \
	PARAMETER(min_interval, 50, 1, 1000, 1, "minimum time for a sample of bandwidth, ms")
#define GAUGES(GAUGE) \
	GAUGE(fits, fits, 1, "packets", "BWE times RTTmin, the window that a loss leaves")
#include "tcplab_cc.h"

#define BW_SHIFT 24
#define MAX_BW (1ull << 30)
#define MAX_RTT (1u << 27)

struct state {
	TELEMETRY; /* its bandwidth is BWE */

	u64 bandwidth; /* BWE, packets a microsecond times 2^24; 0: none yet */
	u32 rtt_min;   /* microseconds; 0: none yet */
	u32 fits;      /* what the path held when the bandwidth was last measured, packets; 0: unknown */
	bool forget_rtt_min;
	bool counting;
	u64 interval_start; /* microseconds */
	u32 interval_delivered;
};

TL_INLINE void begin_interval(struct tcp_sock *tp, struct state *ca)
{
	ca->interval_start = tp->tcp_mstamp;
	ca->interval_delivered = tp->delivered;
	ca->counting = true;
}

/* BWE times RTTmin: what the path holds with an empty queue, packets; 0: unknown. */
TL_INLINE u32 pipe(const struct state *ca)
{
	return min(ca->bandwidth * ca->rtt_min >> BW_SHIFT, (u64)TL_MAX_CWND);
}

/* The packets delivered in a round trip over its length, through a low-pass filter. */
TL_INLINE void measure(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u64 elapsed = tp->tcp_mstamp - ca->interval_start;
	u64 minimum = max(min(tp->srtt_us >> 3, MAX_RTT), PARAM(sk, min_interval) * USEC_PER_MSEC);
	u32 history = PARAM(sk, history);
	u64 sample;

	if (!ca->counting) {
		begin_interval(tp, ca);
		return;
	}
	if (elapsed < minimum || !elapsed)
		return;
	sample = ((u64)(tp->delivered - ca->interval_delivered) << BW_SHIFT) / elapsed;
	sample = min(sample, MAX_BW);
	ca->bandwidth = ca->bandwidth ? (ca->bandwidth * history + sample * (1024 - history)) >> 10 : sample;
	ca->fits = pipe(ca);
	begin_interval(tp, ca);
	/* Packets a microsecond times 2^24 are bit/s by 10^6 / 2^24 = 15625 / 2^18. */
	ca->telemetry.bandwidth = (ca->bandwidth * (tp->mss_cache & 0xffff) >> 8) * 15625 * 8 >> 10;
}

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
}

INIT(sk, tp, ca)
{
	enter_growth(tp, ca);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt;

	measure(sk, tp, ca);
	if (sample->rtt_us < 0)
		return;
	rtt = min(max((u32)sample->rtt_us, 1u), MAX_RTT);
	/* After a timeout the route may be another. */
	if (!ca->rtt_min || rtt < ca->rtt_min || ca->forget_rtt_min)
		ca->rtt_min = rtt;
	ca->forget_rtt_min = false;
	ca->telemetry.min_rtt_us = ca->rtt_min;
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;
	tl_grow_as_reno(tp, acked);
	enter_growth(tp, ca);
}

SSTHRESH(sk, tp, ca)
{
	u32 fits = pipe(ca);

	/* Nothing known yet: as Reno. A loss never makes the window larger. */
	if (!fits)
		fits = tp->snd_cwnd / 2;
	return max(min(fits, tp->snd_cwnd), 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state == TCP_CA_Loss)
		ca->forget_rtt_min = true;
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else
		enter_growth(tp, ca);
}

CWND_EVENT(sk, tp, ca, event)
{
	/* Time in which the application sent nothing says nothing of the path. */
	if (event == CA_EVENT_TX_START)
		ca->counting = false;
}

UNDO_CWND(sk, tp, ca)
{
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
