// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01, on top of RFC 6817): for traffic that shall have only what others
 * leave. The window grows while the queueing delay is below a target and shrinks above that target. But each flow's
 * own queue would be taken for the path's delay by flows that come later. So every flow now and then sends almost
 * nothing for two round trips, and all see the empty path. Sections below are that draft's.
 *
 * Points that the draft leaves open:
 *  - a round trip of the slowdown is until all that was in flight at its start is acknowledged;
 *  - a loss or an ECN echo halves the window, as RFC 6817 section 2.4.2 has it. In the two round trips of a
 *    slowdown it halves the window to return to; in the ramp it ends the slowdown, for what it leaves is reached.
 */
#define CONTROL ledbatpp
#define PHASES(PHASE) \
	PHASE(SLOW_START) PHASE(CONGESTION_AVOIDANCE) PHASE(SLOWDOWN) PHASE(RAMP) PHASE(RECOVERY)
#define PARAMETERS(PARAMETER)                                                                     \
	PARAMETER(target, 60, 1, 1000, 1, "queueing delay to keep to, ms")                           \
	PARAMETER(gain_divisor, 16, 1, 64, 1, "the increase is this many times slower than Reno's at most") \
	PARAMETER(decrease, 1024, 0, 16384, 1024, "the constant of the decrease above the target")   \
	PARAMETER(slowdowns, 1, 0, 1, 1, "1: slow down periodically to see the empty path")
#define GAUGES(GAUGE)                                                                                          \
	GAUGE(queueing_delay, queueing_delay, USEC_PER_MSEC, "ms", "minimum queueing delay of the last samples") \
	GAUGE(target, target, 1, "ms", "TARGET, the queueing delay to keep to")                                \
	GAUGE(inverse_gain, inverse_gain, 1, "", "1 / GAIN, how many times slower than Reno it grows")
#include "tcplab_cc.h"

#define MAX_RTT (1u << 27)
/* Section 4.1, whatever the host's initial window is. */
#define INITIAL_WINDOW 2u
/* Section 4.3: a window is halved in a round trip at most; 1/1024. */
#define MAX_DECREASE 512u
/* RFC 6817 section 2.5: the base delay is the minimum of ten minutes, the current one the minimum of four samples. */
#define BASE_MINUTES 10
#define MINUTE_US (60ull * USEC_PER_SEC)
#define CURRENT_SAMPLES 4
/* Section 4.4: two packets for two round trips; normal for nine times as long as the slowdown took. */
#define SLOWDOWN_CWND 2u
#define SLOWDOWN_ROUNDS 2
#define SLOWDOWN_INTERVAL 9

struct state {
	TELEMETRY;

	u32 queueing_delay; /* microseconds */
	u32 target;         /* TARGET, ms */
	u32 inverse_gain;   /* 1 / GAIN */

	u32 base_minutes[BASE_MINUTES]; /* minimum RTT of each minute, this one's first; 0: none */
	u32 base_before;                /* minimum of the minutes before this one; 0: none */
	u64 minute_start;
	u32 current[CURRENT_SAMPLES];
	u32 samples;

	u64 credit;    /* fraction of a packet of growth */
	u64 decrement; /* fraction of a packet of decrease, 1/1024 */

	bool initial;           /* the first slow start has not ended */
	bool slowing;           /* between a slowdown's start and the end of its ramp */
	u64 slowdown_due;       /* microseconds; 0: not planned */
	u64 slowdown_start;
	u32 slowdown_rounds; /* left of it at two packets */
	u32 round_end;       /* the present one ends when this is acknowledged */
	u32 ramp_to;         /* the window to return to after a loss in the slowdown; 0: none */
};

TL_INLINE u32 minimum(u32 a, u32 b)
{
	return !a || (b && b < a) ? b : a;
}

/* RFC 6817 section 2.4.2, update_base_delay, with RTTs (section 4.5). */
TL_INLINE u32 update_base(struct tcp_sock *tp, struct state *ca, u32 rtt)
{
	if (tp->tcp_mstamp - ca->minute_start >= MINUTE_US) {
		ca->base_before = 0;
		for (int i = BASE_MINUTES - 1; i > 0; i--) {
			ca->base_minutes[i] = ca->base_minutes[i - 1];
			ca->base_before = minimum(ca->base_before, ca->base_minutes[i]);
		}
		ca->base_minutes[0] = 0;
		ca->minute_start = tp->tcp_mstamp;
	}
	ca->base_minutes[0] = minimum(ca->base_minutes[0], rtt);
	return minimum(ca->base_before, ca->base_minutes[0]);
}

