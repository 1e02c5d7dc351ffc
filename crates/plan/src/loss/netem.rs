//! The loss rate that results from netem's correlated random numbers.
//!
//! netem draws x' = (1 − c) u + c x with u uniform on [0, 1) and loses the packet when x' < p (`get_crandom` in
//! net/sched/sch_netem.c). The mix of two variates is not uniform any more: its middle is likelier than its ends, so
//! for small p far fewer packets are lost than asked for.

/// The share of packets lost in the long run, when `rate` is asked for at `correlation` (both 0 to 1).
///
/// The stationary distribution F of the recursion satisfies F(t) = ∫ F((t − (1 − c) u) / c) du. It is the fixed point
/// of repeated application, which forgets its start by a factor c a step. Accurate to about 1e-6 absolute.
pub fn effective_loss(rate: f64, correlation: f64) -> f64 {
    if correlation <= 0.0 || rate <= 0.0 || rate >= 1.0 {
        return rate.clamp(0.0, 1.0);
    }
    if correlation >= 1.0 {
        // The first number is kept for ever, and netem starts at zero.
        return 1.0;
    }
    // A long memory takes many steps, but smooths the distribution: fewer cells do.
    let cells: usize = if correlation < 0.8 { 1 << 15 } else { 1 << 11 };
    let width = 1.0 / cells as f64;
    let spread = 1.0 - correlation;
    let steps = ((1e-7_f64.ln() / correlation.ln()).ceil() as usize + 1).min(2000);
    let mut distribution: Vec<f64> = (0..=cells).map(|cell| cell as f64 * width).collect();
    let mut integral = vec![0.0; cells + 1];
    for _ in 0..steps {
        // ∫ over u is a difference of the integral of F; F is 0 below 0 and 1 above 1.
        for cell in 0..cells {
            integral[cell + 1] = integral[cell] + (distribution[cell] + distribution[cell + 1]) / 2.0 * width;
        }
        let integral_to = |point: f64| interpolated(&integral, point) + (point - 1.0).max(0.0);
        for (cell, value) in distribution.iter_mut().enumerate() {
            let t = cell as f64 * width;
            let area = integral_to(t / correlation) - integral_to((t - spread) / correlation);
            *value = (area * correlation / spread).clamp(0.0, 1.0);
        }
    }
    interpolated(&distribution, rate)
}

/// The value at a point of [0, 1] of what is tabulated there at equal distances; at the ends beyond it.
fn interpolated(table: &[f64], point: f64) -> f64 {
    let last = table.len() - 1;
    let at = point.clamp(0.0, 1.0) * last as f64;
    let below = (at as usize).min(last - 1);
    table[below] + (table[below + 1] - table[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// netem's own recursion, over ten million packets.
    fn measured(rate: f64, correlation: f64) -> f64 {
        let (mut state, mut last, mut lost) = (1_u64, 0.0_f64, 0_u32);
        let packets = 10_000_000;
        for _ in 0..packets {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            last = (1.0 - correlation) * uniform + correlation * last;
            lost += u32::from(last < rate);
        }
        f64::from(lost) / f64::from(packets)
    }

    #[test]
    fn it_is_what_the_recursion_loses() {
        for (rate, correlation) in [(0.05, 0.25), (0.1, 0.5), (0.3, 0.9)] {
            let (theory, sample) = (effective_loss(rate, correlation), measured(rate, correlation));
            // Five deviations of a sample in which runs of about 1/(1 − c) packets share a fate.
            let deviation =
                (theory * (1.0 - theory) / 1e7 * (1.0 + correlation) / (1.0 - correlation)).sqrt();
            assert!(
                (theory - sample).abs() < 5.0 * deviation + 1e-6,
                "{rate} {correlation}: {theory} {sample}"
            );
        }
    }

    #[test]
    fn without_correlation_the_rate_is_kept() {
        assert_eq!(effective_loss(0.01, 0.0), 0.01);
        assert_eq!(effective_loss(1.0, 0.5), 1.0);
    }
}
