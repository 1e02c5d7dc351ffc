/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The simulator's side of tcplab_cc.h: its socket, and a table per control that crates/control reads.
 * Field names and units are Linux's. The structures are the twins of those in crates/control/src/sock.rs,
 * member for member; a test there compares the layouts.
 */
#ifndef TCPLAB_CC_NATIVE_H
#define TCPLAB_CC_NATIVE_H

#include <stddef.h>

struct sock {
	u64 sk_pacing_rate;
	u64 sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_pacing_shift;
};

struct inet_connection_sock {
	struct sock sk;
	u32 icsk_ca_state;
	u32 icsk_retransmits;
	struct {
		u32 pending;
	} icsk_ack;
	u32 tl_acks_asked;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;
	u64 tcp_clock_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 snd_una;
	u32 snd_nxt;
	u32 segs_out;
	u32 ecn_flags;
	u32 rcv_nxt;
	u32 tl_ack_nxt;
	u32 srtt_us;
	u32 rtt_min_us;
	u64 first_tx_mstamp;
	u64 delivered_mstamp;
	u64 tcp_wstamp_ns;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 is_cwnd_limited;
	u32 high_seq;
	u32 mss_cache;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u64 bytes_acked;
	void *tl_state;
	const void *tl_params;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u64 tl_random;
	u32 tl_ack_ecn_flags;
	u32 sack_ok;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	s64 interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	s64 rtt_us;
	s32 losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	u32 tl_prior_lost;
	u8 is_app_limited;
	u8 is_retrans;
	u8 is_ack_delayed;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

/* A control may write `app_limited`, which old kernels refuse it. */
#define TL_WRITES_APP_LIMITED true

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline u32 tl_ca_state(struct sock *sk)
{
	return tcp_sk(sk)->inet_conn.icsk_ca_state;
}

static inline bool tl_cwnd_limited(const struct tcp_sock *tp)
{
	return tp->is_cwnd_limited;
}

/* Whether the peer sends selective acknowledgments. */
static inline bool tcp_is_sack(const struct tcp_sock *tp)
{
	return tp->sack_ok;
}

/* The count of losses when the sampled packet left. */
#define TL_KNOWS_PRIOR_LOST true
static inline u32 tl_prior_lost(const struct rate_sample *rs)
{
	return rs->tl_prior_lost;
}

/* Linux's tcp_min_rtt: microseconds, all ones before the first sample. */
static inline u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min_us;
}

/* The endpoint sends it when the event is over, with the flags of now. */
static inline void tl_send_ack(struct tcp_sock *tp, u32 rcv_nxt)
{
	tp->inet_conn.tl_acks_asked++;
	tp->tl_ack_nxt = rcv_nxt;
	tp->tl_ack_ecn_flags = tp->ecn_flags;
}

/* A step of xorshift64*: 32 random bits from the connection's own stream. */
static inline u32 tl_random(struct sock *sk)
{
	u64 x = tcp_sk(sk)->tl_random | 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	tcp_sk(sk)->tl_random = x;
	return (u32)((x * 0x2545f4914f6cdd1dull) >> 32);
}

/* The interface of a control; crates/control/src/binding.rs has the twins of what follows. */
struct tcp_congestion_ops {
	void (*init)(struct tcp_sock *);
	u32 (*ssthresh)(struct tcp_sock *);
	void (*cong_avoid)(struct tcp_sock *, u32 ack, u32 acked);
	void (*set_state)(struct tcp_sock *, u8 state);
	void (*cwnd_event)(struct tcp_sock *, u32 event);
	void (*in_ack_event)(struct tcp_sock *, u32 flags);
	void (*pkts_acked)(struct tcp_sock *, const struct ack_sample *);
	u32 (*min_tso_segs)(struct tcp_sock *);
	void (*cong_control)(struct tcp_sock *, u32 ack, u32 flags, const struct rate_sample *);
	u32 (*undo_cwnd)(struct tcp_sock *);
	u32 (*sndbuf_expand)(struct tcp_sock *);
	u32 flags;
};

struct tl_control {
	const char *name;
	const char (*phases)[TL_NAME_SIZE];
	const struct tl_parameter_row *parameters;
	const struct tl_gauge_row *gauges;
	u32 phase_count;
	u32 parameter_count;
	u32 gauge_count;
	u32 state_size;
	struct tcp_congestion_ops ops;
};

#ifdef CONTROL

struct state;

