//! Explains the verifier's rejection, with the line of the C file.

use std::fmt;

use crate::log;

/// Why the kernel refuses a control.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Explanation; none if the verifier's message is unknown.
    pub meaning: Option<&'static str>,
    /// The verifier's message.
    pub verdict: String,
    /// The C file and line that the refused instruction was made from, if the kernel says it (Linux 6.4 or newer).
    pub place: Option<(String, u32)>,
    /// The text of that line.
    pub source: Option<String>,
    /// The last lines of the log.
    pub log: String,
}

impl Refusal {
    /// Reads what libbpf and the kernel said; none if the verifier did not refuse anything.
    pub(crate) fn read(said: &str) -> Option<Refusal> {
        let (_, said_of_it) = said.split_once("-- BEGIN PROG LOAD LOG --")?;
        let (log, _) = said_of_it.split_once("-- END PROG LOAD LOG --").unwrap_or((said_of_it, ""));
        let lines: Vec<&str> = log.lines().map(str::trim_end).collect();
        let known = lines.iter().rposition(|line| meaning(line).is_some());
        let at = known.or_else(|| lines.iter().rposition(|line| is_verdict(line))).unwrap_or(0);
        let comments = lines[..at].iter().rev().filter_map(|line| line.strip_prefix("; ").map(str::trim));
        let source =
            comments.map(Source::read).find(|source| !source.text.is_empty() || source.place.is_some());
        Some(Refusal {
            meaning: lines.get(at).and_then(|line| meaning(line)),
            verdict: lines.get(at).copied().unwrap_or_default().to_owned(),
            place: source.as_ref().and_then(|source| source.place.clone()),
            source: source.map(|source| source.text).filter(|text| !text.is_empty()),
            log: log::tail(said).to_owned(),
        })
    }
}

/// Whether a line of the log is the verifier's word, not one of an instruction, of the states or of statistics.
fn is_verdict(line: &str) -> bool {
    let noise = ["; ", "processed ", "cur state", "old state", "from ", "verification time", "stack depth"];
    let instruction = line.split(':').next().is_some_and(|number| number.parse::<u32>().is_ok());
    !line.is_empty() && !instruction && !noise.iter().any(|start| line.starts_with(start))
}

/// A line of the C file as the log quotes it: `text @ file:line`.
struct Source {
    text: String,
    place: Option<(String, u32)>,
}

impl Source {
    fn read(comment: &str) -> Source {
        let place =
            comment.rsplit_once(" @ ").or_else(|| comment.strip_prefix("@ ").map(|place| ("", place)));
        let read = place.and_then(|(text, place)| {
            let (file, line) = place.rsplit_once(':')?;
            Some((text.trim().to_owned(), file.to_owned(), line.parse().ok()?))
        });
        match read {
            Some((text, file, line)) => Source { text, place: (line > 0).then_some((file, line)) },
            None => Source { text: comment.to_owned(), place: None },
        }
    }
}

/// Messages of the verifier (kernel/bpf/verifier.c, net/ipv4/bpf_tcp_ca.c and libbpf's words in their place), and what
/// it means in a control.
const MEANINGS: [(&[&str], &str); 14] = [
    (&["failed to resolve CO-RE relocation"], "it uses a field that this kernel does not have"),
    (
        &["or_null'", "possibly NULL", "possibly null"],
        "a pointer may be null here: compare it with NULL before it is followed",
    ),
    (
        &["no write support to", "only read is supported", "write access at off"],
        "the kernel lets a control write only snd_cwnd, snd_cwnd_cnt, snd_ssthresh, sk_pacing_rate and \
         sk_pacing_status (both since Linux 6.0) and app_limited (6.4) of the socket. Keep everything else \
         in struct state",
    ),
    (
        &["cannot use helper", "unknown func", "helper call is not allowed", "calling kernel function"],
        "a control may not call this function of the kernel",
    ),
    (
        &["infinite loop detected", "back-edge"],
        "the loop may never end: count its rounds and stop at a constant",
    ),
    (
        &["program is too large", "jumps is too complex", "too many states"],
        "it has more paths than the verifier follows (a million instructions): make loops shorter and branches fewer",
    ),
    (
        &[
            "unbounded memory access",
            "unbounded min value",
            "min value is negative",
            "outside of the allowed memory range",
            "outside of the array range",
            "invalid access to map value",
            "variable-offset",
            "pointer offset",
            "math between map_value pointer",
        ],
        "an array index or an address is not bounded: compare it with the array's size just before its use",
    ),
    (
        &[
            "dereference of modified",
            "access beyond struct",
            "invalid bpf_context access",
            "invalid access to memory",
        ],
        "it reads outside of what it was handed: use the fields that tcplab_cc.h declares",
    ),
    (
        &["combined stack size", "stack depth"],
        "its local variables take more than 512 bytes: move them into struct state",
    ),
    (&["!read_ok", "invalid read from stack"], "a variable is read before it has a value"),
    (&["invalid mem access"], "a number is followed as if it were an address"),
    (&["R0 !=", "At program exit the register R0"], "it returns what the kernel does not take here"),
    (&["misaligned"], "an address is not a multiple of the size that is read or written"),
    (&["unreachable insn", "jump out of range"], "it has code that can never run, or a jump to nowhere"),
];

