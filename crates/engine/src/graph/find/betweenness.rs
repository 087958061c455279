//! Betweenness: of the shortest paths between two vertices, those that lead through a third.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::{Direction, GraphFile};

use super::bfs_levels::{Layers, LAYERS_BYTES_MOST};
use crate::graph::program::run::{run, Delivery, Graph, Outbox, VertexProgram};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::bits::Bits;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::selection::{List, ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sums::{add_to, value_of, Sums};
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// A level is divided by 2^256 where the largest of its numbers of paths is above 2^900: one of the next level, a sum of less
/// than 2^32 of these, is finite then.
const LARGE: f64 = power_of_two(900);
const DIVISOR: f64 = power_of_two(256);

/// No number of paths is below that after it was divided: (1 + δ) / σ would not be finite.
const SMALL: f64 = power_of_two(-960);

const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Counts shortest paths from one vertex. The state of a vertex is σ, how many lead to it, over the divisors of its level and
/// of those before. Of the dependencies only ratios of σ in neighbouring levels matter.
///
/// Invariant: `divided` has, ascending, the numbers of the levels that were divided.
struct PathCounting {
    /// Those that are as near as the vertices of the iteration, or nearer: no shortest path goes on to them.
    settled: Bits,
    layers: Layers,
    /// Bytes that these may take.
    layers_bytes: u64,
    divided: Vec<u32>,
    /// No number of paths of the last level is above that.
    most_paths: f64,
    /// The vertices of the last level.
    width: u64,
    /// Whether a level has numbers of paths too far apart to be divided.
    is_wide: bool,
}

impl PathCounting {
    /// Nothing but the source was met.
    fn begin(&mut self, level: &mut Frontier) {
        self.settled.clear();
        self.divided.clear();
        (self.most_paths, self.width) = (1.0, 1);
        self.meet(level);
    }

    /// Divides the numbers of paths of the level that was met where these are large. A level is looked at only if its numbers
    /// could be: each is a sum of as many as the level before has vertices at most.
    fn divide(&mut self, states: &mut [AtomicU64], level: &Frontier) {
        self.most_paths *= self.width as f64;
        self.width = level.count();
        if self.most_paths <= LARGE {
            return;
        }
        self.most_paths = 0.0;
        level.each(|vertex| self.most_paths = self.most_paths.max(value_of(&states[vertex as usize])));
        if self.most_paths <= LARGE {
            return;
        }
        self.most_paths /= DIVISOR;
        self.divided.push(self.layers.count() - 1);
        level.each(|vertex| {
            let paths = value_of(&states[vertex as usize]) / DIVISOR;
            self.is_wide |= paths < SMALL;
            *states[vertex as usize].get_mut() = paths.to_bits();
        });
    }

    /// The active vertices of an iteration, a level, were met.
    fn meet(&mut self, active: &mut Frontier) {
        active.normalize();
        active.add_to(&mut self.settled);
        self.layers.push(active);
        if self.is_short() {
            active.clear();
        }
    }

    fn is_short(&self) -> bool {
        self.layers.bytes() + 4 * self.divided.len() as u64 > self.layers_bytes
    }
}

impl VertexProgram for PathCounting {
    type State = AtomicU64;
    type Message = f64;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, _: &mut AtomicU64) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[AtomicU64], outbox: &mut Outbox<f64>) {
        let paths = value_of(&states[list.vertex as usize]);
        let farther = list.neighbours.iter().filter(|other| !self.settled.has(**other));
        farther.for_each(|neighbour| outbox.send(*neighbour, paths));
    }

    fn on_message(&self, _: u32, _: Vertex, state: &mut AtomicU64, paths: f64) -> bool {
        add_to(state, paths);
        true
    }

    fn on_iteration_end(&mut self, _: u32, states: &mut [AtomicU64], active: &mut Frontier) {
        if active.is_empty() {
            return;
        }
        self.meet(active);
        if !active.is_empty() {
            self.divide(states, active);
        }
        if self.is_wide {
            active.clear();
        }
    }
}

/// Bytes of memory for each vertex but for sets and its level: sums, and paths.
const NUMBERS_BYTES: u64 = 8 + 8;

/// Bytes of memory for each vertex with which any search does, and with which one does whose levels are few: up to some fifty
/// of them, if vertices are spread evenly. Levels may take what is left of it by sets, which are five bits a vertex, and by
/// the level that shows that there is not enough, which is one.
pub const BETWEENNESS_BYTES: [u64; 2] = [NUMBERS_BYTES + 1 + LAYERS_BYTES_MOST, NUMBERS_BYTES + 2];

