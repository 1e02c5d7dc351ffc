//! The media that links share: which station sends when, in the order of their logical time.

use std::collections::BTreeMap;

use tcplab_link::{Link, Medium, Stations, component_seed, config};
use tcplab_units::{Span, Time};

use crate::arena::Arena;
use crate::config::Setup;
use crate::direction::Direction;
use crate::recording::{DirectionObserver, Recording};
use crate::wire::Wire;

/// The media of a run, and which directions send over each.
#[derive(Debug, Default)]
pub(crate) struct Media {
    media: Vec<Medium>,
    /// By direction, the place of its medium; empty: there are none.
    medium_of: Vec<Option<usize>>,
}

impl Media {
    /// Idle media. A node's directions are one station of each medium that they share.
    pub(crate) fn new(setup: &Setup) -> Media {
        if setup.media.is_empty() {
            return Media::default();
        }
        let place = |name: &String| setup.media.iter().position(|medium| medium.name == *name);
        let mut medium_of = Vec::new();
        let mut stations: Vec<BTreeMap<&str, Vec<u32>>> = vec![BTreeMap::new(); setup.media.len()];
        for link in &setup.links {
            let medium = link.medium.as_ref().and_then(place);
            for end in &link.ends {
                let direction = medium_of.len() as u32;
                medium_of.push(medium);
                if let Some(medium) = medium {
                    stations[medium].entry(&end.node).or_default().push(direction);
                }
            }
        }
        let made = setup.media.iter().zip(stations).map(|(settings, stations)| {
            let stations: Vec<Vec<u32>> = stations.into_values().collect();
            Medium::new(settings, &stations, component_seed(setup.seed, &format!("medium.{}", settings.name)))
        });
        Media { media: made.collect(), medium_of }
    }

    /// When one of them wants advancing; `NEVER`: no station has anything to send.
    pub(crate) fn next_event(&self) -> Time {
        self.media.iter().map(Medium::next_event).min().unwrap_or(Time::NEVER)
    }

    /// Does all that happens on them up to `now`.
    pub(crate) fn advance(&mut self, now: Time, stations: &mut OnMedium) {
        for medium in &mut self.media {
            medium.advance(now, stations);
        }
    }

    /// The medium of a direction, if it sends over one.
    pub(crate) fn of(&mut self, direction: usize) -> Option<&mut Medium> {
        let medium = self.medium_of.get(direction).copied().flatten()?;
        self.media.get_mut(medium)
    }
}

/// The directions of all links, as a medium uses them.
pub(crate) struct OnMedium<'a> {
    pub(crate) directions: &'a mut [Direction],
    /// By direction, before when nothing is due.
    pub(crate) due: &'a mut [u64],
    pub(crate) arena: &'a mut Arena,
    pub(crate) recording: &'a mut Recording,
}

impl OnMedium<'_> {
    fn with<T>(
        &mut self,
        direction: u32,
        otherwise: T,
        act: impl FnOnce(&mut Link<Wire>, &mut DirectionObserver) -> T,
    ) -> T {
        let number = direction as usize;
        let mut observer =
            DirectionObserver { arena: self.arena, recording: self.recording, direction: number };
        self.directions[number].link().map_or(otherwise, |link| act(link, &mut observer))
    }
}

impl Stations for OnMedium<'_> {
    fn ready(&mut self, direction: u32, now: Time) -> Time {
        self.with(direction, Time::NEVER, |link, observer| link.ready(now, observer))
    }

    fn begin(&mut self, direction: u32, now: Time, medium: &config::Medium) -> Option<Span> {
        self.with(direction, None, |link, observer| link.begin_transmission(medium, now, observer))
    }

    fn end(&mut self, direction: u32, now: Time, collided: bool, medium: &config::Medium) -> bool {
        // The frames that were sent are on their way now.
        self.due[direction as usize] = 0;
        self.with(direction, true, |link, observer| link.end_transmission(collided, medium, now, observer))
    }
}
