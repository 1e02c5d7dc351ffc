//! The work of a web client's connections, one after the other: pages, their objects, ranges of these.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tcplab_units::Time;

use super::{Object, Requests, Web};

/// A request for an object or a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Number of the page, from 0.
    pub page: u64,
    /// The object.
    pub object: Object,
    /// Where the range begins in it.
    pub offset: u64,
    /// Bytes of the range.
    pub bytes: u64,
}

impl Fetch {
    /// Whether it asks for all of the object.
    pub fn is_whole(&self) -> bool {
        self.bytes == self.object.size
    }
}

/// The work that the connections of one client share. It reads no clock: `now` is an argument.
///
/// Of connections without work, the one used last is used next, as browsers do: its window is open still.
#[derive(Debug)]
pub struct Pages {
    requests: Requests,
    web: Web,
    /// The part of the present page that has not been requested.
    waiting: VecDeque<Fetch>,
    /// The part of it that has been requested and has not come.
    asked: u32,
    page: u64,
    /// When the next page may begin.
    resume: Time,
    stop: Time,
    done: bool,
    idle: Idle,
}

/// The connections without work, in the order in which they were last used. Those never used come first: their
/// windows are the initial ones.
#[derive(Debug, Default)]
struct Idle {
    connections: BTreeMap<Rank, u32>,
    ranks: HashMap<u32, Rank>,
    inserted: u64,
}

/// Whether a connection has been used, and its number in the order of insertion.
type Rank = (bool, u64);

impl Idle {
    fn insert(&mut self, connection: u32, is_used: bool) {
        if !self.ranks.contains_key(&connection) {
            self.inserted += 1;
            let rank = (is_used, self.inserted);
            self.ranks.insert(connection, rank);
            self.connections.insert(rank, connection);
        }
    }

    fn remove(&mut self, connection: u32) {
        if let Some(rank) = self.ranks.remove(&connection) {
            self.connections.remove(&rank);
        }
    }

    /// From the one used last on.
    fn latest(&self) -> impl Iterator<Item = u32> {
        self.connections.values().rev().copied()
    }
}

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends this request.
    Fetch(Fetch),
    /// It waits until this time, or until there is more to do.
    Wait(Time),
    /// Close the connection: every object has been fetched.
    Close,
}

impl Pages {
    /// Pages of `web`, of the objects that `requests` draws, until `stop`.
    pub fn new(web: &Web, requests: Requests, stop: Time) -> Pages {
        Pages {
            requests,
            web: web.clone(),
            waiting: VecDeque::new(),
            asked: 0,
            page: 0,
            resume: Time::ZERO,
            stop,
            done: false,
            idle: Idle::default(),
        }
    }

    /// The next step of a connection that has no work. While those used after it can do all there is to do, it waits.
    pub fn next(&mut self, connection: u32, now: Time) -> Next {
        if self.waiting.is_empty() && self.asked == 0 && now >= self.resume.min(self.stop) {
            self.begin_page(now);
        }
        self.idle.insert(connection, false);
        if self.done {
            self.idle.remove(connection);
            return Next::Close;
        }
        let is_wanted = self.idle.latest().take(self.waiting.len()).any(|wanted| wanted == connection);
        if is_wanted && let Some(fetch) = self.waiting.pop_front() {
            self.idle.remove(connection);
            self.asked += 1;
            return Next::Fetch(fetch);
        }
        let is_between = self.asked == 0 && self.waiting.is_empty();
        Next::Wait(if is_between { self.resume.min(self.stop) } else { Time::NEVER })
    }

    fn begin_page(&mut self, now: Time) {
        if now >= self.stop || self.web.count == Some(self.page) {
            self.done = true;
            return;
        }
        for _ in 0..self.web.page {
            let Some(object) = self.requests.draw() else { continue };
            let ranges = u64::from(self.web.ranges).clamp(1, object.size.max(1));
            for range in 0..ranges {
                let [offset, end] = [range, range + 1].map(|range| share(object.size, range, ranges));
                self.waiting.push_back(Fetch { page: self.page, object, offset, bytes: end - offset });
            }
        }
        self.page += 1;
    }

    /// The response that `connection` waited for has come. It is the one used last.
    pub fn finish(&mut self, connection: u32, now: Time) {
        self.idle.insert(connection, true);
        self.asked -= 1;
        if self.asked == 0 && self.waiting.is_empty() {
            self.resume = now + self.web.think;
        }
    }

    /// A connection broke before the response to `fetch` had come: another one asks for all of it again, as RFC
    /// 9110, section 9.2.2, allows.
    pub fn retry(&mut self, fetch: Fetch) {
        self.asked -= 1;
        self.waiting.push_front(fetch);
    }

    /// A connection broke that had no work.
    pub fn leave(&mut self, connection: u32) {
        self.idle.remove(connection);
    }

    /// Whether all pages that were asked for have been loaded; false while they load, or where the stop came first.
    pub fn are_complete(&self) -> bool {
        self.done && self.web.count == Some(self.page)
    }

