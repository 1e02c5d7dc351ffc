//! Which packets vanish.

mod every;
mod gilbert_elliott;
mod list;
mod netem;

use crate::config::{self, LossModel};
use crate::correlated_chance::CorrelatedChance;
use crate::random::Stream;
use every::Every;
use gilbert_elliott::GilbertElliott;
use list::List;
use netem::Netem;

/// A loss process, its random stream and its count of the packets it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    process: Process,
    seed: u64,
    /// For the processes with a memory, which see one packet after another.
    stream: Stream,
    seen: u64,
    before_queue: bool,
}

#[derive(Clone, Debug)]
enum Process {
    Random(CorrelatedChance),
    Netem(Netem),
    GilbertElliott(GilbertElliott),
    List(List),
    Every(Every),
}

impl Loss {
    pub(crate) fn new(config: &config::Loss, seed: u64) -> Loss {
        let mut stream = Stream::new(seed, "loss process");
        let process = Process::new(&config.model, seed, &mut stream);
        Loss { process, seed, stream, seen: 0, before_queue: config.before_queue }
    }

    /// A new process from the next packet on; the stream and the packet numbers go on.
    pub(crate) fn set(&mut self, config: &config::Loss) {
        self.process = Process::new(&config.model, self.seed, &mut self.stream);
        self.before_queue = config.before_queue;
    }

    /// Whether it acts before the queue.
    pub(crate) fn before_queue(&self) -> bool {
        self.before_queue
    }

    /// Whether the packet that was offered to the link as the `number`th is lost.
    #[inline]
    pub(crate) fn takes(&mut self, number: u64) -> bool {
        self.seen += 1;
        match &mut self.process {
            Process::Random(chance) => chance.hits(number),
            Process::Netem(netem) => netem.next(&mut self.stream),
            Process::GilbertElliott(chain) => chain.next(&mut self.stream),
            Process::List(list) => list.takes(self.seen),
            Process::Every(every) => every.takes(self.seen),
        }
    }
}

impl Process {
    fn new(model: &LossModel, seed: u64, random: &mut Stream) -> Process {
        match model {
            LossModel::Random { chance } => Process::Random(CorrelatedChance::new(*chance, seed, "loss")),
            LossModel::Netem { chance } => Process::Netem(Netem::new(*chance, random)),
            LossModel::GilbertElliott { p, r, bad, good } => {
                Process::GilbertElliott(GilbertElliott::new(*p, *r, *bad, *good, random))
            }
            LossModel::List { packets } => Process::List(List::new(packets)),
            LossModel::Every { packets, first } => Process::Every(Every::new(*packets, *first)),
        }
    }
}