/* RFC 6817 section 2.4.2, update_current_delay and its filter. */
TL_INLINE u32 update_current(struct state *ca, u32 rtt)
{
	for (int i = CURRENT_SAMPLES - 1; i > 0; i--)
		ca->current[i] = ca->current[i - 1];
	ca->current[0] = rtt;
	for (int i = 1; i < CURRENT_SAMPLES; i++)
		rtt = minimum(rtt, ca->current[i]);
	return rtt;
}

/* Section 4.2: GAIN = 1 / min(16, ceil(2 TARGET / base)), so that a short path is not overrun. */
TL_INLINE u32 inverse_gain(struct sock *sk, u32 base)
{
	u32 twice_target = 2 * PARAM(sk, target) * USEC_PER_MSEC;

	base = max(base, 1u);
	return clamp((twice_target + base - 1) / base, 1u, PARAM(sk, gain_divisor));
}

/* Section 4.1: GAIN packets for each one acknowledged, up to the threshold. */
TL_INLINE void slow_start(struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u32 divisor = max(ca->inverse_gain, 1u), cwnd = tp->snd_cwnd;
	u64 steps;

	if (!tcp_is_cwnd_limited(tp))
		return;
	ca->credit += acked;
	steps = ca->credit / divisor;
	ca->credit -= steps * divisor;
	if (cwnd < tp->snd_ssthresh)
		cwnd = min((u64)cwnd + steps, (u64)tp->snd_ssthresh);
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
}

/* Section 4.4: the first slowdown comes two round trips after the first slow start. */
TL_INLINE void end_slow_start(struct sock *sk, struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, CONGESTION_AVOIDANCE);
	ca->credit = 0;
	if (ca->initial && PARAM(sk, slowdowns))
		ca->slowdown_due = tp->tcp_mstamp + 2 * (tp->srtt_us >> 3);
	ca->initial = false;
}

/* Section 4.4: the window as it is becomes the one to return to. */
TL_INLINE void begin_slowdown(struct tcp_sock *tp, struct state *ca)
{
	ENTER(ca, SLOWDOWN);
	ca->slowing = true;
	ca->slowdown_start = tp->tcp_mstamp;
	ca->slowdown_rounds = SLOWDOWN_ROUNDS;
	ca->round_end = tp->snd_nxt;
	ca->credit = 0;
	ca->decrement = 0;
	tp->snd_ssthresh = max(tp->snd_cwnd, SLOWDOWN_CWND);
	tp->snd_cwnd = SLOWDOWN_CWND;
}

/* Section 4.4: the next slowdown comes nine times as long after this one as this one took. */
TL_INLINE void end_ramp(struct tcp_sock *tp, struct state *ca)
{
	u64 took = tp->tcp_mstamp - ca->slowdown_start;

	ENTER(ca, CONGESTION_AVOIDANCE);
	ca->slowing = false;
	ca->credit = 0;
	ca->slowdown_due = tp->tcp_mstamp + max(SLOWDOWN_INTERVAL * took, (u64)USEC_PER_MSEC);
}

/*
 * Section 4.3: W (delay / target - 1) packets less a round trip. GAIN more come on top; the two together are half
 * a window less at most, so the decrease alone may be GAIN beyond that.
 */
TL_INLINE void shrink(struct sock *sk, struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u32 target = PARAM(sk, target) * USEC_PER_MSEC, cwnd = tp->snd_cwnd;
	u64 part = (u64)(ca->queueing_delay - target) * PARAM(sk, decrease) / max(target, 1u);
	u64 maximum = MAX_DECREASE + 1024 / max((u64)ca->inverse_gain * cwnd, 1ull);
	u64 steps;

	/* 1/1024 of a packet for each one acknowledged; a window of them is a round trip. */
	ca->decrement += min(part, maximum) * min(acked, cwnd);
	steps = ca->decrement >> 10;
	ca->decrement &= 1023;
	cwnd = steps < cwnd ? cwnd - steps : 0;
	tp->snd_cwnd = max(cwnd, SLOWDOWN_CWND);
	/* A window reached this way does not call for a slow start. */
	tp->snd_ssthresh = max(min(tp->snd_ssthresh, tp->snd_cwnd), 2u);
}

