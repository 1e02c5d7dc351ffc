//! Delivery traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

/// Delivery opportunities in mahimahi's format, already read: the trace repeats for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Milliseconds at which one 1500-byte delivery opportunity occurs, ascending, the last one the period.
    pub opportunities_ms: Vec<u64>,
}

/// Bytes of the frame's payload (the IP packet) that one opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

impl Trace {
    /// The mean rate of the trace in frame payload, for limits given as time.
    pub fn mean_rate(&self) -> Option<Rate> {
        let period_ms = *self.opportunities_ms.last()?;
        let bits = self.opportunities_ms.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8 * 1000;
        Rate::from_bits_per_sec(u64::try_from(bits.checked_div(u128::from(period_ms))?).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_counts_1500_bytes_an_opportunity() {
        let trace = Trace { opportunities_ms: vec![1, 2, 3, 4] };
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_sec(12_000_000));
        assert_eq!(Trace { opportunities_ms: vec![] }.mean_rate(), None);
        assert_eq!(Trace { opportunities_ms: vec![0] }.mean_rate(), None);
    }
}
