//! Vertex programs: what is known of each vertex is in memory, its neighbours are read when it asks for them
//! (Zheng et al., FlashGraph, FAST 2015, sections 3.3 and 3.4).

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile, PAGE};

use super::requests::{Requested, Requests};
use crate::graph::read::batch::WeightIndex;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::queue::ResultBudget;
use crate::graph::read::selection::{List, ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{each_part, Resources, Watch, BATCH_PAGES};
use crate::EngineError;

/// Something that is done at vertices, iteration by iteration, until none is active.
///
/// An iteration has three parts, each of which is over before the next begins: `run` at every active vertex; `on_edges` with
/// the lists of those that ask for them; `on_message` for what was sent. Messages to a vertex come by the order of those who
/// sent them, whatever the number of threads and the memory: in iterations of even numbers, from 0, the lowest sender is
/// the first, in the others the highest. Where there is little memory the second and the third take turns: what `on_edges`
/// reads of states must not be changed by `on_message`, except so that a message less makes no difference.
///
/// A program with `stages` goes through the three parts once for each of them, with the active vertices of that stage: what is
/// said above of an iteration holds for each stage then.
pub trait VertexProgram: Sync {
    /// The state of a vertex.
    type State: Send + Sync;
    type Message: Copy + Send + Sync;

    /// Which lists are read of a vertex that asks for them, one direction after the other.
    fn directions(&self) -> &[Direction];

    /// Whether the weights are read with the lists.
    fn wants_weights(&self) -> bool {
        false
    }

    /// Whether `on_edges` makes do with parts of a list: long ones then come in several calls of the iteration, so that no list
    /// is too long for the memory there is.
    fn takes_parts(&self) -> bool {
        false
    }

    /// At an active vertex: whether it asks for its lists.
    fn run(&self, iteration: u32, vertex: Vertex, state: &mut Self::State) -> bool;

    /// At an active vertex, behind its `run`: which other vertices' lists it asks for, whether it asks for its own or not. A list
    /// is given once in an iteration, or in each stage of one, however many ask for it, in all `directions`; who did, `on_edges`
    /// has to know from the states. From the first request on they take a bit of memory for each vertex of the graph, beside
    /// that of the means.
    fn request(&self, _iteration: u32, _vertex: Vertex, _state: &Self::State, _requests: &mut Requests<'_>) {}

    /// Into how many stages an iteration is divided, the same in the whole run. Where there is more than one they take a bit of
    /// memory for each vertex of the graph, beside that of the means, and before each a look at the active vertices that have
    /// not run.
    fn stages(&self) -> u32 {
        1
    }

    /// In which stage, from 0, an active vertex runs: in the last if it is beyond that. `run` of a later stage meets the states
    /// that the messages of the earlier ones made, and may do without its list: so those of the highest degrees go first, and
    /// the others only where they still count. `list_bytes` are those of its lists in all `directions`: they grow with the
    /// degree. It is asked before each stage of those that have not run; one whose stage is over by then runs at once.
    fn stage(&self, _iteration: u32, _vertex: Vertex, _state: &Self::State, _list_bytes: u64) -> u32 {
        0
    }

    /// With a list that was asked for, or a part of it. `states` are those of all vertices.
    fn on_edges(&self, iteration: u32, list: &List<'_>, states: &[Self::State], outbox: &mut Outbox<Self::Message>);

    /// With what was sent to a vertex: whether it is active in the next iteration.
    fn on_message(&self, iteration: u32, vertex: Vertex, state: &mut Self::State, message: Self::Message) -> bool;

    /// Behind an iteration, with those that are active in the next: more may be added.
    fn on_iteration_end(&mut self, _iteration: u32, _states: &mut [Self::State], _active: &mut Frontier) {}
}

/// What is sent; where it is much, by the part of the vertices that it is sent to: so each part is in a cache when it is
/// delivered.
pub struct Outbox<M> {
    few: Vec<(Vertex, M)>,
    /// None as long as there are few messages; then all are here.
    parts: Vec<Vec<(Vertex, M)>>,
    cut: VertexParts,
}

/// How vertices are cut into parts: 2^`shift` each.
#[derive(Clone, Copy)]
struct VertexParts {
    parts: usize,
    shift: u32,
}

impl<M: Copy> Outbox<M> {
    fn new(cut: VertexParts) -> Outbox<M> {
        Outbox {
            few: vec![],
            parts: vec![],
            cut,
        }
    }

    pub fn send(&mut self, to: Vertex, message: M) {
        if !self.parts.is_empty() {
            self.parts[(to >> self.cut.shift) as usize].push((to, message));
            return;
        }
        self.few.push((to, message));
        if self.few.len() == FEW {
            self.part();
        }
    }

    /// Sends the same to each of some vertices.
    pub fn multicast(&mut self, to: &[Vertex], message: M) {
        if self.parts.is_empty() {
            if self.few.len() + to.len() < FEW {
                return self.few.extend(to.iter().map(|to| (*to, message)));
            }
            self.part();
        }
        for to in to {
            self.parts[(to >> self.cut.shift) as usize].push((*to, message));
        }
    }

    /// Puts messages to their parts.
    fn part(&mut self) {
        if self.parts.is_empty() {
            self.parts.resize_with(self.cut.parts, Vec::new);
        }
        for (to, message) in std::mem::take(&mut self.few) {
            self.parts[(to >> self.cut.shift) as usize].push((to, message));
        }
    }

    /// Memory that it takes.
    fn bytes(&self) -> u64 {
        let allocated = |messages: &Vec<(Vertex, M)>| ALLOCATION_BYTES + messages.capacity() * size_of::<(Vertex, M)>();
        let parts = self.parts.iter().map(|part| size_of::<Vec<M>>() + allocated(part));
        (allocated(&self.few) + parts.sum::<usize>()) as u64
    }

    fn count(&self) -> usize {
        self.few.len() + self.parts.iter().map(Vec::len).sum::<usize>()
    }

    /// Turns the order of those who sent.
    fn reverse(&mut self) {
        self.few.reverse();
        self.parts.iter_mut().for_each(|part| part.reverse());
    }

    fn messages(&self) -> impl Iterator<Item = &(Vertex, M)> {
        self.few.iter().chain(self.parts.iter().flatten())
    }
}

/// Bytes of states that are worked on together: they stay in a core's cache.
const PART_BYTES: usize = 1 << 18;
const PARTS_MAX: usize = 1 << 10;
/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;
/// Messages that are not worth a thread.
const FEW: usize = 1 << 14;

/// The graph that a program runs on.
pub struct Graph<'a> {
    pub file: &'a GraphFile,
    /// The degrees of both directions, out and in, where weights are read.
    pub degrees: Option<(&'a ListIndex, &'a ListIndex)>,
}

impl Graph<'_> {
    pub(crate) fn weights(&self, direction: Direction) -> Option<WeightIndex<'_>> {
        let degrees = self.degrees.map(|(out, into)| match direction {
            Direction::Out => out,
            Direction::In => into,
        });
        WeightIndex::new(self.file, degrees)
    }
}