#ifdef PHASES
enum { PHASES(TL_PHASE_NUMBER) TL_PHASE_COUNT };
#else
#define PHASES(PHASE)
enum { TL_PHASE_COUNT };
#endif

/* One block of numbers a connection, in the order they are declared. */
#ifdef PARAMETERS
struct tl_parameters {
	PARAMETERS(TL_PARAMETER_MEMBER)
};
enum { TL_PARAMETER_COUNT = sizeof(struct tl_parameters) / sizeof(u32) };
#define PARAM(sk, name) (((const struct tl_parameters *)tcp_sk(sk)->tl_params)->name)
#else
#define PARAMETERS(PARAMETER)
enum { TL_PARAMETER_COUNT };
#endif

#ifndef GAUGES
#define GAUGES(GAUGE)
#endif

#define OP(op) tl_call_##op

/*
 * A file of a user's own runs in a process of its own, which may crash in it or never return. So each operation notes
 * that it runs, where another process can see it: python/tcplab/cc/watch.py has the twin. Times are tcp_mstamp.
 */
#ifdef TL_SHARED
struct tl_watch {
	u64 time;
	u64 operation; /* the one that runs, by its place in struct tcp_congestion_ops from 1 on; 0: none */
	u64 no_window_time;
	u64 no_window; /* the first operation that left snd_cwnd at 0 */
};
static struct tl_watch tl_unwatched;
extern volatile struct tl_watch *tl_watched;
volatile struct tl_watch *tl_watched = &tl_unwatched;

static inline void tl_over(const struct tcp_sock **tp)
{
	__asm__ volatile("" ::: "memory");
	if (!(*tp)->snd_cwnd && !tl_watched->no_window) {
		tl_watched->no_window_time = (*tp)->tcp_mstamp;
		tl_watched->no_window = tl_watched->operation;
	}
	tl_watched->operation = 0;
}

#define TL_WATCH(op)                                                                                   \
	const struct tcp_sock *tl_watched_tp __attribute__((cleanup(tl_over), unused)) = tp_;           \
	tl_watched->time = tp_->tcp_mstamp;                                                             \
	tl_watched->operation = offsetof(struct tcp_congestion_ops, op) / sizeof(void *) + 1;           \
	__asm__ volatile("" ::: "memory")
#else
#define TL_WATCH(op)
#endif

#define TL_INIT(sk, tp, ca)                                                                            \
	static void op_init(struct sock *, struct tcp_sock *, struct state *);                          \
	static void tl_call_init(struct tcp_sock *tp_)                                                  \
	{                                                                                              \
		TL_WATCH(init);                                                                         \
		__builtin_memset(tp_->tl_state, 0, sizeof(struct state));                               \
		op_init(&tp_->inet_conn.sk, tp_, tp_->tl_state);                                        \
	}                                                                                              \
	static inline void op_init(struct sock *sk __attribute__((unused)),                             \
				   struct tcp_sock *tp __attribute__((unused)),                         \
				   struct state *ca __attribute__((unused)))

