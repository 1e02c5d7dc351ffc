//! Which packets vanish.

mod every;
mod gilbert_elliott;
mod list;
mod netem;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chain::Chain;
use crate::config::{self, LossModel};
use crate::random::stream;
use every::Every;
use gilbert_elliott::GilbertElliott;
use list::List;
use netem::Netem;

/// A loss process, its random stream and its count of the packets it has judged.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    process: Process,
    rng: Xoshiro256PlusPlus,
    judged: u64,
    before_queue: bool,
}

#[derive(Clone, Debug)]
enum Process {
    Random(Chain),
    Netem(Netem),
    GilbertElliott(GilbertElliott),
    List(List),
    Every(Every),
}

impl Loss {
    pub(crate) fn new(config: &config::Loss, seed: u64) -> Loss {
        let mut rng = stream(seed, "loss");
        let process = Process::new(&config.model, &mut rng);
        Loss { process, rng, judged: 0, before_queue: config.before_queue }
    }

    /// A new process from the next packet on; the stream and the packet numbers go on.
    pub(crate) fn set(&mut self, config: &config::Loss) {
        self.process = Process::new(&config.model, &mut self.rng);
        self.before_queue = config.before_queue;
    }

    /// Whether it strikes before the queue.
    pub(crate) fn before_queue(&self) -> bool {
        self.before_queue
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        self.judged += 1;
        match &mut self.process {
            Process::Random(chain) => chain.next(&mut self.rng),
            Process::Netem(netem) => netem.next(&mut self.rng),
            Process::GilbertElliott(chain) => chain.next(&mut self.rng),
            Process::List(list) => list.takes(self.judged),
            Process::Every(every) => every.takes(self.judged),
        }
    }
}

impl Process {
    fn new(model: &LossModel, rng: &mut Xoshiro256PlusPlus) -> Process {
        match model {
            LossModel::Random { chance } => Process::Random(Chain::new(*chance)),
            LossModel::Netem { chance } => Process::Netem(Netem::new(*chance, rng)),
            LossModel::GilbertElliott { p, r, bad, good } => {
                Process::GilbertElliott(GilbertElliott::new(*p, *r, *bad, *good, rng))
            }
            LossModel::List { packets } => Process::List(List::new(packets)),
            LossModel::Every { packets, first } => Process::Every(Every::new(*packets, *first)),
        }
    }
}
