/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The one header of a congestion control, which is one C file that runs in two places:
 *
 *   clang -target bpf   makes an eBPF object that the running kernel loads through struct_ops. The object
 *                       registers there as `tl_NAME` (Linux 5.13 or newer with BTF).
 *   any C compiler      makes the simulator's control `NAME`.
 *
 * A control is written so:
 *
 *   #define CONTROL name                          what it is called
 *   #define PHASES(PHASE) PHASE(A) PHASE(B)       its phases, first the one it starts in (optional)
 *
 *   #define PARAMETERS(PARAMETER) \               what can be set when it is loaded (optional):
 *           PARAMETER(name, default, minimum, maximum, scale, "what it is")
 *                                                 whole numbers; the user's value is number / scale
 *
 *   #define GAUGES(GAUGE) \                       what it shows of its state (optional):
 *           GAUGE(name, member, scale, "unit", "what it is")
 *                                                 member / scale is recorded; none while all its bits are set
 *
 *   #include "tcplab_cc.h"
 *
 *   struct state { TELEMETRY; u32 mine; };        private to a connection, zero when it begins
 *
 *   INIT(sk, tp, ca) { ... }                      one macro for each operation there is, below
 *   SSTHRESH(sk, tp, ca) { return ...; }
 *
 *   CONGESTION_CONTROL(.init = OP(init), .ssthresh = OP(ssthresh), ...);
 *
 * In an operation `sk` is the socket, `tp` the same as `struct tcp_sock`, `ca` the private state (never
 * null). Time is `tp->tcp_mstamp`, in microseconds. Numbers are integers; the kernel's verifier refuses
 * loops without a bound, unbounded array indices, and signed division.
 */
#ifndef TCPLAB_CC_H
#define TCPLAB_CC_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT8_TYPE__ s8;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;
typedef _Bool bool;
#define false 0
#define true 1
#define NULL ((void *)0)

/* Congestion avoidance states and events, numbered as in Linux. */
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { TCP_CONG_NEEDS_ECN = 2 };
/*
 * The control needs to know how many packets were marked (accurate ECN, RFC 9768); its packets are to be ECT(1). Linux
 * refuses a control with a flag that it does not know, so to the kernel these say nothing.
 */
#ifdef __bpf__
enum { TCP_CONG_NEEDS_ACCECN = 0, TCP_CONG_ECT_1 = 0 };
#else
enum { TCP_CONG_NEEDS_ACCECN = 4, TCP_CONG_ECT_1 = 8 };
#endif
/* Of ecn_flags: ECN was negotiated; acknowledgments echo congestion (ECE); instead of the first, accurate ECN was. */
enum { TCP_ECN_OK = 1, TCP_ECN_DEMAND_CWR = 4, TCP_ECN_MODE_ACCECN = 16 };
/* Of icsk_ack.pending: the timer of a delayed ACK runs; an ACK is due at once. */
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };
#define TCP_INFINITE_SSTHRESH 0x7fffffffu
#define TCP_INIT_CWND 10u
#define USEC_PER_MSEC 1000u
#define USEC_PER_SEC 1000000u

/* Every control's state begins with this; the tools read it by its offset. */
struct tl_telemetry {
	u64 bandwidth;   /* estimate, bit/s; 0: none */
	u32 min_rtt_us;  /* estimate; 0: none */
	u32 phase;       /* index into PHASES */
	u32 pacing_gain; /* in 1/256; 0: none */
	u32 cwnd_gain;   /* in 1/256; 0: none */
};
#define TELEMETRY struct tl_telemetry telemetry
#define ENTER(ca, which) ((ca)->telemetry.phase = (which))

/* Room for a name, a description and a gauge's unit, with the final zero. */
#define TL_NAME_SIZE 32
#define TL_DOC_SIZE 160
#define TL_UNIT_SIZE 16

/* A gauge is a whole number somewhere in struct state: where, how large, and whether it can be negative. */
#define TL_GAUGE_PLACE(member)                                                                         \
	__builtin_offsetof(struct state, member), sizeof(((struct state *)0)->member),                  \
		(__typeof__(((struct state *)0)->member))-1 < 1