fn meaning(line: &str) -> Option<&'static str> {
    let says = |words: &&[&str]| words.iter().any(|word| line.contains(word));
    MEANINGS.iter().find(|(words, _)| says(words)).map(|(_, meaning)| *meaning)
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.place {
            write!(out, "{file}:{line}: ")?;
        }
        writeln!(out, "{}", self.meaning.unwrap_or(&self.verdict))?;
        if let Some(source) = &self.source {
            writeln!(out, "    {source}")?;
        }
        write!(out, "the verifier's own words: {}", self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::load::trial::{Trial, refusal};

    /// The kernel's answer to a modified reno; the test is over where it cannot be asked.
    macro_rules! refused {
        ($trial:expr) => {
            match refusal($trial) {
                Ok(refusal) => refusal,
                Err(why) => return eprintln!("skipped: {why}"),
            }
        };
    }

    fn at_ssthresh(statement: &str) -> Trial<'_> {
        Trial { at: "SSTHRESH(sk, tp, ca)\n{", statement, ..Trial::default() }
    }

    #[test]
    fn an_index_without_a_bound() {
        let refusal = refused!(at_ssthresh("*(volatile u32 *)&((u32 *)ca)[tp->snd_cwnd] = 1;"));
        assert!(refusal.meaning.is_some_and(|text| text.contains("index")), "{refusal}");
        assert!(refusal.source.as_ref().is_some_and(|text| text.contains("tp->snd_cwnd")), "{refusal}");
        // The verifier names the line since the kernel has links.
        let named = Kernel::running().is_some_and(|kernel| kernel.links);
        assert_eq!(refusal.place.as_ref().is_some_and(|(_, line)| *line > 20), named, "{refusal}");
    }

    #[test]
    fn a_pointer_that_may_be_null() {
        let head = "static void *(*get)(void *, void *, void *, unsigned long long) = (void *)107;\n";
        let refusal = refused!(Trial {
            head,
            ..at_ssthresh("((struct state *)get(&tl_state, sk, NULL, 0))->telemetry.phase = 1;")
        });
        assert!(refusal.meaning.is_some_and(|text| text.contains("null")), "{refusal}");
    }

    #[test]
    fn a_field_that_is_not_the_controls_to_write() {
        let refusal = refused!(at_ssthresh("tp->srtt_us = 3;"));
        assert!(refusal.meaning.is_some_and(|text| text.contains("snd_cwnd_cnt")), "{refusal}");
        assert!(refusal.verdict.contains("no write support"), "{refusal}");
        assert_eq!(refusal.source.as_deref(), Some("tp->srtt_us = 3;"));
    }

    #[test]
    fn a_helper_that_controls_may_not_call() {
        let head = "static long (*load)(void *, unsigned, const void *, unsigned) = (void *)26;\n";
        let refusal =
            refused!(Trial { head, ..at_ssthresh("u64 x = 0; load(sk, 0, &x, 4); tp->snd_cwnd_cnt = x;") });
        assert!(refusal.meaning.is_some_and(|text| text.contains("function of the kernel")), "{refusal}");
    }

    #[test]
    fn a_loop_without_an_end() {
        let refusal =
            refused!(at_ssthresh("while (tp->snd_cwnd > 3) *(volatile u32 *)&ca->telemetry.phase += 1;"));
        assert!(refusal.meaning.is_some_and(|text| text.contains("loop")), "{refusal}");
    }

    #[test]
    fn a_loop_that_is_too_long() {
        let refusal = refused!(at_ssthresh(
            "for (u32 i = 0; i < 3000000; i++) *(volatile u32 *)&ca->telemetry.phase += tp->snd_cwnd;"
        ));
        assert!(refusal.meaning.is_some_and(|text| text.contains("a million")), "{refusal}");
    }

    #[test]
    fn a_field_that_the_kernel_does_not_have() {
        let head = "struct tcp_sock___new { unsigned nosuch; } __attribute__((preserve_access_index));\n";
        let refusal = refused!(Trial {
            head,
            ..at_ssthresh("tp->snd_cwnd_cnt = ((struct tcp_sock___new *)tp)->nosuch;")
        });
        assert!(refusal.meaning.is_some_and(|text| text.contains("does not have")), "{refusal}");
        assert!(refusal.verdict.contains("nosuch"), "{refusal}");
    }

    #[test]
    fn words_that_are_not_known_are_given_as_they_are() {
        let said = "x\n-- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n; tp->mystery(); @ mine.c:7\n\
                    3: (85) call pc+5\nsomething new is not allowed here\nprocessed 4 insns (limit 1000000)\n\
                    -- END PROG LOAD LOG --\nlibbpf: failed\n";
        let refusal = Refusal::read(said).unwrap();
        assert_eq!(refusal.meaning, None);
        assert_eq!(refusal.place, Some(("mine.c".to_owned(), 7)));
        assert!(
            refusal
                .to_string()
                .starts_with("mine.c:7: something new is not allowed here\n    tp->mystery();\n")
        );
    }

    #[test]
    fn a_kernel_that_does_not_name_the_line_quotes_it() {
        let said = "-- BEGIN PROG LOAD LOG --\n; tp->srtt_us = 3;\n0: (63) *(u32 *)(r6 +1680) = r1\n\
                    no write support to tcp_sock at off 1680\n-- END PROG LOAD LOG --\n";
        let refusal = Refusal::read(said).unwrap();
        assert_eq!((refusal.place, refusal.source.as_deref()), (None, Some("tp->srtt_us = 3;")));
    }

    #[test]
    fn another_log_than_the_verifiers_is_not_a_rejection() {
        assert_eq!(Refusal::read("libbpf: map 'tl_state': failed to create: -EPERM"), None);
    }
}
