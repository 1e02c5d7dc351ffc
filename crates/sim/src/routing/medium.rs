//! The carrier of the protocols' messages: the links' state, without their queues.
//!
//! A router sends its own packets ahead of all others (Linux gives them the highest priority, DSCP CS6). So the
//! router's packets wait for no queue here and take no capacity from the traffic. They are lost where the link is
//! down, and as often as the link loses packets on average.

use tcplab_link::{component_seed, mix};
use tcplab_units::{Rate, Span, Time};

use crate::network::DirectionId;
use crate::plan::{Chance, Change, Direction, Loss, LossModel, Plan};

/// Bytes of a message's frame: a Hello, an update of one link state, a BGP update with a few networks.
const FRAME: u64 = 100;
/// A probability of one.
const CERTAIN: u64 = 1_000_000_000;

#[derive(Debug)]
struct Channel {
    up: bool,
    rate: Option<Rate>,
    delay: Span,
    loss: u64,
    damage: u64,
    seed: u64,
    sent: u64,
}

/// Every link direction.
#[derive(Debug)]
pub(super) struct Medium {
    channels: Vec<Channel>,
}

impl Medium {
    pub(super) fn new(plan: &Plan) -> Medium {
        let channel = |settings: &Direction, name: String| Channel {
            up: settings.up,
            rate: settings.rate,
            delay: settings.delay,
            loss: settings.loss.as_ref().map_or(0, mean_loss),
            damage: settings.corrupt.as_ref().map_or(0, share),
            seed: component_seed(plan.seed, &name),
            sent: 0,
        };
        let both = plan.links.iter().flat_map(|link| {
            [(&link.forward, "forward"), (&link.backward, "backward")]
                .map(|(settings, direction)| channel(settings, format!("routing.{}.{direction}", link.name)))
        });
        Medium { channels: both.collect() }
    }

    /// Applies a change of a direction's settings.
    pub(super) fn change(&mut self, direction: DirectionId, change: &Change) {
        let channel = &mut self.channels[direction as usize];
        channel.up = change.up.unwrap_or(channel.up);
        channel.rate = change.rate.or(channel.rate);
        channel.delay = change.delay.unwrap_or(channel.delay);
        channel.loss = change.loss.as_ref().map_or(channel.loss, mean_loss);
        channel.damage = change.corrupt.as_ref().map_or(channel.damage, share);
    }

    /// Whether the interfaces of a link have a carrier: they lose it while neither direction is up.
    pub(super) fn has_carrier(&self, link: usize) -> bool {
        self.channels[2 * link].up || self.channels[2 * link + 1].up
    }

    /// When a message that is sent into `direction` now arrives; none: it is lost.
    pub(super) fn send(&mut self, direction: DirectionId, now: Time) -> Option<Time> {
        let channel = &mut self.channels[direction as usize];
        channel.sent += 1;
        let draw = |salt: u64| mix(mix(channel.seed ^ salt).wrapping_add(channel.sent)) % CERTAIN;
        if !channel.up || draw(1) < channel.loss || draw(2) < channel.damage {
            return None;
        }
        let serialisation = channel.rate.map_or(Span::ZERO, |rate| rate.time_to_send(FRAME));
        Some(now + serialisation + channel.delay)
    }
}

fn share(chance: &Chance) -> u64 {
    u64::from(chance.rate.ppb())
}

/// The mean share of packets that a process loses. A list of packet numbers, which counts data, spares messages.
fn mean_loss(loss: &Loss) -> u64 {
    match &loss.model {
        LossModel::Random { chance } | LossModel::Netem { chance } => share(chance),
        LossModel::GilbertElliott { p, r, bad, good } => {
            let [p, r, bad, good] = [p, r, bad, good].map(|one| u64::from(one.ppb()));
            (p * bad + r * good).checked_div(p + r).unwrap_or(good)
        }
        LossModel::List { .. } => 0,
        LossModel::Every { packets, .. } => CERTAIN / (*packets).max(1),
    }
}
