//! Port filters that the kernel runs during a dump (`inet_diag_bc_run`).

use std::ops::RangeInclusive;

const JMP: u8 = 1;
const SOURCE_GE: u8 = 2;
const SOURCE_LE: u8 = 3;
const DESTINATION_GE: u8 = 4;
const DESTINATION_LE: u8 = 5;

/// Bytes of one comparison: an operation and the operation that holds its port.
const COMPARE: usize = 8;
/// Bytes of the block for one range: two comparisons and a jump.
const BLOCK: usize = 2 * COMPARE + 4;

/// Which sockets a dump shows: those with any of these ports, or every one when there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Local ports.
    pub local: Vec<RangeInclusive<u16>>,
    /// Remote ports.
    pub remote: Vec<RangeInclusive<u16>>,
}

impl Filter {
    /// Whether a socket with these ports would be shown.
    pub fn matches(&self, local: u16, remote: u16) -> bool {
        let any = self.local.is_empty() && self.remote.is_empty();
        any || self.local.iter().any(|r| r.contains(&local))
            || self.remote.iter().any(|r| r.contains(&remote))
    }

    /// The filter as inet_diag's bytecode; none when every socket passes, or when there are more ranges than
    /// its 16-bit jumps reach over.
    pub(crate) fn bytecode(&self) -> Option<Vec<u8>> {
        let conditions: Vec<(u8, u8, &RangeInclusive<u16>)> = (self.local.iter())
            .map(|r| (SOURCE_GE, SOURCE_LE, r))
            .chain(self.remote.iter().map(|r| (DESTINATION_GE, DESTINATION_LE, r)))
            .collect();
        let total = conditions.len() * BLOCK;
        if conditions.is_empty() || total + 4 > usize::from(u16::MAX) {
            return None;
        }
        let mut code = Vec::with_capacity(total);
        for (i, (at_least, at_most, range)) in conditions.into_iter().enumerate() {
            let left = total - i * BLOCK;
            // A failed comparison goes on with the next range; after the last one it jumps four bytes past
            // the end, which the kernel reads as a refusal. Landing exactly on the end accepts.
            let miss = if left == BLOCK { BLOCK + 4 } else { BLOCK };
            compare(&mut code, at_least, *range.start(), miss);
            compare(&mut code, at_most, *range.end(), miss - COMPARE);
            operation(&mut code, JMP, 4, left - 2 * COMPARE);
        }
        Some(code)
    }
}

fn compare(code: &mut Vec<u8>, op: u8, port: u16, miss: usize) {
    operation(code, op, COMPARE as u8, miss);
    operation(code, 0, 0, usize::from(port));
}

fn operation(code: &mut Vec<u8>, op: u8, yes: u8, no: usize) {
    code.extend_from_slice(&[op, yes]);
    code.extend_from_slice(&(no as u16).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs bytecode as the kernel's `inet_diag_bc_run` does.
    fn accepts(code: &[u8], local: u16, remote: u16) -> bool {
        let no = |at: usize| usize::from(u16::from_ne_bytes([code[at + 2], code[at + 3]]));
        let mut at = 0;
        while at < code.len() {
            let port = || no(at + 4) as u16;
            let yes = match code[at] {
                JMP => false,
                SOURCE_GE => local >= port(),
                SOURCE_LE => local <= port(),
                DESTINATION_GE => remote >= port(),
                DESTINATION_LE => remote <= port(),
                other => panic!("operation {other}"),
            };
            at += if yes { usize::from(code[at + 1]) } else { no(at) };
        }
        at == code.len()
    }

    #[test]
    fn bytecode_decides_as_the_filter_does() {
        let filter = Filter { local: vec![80..=80, 1000..=2000], remote: vec![5201..=5203] };
        let code = filter.bytecode().unwrap();
        for local in [0, 79, 80, 81, 999, 1000, 2000, 2001, 65535] {
            for remote in [0, 5200, 5201, 5203, 5204] {
                assert_eq!(accepts(&code, local, remote), filter.matches(local, remote), "{local} {remote}");
            }
        }
    }

    #[test]
    fn without_ranges_every_socket_passes() {
        assert_eq!(Filter::default().bytecode(), None);
        assert!(Filter::default().matches(1, 2));
    }
}