    /// The connections that wait and have something to do, a request or to close. The one used last stands last.
    pub fn wanted(&self) -> Vec<u32> {
        let most = if self.done { usize::MAX } else { self.waiting.len() };
        let mut wanted: Vec<u32> = self.idle.latest().take(most).collect();
        wanted.reverse();
        wanted
    }
}

/// Where range `number` of `count` begins in `bytes`.
fn share(bytes: u64, number: u64, count: u64) -> u64 {
    (u128::from(bytes) * u128::from(number) / u128::from(count)) as u64
}

#[cfg(test)]
mod tests {
    use tcplab_units::Span;

    use super::*;

    fn pages(web: Web, stop: Time) -> Pages {
        Pages::new(&web, Requests::new(&web, 1, "f"), stop)
    }

    #[test]
    fn the_next_page_begins_when_all_objects_have_come_and_the_pause_is_over() {
        let web = Web { page: 2, think: Span::from_ms(5), count: Some(2), ..Web::default() };
        let mut pages = pages(web, Time::NEVER);
        let at = |ms: u64| Time::ZERO + Span::from_ms(ms);
        assert!(matches!(pages.next(0, at(0)), Next::Fetch(fetch) if fetch.page == 0));
        assert!(matches!(pages.next(1, at(0)), Next::Fetch(fetch) if fetch.page == 0));
        assert_eq!(pages.next(2, at(0)), Next::Wait(Time::NEVER));
        pages.finish(0, at(10));
        assert_eq!(pages.next(0, at(10)), Next::Wait(Time::NEVER));
        pages.finish(1, at(12));
        assert_eq!(pages.next(1, at(12)), Next::Wait(at(17)));
        assert!(matches!(pages.next(1, at(17)), Next::Fetch(fetch) if fetch.page == 1));
    }

    #[test]
    fn the_connections_used_last_are_used_next() {
        let mut pages = pages(Web { page: 2, ..Web::default() }, Time::NEVER);
        let mut fetches = |connection| matches!(pages.next(connection, Time::ZERO), Next::Fetch(_));
        assert_eq!([0, 1, 2, 3].map(&mut fetches), [true, true, false, false]);
        for connection in [1, 0] {
            pages.finish(connection, Time::ZERO);
        }
        // Those that have waited longer are not wanted, whoever asks first.
        assert_eq!([3, 2].map(|other| pages.next(other, Time::ZERO)), [Next::Wait(Time::NEVER); 2]);
        assert_eq!(pages.wanted(), [1, 0]);
        assert!(matches!(pages.next(1, Time::ZERO), Next::Fetch(_)));
        // One that breaks leaves its part to the next.
        pages.leave(0);
        assert_eq!(pages.wanted(), [3]);
        assert!(matches!(pages.next(3, Time::ZERO), Next::Fetch(_)));
    }

    #[test]
    fn a_connection_that_is_open_late_is_not_the_one_used_last() {
        let mut pages = pages(Web { page: 2, ..Web::default() }, Time::NEVER);
        for connection in [0, 1] {
            assert!(matches!(pages.next(connection, Time::ZERO), Next::Fetch(_)));
        }
        pages.finish(0, Time::ZERO);
        assert_eq!(pages.next(2, Time::ZERO), Next::Wait(Time::NEVER));
        pages.finish(1, Time::ZERO);
        assert_eq!(pages.next(3, Time::ZERO), Next::Wait(Time::NEVER));
        assert_eq!(pages.wanted(), [0, 1]);
    }

    #[test]
    fn ranges_cover_an_object_and_a_broken_one_is_asked_for_again() {
        let web = Web { sizes: vec![10], ranges: 3, count: Some(1), ..Web::default() };
        let mut pages = pages(web, Time::NEVER);
        let ranges: Vec<Fetch> = (0..3)
            .map(|connection| match pages.next(connection, Time::ZERO) {
                Next::Fetch(fetch) => fetch,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            ranges.iter().map(|range| (range.offset, range.bytes)).collect::<Vec<_>>(),
            [(0, 3), (3, 3), (6, 4)]
        );
        assert_eq!((pages.next(3, Time::ZERO), pages.wanted()), (Next::Wait(Time::NEVER), vec![]));
        pages.retry(ranges[1]);
        assert_eq!(pages.wanted(), [3]);
        assert_eq!(pages.next(3, Time::ZERO), Next::Fetch(ranges[1]));
    }

    #[test]
    fn no_page_begins_after_the_stop() {
        let stop = Time::ZERO + Span::from_ms(1);
        let mut pages = pages(Web { think: Span::from_ms(9), ..Web::default() }, stop);
        assert!(matches!(pages.next(0, Time::ZERO), Next::Fetch(_)));
        pages.finish(0, Time::ZERO);
        assert_eq!(pages.next(0, Time::ZERO), Next::Wait(stop));
        assert_eq!(pages.next(0, stop), Next::Close);
    }
}
