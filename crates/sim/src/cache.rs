//! An HTTP cache on the way of a connection: requests are answered from what is stored, or passed on (RFC 9111).
//!
//! A response is passed on as it comes, and stored once it is whole. A range is answered from a whole object; one that
//! is not stored is passed on, and its answer is not stored. Where the server confirms a stale object, it sends a
//! head only.

use tcplab_tcp::Connection;
use tcplab_units::{Span, Time};

use crate::plan::{Fetch, Found, REQUEST_BYTES, RESPONSE_HEAD_BYTES, Store};
use crate::relay::Hop;
use crate::tcp_stream::CLIENT;

/// Bytes moved at a time.
const PIPE: u64 = 256 << 10;

/// The store of a node's cache: by flow and number of the object.
pub(crate) type Stored = Store<(u32, u32)>;

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// From the cache.
    Hit,
    /// By the server.
    Miss,
    /// From the cache, after the server had confirmed what it has.
    Revalidated,
}

impl Outcome {
    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Hit => "hit",
            Outcome::Miss => "miss",
            Outcome::Revalidated => "revalidated",
        }
    }
}

/// A cache's work on one connection.
#[derive(Debug)]
pub(crate) struct Caching {
    max_age: Span,
    /// Requests that have come from the client.
    requests: u64,
    under_way: Option<Passed>,
}

/// How the next request of a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is none.
    Waits,
    /// It is answered.
    Answered,
    /// The server must be asked.
    AsksServer,
}

/// A request that the server is asked.
#[derive(Clone, Copy, Debug)]
struct Passed {
    fetch: Fetch,
    confirms: bool,
    /// Bytes of the server's answer that have not come.
    left: u64,
}

impl Caching {
    pub(crate) fn new(max_age: Span) -> Caching {
        Caching { max_age, requests: 0, under_way: None }
    }

    /// Whether all requests that have come are answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// Takes the client's next request, and answers it if it can.
    pub(crate) fn asks(
        &mut self,
        legs: &mut [Option<Box<Connection>>; 2],
        hop: &mut Hop<'_>,
        stored: &mut Stored,
        now: Time,
    ) -> Next {
        let mut next = Next::Waits;
        let Some(client) = &mut legs[CLIENT] else { return next };
        while self.under_way.is_none() && client.bytes_received() >= (self.requests + 1) * REQUEST_BYTES {
            let Some(fetch) = hop.application.asked() else { return next };
            self.requests += 1;
            client.read(REQUEST_BYTES, now);
            let key = (hop.endpoints.flow, fetch.object.number);
            let found = stored.look(&key, now);
            if found == Found::Fresh {
                hop.application.answered_by_cache(Outcome::Hit);
                client.write(RESPONSE_HEAD_BYTES + fetch.bytes, now);
                next = Next::Answered;
                continue;
            }
            let confirms = found == Found::Stale;
            hop.application.answered_by_cache(if confirms { Outcome::Revalidated } else { Outcome::Miss });
            let left = RESPONSE_HEAD_BYTES + if confirms { 0 } else { fetch.bytes };
            self.under_way = Some(Passed { fetch, confirms, left });
            return Next::AsksServer;
        }
        next
    }

    /// Asks the server, and passes on what comes from it; whether anything moved.
    pub(crate) fn go_on(
        &mut self,
        legs: &mut [Option<Box<Connection>>; 2],
        hop: &Hop<'_>,
        stored: &mut Stored,
        now: Time,
    ) -> bool {
        let [Some(client), Some(server)] = legs else { return false };
        let Some(passed) = &mut self.under_way else { return false };
        let mut moved = false;
        // Data that wait for the client are bounded by the send buffer towards it.
        while passed.left > 0 && client.has_taken_all() {
            let bytes = server.read(passed.left.min(PIPE), now);
            if bytes == 0 {
                break;
            }
            passed.left -= bytes;
            moved = true;
            if !passed.confirms {
                client.write(bytes, now);
            }
        }
        if passed.left > 0 {
            return moved;
        }
        let Passed { fetch, confirms, .. } = *passed;
        let (key, fresh_until) = ((hop.endpoints.flow, fetch.object.number), now + self.max_age);
        if confirms {
            stored.confirm(&key, fresh_until);
            client.write(RESPONSE_HEAD_BYTES + fetch.bytes, now);
        } else if fetch.is_whole() {
            stored.put(key, (), RESPONSE_HEAD_BYTES + fetch.object.size, fresh_until);
        }
        self.under_way = None;
        true
    }
}
