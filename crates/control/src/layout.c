/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the C compiler put what controls see, for the test of layout.rs. */
#define TL_LAYOUT
#include "tcplab_cc.h"

struct tl_layout_row {
	const char *member;
	u32 offset;
	u32 size;
};

#define ROW_OF(type, member, path) { #type "." #member, offsetof(struct type, path), sizeof(((struct type *)0)->path) },
#define ROW(type, member) ROW_OF(type, member, member)
#define END { NULL, 0, 0 }

extern const struct tl_layout_row tl_layout[];
const struct tl_layout_row tl_layout[] = {
	ROW_OF(tcp_sock, sk_pacing_rate, inet_conn.sk.sk_pacing_rate)
	ROW_OF(tcp_sock, sk_max_pacing_rate, inet_conn.sk.sk_max_pacing_rate)
	ROW_OF(tcp_sock, sk_pacing_status, inet_conn.sk.sk_pacing_status)
	ROW_OF(tcp_sock, sk_pacing_shift, inet_conn.sk.sk_pacing_shift)
	ROW_OF(tcp_sock, icsk_ca_state, inet_conn.icsk_ca_state)
	ROW_OF(tcp_sock, icsk_retransmits, inet_conn.icsk_retransmits)
	ROW_OF(tcp_sock, icsk_ack_pending, inet_conn.icsk_ack.pending)
	ROW_OF(tcp_sock, tl_acks_asked, inet_conn.tl_acks_asked)
	ROW(tcp_sock, tcp_mstamp)
	ROW(tcp_sock, first_tx_mstamp)
	ROW(tcp_sock, delivered_mstamp)
	ROW(tcp_sock, tcp_clock_cache)
	ROW(tcp_sock, tcp_wstamp_ns)
	ROW(tcp_sock, snd_cwnd)
	ROW(tcp_sock, snd_ssthresh)
	ROW(tcp_sock, snd_cwnd_cnt)
	ROW(tcp_sock, snd_cwnd_clamp)
	ROW(tcp_sock, prior_cwnd)
	ROW(tcp_sock, prior_ssthresh)
	ROW(tcp_sock, packets_out)
	ROW(tcp_sock, sacked_out)
	ROW(tcp_sock, lost_out)
	ROW(tcp_sock, retrans_out)
	ROW(tcp_sock, max_packets_out)
	ROW(tcp_sock, is_cwnd_limited)
	ROW(tcp_sock, snd_una)
	ROW(tcp_sock, snd_nxt)
	ROW(tcp_sock, high_seq)
	ROW(tcp_sock, mss_cache)
	ROW(tcp_sock, srtt_us)
	ROW(tcp_sock, rtt_min_us)
	ROW(tcp_sock, delivered)
	ROW(tcp_sock, delivered_ce)
	ROW(tcp_sock, lost)
	ROW(tcp_sock, app_limited)
	ROW(tcp_sock, segs_out)
	ROW(tcp_sock, ecn_flags)
	ROW(tcp_sock, rcv_nxt)
	ROW(tcp_sock, tl_ack_nxt)
	ROW(tcp_sock, tl_ack_ecn_flags)
	ROW(tcp_sock, sack_ok)
	ROW(tcp_sock, bytes_acked)
	ROW(tcp_sock, tl_random)
	ROW(tcp_sock, tl_state)
	ROW(tcp_sock, tl_params)
	ROW(rate_sample, prior_mstamp)
	ROW(rate_sample, prior_delivered)
	ROW(rate_sample, prior_delivered_ce)
	ROW(rate_sample, delivered)
	ROW(rate_sample, delivered_ce)
	ROW(rate_sample, interval_us)
	ROW(rate_sample, snd_interval_us)
	ROW(rate_sample, rcv_interval_us)
	ROW(rate_sample, rtt_us)
	ROW(rate_sample, losses)
	ROW(rate_sample, acked_sacked)
	ROW(rate_sample, prior_in_flight)
	ROW(rate_sample, last_end_seq)
	ROW(rate_sample, tl_prior_lost)
	ROW(rate_sample, is_app_limited)
	ROW(rate_sample, is_retrans)
	ROW(rate_sample, is_ack_delayed)
	ROW(ack_sample, pkts_acked)
	ROW(ack_sample, rtt_us)
	ROW(ack_sample, in_flight)
	ROW(tl_telemetry, bandwidth)
	ROW(tl_telemetry, min_rtt_us)
	ROW(tl_telemetry, phase)
	ROW(tl_telemetry, pacing_gain)
	ROW(tl_telemetry, cwnd_gain)
	END
};