#define TL_CHECK_GAUGE(name, member, scale, unit, doc)                                                 \
	_Static_assert(sizeof(#name) <= TL_NAME_SIZE, "GAUGES: the name " #name " is too long");        \
	_Static_assert(sizeof(unit) <= TL_UNIT_SIZE, "GAUGES: the unit of " #name " is too long");      \
	_Static_assert(sizeof(doc) <= TL_DOC_SIZE, "GAUGES: the description of " #name " is too long"); \
	_Static_assert((scale) > 0, "GAUGES: the scale of " #name " is not above zero");

#if !defined(CONTROL) && !defined(TL_LAYOUT)
#error "a control begins with `#define CONTROL name`, before it includes tcplab_cc.h"
#endif

/*
 * A list that is something else is said here, once, or else every use of its members would be an error. A list
 * without members is the same as none.
 */
#define TL_NOTHING(...)
#define TL_ONE(...) + 1
#define TL_REST_(...) 0 __VA_OPT__(+1)
#define TL_REST(...) TL_REST_(__VA_ARGS__)
#ifdef PHASES
#if TL_REST(PHASES(TL_NOTHING))
#error "PHASES is not a list: write #define PHASES(PHASE) PHASE(A) PHASE(B)"
#elif !(0 PHASES(TL_ONE))
#undef PHASES
#endif
#endif
#ifdef PARAMETERS
#if TL_REST(PARAMETERS(TL_NOTHING))
#error "PARAMETERS is not a list: write #define PARAMETERS(PARAMETER) PARAMETER(name, default, minimum, maximum, scale, \"what it is\")"
#elif !(0 PARAMETERS(TL_ONE))
#undef PARAMETERS
#endif
#endif
#ifdef GAUGES
#if TL_REST(GAUGES(TL_NOTHING))
#error "GAUGES is not a list: write #define GAUGES(GAUGE) GAUGE(name, member, scale, \"unit\", \"what it is\")"
#elif !(0 GAUGES(TL_ONE))
#undef GAUGES
#endif
#endif

#define TL_JOIN_(a, b) a##b
#define TL_JOIN(a, b) TL_JOIN_(a, b)
#define TL_STRING_(a) #a
#define TL_STRING(a) TL_STRING_(a)

/*
 * The description that a control gives of itself, in tables without a pointer in them. In an object they are sections
 * of their own, which are read there (crates/kernelcc), so that nothing of a file need run for its description.
 */
struct tl_parameter_row {
	char name[TL_NAME_SIZE];
	char doc[TL_DOC_SIZE];
	u32 initial;
	u32 minimum;
	u32 maximum;
	u32 scale;
};
struct tl_gauge_row {
	char name[TL_NAME_SIZE];
	char unit[TL_UNIT_SIZE];
	char doc[TL_DOC_SIZE];
	u32 offset;
	u32 size;
	u32 is_signed;
	u32 scale;
};
#define TL_PHASE_NUMBER(phase) phase,
#define TL_PHASE_NAME(phase) #phase,
#define TL_PARAMETER_MEMBER(name, initial, minimum, maximum, scale, doc) u32 name;
#define TL_PARAMETER_ROW(name, initial, minimum, maximum, scale, doc) { #name, doc, initial, minimum, maximum, scale },
#define TL_GAUGE_ROW(name, member, scale, unit, doc) { #name, unit, doc, TL_GAUGE_PLACE(member), scale },

/* The tools read telemetry at offset 0. */
#define TL_CHECK_STATE                                                                                 \
	_Static_assert(__builtin_offsetof(struct state, telemetry) == 0,                                \
		       "TELEMETRY is not the first member of struct state");

#ifdef __bpf__
#include "tcplab_cc_bpf.h"
#else
#include "tcplab_cc_native.h"
#endif

#ifdef CONTROL
/* Linux's TCP_CA_NAME_MAX, 16, with "tl_" before the name. */
_Static_assert(sizeof("tl_" TL_STRING(CONTROL)) <= 16, "the name of a CONTROL has at most 12 characters");
#define TL_CHECK_PHASE(phase) \
	_Static_assert(sizeof(#phase) <= TL_NAME_SIZE, "PHASES: the name " #phase " is too long");
#define TL_CHECK_PARAMETER(name, initial, minimum, maximum, scale, doc)                                     \
	_Static_assert(sizeof(#name) <= TL_NAME_SIZE, "PARAMETERS: the name " #name " is too long");    \
	_Static_assert(sizeof(doc) <= TL_DOC_SIZE, "PARAMETERS: the description of " #name " is too long"); \
	_Static_assert((scale) > 0, "PARAMETERS: the scale of " #name " is not above zero");            \
	_Static_assert((minimum) <= (initial) && (initial) <= (maximum),                                     \
		       "PARAMETERS: the default of " #name " is not between its minimum and its maximum");
#ifdef PHASES
PHASES(TL_CHECK_PHASE)
#endif
#ifdef PARAMETERS
PARAMETERS(TL_CHECK_PARAMETER)
#endif
#endif

/* min, max and clamp evaluate each argument once. */
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(x, minimum, maximum) min(max(x, minimum), maximum)

#define TL_INLINE static inline __attribute__((unused, always_inline))

/* Sequence numbers and 32-bit clocks wrap. */
TL_INLINE bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

TL_INLINE bool after(u32 a, u32 b)
{
	return before(b, a);
}

TL_INLINE bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* RFC 6675's pipe as Linux counts it: what was sent, less what arrived or was lost, and what was resent. */
TL_INLINE u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/*
 * Whether the window is about to be cut for an ECN mark alone (RFC 8511 asks for this distinction). True if packets
 * were marked since the last cut, and none is taken for lost now. The last cut's count of marked packets is in `seen`.
 */
TL_INLINE bool tl_only_marked(const struct tcp_sock *tp, u32 *seen)
{
	bool marked = tp->delivered_ce != *seen;

	*seen = tp->delivered_ce;
	return marked && !tp->lost_out;
}

/*
 * RFC 7661 section 4.1 and RFC 9438 section 5.8: a window that is not used must not grow. In slow start
 * a sender counts as limited by its window while it uses more than half, for the window doubles in a round.
 */
TL_INLINE bool tcp_is_cwnd_limited(const struct tcp_sock *tp)
{
	if (tl_cwnd_limited(tp))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/*
 * RFC 5681 section 3.1, counting packets (RFC 3465 without its limit): a packet for each packet
 * acknowledged, up to the threshold. Returns the acknowledged packets left for congestion avoidance.
 */
TL_INLINE u32 tl_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
	return acked;
}

/* One more packet of window for every `w` packets acknowledged. */
TL_INLINE void tl_additive_increase(struct tcp_sock *tp, u32 w, u32 acked)
{
	u32 count = tp->snd_cwnd_cnt, cwnd = tp->snd_cwnd, steps;

	w = max(w, 1u);
	/* `w` may have become smaller since the credit was counted: then one step, not a jump. */
	if (count >= w) {
		count = 0;
		cwnd++;
	}
	count += acked;
	steps = count / w;
	tp->snd_cwnd_cnt = count - steps * w;
	tp->snd_cwnd = min(cwnd + steps, tp->snd_cwnd_clamp);
}

/* Reno's growth (RFC 5681 section 3.1): slow start up to the threshold, then a packet a round trip. */
TL_INLINE void tl_grow_as_reno(struct tcp_sock *tp, u32 acked)
{
	if (tcp_in_slow_start(tp))
		acked = tl_slow_start(tp, acked);
	if (acked)
		tl_additive_increase(tp, tp->snd_cwnd, acked);
}

/* Windows larger than this are beyond what any path needs, packets: 24 GB. TCP's own pacing rate fits 64 bits. */
#define TL_MAX_CWND (1u << 24)

/*
 * `per_round` / 256 packets more window for each window acknowledged, the fraction being kept in `credit`.
 * For controls whose increase is not a whole number, or is more than a packet a round trip.
 */
TL_INLINE void tl_increase(struct tcp_sock *tp, u64 *credit, u32 per_round, u32 acked)
{
	u64 cwnd = max(tp->snd_cwnd, 1u), steps;

	*credit += (u64)per_round * acked;
	steps = *credit / (cwnd << 8);
	*credit -= steps * (cwnd << 8);
	cwnd = min(cwnd + steps, (u64)TL_MAX_CWND);
	tp->snd_cwnd = min((u32)cwnd, tp->snd_cwnd_clamp);
}

/* The rate of `packets` in `us` microseconds, in bit/s; 0: unknown. */
TL_INLINE u64 tl_bits_per_second(const struct tcp_sock *tp, u64 packets, u64 us)
{
	u64 bits = min(packets, (u64)TL_MAX_CWND) * (tp->mss_cache & 0xffff) * 8;

	/* In two steps, for the product would have 67 bits. */
	return us ? min(bits * 1000 / us, 1ull << 50) * 1000 : 0;
}

/* RFC 3522 and RFC 5682 after a reduction that proved spurious: back to the window before it. */
TL_INLINE u32 tl_undo_cwnd(const struct tcp_sock *tp)
{
	return max(tp->snd_cwnd, tp->prior_cwnd);
}

/* Whether acknowledgments echo congestion from now on. */
TL_INLINE void tl_echo_congestion(struct tcp_sock *tp, bool echo)
{
	if (echo)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* Lets TCP pace unless a queue discipline already does. */
TL_INLINE void tl_request_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* TSO bursts are what leaves in a second / 2^shift. Linux lets no eBPF control set this: there it is 10, a millisecond. */
TL_INLINE void tl_limit_bursts(struct sock *sk, u32 shift)
{
#ifndef __bpf__
	sk->sk_pacing_shift = shift;
#endif
}

/* The operations, as Linux calls them; each macro is followed by the body. */

/* The connection begins. */
#define INIT(sk, tp, ca) TL_INIT(sk, tp, ca)
/* Returns the slow-start threshold after a loss or an ECN echo. */
#define SSTHRESH(sk, tp, ca) TL_OP(u32, ssthresh, max(tcp_sk(sk_)->snd_cwnd / 2, 2u), sk, tp, ca)
/* Packets were newly acknowledged: grows the window. */
#define CONG_AVOID(sk, tp, ca, ack, acked) TL_OP(void, cong_avoid, (void)0, sk, tp, ca, u32, ack, u32, acked)
/* The congestion avoidance state is about to become `state`. */
#define SET_STATE(sk, tp, ca, state) TL_OP(void, set_state, (void)0, sk, tp, ca, u8, state)
/*
 * One of `tcp_ca_event`. CA_EVENT_ECN_IS_CE and CA_EVENT_ECN_NO_CE say whether arriving data was marked. Both events
 * come only to a control with TCP_CONG_NEEDS_ECN, after rcv_nxt has advanced. Then tl_send_ack(tp, n) acknowledges
 * up to `n` before anything else leaves.
 */
#define CWND_EVENT(sk, tp, ca, event) TL_OP(void, cwnd_event, (void)0, sk, tp, ca, u32, event)
/* An ACK arrived and is not yet processed. */
#define IN_ACK_EVENT(sk, tp, ca, flags) TL_OP(void, in_ack_event, (void)0, sk, tp, ca, u32, flags)
/* Packets were acknowledged; `sample->rtt_us` is their RTT, negative if unknown. */
#define PKTS_ACKED(sk, tp, ca, sample) \
	TL_OP(void, pkts_acked, (void)0, sk, tp, ca, const struct ack_sample *, sample)
/* Returns the minimum number of packets of a TSO burst. */
#define MIN_TSO_SEGS(sk, tp, ca) TL_MIN_TSO_SEGS(sk, tp, ca)
/* Sets window and pacing rate on each ACK, in place of CONG_AVOID and of TCP's own reduction. */
#define CONG_CONTROL(sk, tp, ca, rs) TL_CONG_CONTROL(sk, tp, ca, rs)
/* Returns the window to go back to when a reduction proves spurious. */
#define UNDO_CWND(sk, tp, ca) TL_OP(u32, undo_cwnd, tl_undo_cwnd(tcp_sk(sk_)), sk, tp, ca)
/* Returns how many windows the send buffer shall hold. */
#define SNDBUF_EXPAND(sk, tp, ca) TL_OP(u32, sndbuf_expand, 2, sk, tp, ca)

#endif
