//! The store of a cache: by bytes, the least recently used goes first; fresh until a time (RFC 9111, section 4.2).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tcplab_units::Time;

/// Stored responses by what was asked for, each with a value. It reads no clock: `now` is an argument.
#[derive(Clone, Debug)]
pub struct Store<K, V = ()> {
    /// Maximum bytes.
    size: u64,
    /// Bytes stored.
    bytes: u64,
    entries: HashMap<K, Entry<V>>,
    /// The keys by when they were used last.
    order: BTreeMap<u64, K>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<V> {
    value: V,
    bytes: u64,
    fresh_until: Time,
    used: u64,
}

/// The state of an object in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A response that may be used as it is.
    Fresh,
    /// One that the server must confirm first.
    Stale,
    /// None.
    Nothing,
}

impl<K: Clone + Eq + Hash, V> Store<K, V> {
    /// An empty one for up to `size` bytes.
    pub fn new(size: u64) -> Store<K, V> {
        Store { size, bytes: 0, entries: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// The state of an object at `now`. That counts as a use.
    pub fn look(&mut self, key: &K, now: Time) -> Found {
        let Some(entry) = self.entries.get_mut(key) else { return Found::Nothing };
        self.order.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.order.insert(self.uses, key.clone());
        if now < entry.fresh_until { Found::Fresh } else { Found::Stale }
    }

    /// The value of an entry, which does not count as a use of it.
    pub fn value(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Stores a response of `bytes`, and evicts the least recently used until it fits. One that exceeds the cache is not
    /// stored.
    pub fn put(&mut self, key: K, value: V, bytes: u64, fresh_until: Time) {
        self.remove(&key);
        if bytes > self.size {
            return;
        }
        while self.bytes + bytes > self.size
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.bytes -= self.entries.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
        self.bytes += bytes;
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, Entry { value, bytes, fresh_until, used: self.uses });
    }

    /// The server has confirmed a response (RFC 9111, section 4.3.4), whose value may be brought up to date.
    pub fn confirm(&mut self, key: &K, fresh_until: Time) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        entry.fresh_until = fresh_until;
        Some(&mut entry.value)
    }

    /// Forgets a response.
    pub fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }

    /// Bytes stored.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut store = Store::new(30);
        for key in 0..3 {
            store.put(key, (), 10, Time::NEVER);
        }
        assert_eq!(store.look(&0, at(0)), Found::Fresh);
        store.put(3, (), 15, Time::NEVER);
        let found: Vec<Found> = (0..4).map(|key| store.look(&key, at(0))).collect();
        assert_eq!(found, [Found::Fresh, Found::Nothing, Found::Nothing, Found::Fresh]);
        assert_eq!(store.bytes(), 25);
    }

    #[test]
    fn what_is_older_than_its_age_allows_is_stale_until_it_is_confirmed() {
        let mut store = Store::new(30);
        store.put("a", (), 10, at(100));
        assert_eq!(store.look(&"a", at(99)), Found::Fresh);
        assert_eq!(store.look(&"a", at(100)), Found::Stale);
        store.confirm(&"a", at(200));
        assert_eq!(store.look(&"a", at(150)), Found::Fresh);
    }

    #[test]
    fn what_is_larger_than_the_store_is_not_stored_and_displaces_nothing() {
        let mut store = Store::new(30);
        store.put("a", (), 10, Time::NEVER);
        store.put("b", (), 31, Time::NEVER);
        assert_eq!(store.look(&"b", at(0)), Found::Nothing);
        assert_eq!(store.look(&"a", at(0)), Found::Fresh);
    }

    proptest! {
        /// Against a list in the order of use.
        #[test]
        fn it_is_a_list_in_the_order_of_use(steps in proptest::collection::vec((0u8..12, 0u64..40, any::<bool>()), 1..200)) {
            let mut store = Store::new(100);
            let mut model: Vec<(u8, u64)> = Vec::new();
            for (key, bytes, puts) in steps {
                let known = model.iter().position(|&(other, _)| other == key);
                if puts {
                    known.map(|place| model.remove(place));
                    while model.iter().map(|one| one.1).sum::<u64>() + bytes > 100 {
                        model.remove(0);
                    }
                    model.push((key, bytes));
                    store.put(key, (), bytes, Time::NEVER);
                } else {
                    let found = store.look(&key, at(0));
                    prop_assert_eq!(found != Found::Nothing, known.is_some());
                    if let Some(place) = known {
                        let used = model.remove(place);
                        model.push(used);
                    }
                }
                prop_assert_eq!(store.bytes(), model.iter().map(|one| one.1).sum::<u64>());
                prop_assert!(store.bytes() <= 100);
            }
        }
    }
}
