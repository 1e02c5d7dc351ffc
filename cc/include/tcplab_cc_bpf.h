/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The running kernel's side of tcplab_cc.h: the kernel fields that controls use, and the operations as
 * struct_ops programs. The fields are found wherever the running kernel has them (CO-RE: the loader corrects
 * each access by the kernel's BTF). Nothing else of the kernel's headers is needed.
 */
#ifndef TCPLAB_CC_BPF_H
#define TCPLAB_CC_BPF_H

#define SEC(name) __attribute__((section(name), used))
#define TL_CORE __attribute__((preserve_access_index))

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u8 sk_pacing_shift;
} TL_CORE;

struct inet_sock {
	struct sock sk;
} TL_CORE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	struct {
		u8 pending;
	} icsk_ack;
} TL_CORE;

struct tcp_options_received {
	u16 sack_ok : 3;
} TL_CORE;

struct minmax_sample {
	u32 t;
	u32 v;
} TL_CORE;

struct minmax {
	struct minmax_sample s[3];
} TL_CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;
	u64 first_tx_mstamp;
	u64 delivered_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 is_cwnd_limited : 1;
	u32 snd_una;
	u32 snd_nxt;
	u32 high_seq;
	u32 mss_cache;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 segs_out;
	u8 ecn_flags;
	u32 rcv_nxt;
	u64 bytes_acked;
	struct tcp_options_received rx_opt;
} TL_CORE;

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
} TL_CORE;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} TL_CORE;

/* The loader matches members by name and takes the arguments' types from the kernel, not from here. */
typedef void tl_operation(void);
struct tcp_congestion_ops {
	tl_operation *init;
	tl_operation *ssthresh;
	tl_operation *cong_avoid;
	tl_operation *set_state;
	tl_operation *cwnd_event;
	tl_operation *in_ack_event;
	tl_operation *pkts_acked;
	tl_operation *min_tso_segs;
	tl_operation *cong_control;
	tl_operation *undo_cwnd;
	tl_operation *sndbuf_expand;
	u32 flags;
	char name[16];
};

/* Helpers by their numbers in the kernel's UAPI. */
static u32 (*tl_bpf_get_prandom_u32)(void) = (void *)7;
static void *(*tl_bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*tl_bpf_tcp_send_ack)(void *tp, u32 rcv_nxt) = (void *)116;
enum { TL_BPF_MAP_TYPE_SK_STORAGE = 24, TL_BPF_F_NO_PREALLOC = 1, TL_BPF_STORAGE_CREATE = 1 };

/*
 * A bit field has no address, so the loader is asked where its bytes are (0) and how many (1). The loader is
 * also asked by how much to shift the bytes left (4) and right (5) in 64 bits.
 */
#define TL_BIT_FIELD(s, field)                                                                         \
	({                                                                                             \
		const void *p_ = (const void *)(s) + __builtin_preserve_field_info((s)->field, 0);      \
		u64 bits_ = 0;                                                                          \
		__asm__ volatile("" : "+r"(p_));                                                        \
		switch (__builtin_preserve_field_info((s)->field, 1)) {                                 \
		case 1: bits_ = *(const u8 *)p_; break;                                                 \
		case 2: bits_ = *(const u16 *)p_; break;                                                \
		case 4: bits_ = *(const u32 *)p_; break;                                                \
		case 8: bits_ = *(const u64 *)p_; break;                                                \
		}                                                                                       \
		bits_ <<= __builtin_preserve_field_info((s)->field, 4);                                 \
		bits_ >> __builtin_preserve_field_info((s)->field, 5);                                  \
	})

#define TL_BPF_INLINE static inline __attribute__((unused, always_inline))

TL_BPF_INLINE struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

