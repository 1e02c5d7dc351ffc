//! The work of a web client's connections, one after the other: pages, their objects, ranges of these.

use std::collections::VecDeque;

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
        }
    }

    /// The next step of a connection that has no work.
    pub fn next(&mut self, now: Time) -> Next {
        if self.waiting.is_empty() && self.asked == 0 && now >= self.resume.min(self.stop) {
            self.begin_page(now);
        }
        if self.done {
            return Next::Close;
        }
        if let Some(fetch) = self.waiting.pop_front() {
            self.asked += 1;
            return Next::Fetch(fetch);
        }
        Next::Wait(if self.asked == 0 { self.resume.min(self.stop) } else { Time::NEVER })
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

    /// A response has come.
    pub fn finish(&mut self, now: Time) {
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

    /// Whether connections that wait have something to do: a request, or to close.
    pub fn has_work(&self) -> bool {
        self.done || !self.waiting.is_empty()
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
        assert!(matches!(pages.next(at(0)), Next::Fetch(fetch) if fetch.page == 0));
        assert!(matches!(pages.next(at(0)), Next::Fetch(fetch) if fetch.page == 0));
        assert_eq!(pages.next(at(0)), Next::Wait(Time::NEVER));
        pages.finish(at(10));
        assert_eq!(pages.next(at(10)), Next::Wait(Time::NEVER));
        pages.finish(at(12));
        assert_eq!(pages.next(at(12)), Next::Wait(at(17)));
        assert!(matches!(pages.next(at(17)), Next::Fetch(fetch) if fetch.page == 1));
    }

    #[test]
    fn ranges_cover_an_object_and_a_broken_one_is_asked_for_again() {
        let web = Web { sizes: vec![10], ranges: 3, count: Some(1), ..Web::default() };
        let mut pages = pages(web, Time::NEVER);
        let mut next = || pages.next(Time::ZERO);
        let ranges: Vec<Fetch> = (0..3)
            .map(|_| match next() {
                Next::Fetch(fetch) => fetch,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            ranges.iter().map(|range| (range.offset, range.bytes)).collect::<Vec<_>>(),
            [(0, 3), (3, 3), (6, 4)]
        );
        assert!(!pages.has_work());
        pages.retry(ranges[1]);
        assert!(pages.has_work());
        assert_eq!(pages.next(Time::ZERO), Next::Fetch(ranges[1]));
    }

    #[test]
    fn no_page_begins_after_the_stop() {
        let stop = Time::ZERO + Span::from_ms(1);
        let mut pages = pages(Web { think: Span::from_ms(9), ..Web::default() }, stop);
        assert!(matches!(pages.next(Time::ZERO), Next::Fetch(_)));
        pages.finish(Time::ZERO);
        assert_eq!(pages.next(Time::ZERO), Next::Wait(stop));
        assert_eq!(pages.next(stop), Next::Close);
    }
}