/// The parts of so many vertices.
fn cut(vertices: usize, state_bytes: usize) -> VertexParts {
    let mut shift = (PART_BYTES / state_bytes.max(1)).max(64).ilog2();
    while vertices >> shift > PARTS_MAX {
        shift += 1;
    }
    VertexParts {
        parts: vertices.div_ceil(1 << shift),
        shift,
    }
}

/// When messages are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Once the lists of the iteration are worked on, or where there is little memory as if it were so. Results have the same
    /// bits at every number of threads and in whatever memory.
    Synchronous,
    /// As soon as every thread has worked on some lists: `on_edges` of later lists meets states that are ahead of the
    /// iteration. A program whose fixed point is one takes no more iterations for it and asks for fewer lists; how many, and
    /// the bits of what depends on the order, differ with threads and memory.
    Asynchronous,
}

/// Bytes of the states of a program in Python, and beside them a bit for who is active next, and for who is asked for in either
/// direction.
pub fn program_bytes(vertices: u64, state_bytes: u64) -> u64 {
    vertices * state_bytes + 3 * (vertices / 8)
}

/// Runs a program over a stored graph, without weights, until no vertex is active.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_stored<P: VertexProgram>(
    graph: &StoredGraph,
    program: &mut P,
    states: &mut [P::State],
    active: &mut Frontier,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    let (file, degrees) = (&*graph.file, None);
    let graph = Graph { file, degrees };
    run(&graph, program, states, active, Delivery::Synchronous, resources, watch).map(|_| ())
}

