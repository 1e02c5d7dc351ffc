//! The summary of a whole capture, on one core or several.

use std::thread;

use crate::flow::{Analysis, Counts, Division, Flows, Options};
use crate::parallel::Distributor;
use crate::read::Reader;

/// Contents of a capture.
#[derive(Debug)]
pub struct Summary {
    /// Its flows by number.
    pub flows: Flows,
    /// Its packets by what became of them.
    pub counts: Counts,
}

/// Reads `reader` to its end, on up to `cores` cores.
///
/// Each core analyses the flows that are its share, so a single flow is not divided. A stream is read on one
/// core.
pub fn summarise(reader: &mut Reader, options: Options, cores: usize) -> Summary {
    match reader.whole() {
        Some(bytes) if cores > 1 => {
            let division = Division::into_parts(cores);
            let distributor = &Distributor::new(reader, bytes, division);
            let parts = thread::scope(|scope| {
                let threads: Vec<_> = division
                    .shares()
                    .map(|share| scope.spawn(move || distributor.work(share, options)))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            });
            together(parts)
        }
        _ => {
            let mut analysis = Analysis::new(options);
            while let Some(packet) = reader.next_packet() {
                analysis.packet(&packet);
            }
            let (flows, counts, ()) = analysis.into_flows();
            Summary { flows, counts }
        }
    }
}

fn together(parts: Vec<(Flows, Counts)>) -> Summary {
    let mut counts = Counts::default();
    let shares = parts.into_iter().map(|(flows, counted)| {
        counts.add(&counted);
        flows
    });
    let flows = Flows::together(shares.collect());
    Summary { flows, counts }
}
