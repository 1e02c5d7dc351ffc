//! Pages over HTTP/1.1: a browser with several persistent connections, and the server that has the objects.

use tcplab_tables::FetchRow;
use tcplab_tcp::Connection;
use tcplab_units::Time;

use crate::application::{Application, Context};
use crate::cache::Outcome;
use crate::plan::{Fetch, Next, Pages, REQUEST_BYTES, RESPONSE_HEAD_BYTES, Requests, Web};
use crate::tcp_stream::SERVER;

/// The client of a flow, whose connections share its work.
#[derive(Debug)]
pub(crate) struct Browser(Pages);

impl Browser {
    /// One that loads pages of `web` until `stop`, for the flow `name` in a run with `seed`.
    pub(crate) fn new(web: &Web, seed: u64, name: &str, stop: Time) -> Browser {
        Browser(Pages::new(web, Requests::new(web, seed, name), stop))
    }

    /// The streams that wait and have something to do.
    pub(crate) fn woken(&mut self) -> Vec<u32> {
        self.0.wanted()
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    fetch: Fetch,
    at: Time,
    first_byte: Option<Time>,
    /// Bytes that the client had received before.
    before: u64,
    /// How a cache on the way answers.
    cache: Option<Outcome>,
}

/// One of the browser's connections.
#[derive(Debug)]
pub(crate) struct Http {
    count: Option<u64>,
    stop: Time,
    asked: Option<Asked>,
    /// Requests answered by the server.
    answered: u64,
    established: bool,
    closed: bool,
    /// It was closed because all pages had been loaded.
    complete: bool,
}

impl Http {
    /// A connection of a browser that loads pages of `web` until `stop`.
    pub(crate) fn new(web: &Web, stop: Time) -> Http {
        Http {
            count: web.count,
            stop,
            asked: None,
            answered: 0,
            established: false,
            closed: false,
            complete: false,
        }
    }

    /// Does what there is to do, if the connection is free.
    fn go_on(&mut self, client: &mut Connection, context: &mut Context) {
        if !self.established || self.closed || self.asked.is_some() {
            return;
        }
        let now = context.now();
        let stream = context.endpoints.stream;
        let Some(browser) = context.browser() else { return };
        match browser.0.next(stream, now) {
            Next::Fetch(fetch) => {
                let before = client.bytes_received();
                self.asked = Some(Asked { fetch, at: now, first_byte: None, before, cache: None });
                client.write(REQUEST_BYTES, now);
                context.wake_at(Time::NEVER);
            }
            Next::Wait(until) => context.wake_at(until),
            Next::Close => {
                (self.closed, self.complete) = (true, browser.0.are_complete());
                client.close(now);
                context.wake_at(Time::NEVER);
            }
        }
        context.wake_browser();
    }

    fn serve(&mut self, server: &mut Connection, now: Time) -> bool {
        let Some(asked) = self.asked else { return false };
        if server.bytes_received() < (self.answered + 1) * REQUEST_BYTES {
            return false;
        }
        self.answered += 1;
        // 304 Not Modified has no body.
        let body = if asked.cache == Some(Outcome::Revalidated) { 0 } else { asked.fetch.bytes };
        server.write(RESPONSE_HEAD_BYTES + body, now);
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
        if connection.bytes_received() < asked.before + RESPONSE_HEAD_BYTES + asked.fetch.bytes {
            return false;
        }
        let (flow, stream) = context.sim.recorder.stream(context.endpoints.stream);
        let cache = asked.cache.map(|outcome| context.sim.recorder.symbol(outcome.name()));
        let Fetch { page, object, offset, bytes } = asked.fetch;
        context.sim.recorder.tables.fetches.push(FetchRow {
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
            cache,
        });
        self.asked = None;
        let own = context.endpoints.stream;
        if let Some(browser) = context.browser() {
            browser.0.finish(own, now);
        }
        self.go_on(connection, context);
        true
    }

    fn asked(&self) -> Option<Fetch> {
        self.asked.map(|asked| asked.fetch)
    }

    fn answered_by_cache(&mut self, outcome: Outcome) {
        if let Some(asked) = &mut self.asked {
            asked.cache = Some(outcome);
        }
    }

    fn on_abort(&mut self, context: &mut Context) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let stream = context.endpoints.stream;
        let fetch = self.asked.take().map(|asked| asked.fetch);
        if let Some(Browser(pages)) = context.browser() {
            pages.leave(stream);
            if let Some(fetch) = fetch {
                pages.retry(fetch);
            }
        }
        context.wake_browser();
    }

    fn complete(&self, _received: u64, end: Time, ended: bool) -> bool {
        match self.count {
            Some(_) => self.complete,
            None if self.stop == Time::NEVER => ended,
            None => end >= self.stop,
        }
    }

    fn data_end(&self) -> usize {
        SERVER
    }
}
