//! Pages over HTTP/1.1: a browser with several persistent connections, and the server that has the objects.

use std::collections::VecDeque;

use tcplab_tables::FetchRow;
use tcplab_tcp::Connection;
use tcplab_units::Time;

use crate::application::{Application, Context};
use crate::plan::{Object, Requests, Web};
use crate::tcp_stream::SERVER;

/// Bytes of a request and of a response's header: about what curl and nginx send.
const REQUEST: u64 = 100;
const HEADER: u64 = 250;

/// A request for an object or a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fetch {
    page: u64,
    object: Object,
    offset: u64,
    bytes: u64,
}

/// The client of a flow, whose connections share its work.
#[derive(Debug)]
pub(crate) struct Browser {
    requests: Requests,
    web: Web,
    /// What of the present page has not been asked for.
    waiting: VecDeque<Fetch>,
    /// What of it has been asked for and has not come.
    asked: u32,
    page: u64,
    /// When the next page may begin.
    resume: Time,
    stop: Time,
    /// Streams without work.
    idle: Vec<u32>,
    done: bool,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Fetch(Fetch),
    /// It waits until this time, or until it is woken.
    Wait(Time),
    Close,
}

impl Browser {
    /// One that loads pages of `web` until `stop`, from the random stream `seed`.
    pub(crate) fn new(web: &Web, seed: u64, stop: Time) -> Browser {
        Browser {
            requests: Requests::new(web, seed),
            web: web.clone(),
            waiting: VecDeque::new(),
            asked: 0,
            page: 0,
            resume: Time::ZERO,
            stop,
            idle: Vec::new(),
            done: false,
        }
    }

    /// What the connection of `stream`, which has no work, does next.
    fn next(&mut self, stream: u32, now: Time) -> Next {
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
        self.idle.push(stream);
        Next::Wait(if self.asked == 0 { self.resume.min(self.stop) } else { Time::NEVER })
    }

    fn begin_page(&mut self, now: Time) {
        if now >= self.stop || self.web.count == Some(self.page) {
            self.done = true;
            return;
        }
        for _ in 0..self.web.page {
            let Some(object) = self.requests.draw() else { continue };
            let ranges = u64::from(self.web.ranges).clamp(1, object.size);
            for range in 0..ranges {
                let [offset, end] = [range, range + 1].map(|range| share(object.size, range, ranges));
                self.waiting.push_back(Fetch { page: self.page, object, offset, bytes: end - offset });
            }
        }
        self.page += 1;
    }

    /// A response has come.
    fn finish(&mut self, now: Time) {
        self.asked -= 1;
        if self.asked == 0 && self.waiting.is_empty() {
            self.resume = now + self.web.think;
        }
    }

    /// A connection broke before the response to `fetch` had come: another one asks for all of it again, as RFC
    /// 9110, section 9.2.2, allows. Those that wait, which are to see what there is to do.
    fn retry(&mut self, fetch: Option<Fetch>) -> Vec<u32> {
        if let Some(fetch) = fetch {
            self.asked -= 1;
            self.waiting.push_front(fetch);
        }
        std::mem::take(&mut self.idle)
    }

    /// Those that wait, where there is something to do for them.
    pub(crate) fn woken(&mut self) -> Vec<u32> {
        if self.done || !self.waiting.is_empty() { std::mem::take(&mut self.idle) } else { Vec::new() }
    }
}

/// Where range `number` of `count` begins in `bytes`.
fn share(bytes: u64, number: u64, count: u64) -> u64 {
    (u128::from(bytes) * u128::from(number) / u128::from(count)) as u64
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    fetch: Fetch,
    at: Time,
    first_byte: Option<Time>,
    /// What the client had received before.
    before: u64,
}

/// One of the browser's connections.
#[derive(Debug)]
pub(crate) struct Http {
    count: Option<u64>,
    stop: Time,
    asked: Option<Asked>,
    /// Requests sent, and answered by the server.
    requests: u64,
    answered: u64,
    established: bool,
    closed: bool,
}

impl Http {
    /// A connection of a browser that loads pages of `web` until `stop`.
    pub(crate) fn new(web: &Web, stop: Time) -> Http {
        Http {
            count: web.count,
            stop,
            asked: None,
            requests: 0,
            answered: 0,
            established: false,
            closed: false,
        }
    }

    /// Does what there is to do, if the connection is free.
    fn go_on(&mut self, client: &mut Connection, context: &mut Context) {
        if !self.established || self.closed || self.asked.is_some() {
            return;
        }
        let now = context.now();
        let stream = context.ends.stream;
        let Some(browser) = context.browser() else { return };
        match browser.next(stream, now) {
            Next::Fetch(fetch) => {
                self.requests += 1;
                self.asked =
                    Some(Asked { fetch, at: now, first_byte: None, before: client.bytes_received() });
                client.offer(REQUEST, now);
                context.wake_at(Time::NEVER);
            }
            Next::Wait(until) => context.wake_at(until),
            Next::Close => {
                self.closed = true;
                client.close(now);
                context.wake_at(Time::NEVER);
            }
        }
        context.wake_browser();
    }

    fn serve(&mut self, server: &mut Connection, now: Time) -> bool {
        let Some(asked) = self.asked else { return false };
        if self.answered == self.requests || server.bytes_received() < self.requests * REQUEST {
            return false;
        }
        self.answered = self.requests;
        server.offer(HEADER + asked.fetch.bytes, now);
        true
    }
}

impl Application for Http {
    /// The start, a pause is over, or another connection has found work.
    fn on_timer(&mut self, client: &mut Connection, context: &mut Context) {
        context.wake_at(Time::NEVER);
        self.go_on(client, context);
    }

    fn on_established(&mut self, client: &mut Connection, context: &mut Context) -> bool {
        self.established = true;
        self.go_on(client, context);
        true
    }

    fn on_data(&mut self, end: usize, connection: &mut Connection, context: &mut Context) -> bool {
        let now = context.now();
        if end == SERVER {
            return self.serve(connection, now);
        }
        let Some(asked) = &mut self.asked else { return false };
        let first_byte = *asked.first_byte.get_or_insert(now);
        if connection.bytes_received() < asked.before + HEADER + asked.fetch.bytes {
            return false;
        }
        let (flow, stream) = context.world.recorder.stream(context.ends.stream);
        let Fetch { page, object, offset, bytes } = asked.fetch;
        context.world.recorder.tables.fetches.push(FetchRow {
            flow,
            stream,
            page,
            object: u64::from(object.number),
            size: object.size,
            offset,
            bytes,
            time: asked.at.as_ns(),
            first_byte: first_byte.since(asked.at).as_ns(),
            duration: now.since(asked.at).as_ns(),
        });
        self.asked = None;
        if let Some(browser) = context.browser() {
            browser.finish(now);
        }
        self.go_on(connection, context);
        true
    }

    fn on_abort(&mut self, context: &mut Context) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let fetch = self.asked.take().map(|asked| asked.fetch);
        let idle = context.browser().map_or(Vec::new(), |browser| browser.retry(fetch));
        context.wake_now(&idle);
    }

    fn complete(&self, _received: u64, end: Time, ended: bool) -> bool {
        match self.count {
            Some(_) => self.closed,
            None if self.stop == Time::NEVER => ended,
            None => end >= self.stop,
        }
    }

    fn data_end(&self) -> usize {
        SERVER
    }
}
