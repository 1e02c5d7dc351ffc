//! A queue that is filled and emptied in turn.
//!
//! Whenever it is empty it begins again at the start of its memory, which so stays in the processor's cache. All items are
//! in one piece: neither end wraps round, unlike a ring's.

/// Items in the order in which they came.
#[derive(Debug)]
pub(crate) struct Tray<T> {
    items: Vec<T>,
    /// How many of them are gone; not all.
    gone: usize,
}

impl<T> Default for Tray<T> {
    fn default() -> Tray<T> {
        Tray { items: Vec::new(), gone: 0 }
    }
}

impl<T: Copy> Tray<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.gone
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) -> &mut T {
        if self.items.len() == self.items.capacity() {
            self.close_up();
        }
        let place = self.items.len();
        self.items.push(item);
        &mut self.items[place]
    }

    /// It is full: room of items that are gone is used again if it is half of all.
    #[cold]
    fn close_up(&mut self) {
        if self.gone > self.items.len() / 2 {
            self.items.drain(..self.gone);
            self.gone = 0;
        }
    }

    /// The oldest.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.items.get(self.gone)
    }

    #[inline]
    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        self.items.get_mut(self.gone)
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first().copied()?;
        self.gone += 1;
        if self.gone == self.items.len() {
            self.items.clear();
            self.gone = 0;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(pushes in prop::collection::vec(any::<bool>(), 1..200)) {
            let (mut tray, mut model) = (Tray::default(), VecDeque::new());
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    tray.push(number);
                    model.push_back(number);
                } else {
                    prop_assert_eq!(tray.pop(), model.pop_front());
                }
                prop_assert_eq!((tray.first(), tray.len()), (model.front(), model.len()));
                prop_assert_eq!(tray.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn its_memory_does_not_grow_while_it_is_emptied_in_turn() {
        let mut tray = Tray::default();
        for number in 0..1000 {
            tray.push(number);
            tray.push(number);
            assert_eq!((tray.pop(), tray.pop()), (Some(number), Some(number)));
        }
        assert!(tray.items.capacity() < 10);
    }

    #[test]
    fn its_memory_does_not_grow_while_some_are_left() {
        let mut tray = Tray::default();
        for number in 0..100 {
            tray.push(number);
        }
        for number in 100..10_000 {
            assert_eq!(tray.pop(), Some(number - 100));
            tray.push(number);
        }
        assert!(tray.items.capacity() < 500);
    }
}