TL_INLINE void avoid_congestion(struct sock *sk, struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u32 target = PARAM(sk, target) * USEC_PER_MSEC;

	if (ca->slowdown_due && tp->tcp_mstamp >= ca->slowdown_due) {
		begin_slowdown(tp, ca);
		return;
	}
	if (ca->queueing_delay > target)
		shrink(sk, tp, ca, acked);
	if (tcp_is_cwnd_limited(tp))
		tl_increase(tp, &ca->credit, 256 / max(ca->inverse_gain, 1u), acked);
}

INIT(sk, tp, ca)
{
	ca->initial = true;
	ca->target = PARAM(sk, target);
	ca->minute_start = tp->tcp_mstamp;
	ca->inverse_gain = PARAM(sk, gain_divisor);
	/* Section 4.1. Only the SYN was delivered, or this is not the start of a connection. */
	if (tp->delivered <= 1)
		tp->snd_cwnd = min(tp->snd_cwnd, INITIAL_WINDOW);
}

PKTS_ACKED(sk, tp, ca, sample)
{
	u32 rtt, base, current;

	if (sample->rtt_us < 0)
		return;
	rtt = min(max((u32)sample->rtt_us, 1u), MAX_RTT);
	base = update_base(tp, ca, rtt);
	current = update_current(ca, rtt);
	ca->queueing_delay = current > base ? current - base : 0;
	ca->inverse_gain = inverse_gain(sk, base);
	ca->telemetry.min_rtt_us = base;
}

CONG_AVOID(sk, tp, ca, ack, acked)
{
	/* After a timeout TCP leaves one packet; LEDBAT++ has two at least. */
	tp->snd_cwnd = max(tp->snd_cwnd, SLOWDOWN_CWND);

	switch (ca->telemetry.phase) {
	case SLOW_START:
		/* Section 4.1: the first one ends at three quarters of the target, before there is loss. */
		if (ca->initial && ca->queueing_delay > PARAM(sk, target) * USEC_PER_MSEC / 4 * 3)
			tp->snd_ssthresh = max(tp->snd_cwnd, 2u);
		else
			slow_start(tp, ca, acked);
		if (!tcp_in_slow_start(tp))
			end_slow_start(sk, tp, ca);
		break;
	case SLOWDOWN:
		if (before(tp->snd_una, ca->round_end))
			break;
		ca->round_end = tp->snd_nxt;
		if (!--ca->slowdown_rounds)
			ENTER(ca, RAMP);
		break;
	case RAMP:
		slow_start(tp, ca, acked);
		if (!tcp_in_slow_start(tp))
			end_ramp(tp, ca);
		break;
	default:
		avoid_congestion(sk, tp, ca, acked);
	}
}

SSTHRESH(sk, tp, ca)
{
	/* RFC 6817 section 2.4.2: at most half, once a round trip, which is TCP's recovery. */
	ca->credit = 0;
	ca->decrement = 0;
	if (ca->telemetry.phase == SLOWDOWN)
		ca->ramp_to = max(tp->snd_ssthresh / 2, 2u);
	return max(tp->snd_cwnd / 2, 2u);
}

SET_STATE(sk, tp, ca, state)
{
	if (state >= TCP_CA_CWR) {
		ENTER(ca, RECOVERY);
	} else if (ca->telemetry.phase == RECOVERY) {
		if (ca->ramp_to)
			tp->snd_ssthresh = ca->ramp_to;
		ca->ramp_to = 0;
		if (tcp_in_slow_start(tp))
			ENTER(ca, ca->slowing ? RAMP : SLOW_START);
		else if (ca->slowing)
			end_ramp(tp, ca);
		else
			end_slow_start(sk, tp, ca);
	}
}

CWND_EVENT(sk, tp, ca, event)
{
	/* The window is TCP's again after a timeout, and after a pause. */
	if (event == CA_EVENT_LOSS || event == CA_EVENT_CWND_RESTART)
		ca->credit = 0;
}

UNDO_CWND(sk, tp, ca)
{
	/* TCP restores the threshold, which is the window to return to. */
	ca->ramp_to = 0;
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