#define TL_PAIRS_(z, a, b, c, d, pairs, ...) pairs
#define TL_PAIRS(...) TL_PAIRS_(z, ##__VA_ARGS__, 2, x, 1, x, 0, x)
#define TL_OP(type, op, otherwise, sk, tp, ca, ...) \
	TL_JOIN(TL_OP_, TL_PAIRS(__VA_ARGS__))(type, op, sk, tp, ca, ##__VA_ARGS__)

#define TL_BODY(type, op, sk, tp, ca, ...)                                                             \
	static inline type op_##op(struct sock *sk __attribute__((unused)),                             \
				   struct tcp_sock *tp __attribute__((unused)),                         \
				   struct state *ca __attribute__((unused)), ##__VA_ARGS__)

#define TL_OP_0(type, op, sk, tp, ca)                                                                  \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *);                          \
	static type tl_call_##op(struct tcp_sock *tp_)                                                  \
	{                                                                                              \
		TL_WATCH(op);                                                                           \
		return op_##op(&tp_->inet_conn.sk, tp_, tp_->tl_state);                                 \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca)

#define TL_OP_1(type, op, sk, tp, ca, ta, a)                                                           \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *, ta);                      \
	static type tl_call_##op(struct tcp_sock *tp_, ta a_)                                           \
	{                                                                                              \
		TL_WATCH(op);                                                                           \
		return op_##op(&tp_->inet_conn.sk, tp_, tp_->tl_state, a_);                             \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca, ta a __attribute__((unused)))

#define TL_OP_2(type, op, sk, tp, ca, ta, a, tb, b)                                                    \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *, ta, tb);                  \
	static type tl_call_##op(struct tcp_sock *tp_, ta a_, tb b_)                                    \
	{                                                                                              \
		TL_WATCH(op);                                                                           \
		return op_##op(&tp_->inet_conn.sk, tp_, tp_->tl_state, a_, b_);                         \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca, ta a __attribute__((unused)), tb b __attribute__((unused)))

#define TL_MIN_TSO_SEGS(sk, tp, ca) TL_OP(u32, min_tso_segs, 2, sk, tp, ca)

#define TL_CONG_CONTROL(sk, tp, ca, rs)                                                                \
	static void op_cong_control(struct sock *, struct tcp_sock *, struct state *,                   \
				    const struct rate_sample *);                                        \
	static void tl_call_cong_control(struct tcp_sock *tp_, u32 ack __attribute__((unused)),         \
					 u32 flags __attribute__((unused)),                             \
					 const struct rate_sample *rs_)                                 \
	{                                                                                              \
		TL_WATCH(cong_control);                                                                 \
		op_cong_control(&tp_->inet_conn.sk, tp_, tp_->tl_state, rs_);                           \
	}                                                                                              \
	TL_BODY(void, cong_control, sk, tp, ca, const struct rate_sample *rs)

/*
 * In a shared object the tables stand in sections of their own, and whoever opens it finds the control without
 * knowing its name. A table says which operations there are, too: within tl_tell their names are numbers.
 */
#ifdef TL_SHARED
#define TL_TABLE(name) __attribute__((section("tcplab." name), used))
struct tl_operations {
	u64 init, ssthresh, cong_avoid, set_state, cwnd_event, in_ack_event, pkts_acked, min_tso_segs;
	u64 cong_control, undo_cwnd, sndbuf_expand, flags;
};
#define TL_EXPORT(...)                                                                                 \
	static const char tl_name[TL_NAME_SIZE] TL_TABLE("name") = TL_STRING(CONTROL);                  \
	static void __attribute__((used)) tl_tell(void)                                                 \
	{                                                                                              \
		enum {                                                                                  \
			OP(init) = 1, OP(ssthresh) = 1, OP(cong_avoid) = 1, OP(set_state) = 1,          \
			OP(cwnd_event) = 1, OP(in_ack_event) = 1, OP(pkts_acked) = 1,                   \
			OP(min_tso_segs) = 1, OP(cong_control) = 1, OP(undo_cwnd) = 1,                  \
			OP(sndbuf_expand) = 1,                                                          \
		};                                                                                      \
		static const struct tl_operations operations TL_TABLE("operations") = { __VA_ARGS__ };  \
	}                                                                                              \
	extern const struct tl_control *const tl_exported;                                              \
	const struct tl_control *const tl_exported = &TL_JOIN(tl_control_, CONTROL)
#else
#define TL_TABLE(name)
#define TL_EXPORT(...) struct tl_control
#endif

/* The one exported symbol of a control: tl_control_NAME. */
#define CONGESTION_CONTROL(...)                                                                        \
	TL_CHECK_STATE                                                                                 \
	GAUGES(TL_CHECK_GAUGE)                                                                         \
	static const char tl_phases[][TL_NAME_SIZE] TL_TABLE("phases") = { PHASES(TL_PHASE_NAME) };     \
	static const struct tl_parameter_row tl_parameter_rows[] TL_TABLE("parameters") = {             \
		PARAMETERS(TL_PARAMETER_ROW)                                                            \
	};                                                                                             \
	static const struct tl_gauge_row tl_gauge_rows[] TL_TABLE("gauges") = { GAUGES(TL_GAUGE_ROW) }; \
	extern const struct tl_control TL_JOIN(tl_control_, CONTROL);                                   \
	const struct tl_control TL_JOIN(tl_control_, CONTROL) = {                                       \
		.name = TL_STRING(CONTROL),                                                             \
		.phases = tl_phases,                                                                    \
		.parameters = tl_parameter_rows,                                                        \
		.gauges = tl_gauge_rows,                                                                \
		.phase_count = TL_PHASE_COUNT,                                                          \
		.parameter_count = TL_PARAMETER_COUNT,                                                  \
		.gauge_count = sizeof(tl_gauge_rows) / sizeof(struct tl_gauge_row),                     \
		.state_size = sizeof(struct state),                                                     \
		.ops = { __VA_ARGS__ },                                                                 \
	};                                                                                             \
	TL_EXPORT(__VA_ARGS__)

#endif
#endif