TL_BPF_INLINE u32 tl_ca_state(struct sock *sk)
{
	return TL_BIT_FIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

TL_BPF_INLINE bool tl_cwnd_limited(const struct tcp_sock *tp)
{
	return TL_BIT_FIELD(tp, is_cwnd_limited);
}

/* Whether the peer sends selective acknowledgments. */
TL_BPF_INLINE bool tcp_is_sack(const struct tcp_sock *tp)
{
	return TL_BIT_FIELD(tp, rx_opt.sack_ok);
}

/* Mainline's rate_sample has no count of losses at the sampled packet's departure. */
#define TL_KNOWS_PRIOR_LOST false
TL_BPF_INLINE u32 tl_prior_lost(const struct rate_sample *rs)
{
	return 0;
}

/* Linux's tcp_min_rtt: microseconds, all ones before the first sample. */
TL_BPF_INLINE u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

TL_BPF_INLINE u32 tl_random(struct sock *sk)
{
	return tl_bpf_get_prandom_u32();
}

TL_BPF_INLINE void tl_send_ack(struct tcp_sock *tp, u32 rcv_nxt)
{
	tl_bpf_tcp_send_ack(tp, rcv_nxt);
}

#ifdef PHASES
enum { PHASES(TL_PHASE_NUMBER) TL_PHASE_COUNT };
#endif

/* Read-only data, so the loader can set it and the verifier then takes it for constant. */
#define TL_PARAMETER_VALUE(name, initial, minimum, maximum, scale, doc) .name = initial,
#ifdef PARAMETERS
struct tl_parameters {
	PARAMETERS(TL_PARAMETER_MEMBER)
};
const volatile struct tl_parameters tl_parameters SEC(".rodata") = { PARAMETERS(TL_PARAMETER_VALUE) };
#define PARAM(sk, name) (tl_parameters.name)
#endif

/* Sections that do not reach the kernel. */
const char tl_name[TL_NAME_SIZE] SEC("tcplab.name") = TL_STRING(CONTROL);
#ifdef PHASES
const char tl_phases[][TL_NAME_SIZE] SEC("tcplab.phases") = { PHASES(TL_PHASE_NAME) };
#endif
#ifdef PARAMETERS
const struct tl_parameter_row tl_parameter_rows[] SEC("tcplab.parameters") = { PARAMETERS(TL_PARAMETER_ROW) };
#endif

/* The control's state lives in socket storage, which goes with the socket. */
struct state;
struct {
	int (*type)[TL_BPF_MAP_TYPE_SK_STORAGE];
	int (*map_flags)[TL_BPF_F_NO_PREALLOC];
	int *key;
	struct state *value;
} tl_state SEC(".maps");

char tl_license[] SEC("license") = "Dual MIT/GPL";

/*
 * `cong_control` was given (sk, rs) before Linux 6.10 and (sk, ack, flag, rs) since. Distributions change older
 * kernels, so crates/kernelcc counts the arguments in the kernel's types. Another loader leaves 0 here, and the
 * version decides.
 */
const volatile u32 tl_cong_control_arguments SEC(".rodata") = 0;
extern int LINUX_KERNEL_VERSION __attribute__((section(".kconfig")));
#define TL_LINUX_6_10 ((6 << 16) + (10 << 8))

/*
 * A control may write `app_limited` since Linux 6.4 (bpf_tcp_ca_btf_struct_access). crates/kernelcc says 1 where it
 * may not and 2 where it may. Being constants, they keep the branch that is not taken from the verifier.
 */
const volatile u32 tl_app_limited_access SEC(".rodata") = 0;
#define TL_LINUX_6_4 ((6 << 16) + (4 << 8))
#define TL_WRITES_APP_LIMITED \
	(tl_app_limited_access ? tl_app_limited_access == 2 : LINUX_KERNEL_VERSION >= TL_LINUX_6_4)

/* An operation that is left to the kernel's default here has a TL_LEFT_OUT_ of its name. */
#define TL_SECOND_(a, b, ...) b
#define TL_SECOND(...) TL_SECOND_(__VA_ARGS__)
#define OP(op) TL_SECOND(TL_LEFT_OUT_##op, (void *)TL_JOIN(CONTROL, _##op), ~)

#define TL_PROGRAM(type, op) SEC("struct_ops/" #op) type TL_JOIN(CONTROL, _##op)(u64 *ctx)

#define TL_INIT(sk, tp, ca)                                                                            \
	static const u64 tl_has_init = 1;                                                               \
	static void op_init(struct sock *, struct tcp_sock *, struct state *);                          \
	TL_PROGRAM(void, init)                                                                          \
	{                                                                                              \
		struct sock *sk_ = (void *)ctx[0];                                                      \
		struct state *ca_ = tl_bpf_sk_storage_get(&tl_state, sk_, NULL, TL_BPF_STORAGE_CREATE); \
		if (!ca_)                                                                               \
			return;                                                                        \
		__builtin_memset(ca_, 0, sizeof(*ca_));                                                 \
		op_init(sk_, tcp_sk(sk_), ca_);                                                         \
	}                                                                                              \
	TL_BODY(void, init, sk, tp, ca)

#define TL_PAIRS_(z, a, b, c, d, pairs, ...) pairs
#define TL_PAIRS(...) TL_PAIRS_(z, ##__VA_ARGS__, 2, x, 1, x, 0, x)
#define TL_OP(type, op, otherwise, sk, tp, ca, ...) \
	TL_JOIN(TL_OP_, TL_PAIRS(__VA_ARGS__))(type, op, otherwise, sk, tp, ca, ##__VA_ARGS__)

#define TL_BODY(type, op, sk, tp, ca, ...) \
	TL_BPF_INLINE type op_##op(struct sock *sk, struct tcp_sock *tp, struct state *ca, ##__VA_ARGS__)

/*
 * Whether there is an INIT, which makes the storage. Without one the first operation makes it. Where INIT comes after
 * other operations, this is C's tentative definition, and INIT's is the one that counts.
 */
static const u64 tl_has_init;

/* With INIT, storage is missing only before it and where the kernel had no memory for it. */
#define TL_FIND_STATE(otherwise)                                                                       \
	struct sock *sk_ = (void *)ctx[0];                                                              \
	struct state *ca_ = tl_bpf_sk_storage_get(&tl_state, sk_, NULL,                                 \
						  tl_has_init ? 0 : TL_BPF_STORAGE_CREATE);             \
	if (!ca_)                                                                                      \
		return otherwise

#define TL_OP_0(type, op, otherwise, sk, tp, ca)                                                       \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *);                          \
	TL_PROGRAM(type, op)                                                                            \
	{                                                                                              \
		TL_FIND_STATE(otherwise);                                                               \
		return op_##op(sk_, tcp_sk(sk_), ca_);                                                  \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca)

#define TL_OP_1(type, op, otherwise, sk, tp, ca, ta, a)                                                \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *, ta);                      \
	TL_PROGRAM(type, op)                                                                            \
	{                                                                                              \
		TL_FIND_STATE(otherwise);                                                               \
		return op_##op(sk_, tcp_sk(sk_), ca_, (ta)ctx[1]);                                      \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca, ta a)

#define TL_OP_2(type, op, otherwise, sk, tp, ca, ta, a, tb, b)                                         \
	static type op_##op(struct sock *, struct tcp_sock *, struct state *, ta, tb);                  \
	TL_PROGRAM(type, op)                                                                            \
	{                                                                                              \
		TL_FIND_STATE(otherwise);                                                               \
		return op_##op(sk_, tcp_sk(sk_), ca_, (ta)ctx[1], (tb)ctx[2]);                          \
	}                                                                                              \
	TL_BODY(type, op, sk, tp, ca, ta a, tb b)

/*
 * Left out. Measured on Linux 6.18 with any such program, even one that only returns 2: about once a second TCP sends
 * 30 to 90 segments at once. They leave in two GSO packets as large as can be, from a window of 800 and amid regular
 * pacing. The packets before came a millisecond apart, so neither the sender nor the emulator had been waiting. The
 * kernel counts no skipped run of the program. The kernel asks in one place, tcp_tso_segs, and takes the larger of the
 * answer and what the pacing rate gives. So at such a moment the kernel has read a larger answer than 2, or a far
 * larger pacing rate. Which of them is not known. The kernel's default is tcp_min_tso_segs = 2, which differs from what
 * BBR asks for below 1.2 Mbit/s only.
 */
#define TL_LEFT_OUT_min_tso_segs ~, (void *)0
#define TL_MIN_TSO_SEGS(sk, tp, ca) TL_BODY(u32, min_tso_segs, sk, tp, ca)

/* The compiler must not join the two reads: the verifier wants each argument at a constant offset. */
#define TL_CONG_CONTROL(sk, tp, ca, rs)                                                                \
	static void op_cong_control(struct sock *, struct tcp_sock *, struct state *,                   \
				    const struct rate_sample *);                                        \
	TL_PROGRAM(void, cong_control)                                                                  \
	{                                                                                              \
		const struct rate_sample *rs_;                                                          \
		TL_FIND_STATE((void)0);                                                                 \
		if (tl_cong_control_arguments ? tl_cong_control_arguments >= 4                          \
					      : LINUX_KERNEL_VERSION >= TL_LINUX_6_10)                  \
			__asm__ volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs_) : "r"(ctx));              \
		else                                                                                   \
			__asm__ volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs_) : "r"(ctx));               \
		op_cong_control(sk_, tcp_sk(sk_), ca_, rs_);                                            \
	}                                                                                              \
	TL_BODY(void, cong_control, sk, tp, ca, const struct rate_sample *rs)

/* Like the other tables, but behind struct state, which they point into. */
#ifdef GAUGES
#define TL_GAUGE_TABLE                                                                                 \
	GAUGES(TL_CHECK_GAUGE)                                                                         \
	const struct tl_gauge_row tl_gauge_rows[] SEC("tcplab.gauges") = { GAUGES(TL_GAUGE_ROW) };
#else
#define TL_GAUGE_TABLE
#endif

#define CONGESTION_CONTROL(...)                                                                        \
	TL_CHECK_STATE                                                                                 \
	TL_GAUGE_TABLE                                                                                 \
	SEC(".struct_ops")                                                                             \
	struct tcp_congestion_ops TL_JOIN(tl_, CONTROL) = {                                             \
		.name = "tl_" TL_STRING(CONTROL),                                                       \
		__VA_ARGS__                                                                             \
	}

#endif
