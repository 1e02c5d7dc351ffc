//! Ports at which flows of clients arrive, where the service's owner has named a range: each is lent to one client at a time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those of the range that nobody has. The longest unused is lent first: connections may linger at the last ones.
#[derive(Debug)]
pub struct Ports(Mutex<VecDeque<u16>>);

/// Ports of one client, given back when it leaves.
#[derive(Debug)]
pub struct Lease<'a> {
    from: &'a Ports,
    held: Vec<u16>,
}

impl Ports {
    /// The range from `first` to `last`.
    pub fn new((first, last): (u16, u16)) -> Ports {
        Ports(Mutex::new((first..=last).collect()))
    }

    /// A lease of none yet.
    pub fn lease(&self) -> Lease<'_> {
        Lease { from: self, held: Vec::new() }
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease<'_> {
    /// So many more; none where fewer are free.
    pub fn take(&mut self, count: usize) -> Option<Vec<u16>> {
        let mut free = self.from.free();
        if free.len() < count {
            return None;
        }
        let taken: Vec<u16> = free.drain(..count).collect();
        self.held.extend(&taken);
        Some(taken)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.from.free().extend(self.held.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_lent_once_until_its_client_leaves() {
        let ports = Ports::new((5300, 5303));
        let (mut one, mut other) = (ports.lease(), ports.lease());
        assert_eq!(one.take(3), Some(vec![5300, 5301, 5302]));
        assert_eq!(other.take(2), None);
        assert_eq!(other.take(1), Some(vec![5303]));
        drop(one);
        assert_eq!(other.take(3), Some(vec![5300, 5301, 5302]));
        assert_eq!(other.take(1), None);
    }
}