/// Runs a program from the active vertices on until none is, or `watch` ends it. Gives the number of iterations. One in
/// which few vertices are active costs what they do, however many vertices there are. Lists are read by ascending vertices
/// and by descending ones in turns: what the cache holds of the end of an iteration is met first in the next.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says; the program panics, in whatever thread. States and
/// active vertices are as far as it came then.
pub fn run<P: VertexProgram>(
    graph: &Graph<'_>,
    program: &mut P,
    states: &mut [P::State],
    active: &mut Frontier,
    delivery: Delivery,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<u32, EngineError> {
    let iterate = || iterate(graph, program, states, active, delivery, resources, watch);
    catch_unwind(AssertUnwindSafe(iterate)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// What a panic becomes. That of another thread has told its text itself.
fn panicked(panic: &(dyn Any + Send)) -> EngineError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    EngineError::Internal(format!(
        "a vertex program panicked: {}",
        text.unwrap_or("unknown cause")
    ))
}

fn iterate<P: VertexProgram>(
    graph: &Graph<'_>,
    program: &mut P,
    states: &mut [P::State],
    active: &mut Frontier,
    delivery: Delivery,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<u32, EngineError> {
    let cut = cut(states.len(), size_of::<P::State>());
    let mut readers = Frontier::none(active.vertices());
    let stages = program.stages().max(1);
    // Active vertices that run in a later stage of the iteration.
    let mut later = Frontier::none(if stages > 1 { active.vertices() } else { 0 });
    let requested = Mutex::new(None);
    let (mut number, mut stage) = (0, 0);
    while stage > 0 || !active.is_empty() {
        if stage == 0 {
            active.normalize();
            resources.iteration(active.count());
            std::mem::swap(active, &mut readers);
            active.clear();
        } else {
            std::mem::swap(&mut readers, &mut later);
            later.clear();
        }
        // Where no list is asked for, nobody else looks.
        watch()?;
        if stage + 1 < stages {
            divide(graph.file, program, (number, stage), states, &mut readers, &mut later);
        }
        begin(
            program,
            number,
            states,
            &mut readers,
            &requested,
            cut,
            resources.threads,
        );
        for direction in program.directions().to_vec() {
            let iteration = Iteration {
                graph,
                number,
                cut,
                delivery,
                resources,
            };
            iteration.exchange(program, direction, &readers, states, active, watch)?;
        }
        if !later.is_empty() {
            stage += 1;
            continue;
        }
        stage = 0;
        program.on_iteration_end(number, states, active);
        number += 1;
    }
    Ok(number)
}

/// An iteration of a program.
struct Iteration<'a> {
    graph: &'a Graph<'a>,
    number: u32,
    cut: VertexParts,
    delivery: Delivery,
    resources: &'a Resources<'a>,
}

impl Iteration<'_> {
    /// Works on the lists of a direction and delivers what is sent.
    fn exchange<P: VertexProgram>(
        &self,
        program: &P,
        direction: Direction,
        readers: &Frontier,
        states: &mut [P::State],
        active: &mut Frontier,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let Iteration {
            graph,
            number,
            cut,
            resources,
            ..
        } = *self;
        let asked = ListSelection {
            file: graph.file,
            direction,
            chosen: readers.chosen(),
            weights: graph.weights(direction).filter(|_| program.wants_weights()),
        };
        let sweep = match program.takes_parts() {
            true => Sweep::in_parts(asked, resources),
            false => Sweep::new(asked, resources),
        };
        let heading = Heading::of(number);
        for round in sweep.rounds(bytes_between(self.delivery, resources), heading) {
            let mut rest = Some(round);
            while let Some(round) = rest {
                let mut outboxes = vec![];
                rest = round.run_within(
                    resources,
                    &message_budget::<P::Message>(resources),
                    ListScratch::default,
                    |scratch, lists| {
                        let mut outbox = Outbox::new(cut);
                        lists.each(scratch, |list| program.on_edges(number, list, states, &mut outbox))?;
                        if heading == Heading::Descending {
                            outbox.reverse();
                        }
                        Ok(outbox)
                    },
                    |outbox| {
                        outboxes.push(outbox);
                        Ok(())
                    },
                    watch,
                )?;
                deliver(program, number, states, active, cut, &mut outboxes, resources.threads);
            }
        }
        Ok(())
    }
}

/// Bytes of lists that are worked on before their messages are delivered.
fn bytes_between(delivery: Delivery, resources: &Resources<'_>) -> u64 {
    match delivery {
        Delivery::Synchronous => u64::MAX,
        Delivery::Asynchronous => resources.threads as u64 * BATCH_PAGES * PAGE as u64,
    }
}

/// Memory for messages.
fn message_budget<M: Copy>(resources: &Resources<'_>) -> ResultBudget<Outbox<M>> {
    ResultBudget {
        bytes: resources.memory / 2,
        most: most_messages::<M>,
        weigh: Outbox::bytes,
    }
}

/// Bytes of messages to so many neighbours: what has grown is half empty.
fn most_messages<M>(neighbours: u64) -> u64 {
    2 * neighbours * size_of::<(Vertex, M)>() as u64
}

/// Leaves those in the set that run in a stage of an iteration; the others are there for later ones.
fn divide<P: VertexProgram>(
    file: &GraphFile,
    program: &P,
    (iteration, stage): (u32, u32),
    states: &[P::State],
    readers: &mut Frontier,
    later: &mut Frontier,
) {
    readers.retain(|vertex| {
        let spans = program
            .directions()
            .iter()
            .map(|of| file.section(*of).index.span(vertex));
        let list_bytes = spans.map(|span| span.bytes).sum();
        let is_now = program.stage(iteration, vertex, &states[vertex as usize], list_bytes) <= stage;
        if !is_now {
            later.insert(vertex);
        }
        is_now
    });
    readers.normalize();
    later.normalize();
}

/// Runs the active vertices; those that do not ask for their lists leave the set, others that are asked for come to it.
fn begin<P: VertexProgram>(
    program: &P,
    iteration: u32,
    states: &mut [P::State],
    readers: &mut Frontier,
    requested: &Requested,
    cut: VertexParts,
    threads: usize,
) {
    run_active(program, iteration, states, readers, requested, cut, threads);
    let mut requested = requested.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(others) = requested.as_mut().filter(|others| !others.is_empty()) {
        readers.add(others);
        readers.normalize();
        others.clear();
    }
}

fn run_active<P: VertexProgram>(
    program: &P,
    iteration: u32,
    states: &mut [P::State],
    readers: &mut Frontier,
    requested: &Requested,
    VertexParts { shift, .. }: VertexParts,
    threads: usize,
) {
    let vertices = readers.vertices();
    let run = |vertex, state: &mut P::State, requests: &mut Requests<'_>| {
        let asks = program.run(iteration, vertex, state);
        program.request(iteration, vertex, state, requests);
        asks
    };
    if readers.count() <= FEW as u64 {
        let mut requests = Requests::new(requested, vertices);
        readers.retain(|vertex| run(vertex, &mut states[vertex as usize], &mut requests));
        return;
    }
    let words = readers.words_mut().chunks_mut(1 << shift >> 6);
    let parts = states.chunks_mut(1 << shift).zip(words).enumerate();
    each_part(parts, threads, |(part, (states, words))| {
        let mut requests = Requests::new(requested, vertices);
        for (at, word) in words.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                let place = 64 * at + bit as usize;
                let vertex = (part << shift) as Vertex + place as Vertex;
                if !run(vertex, &mut states[place], &mut requests) {
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
    next: &mut Frontier,
    VertexParts { shift, .. }: VertexParts,
    outboxes: &mut [Outbox<P::Message>],
    threads: usize,
) {
    if outboxes.iter().map(Outbox::count).sum::<usize>() <= FEW {
        for (vertex, message) in outboxes.iter().flat_map(Outbox::messages) {
            if program.on_message(iteration, *vertex, &mut states[*vertex as usize], *message) {
                next.insert(*vertex);
            }
        }
        return;
    }
    outboxes.iter_mut().for_each(Outbox::part);
    let outboxes = &*outboxes;
    let words = next.words_mut().chunks_mut(1 << shift >> 6);
    let parts = states.chunks_mut(1 << shift).zip(words).enumerate();
    each_part(parts, threads, |(part, (states, words))| {
        for (vertex, message) in outboxes.iter().flat_map(|outbox| &outbox.parts[part]) {
            let place = *vertex as usize & ((1 << shift) - 1);
            if program.on_message(iteration, *vertex, &mut states[place], *message) {
                words[place / 64] |= 1 << (place % 64);
            }
        }
    });
}