/// For each vertex, the sum over the sources s of δ_s(v) = Σ σ_v / σ_w (1 + δ_s(w)) over those w behind v
/// (Brandes, "A faster algorithm for betweenness centrality", 2001); nothing where the levels of a search need more than the
/// `vertex_bytes`, which are one of [`BETWEENNESS_BYTES`]. I/O: what is reached from a source is read twice.
///
/// # Errors
/// The file cannot be read, or is not what it says; numbers of paths to equally far vertices are too far apart; what `watch` says.
pub fn betweenness(
    file: &GraphFile,
    sources: &[Vertex],
    vertex_bytes: u64,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Vec<f64>>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let mut search = Dependencies {
        sums: Sums::new(file.path(), vertices)?,
        paths: Sums::new(file.path(), vertices)?,
        source: 0,
        divisor: 1.0,
    };
    let layers_bytes = (8 * vertex_bytes.saturating_sub(NUMBERS_BYTES)).saturating_sub(6) * vertices as u64 / 8;
    let mut counting = PathCounting {
        settled: Bits::none(vertices),
        layers: Layers::new(vertices, layers_bytes as usize),
        layers_bytes,
        divided: vec![],
        most_paths: 1.0,
        width: 1,
        is_wide: false,
    };
    let (mut level, mut behind) = (Frontier::none(vertices), Frontier::none(vertices));
    for source in sources {
        search.begin(*source);
        level.clear();
        level.insert(*source);
        counting.begin(&mut level);
        let graph = Graph { file, degrees: None };
        run(
            &graph,
            &mut counting,
            search.paths.states_mut(),
            &mut level,
            Delivery::Synchronous,
            resources,
            watch,
        )?;
        if counting.is_short() {
            return Ok(None);
        }
        if counting.is_wide {
            return Err(EngineError::Argument(format!(
                "betweenness_centrality: {source} has more than 2^1600 times as many shortest paths to one vertex as to another \
                 one just as far; float64 does not hold both, leave {source} out of the sources"
            )));
        }
        behind.clear();
        while counting.layers.pop(&mut level) {
            let is_divided = counting.divided.pop_if(|number| *number == counting.layers.count());
            search.divisor = if is_divided.is_some() { DIVISOR } else { 1.0 };
            search.depend(
                file,
                &level,
                Heading::of(counting.layers.count()),
                &behind,
                resources,
                watch,
            )?;
            std::mem::swap(&mut level, &mut behind);
        }
    }
    // They are copied, for which there is room now.
    let Dependencies { sums, paths, .. } = search;
    drop((paths, counting));
    Ok(Some(sums.into_values()))
}

/// The dependencies of vertices on a source, added up from the farthest vertices on.
struct Dependencies {
    /// Σ_s δ_s(v) so far.
    sums: Sums,
    /// σ_v; once the vertex is done (1 + δ(v)) / σ_v, with σ_v as its level was before it was divided: those in front of it
    /// add that up.
    paths: Sums,
    source: Vertex,
    /// By which the level was divided.
    divisor: f64,
}

impl Dependencies {
    fn begin(&mut self, source: Vertex) {
        self.source = source;
        self.paths.clear();
        self.paths.set(source, 1.0);
    }

    /// Ends a vertex, of which Σ (1 + δ(w)) / σ_w is known.
    fn end(&self, vertex: Vertex, sum: f64) {
        let paths = self.paths.of(vertex);
        let dependency = paths * sum;
        if vertex != self.source {
            self.sums.add(vertex, dependency);
        }
        self.paths.set(vertex, (1.0 + dependency) / paths / self.divisor);
    }

    /// The dependencies of the vertices of a level on those of the next, which are `behind`.
    fn depend(
        &self,
        file: &GraphFile,
        level: &Frontier,
        heading: Heading,
        behind: &Frontier,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        // Behind the farthest is nobody; a sweep leaves out those without a list.
        let is_farthest = behind.is_empty();
        let index = &file.section(Direction::Out).index;
        level.each(|vertex| {
            if is_farthest || index.bytes_of(vertex) == 0 {
                self.end(vertex, 0.0);
            }
        });
        if is_farthest {
            return Ok(());
        }
        resources.iteration(level.count());
        let selection = ListSelection {
            file,
            direction: Direction::Out,
            chosen: level.chosen(),
            weights: None,
        };
        let sum = |list: &List<'_>| {
            let those = list.neighbours.iter().filter(|other| behind.has(**other));
            those.map(|other| self.paths.of(*other)).sum::<f64>()
        };
        let mut of_parts = 0.0;
        Sweep::in_parts(selection, resources).whole(heading).run(
            resources,
            ListScratch::default,
            |scratch, lists| {
                let mut part = None;
                lists.each(scratch, |list| match list.part {
                    None => self.end(list.vertex, sum(list)),
                    Some(_) => part = Some((list.vertex, sum(list), list.is_end())),
                })?;
                Ok(part)
            },
            |part| {
                if let Some((vertex, sum, is_end)) = part {
                    of_parts += sum;
                    if is_end {
                        self.end(vertex, std::mem::take(&mut of_parts));
                    }
                }
                Ok(())
            },
            watch,
        )
    }
}
/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Betweenness in a stored graph, with room for the levels of any search where there is so much: see [`betweenness`].
pub fn betweenness_of(
    graph: Arc<StoredGraph>,
    sources: Vec<Vertex>,
) -> impl LiveOperator<Output = Option<Vec<f64>>> + Send {
    let count = sources.len() as u64;
    let most = (2 * graph.each_bytes(&[Direction::Out], false)).saturating_mul(count);
    let because = format!(
        "the lists of what is reached, twice for each of {} sources",
        grouped(count)
    );
    let bound = graph.bound(Some(most), &[Direction::Out], false, because);
    let ([any, few_levels], least) = (BETWEENNESS_BYTES, graph.in_parts(8));
    let search = GraphAlgorithm::new(graph, "graph: betweenness", any, move |graph, resources, watch| {
        let bytes = match resources.known < graph.state_bytes(any) {
            true => few_levels,
            false => any,
        };
        betweenness(&graph.file, &sources, bytes, resources, watch)
    });
    search.frugal(few_levels, Option::is_some).least(least).bound(bound)
}
