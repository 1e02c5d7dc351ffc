//! The key by which packets are one flow.

use crate::parse::{Address, Protocol, Segment};

/// An address and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IP address.
    pub address: Address,
    /// Port.
    pub port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::net::SocketAddr::new(self.address.into(), self.port).fmt(f)
    }
}

/// Protocol, both endpoints and the interface, the same for both directions.
///
/// The interface belongs to it because one packet seen on two interfaces (a router's, or those of two captures
/// merged into one file) would else look sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    // Not two endpoints, which take 16 bytes more.
    addresses: [Address; 2],
    ports: [u16; 2],
    interface: u32,
    protocol: Protocol,
}

/// A fixed seed would let a capture be made whose flows all collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn random() -> Seed {
        use std::hash::{BuildHasher, RandomState};
        Seed(RandomState::new().hash_one(0u8))
    }
}

impl Key {
    /// The key of a segment, and whether its sender is the higher endpoint.
    #[inline]
    pub fn of(segment: &Segment, interface: u32) -> (Key, bool) {
        let source = Endpoint { address: segment.source, port: segment.source_port };
        let destination = Endpoint { address: segment.destination, port: segment.destination_port };
        Key::between(source, destination, segment.protocol, interface)
    }

    #[inline]
    pub(crate) fn between(
        source: Endpoint,
        destination: Endpoint,
        protocol: Protocol,
        interface: u32,
    ) -> (Key, bool) {
        let swapped = (destination.address.0, destination.port) < (source.address.0, source.port);
        let (low, high) = if swapped { (destination, source) } else { (source, destination) };
        let addresses = [low.address, high.address];
        (Key { addresses, ports: [low.port, high.port], interface, protocol }, swapped)
    }

    /// Mixes all fields by folded multiplication.
    #[inline]
    pub(crate) fn hash(&self, seed: Seed) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product >> 64) as u64 ^ product as u64
        };
        let [Address(low), Address(high)] = self.addresses;
        let ports = u64::from(self.ports[0]) << 48
            | u64::from(self.ports[1]) << 32
            | u64::from(self.interface) << 1
            | u64::from(self.protocol == Protocol::Udp);
        let lower = fold(low as u64 ^ seed.0, high as u64 ^ 0x9e37_79b9_7f4a_7c15);
        let upper = fold((low >> 64) as u64 ^ 0xd1b5_4a32_d192_ed03, (high >> 64) as u64 ^ !seed.0);
        fold(lower ^ ports ^ 0x8cb9_2ba7_2f3d_8dd7, upper ^ seed.0.rotate_left(17) ^ ports.rotate_left(32))
    }

    /// The endpoints: the lower one, the higher one.
    pub fn endpoints(&self) -> [Endpoint; 2] {
        [0, 1].map(|end| Endpoint { address: self.addresses[end], port: self.ports[end] })
    }

    /// TCP or UDP.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The interface its packets were captured on.
    pub fn interface(&self) -> u32 {
        self.interface
    }
}
