//! The stored responses, and the memory that bodies take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tcplab_plan::Store;
use tcplab_traffic::http::{Fields, Request, Response};
use tcplab_units::Time;

use super::rules;

/// The key of a request. A client may name any host: one server's answer is not given for another's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) server: SocketAddr,
    pub(crate) host: String,
    pub(crate) path: String,
}

/// Bytes of bodies in memory: stored, about to be, or on their way to a client although no longer stored.
#[derive(Debug)]
pub(crate) struct Memory {
    held: AtomicU64,
    maximum: u64,
}

impl Memory {
    pub(crate) fn new(maximum: u64) -> Arc<Memory> {
        Arc::new(Memory { held: AtomicU64::new(0), maximum })
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let add = |held: u64| held.checked_add(bytes).filter(|&sum| sum <= self.maximum);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add).is_ok()
    }
}

/// A body, or what has come of it.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    memory: Arc<Memory>,
}

impl Body {
    pub(crate) fn new(memory: &Arc<Memory>) -> Body {
        Body { bytes: Vec::new(), memory: memory.clone() }
    }

    /// Appends bytes; returns false, and appends none, where they do not fit in the memory left.
    pub(crate) fn append(&mut self, more: &[u8]) -> bool {
        let taken = self.memory.take(more.len() as u64);
        if taken {
            self.bytes.extend_from_slice(more);
        }
        taken
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes.len() as u64, Ordering::AcqRel);
    }
}

/// When a response was asked for and when its head came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) delay: Duration,
    pub(crate) received: SystemTime,
    /// Likewise, on the clock of the store.
    pub(crate) at: Time,
}

/// A stored response.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Its fields, without those of one hop and without a length.
    pub(crate) fields: Fields,
    pub(crate) body: Arc<Body>,
    /// Bytes of its head.
    head: u64,
    /// The fields of the request that it was chosen by, with their values (RFC 9111, section 4.1).
    vary: Vec<(String, Vec<String>)>,
    age: Duration,
    lifetime: Duration,
    at: Time,
}

impl Stored {
    pub(crate) fn new(
        request: &Request,
        response: &Response,
        head: u64,
        body: Body,
        exchange: Exchange,
    ) -> Stored {
        let mut fields = rules::end_to_end(&response.fields);
        fields.remove("content-length");
        let mut body = body;
        body.bytes.shrink_to_fit();
        let vary =
            response.fields.members("vary").map(|name| (name.to_owned(), values(request, name))).collect();
        Stored::with(fields, Arc::new(body), head, vary, exchange)
    }

    fn with(
        fields: Fields,
        body: Arc<Body>,
        head: u64,
        vary: Vec<(String, Vec<String>)>,
        exchange: Exchange,
    ) -> Stored {
        let lifetime = rules::lifetime(&fields, exchange.received);
        let age = rules::initial_age(&fields, exchange.received, exchange.delay);
        Stored { fields, body, head, vary, age, lifetime, at: exchange.at }
    }

    /// The same after a 304 (RFC 9111, section 4.3.4).
    pub(crate) fn confirmed(&self, by: &Response, exchange: Exchange) -> Stored {
        let fields = rules::update(&self.fields, &by.fields);
        // `by` may bring fields that were not there before. Fields that it leaves out were counted with the first head.
        let head = self.head.max(fields.after("HTTP/1.1 200 OK").len() as u64);
        Stored::with(fields, self.body.clone(), head, self.vary.clone(), exchange)
    }

    fn answers(&self, request: &Request) -> bool {
        self.vary.iter().all(|(name, had)| values(request, name) == *had)
    }

    /// How old it is (RFC 9111, section 4.2.3).
    pub(crate) fn age(&self, now: Time) -> Duration {
        self.age + Duration::from_nanos(now.as_ns().saturating_sub(self.at.as_ns()))
    }

    fn fresh_until(&self) -> Time {
        let left = self.lifetime.saturating_sub(self.age);
        Time::from_ns(self.at.as_ns().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Bytes that it counts in the store: head and body.
    fn bytes(&self) -> u64 {
        self.head + self.body.bytes.len() as u64
    }
}

fn values(request: &Request, name: &str) -> Vec<String> {
    request.fields.members(name).map(str::to_owned).collect()
}

/// The state of the store for a request. The words are those of `Cache-Status` (RFC 9211, section 2.2).
#[derive(Debug)]
pub(crate) enum Found {
    /// It may be used as it is.
    Fresh(Arc<Stored>),
    /// The server must confirm it first.
    ToConfirm(Arc<Stored>, &'static str),
    /// Nothing that is of use.
    Nothing(&'static str),
}

/// The stored responses.
#[derive(Debug)]
pub(crate) struct Shelf(Store<Key, Arc<Stored>>);

impl Shelf {
    pub(crate) fn new(size: u64) -> Shelf {
        Shelf(Store::new(size))
    }

    pub(crate) fn look(&mut self, key: &Key, request: &Request, now: Time) -> Found {
        let found = self.0.look(key, now);
        let Some(stored) = self.0.value(key).cloned() else { return Found::Nothing("uri-miss") };
        if !stored.answers(request) {
            return Found::Nothing("vary-miss");
        }
        let age = stored.age(now);
        let left = stored.lifetime.saturating_sub(age);
        let why = match found {
            tcplab_plan::Found::Fresh if rules::demands_validation(&request.fields, age, left) => "request",
            tcplab_plan::Found::Fresh => return Found::Fresh(stored),
            _ => "stale",
        };
        if rules::has_validator(&stored.fields) { Found::ToConfirm(stored, why) } else { Found::Nothing(why) }
    }

    pub(crate) fn put(&mut self, key: Key, stored: Stored) {
        let (bytes, until) = (stored.bytes(), stored.fresh_until());
        self.0.put(key, Arc::new(stored), bytes, until);
    }

    /// Replaces a response by what the server has made of it; one that has gone or changed meanwhile stays as it is.
    pub(crate) fn confirm(&mut self, key: &Key, old: &Arc<Stored>, new: &Arc<Stored>) {
        if !self.0.value(key).is_some_and(|now| Arc::ptr_eq(&now.body, &old.body)) {
            return;
        }
        if new.bytes() > old.bytes() {
            self.0.put(key.clone(), new.clone(), new.bytes(), new.fresh_until());
        } else if let Some(value) = self.0.confirm(key, new.fresh_until()) {
            *value = new.clone();
        }
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
