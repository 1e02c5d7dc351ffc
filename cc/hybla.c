// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Hybla (C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal
 * of Satellite Communications and Networking 22(5), 2004): growth that does not depend on the RTT. On a path of
 * long RTT the window grows so fast that as much is sent per second as a Reno flow of a short reference RTT would
 * send. The names are the paper's: rho is the path's RTT in reference RTTs, and where Reno has a window of W, Hybla
 * has rho W.
 *
 * Of the paper's five parts, SACK and timestamps are the endpoint's. The other three are here: the growth, the
 * first threshold from the path's bandwidth, and spaced packets. Without the last two the growth would be
 * absurd: at 550 ms, 22 doublings fall into the first round trip. Linux's hybla has the growth only.
 */
#define CONTROL hybla
#define PHASES(PHASE) PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                          \
	PARAMETER(rtt0, 25, 1, 1000, 1, "RTT of the Reno flow to be equal to, ms")                        \
	PARAMETER(estimate_bandwidth, 1, 0, 1, 1,                                                         \
		  "1: the first slow start ends at the bandwidth that its first ACKs show")                \
	PARAMETER(pacing, 1, 0, 1, 1, "1: space packets over the RTT")
#define GAUGES(GAUGE) \
	GAUGE(rho, rho, 256, "", "RTT in reference RTTs")
#include "tcplab_cc.h"

/* rho and increments are in 1/256. */
#define UNIT 256u
/* 2^16 packets for each one acknowledged: more would make no difference. Linux has the same bound. */
#define MAX_EXPONENT (16 * UNIT)
/* A thousand reference RTTs. */
#define MAX_RHO (1000 * UNIT)

struct state {
	TELEMETRY; /* its bandwidth is the train's, its window gain is rho */

	u32 rho;    /* in 1/256, at least 1 */
	u32 rtt;    /* that it was computed from, microseconds */
	u64 credit; /* fraction of a packet of growth */

	/* The train of the first packets, which leave as one burst. */
	u64 train_start;     /* its first ACK, microseconds; 0: not yet */
	u32 train_delivered; /* what was delivered with it */
	bool estimated;      /* the train has passed: from here on packets are spaced */
};

/* 2^(x / 256) for x below 256, in 1/256: a parabola, 0.3 % from it at most. */
TL_INLINE u32 power_of_two_fraction(u32 x)
{
	return UNIT + ((168 * x + (88 * x * x >> 8)) >> 8);
}

/* 2^rho - 1, in 1/256. */
TL_INLINE u32 slow_start_increment(u32 rho)
{
	rho = min(rho, MAX_EXPONENT);
	return (power_of_two_fraction(rho & (UNIT - 1)) << (rho >> 8 & 31)) - UNIT;
}

/* rho follows the minimum RTT, so that a queue does not speed the growth up that made it. */
TL_INLINE void update_rho(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	u32 rtt = tcp_min_rtt(tp);

	if (rtt == ca->rtt || rtt == ~0u)
		return;
	ca->rtt = rtt;
	ca->rho = clamp((u64)rtt * UNIT / (PARAM(sk, rtt0) * USEC_PER_MSEC), (u64)UNIT, (u64)MAX_RHO);
	ca->telemetry.min_rtt_us = rtt;
	ca->telemetry.cwnd_gain = ca->rho;
}

TL_INLINE void enter_growth(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, tcp_in_slow_start(tp) ? SLOW_START : CONGESTION_AVOIDANCE);
}

/* Slow start: W + 2^rho - 1 for each packet acknowledged, up to the threshold. Returns the packets left over. */
TL_INLINE u32 slow_start(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u64 cwnd;

	/* Before anything is known of the path's bandwidth, only what any TCP may do. */
	if (tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
		return tl_slow_start(tp, acked);

	ca->credit += (u64)slow_start_increment(ca->rho) * acked;
	cwnd = tp->snd_cwnd + (ca->credit >> 8);
	ca->credit &= UNIT - 1;
	tp->snd_cwnd = min(min(cwnd, (u64)tp->snd_ssthresh), (u64)tp->snd_cwnd_clamp);
	return 0;
}

/*
 * The paper takes the first threshold from the spacing of the first ACKs (J. Hoe, "Improving the start-up
 * behavior of a congestion control scheme for TCP", SIGCOMM 1996). The initial window's packets leave at once,
 * so the time between their ACKs is what the bottleneck needs to send them. ACKs that come as one, because the
 * receiver merges packets, give no estimate.
 */
#define TRAIN_PACKETS 6 /* after the first ACK, of an initial window of ten */

TL_INLINE void watch_train(struct tcp_sock *tp, struct state *ca)
{
	u64 now = tp->tcp_mstamp, elapsed, packets, bdp;

	if (!ca->train_start) {
		ca->train_start = max(now, (u64)1);
		ca->train_delivered = tp->delivered;
		return;
	}
	packets = tp->delivered - ca->train_delivered;
	if (packets < TRAIN_PACKETS)
		return;
	ca->estimated = true;
	elapsed = now - ca->train_start;
	if (!elapsed || !tcp_in_slow_start(tp) || packets > TCP_INIT_CWND)
		return;
	bdp = packets * min(ca->rtt, 1u << 27) / elapsed;
	tp->snd_ssthresh = clamp(bdp, (u64)tp->snd_cwnd, (u64)TL_MAX_CWND);
	ca->telemetry.bandwidth = tl_bits_per_second(tp, packets, elapsed);
}

INIT(sk, tp, ca)
{
	u32 rtt = tp->srtt_us >> 3;

	ca->rho = UNIT;
	ca->estimated = !PARAM(sk, estimate_bandwidth);
	if (rtt) {
		/* Where Reno begins with W, Hybla does with rho W; Linux takes W = 1, and TCP here 10 at least. */
		ca->rtt = rtt;
		ca->rho = clamp((u64)rtt * UNIT / (PARAM(sk, rtt0) * USEC_PER_MSEC), (u64)UNIT, (u64)MAX_RHO);
		tp->snd_cwnd = min(max(tp->snd_cwnd, ca->rho >> 8), tp->snd_cwnd_clamp);
	}
	enter_growth(tp, ca);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	update_rho(sk, tp, ca);
	if (!ca->estimated && sample->pkts_acked)
		watch_train(tp, ca);
	if (ca->estimated && PARAM(sk, pacing))
		tl_request_pacing(sk);
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (tcp_in_slow_start(tp))
		acked = slow_start(tp, ca, acked);
	/* Congestion avoidance: rho^2 / W for each packet acknowledged. */
	if (acked)
		tl_increase(tp, &ca->credit, (u64)ca->rho * ca->rho >> 8, acked);
	enter_growth(tp, ca);
}

SSTHRESH(sk, tp, ca)
{
	/* RFC 5681 section 3.1, equation (4), on the window as Linux does it. */
	ca->credit = 0;
	ca->estimated = true;
	return max(tp->snd_cwnd / 2, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state >= TCP_CA_CWR)
		ENTER(ca, RECOVERY);
	else
		enter_growth(tp, ca);
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
	.pkts_acked = OP(pkts_acked),
	.undo_cwnd = OP(undo_cwnd),
);
