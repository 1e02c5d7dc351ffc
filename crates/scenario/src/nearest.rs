//! The word that was probably meant: the closest of those known, if it is close enough.

/// How alike two words are, 0 to 1: twice the characters in common over the sum of both lengths. Those in common are found as by Ratcliff and Obershelp (the longest common run, then the same to its left and right).
pub fn likeness(one: &str, other: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    2.0 * common(&a, &b) as f64 / (a.len() + b.len()) as f64
}

fn common(a: &[char], b: &[char]) -> usize {
    let (mut at_a, mut at_b, mut longest) = (0, 0, 0);
    let mut ending = vec![0; b.len() + 1];
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![0; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            if x == y {
                next[j + 1] = ending[j] + 1;
                if next[j + 1] > longest {
                    longest = next[j + 1];
                    (at_a, at_b) = (i + 1 - longest, j + 1 - longest);
                }
            }
        }
        ending = next;
    }
    if longest == 0 {
        return 0;
    }
    longest + common(&a[..at_a], &b[..at_b]) + common(&a[at_a + longest..], &b[at_b + longest..])
}

/// The known word most like `word`, of equals the last of the alphabet; none if none is at least `enough` alike.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, enough: f64) -> Option<&'a str> {
    // Comparing costs the product of the lengths; nothing that long is a misspelt word.
    if word.chars().count() > 200 {
        return None;
    }
    let mut best: Option<(&str, f64)> = None;
    for candidate in known {
        let alike = likeness(candidate, word);
        let better = |(word, so_far): (&str, f64)| alike > so_far || (alike == so_far && candidate > word);
        if alike >= enough && best.is_none_or(better) {
            best = Some((candidate, alike));
        }
    }
    best.map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_slip_are_found_and_others_are_not() {
        let known = ["rate", "delay", "queue", "description"];
        assert_eq!(nearest("raet", known, 0.6), Some("rate"));
        assert_eq!(nearest("descripton", known, 0.6), Some("description"));
        assert_eq!(nearest("flow", known, 0.6), None);
    }

    #[test]
    fn likeness_counts_common_runs() {
        assert_eq!(likeness("abcd", "bcde"), 0.75);
        assert_eq!(likeness("", ""), 1.0);
        assert_eq!(likeness("a", ""), 0.0);
    }
}
