//! The Rust and C sides agree on every member's place and size.

use core::ffi::{CStr, c_char};
use core::mem::offset_of;

use crate::binding::RawTelemetry;
use crate::{AckSample, RateSample, TcpSock};

#[repr(C)]
struct Row {
    member: *const c_char,
    offset: u32,
    size: u32,
}

unsafe extern "C" {
    #[link_name = "tl_layout"]
    static C_LAYOUT: Row;
}

/// A member as (name, offset, size), in the order of the table in layout.c.
type Member = (String, usize, usize);

fn c_layout() -> Vec<Member> {
    let mut members = Vec::new();
    // SAFETY: layout.c ends the table with a row whose name is null, and names are C strings.
    unsafe {
        let mut row = &raw const C_LAYOUT;
        while !(*row).member.is_null() {
            let name = CStr::from_ptr((*row).member).to_string_lossy().into_owned();
            members.push((name, (*row).offset as usize, (*row).size as usize));
            row = row.add(1);
        }
    }
    members
}

macro_rules! members {
    ($out:ident, $type:ident, $c_name:literal: $($member:ident)*) => {
        // Naming every member here is what makes the compiler refuse a member without a row.
        #[allow(dead_code)]
        fn complete(whole: $type) {
            let $type { $($member: _),* } = whole;
        }
        $($out.push((
            format!("{}.{}", $c_name, stringify!($member)),
            offset_of!($type, $member),
            size_of_member(|whole: &$type| &raw const whole.$member),
        ));)*
    };
}

fn size_of_member<T, M>(_: impl Fn(&T) -> *const M) -> usize {
    size_of::<M>()
}

fn rust_layout() -> Vec<Member> {
    let mut out = Vec::new();
    {
        members!(out, TcpSock, "tcp_sock":
            sk_pacing_rate sk_max_pacing_rate sk_pacing_status sk_pacing_shift icsk_ca_state icsk_retransmits icsk_ack_pending tl_acks_asked
            tcp_mstamp first_tx_mstamp delivered_mstamp tcp_clock_cache tcp_wstamp_ns
            snd_cwnd snd_ssthresh snd_cwnd_cnt snd_cwnd_clamp prior_cwnd prior_ssthresh
            packets_out sacked_out lost_out retrans_out max_packets_out is_cwnd_limited
            snd_una snd_nxt high_seq mss_cache srtt_us rtt_min_us
            delivered delivered_ce lost app_limited segs_out ecn_flags rcv_nxt tl_ack_nxt
            tl_ack_ecn_flags sack_ok bytes_acked
            tl_random tl_state tl_params);
    }
    {
        members!(out, RateSample, "rate_sample":
            prior_mstamp prior_delivered prior_delivered_ce delivered delivered_ce interval_us
            snd_interval_us rcv_interval_us rtt_us losses acked_sacked prior_in_flight last_end_seq
            tl_prior_lost is_app_limited is_retrans is_ack_delayed);
    }
    {
        members!(out, AckSample, "ack_sample": pkts_acked rtt_us in_flight);
    }
    {
        members!(out, RawTelemetry, "tl_telemetry": bandwidth min_rtt_us phase pacing_gain cwnd_gain);
    }
    out
}

#[test]
fn c_and_rust_see_the_same_socket() {
    assert_eq!(c_layout(), rust_layout());
}
