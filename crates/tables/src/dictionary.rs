//! The strings of a run, each kept once.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// A string of a [`Dictionary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol(u32);

impl Symbol {
    pub(crate) const fn code(self) -> u32 {
        self.0
    }
    pub(crate) const fn from_code(code: u32) -> Symbol {
        Symbol(code)
    }
}

/// Strings by number. Numbers are given out in the order of first use, so equal runs have equal ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dictionary {
    strings: Vec<String>,
    /// Only looked up, so that the order of its keys shows nowhere. A row of a sample asks for up to five strings: SipHash
    /// was 7 % of a run of 100 flows.
    codes: HashMap<String, u32, FixedState>,
}

impl Dictionary {
    /// The symbol of `string`, new if it has none yet.
    pub fn symbol(&mut self, string: &str) -> Symbol {
        if let Some(&code) = self.codes.get(string) {
            return Symbol(code);
        }
        let code = self.strings.len() as u32;
        self.strings.push(string.to_owned());
        self.codes.insert(string.to_owned(), code);
        Symbol(code)
    }
    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
    /// The string behind `symbol`; empty if it is another dictionary's.
    pub fn string(&self, symbol: Symbol) -> &str {
        self.strings.get(symbol.0 as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_symbol() {
        let mut dictionary = Dictionary::default();
        let open = dictionary.symbol("open");
        let loss = dictionary.symbol("loss");
        assert_ne!(open, loss);
        assert_eq!(dictionary.symbol("open"), open);
        assert_eq!(dictionary.string(loss), "loss");
    }
}
