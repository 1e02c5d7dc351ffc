//! Set-associative hashing: eight places for each hash, so that flows seldom share a queue (Høiland-Jørgensen, Täht,
//! Morton 2018, on flow isolation).

/// Places of a table.
pub(super) const PLACES: usize = 1024;
/// Places that a hash may take.
const WAYS: usize = 8;

/// Which hash has which place.
#[derive(Clone, Debug)]
pub(super) struct SetAssociative {
    tags: Box<[u32; PLACES]>,
}

/// Where a hash is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In its place of before.
    Known(usize),
    /// In one that was free.
    New(usize),
    /// In one that another uses: all eight are taken.
    Shared(usize),
}

impl SetAssociative {
    pub(super) fn new() -> SetAssociative {
        SetAssociative { tags: Box::new([0; PLACES]) }
    }

    /// The place of `hash`; `is_used` says which are in use.
    #[inline]
    pub(super) fn find(&mut self, hash: u32, is_used: impl Fn(usize) -> bool) -> Place {
        let own = hash as usize % PLACES;
        if self.tags[own] == hash && is_used(own) {
            return Place::Known(own);
        }
        let set = own - own % WAYS;
        let ways = || (0..WAYS).map(|way| set + (own + way) % WAYS);
        if let Some(known) = ways().find(|&place| self.tags[place] == hash && is_used(place)) {
            return Place::Known(known);
        }
        let Some(free) = ways().find(|&place| !is_used(place)) else { return Place::Shared(own) };
        self.tags[free] = hash;
        Place::New(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_hashes_of_a_set_have_a_place_each_and_the_ninth_shares_one() {
        let mut ways = SetAssociative::new();
        let mut used = std::collections::BTreeSet::new();
        // All want place 1026 % 1024 = 2.
        for round in 0..8 {
            match ways.find(2 + round * PLACES as u32, |place| used.contains(&place)) {
                Place::New(place) => assert!(place < 8 && used.insert(place)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ways.find(2 + 8 * PLACES as u32, |place| used.contains(&place)), Place::Shared(2));
        assert_eq!(ways.find(2 + 3 * PLACES as u32, |place| used.contains(&place)), Place::Known(5));
        // One that is free again goes to the next that comes.
        used.remove(&5);
        assert_eq!(ways.find(2 + 8 * PLACES as u32, |place| used.contains(&place)), Place::New(5));
    }
}
