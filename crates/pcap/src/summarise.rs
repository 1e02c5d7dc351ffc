//! The summary of a whole capture, on one core or several.

use std::thread;

use crate::flow::{Analysis, Counts, FlowSummary, Options, Share};
use crate::read::Reader;

/// What a capture held.
#[derive(Debug)]
pub struct Summary {
    /// Its flows by number.
    pub flows: Vec<FlowSummary>,
    /// Its packets by what became of them.
    pub counts: Counts,
}

/// Reads `reader` to its end, on up to `cores` cores.
///
/// Each core walks through the whole capture and keeps the flows that are its share. Walking and parsing are
/// cheaper than handing packets from one core to another; but a single flow is not divided, and a stream,
/// which can't be walked through twice, is read on one core.
pub fn summarise(reader: &mut Reader, options: Options, cores: usize) -> Summary {
    let copies = if cores > 1 && reader.counts().packets == 0 { reader.copies(cores) } else { None };
    let Some(copies) = copies else { return collect(run(reader, Analysis::new(options))) };
    let work = copies.into_iter().zip(Share::among(cores));
    let mut parts = thread::scope(|scope| {
        let threads: Vec<_> = work
            .map(|(mut reader, share)| {
                scope.spawn(move || {
                    let part = run(&mut reader, Analysis::of_share(options, share));
                    (part, reader)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    })
    .into_iter();
    // Each has counted every packet, and come to the same end.
    let Some((part, finished)) = parts.next() else { return collect(run(reader, Analysis::new(options))) };
    *reader = finished;
    let mut summary = collect(part);
    summary.flows.extend(parts.flat_map(|((flows, _), _)| flows));
    summary.flows.sort_unstable_by_key(|flow| flow.first_packet);
    for (number, flow) in (1..).zip(&mut summary.flows) {
        flow.number = number;
    }
    summary
}

fn run(reader: &mut Reader, mut analysis: Analysis) -> (Vec<FlowSummary>, Counts) {
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    let (flows, counts, ()) = analysis.finish();
    (flows, counts)
}

fn collect((flows, counts): (Vec<FlowSummary>, Counts)) -> Summary {
    Summary { flows, counts }
}
