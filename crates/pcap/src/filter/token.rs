//! Words of the filter language with their places.

/// A word or a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// Where it begins, in characters from 0.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// Cuts a text at spaces and around signs.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().enumerate().peekable();
    while let Some((at, (start, first))) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut end = start + first.len_utf8();
        if matches!(first, '&' | '|') {
            if let Some((_, (_, _))) = rest.next_if(|&(_, (_, next))| next == first) {
                end += first.len_utf8();
            }
        } else if !is_sign(first) {
            while let Some((_, (begin, next))) =
                rest.next_if(|&(_, (_, next))| !next.is_whitespace() && !is_sign(next))
            {
                end = begin + next.len_utf8();
            }
        }
        found.push(Token { at, text: text.get(start..end).unwrap_or_default() });
    }
    found
}

fn is_sign(character: char) -> bool {
    matches!(character, '(' | ')' | '!' | '&' | '|')
}
