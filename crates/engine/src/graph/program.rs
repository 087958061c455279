//! Vertex programs: what is known of each vertex is in memory, its neighbours are read when it asks for them
//! (Zheng et al., FlashGraph, FAST 2015, sections 3.3 and 3.4).

use std::sync::{Mutex, PoisonError};

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::{Chosen, WeightIndex};
use super::bits::Bits;
use super::sweep::{List, Means, Scratch, Sweep, Wanted, Watch};
use crate::EngineError;

/// Something that is done at vertices, iteration by iteration, until none is active.
///
/// An iteration has three parts, each of which is over before the next begins: `run` at every active vertex; `on_edges` with
/// the lists of those that ask for them; `on_message` for what was sent. Messages to a vertex come by the order of those who
/// sent them, whatever the number of threads and the memory. Where there is little memory the second and the third take
/// turns: what `on_edges` reads of states must not be changed by `on_message`, except so that a message less makes no
/// difference.
pub trait VertexProgram: Sync {
    /// What is known of a vertex.
    type State: Send + Sync;
    type Message: Copy + Send + Sync;

    /// Which lists are read of a vertex that asks for them, one direction after the other.
    fn directions(&self) -> &[Direction];

    /// Whether the weights are read with the lists.
    fn wants_weights(&self) -> bool {
        false
    }

    /// At an active vertex: whether it asks for its lists.
    fn run(&self, iteration: u32, vertex: Vertex, state: &mut Self::State) -> bool;

    /// With a list of a vertex that asked for it. `states` are those of all vertices.
    fn on_edges(&self, iteration: u32, list: &List<'_>, states: &[Self::State], outbox: &mut Outbox<Self::Message>);

    /// With what was sent to a vertex: whether it is active in the next iteration.
    fn on_message(&self, iteration: u32, vertex: Vertex, state: &mut Self::State, message: Self::Message) -> bool;

    /// Behind an iteration, with those that are active in the next: more may be added.
    fn on_iteration_end(&mut self, _iteration: u32, _states: &mut [Self::State], _active: &mut Bits) {}
}

/// What is sent, by the part of the vertices that it is sent to: so each part is in a cache when it is delivered.
pub struct Outbox<M> {
    parts: Vec<Vec<(Vertex, M)>>,
    shift: u32,
}

impl<M: Copy> Outbox<M> {
    fn new(parts: usize, shift: u32) -> Outbox<M> {
        Outbox {
            parts: (0..parts).map(|_| vec![]).collect(),
            shift,
        }
    }

    pub fn send(&mut self, to: Vertex, message: M) {
        self.parts[(to >> self.shift) as usize].push((to, message));
    }

    fn count(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }
}

/// Bytes of states that are worked on together: they stay in a core's cache.
const PART_BYTES: usize = 1 << 18;
const PARTS_MAX: usize = 1 << 10;
/// Messages that are not worth a thread.
const FEW: usize = 1 << 14;

/// What a program runs on.
pub struct Graph<'a> {
    pub file: &'a GraphFile,
    /// The degrees of both directions, out and in, where weights are read.
    pub degrees: Option<(&'a ListIndex, &'a ListIndex)>,
}

impl Graph<'_> {
    fn weights(&self, direction: Direction) -> Option<WeightIndex<'_>> {
        let degrees = self.degrees.map(|(out, into)| match direction {
            Direction::Out => out,
            Direction::In => into,
        });
        WeightIndex::new(self.file, degrees)
    }
}

/// The power of two of vertices that are worked on together.
fn part_shift(vertices: usize, state_bytes: usize) -> u32 {
    let mut shift = (PART_BYTES / state_bytes.max(1)).max(64).ilog2();
    while vertices >> shift > PARTS_MAX {
        shift += 1;
    }
    shift
}

/// Runs a program from the active vertices on until none is, or `watch` ends it. Gives the number of iterations.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn run<P: VertexProgram>(
    graph: &Graph<'_>,
    program: &mut P,
    states: &mut [P::State],
    active: &mut Bits,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<u32, EngineError> {
    let shift = part_shift(states.len(), size_of::<P::State>());
    let mut wanted = Bits::none(active.vertices());
    let mut number = 0;
    while !active.is_empty() {
        wanted.words_mut().copy_from_slice(active.words());
        active.clear();
        begin(program, number, states, &mut wanted, shift, means.threads);
        for direction in program.directions().to_vec() {
            let asked = Wanted {
                file: graph.file,
                direction,
                chosen: Chosen::Of(&wanted),
                weights: graph.weights(direction).filter(|_| program.wants_weights()),
            };
            let sweep = Sweep::new(asked, means);
            // A byte of a list is a message at most, and what has grown is half empty.
            let list_bytes = means.memory / 4 / size_of::<(Vertex, P::Message)>() as u64;
            for round in sweep.rounds(list_bytes) {
                let mut outboxes = vec![];
                let parts = states.len().div_ceil(1 << shift);
                round.run(
                    means,
                    Scratch::default,
                    |scratch, lists| {
                        let mut outbox = Outbox::new(parts, shift);
                        lists.each(scratch, |list| program.on_edges(number, list, states, &mut outbox))?;
                        Ok(outbox)
                    },
                    |outbox| {
                        outboxes.push(outbox);
                        Ok(())
                    },
                    watch,
                )?;
                deliver(program, number, states, active, shift, &outboxes, means.threads);
            }
        }
        program.on_iteration_end(number, states, active);
        number += 1;
    }
    Ok(number)
}

/// Works on every part, in several threads where there is much to do.
fn each_part<T: Send>(parts: impl Iterator<Item = T> + Send, threads: usize, work: impl Fn(T) + Sync) {
    if threads < 2 {
        return parts.for_each(work);
    }
    let parts = Mutex::new(parts);
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(part) = next() {
                    work(part);
                }
            });
        }
    });
}

/// Runs the active vertices; those that do not ask for their lists leave the set.
fn begin<P: VertexProgram>(
    program: &P,
    iteration: u32,
    states: &mut [P::State],
    wanted: &mut Bits,
    shift: u32,
    threads: usize,
) {
    let threads = if wanted.count() as usize > FEW { threads } else { 1 };
    let words = wanted.words_mut().chunks_mut(1 << shift >> 6);
    let parts = states.chunks_mut(1 << shift).zip(words).enumerate();
    each_part(parts, threads, |(part, (states, words))| {
        for (at, word) in words.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                let place = 64 * at + bit as usize;
                let vertex = (part << shift) as Vertex + place as Vertex;
                if !program.run(iteration, vertex, &mut states[place]) {
                    *word &= !(1 << bit);
                }
            }
        }
    });
}

/// Delivers messages, in the order of those who sent them.
fn deliver<P: VertexProgram>(
    program: &P,
    iteration: u32,
    states: &mut [P::State],
    next: &mut Bits,
    shift: u32,
    outboxes: &[Outbox<P::Message>],
    threads: usize,
) {
    let few = outboxes.iter().map(Outbox::count).sum::<usize>() <= FEW;
    let words = next.words_mut().chunks_mut(1 << shift >> 6);
    let parts = states.chunks_mut(1 << shift).zip(words).enumerate();
    each_part(parts, if few { 1 } else { threads }, |(part, (states, words))| {
        for (vertex, message) in outboxes.iter().flat_map(|outbox| &outbox.parts[part]) {
            let place = *vertex as usize & ((1 << shift) - 1);
            if program.on_message(iteration, *vertex, &mut states[place], *message) {
                words[place / 64] |= 1 << (place % 64);
            }
        }
    });
}
