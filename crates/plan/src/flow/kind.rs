//! Traits of every kind of traffic.

use std::fmt;

use serde::Serialize;

use super::Flow;
use crate::estimate::{Carried, Count, Fluid, Paths};
use crate::{Cc, TcpSettings};

/// Traits of all traffic of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Traits {
    /// Its name in plans and tables.
    pub name: &'static str,
    /// It has TCP connections with a congestion control.
    pub connected: bool,
    /// Both of its nodes send payload, so its figures are those of both together.
    pub both_ways: bool,
    /// Most of its payload comes back from the receiving node, unless its `request` is larger than its `response`.
    pub mostly_back: bool,
    /// A program serves it at the receiving node; otherwise that node's kernel does.
    pub served: bool,
    /// It is there to move payload, at a goodput; otherwise to measure times.
    pub moves_payload: bool,
    /// It sends in one direction, as much as it can or is asked to.
    pub bulk: bool,
    /// Its round-trip times are those of its messages.
    pub round_trips: bool,
}

/// The TCP connections of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Connections<'t> {
    /// Congestion control of both ends.
    pub cc: &'t Cc,
    /// The settings of the end that opens them.
    pub sender: &'t TcpSettings,
    /// The settings of the other end.
    pub receiver: &'t TcpSettings,
}

/// A kind of traffic. Its `Display` is what is sent, without the control.
pub(crate) trait Kind: fmt::Display {
    fn traits(&self) -> Traits;

    fn connections(&self) -> Option<Connections<'_>> {
        None
    }

    /// The ECN field of packets that have no connection to negotiate it.
    fn ecn_field(&self) -> u8 {
        0
    }

    /// Its demand on the links that it shares with others; none: it sends at times of its own, whatever is free.
    fn fluid(&self, flow: &Flow, paths: &Paths<'_>) -> Option<Fluid>;

    /// Its packets, with what the links `carried` of it. It may last `time` seconds.
    fn count(&self, flow: &Flow, paths: &Paths<'_>, carried: Carried, time: f64) -> Count;

    /// The table that has a row for each of so many round trips, and the rows it has.
    fn trip_rows(&self, _flow: &Flow, _trips: f64) -> Option<(&'static str, f64)> {
        None
    }
}
