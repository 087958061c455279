//! Shortest paths along weighted edges.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use outcore_coding::lists::Vertex;
use outcore_store::{large_vec, Direction};

use crate::graph::program::run::Graph;
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::bits::SharedBits;
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::lookup::mean_weight;
use crate::graph::read::queue::{bytes_of_vertices, most_bytes_of_vertices, ResultBudget};
use crate::graph::read::selection::{List, ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch, READING_PART_ALONE};
use crate::EngineError;

/// Bytes of memory for each vertex: its distance, and a bit in each of four sets, three of which are lists where they are few.
const PATHS_BYTES: u64 = 10;

/// Neighbours whose distances are compared before the first of them is changed: what is read of them comes to the processor
/// together.
const TOGETHER: usize = 64;

/// Weights on the average to a step of paths: as lists of many vertices share a page, few wide iterations read less than many
/// narrow ones, and are hardly slower where paths are long.
const STEP_WEIGHTS: f64 = 8.0;

/// Shortest paths from some sources.
#[derive(Clone, Copy)]
pub struct Paths<'a> {
    pub graph: &'a Graph<'a>,
    /// Along which edges they go.
    pub directions: &'a [Direction],
    /// How much farther than the nearest those are that tell their neighbours together.
    pub step: f64,
}

/// The state of the search.
struct Reached {
    /// The bits of a number that is 0 or more order as it does; infinite before a vertex is reached.
    distances: Vec<AtomicU64>,
    /// Those that have come nearer since their lists were begun with.
    news: SharedBits,
    /// A weight that was met and is none of a path: below 0, or no number.
    wrong: Mutex<Option<f64>>,
}

impl Paths<'_> {
    /// The distance of each vertex from the nearest source, infinite where there is no path; and the lowest weight that was met
    /// and is none of a path, the first of all what is no number, where one was: no distance is right then.
    ///
    /// Of the vertices that have come nearer, those within a bound tell their neighbours; where there are none, the bound goes on
    /// to `step` behind the nearest (Meyer, Sanders, "Δ-stepping", J. Algorithms 2003). Distances change while lists are read: one
    /// that comes nearer before it is its turn is told of once. How many lists are read differs with threads and time; the
    /// distances do not, for a sum along a path grows with each of its parts, rounded or not.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `watch` says.
    pub fn distances(
        &self,
        sources: &[Vertex],
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(Vec<f64>, Option<f64>), EngineError> {
        let vertices = self.graph.file.shape().vertices as usize;
        let mut distances = large_vec(vertices);
        distances.resize_with(vertices, || AtomicU64::new(f64::INFINITY.to_bits()));
        let reached = Reached {
            distances,
            news: SharedBits::none(vertices),
            wrong: Mutex::default(),
        };
        let none = || Frontier::none(vertices);
        let (mut active, mut near, mut far) = (none(), none(), none());
        for source in sources {
            reached.come(*source, 0.0, 0.0);
            near.insert(*source);
        }
        let (mut bound, mut iteration) = (self.step, 0);
        while reached.wrong().is_none() {
            std::mem::swap(&mut active, &mut near);
            near.clear();
            if active.is_empty() {
                let mut nearest = f64::INFINITY;
                far.retain(|vertex| {
                    // Others came near, and have told of it.
                    let has_news = reached.news.has(vertex);
                    if has_news {
                        nearest = nearest.min(reached.distance(vertex));
                    }
                    has_news
                });
                if far.is_empty() {
                    break;
                }
                bound = nearest + self.step;
                far.retain(|vertex| {
                    let is_far = reached.distance(vertex) > bound;
                    if !is_far {
                        active.insert(vertex);
                    }
                    is_far
                });
                far.normalize();
            }
            active.normalize();
            resources.iteration(active.count());
            for direction in self.directions {
                let relaxation = Relaxation {
                    direction: *direction,
                    heading: Heading::of(iteration),
                    bound,
                    reached: &reached,
                    active: &active,
                };
                let take = |nearer: Nearer| {
                    nearer.near.into_iter().for_each(|vertex| near.insert(vertex));
                    nearer.far.into_iter().for_each(|vertex| far.insert(vertex));
                };
                self.relax(relaxation, take, resources, watch)?;
            }
            iteration += 1;
        }
        let wrong = reached.wrong();
        let distances = reached.distances.into_iter();
        Ok((distances.map(|bits| f64::from_bits(bits.into_inner())).collect(), wrong))
    }

    /// One direction of an iteration.
    fn relax(
        &self,
        relaxation: Relaxation<'_>,
        mut take: impl FnMut(Nearer),
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let Relaxation {
            direction,
            heading,
            bound,
            reached,
            active,
        } = relaxation;
        let selection = ListSelection {
            file: self.graph.file,
            direction,
            chosen: active.chosen(),
            weights: self.graph.weights(direction),
        };
        let budget = ResultBudget {
            bytes: resources.memory / 2,
            most: most_bytes_of_vertices,
            weigh: |nearer: &Nearer| bytes_of_vertices(&nearer.near) + bytes_of_vertices(&nearer.far),
        };
        let sweep = Sweep::in_parts(selection, resources);
        let mut rest = Some(sweep.whole(heading));
        while let Some(round) = rest {
            rest = round.run_within(
                resources,
                &budget,
                || (ListScratch::default(), [(0, 0.0); TOGETHER]),
                |(scratch, shorter), lists| {
                    let mut nearer = Nearer::default();
                    lists.each(scratch, |list| reached.tell(list, bound, shorter, &mut nearer))?;
                    Ok(nearer)
                },
                |nearer| {
                    take(nearer);
                    Ok(())
                },
                watch,
            )?;
        }
        Ok(())
    }
}

/// The edges of active vertices, of a direction, along which their neighbours are told of shorter paths.
struct Relaxation<'a> {
    direction: Direction,
    heading: Heading,
    bound: f64,
    reached: &'a Reached,
    active: &'a Frontier,
}

/// Vertices with news: within the bound, and beyond it.
#[derive(Default)]
struct Nearer {
    near: Vec<Vertex>,
    far: Vec<Vertex>,
}

impl Reached {
    fn distance(&self, vertex: Vertex) -> f64 {
        f64::from_bits(self.distances[vertex as usize].load(Relaxed))
    }

    /// A path of that length leads to the vertex: whether it has to tell of that and is not among those who will, within the
    /// bound or beyond it.
    fn come(&self, vertex: Vertex, length: f64, bound: f64) -> bool {
        // In one order for all: who takes the news away, and then reads the distance, sees this one or leaves the news there.
        let before = f64::from_bits(self.distances[vertex as usize].fetch_min(length.to_bits(), SeqCst));
        length < before && (self.news.insert(vertex) || length <= bound && bound < before)
    }

    /// Tells the neighbours of a vertex, and adds those that have to tell of it then. In `shorter` are those of a part, a while.
    fn tell(&self, list: &List<'_>, bound: f64, shorter: &mut [(Vertex, f64); TOGETHER], nearer: &mut Nearer) {
        if !list
            .weights
            .iter()
            .fold(true, |right, weight| right & is_right(*weight))
        {
            return self.refuse(list.weights);
        }
        // What comes while the first part is worked on, or later, is told with all of the list again.
        if list.part.is_none_or(|part| part.before.is_none()) {
            self.news.remove(list.vertex);
        }
        let from = f64::from_bits(self.distances[list.vertex as usize].load(SeqCst));
        for (neighbours, weights) in list.neighbours.chunks(TOGETHER).zip(list.weights.chunks(TOGETHER)) {
            let mut count = 0;
            for (neighbour, weight) in neighbours.iter().zip(weights) {
                shorter[count] = (*neighbour, from + weight);
                count += usize::from(from + weight < self.distance(*neighbour));
            }
            for (vertex, length) in &shorter[..count] {
                if self.come(*vertex, *length, bound) {
                    match *length <= bound {
                        true => nearer.near.push(*vertex),
                        false => nearer.far.push(*vertex),
                    }
                }
            }
        }
    }

    fn wrong(&self) -> Option<f64> {
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lowest weight of a list that is none of a path, the first of all of what is no number.
    fn refuse(&self, weights: &[f64]) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let those = weights.iter().copied().filter(|weight| !is_right(*weight));
        *wrong = wrong
            .into_iter()
            .chain(those)
            .reduce(|one, other| match one.is_nan() || one <= other {
                true => one,
                false => other,
            });
    }
}

fn is_right(weight: f64) -> bool {
    weight >= 0.0
}

/// Shortest paths of a stored graph: see [`Paths::distances`]. The step is found from some of the weights unless it is given.
pub fn distances(
    graph: Arc<StoredGraph>,
    sources: Vec<Vertex>,
    step: Option<f64>,
    directions: &'static [Direction],
) -> impl LiveOperator<Output = (Vec<f64>, Option<f64>)> + Send {
    let because = "lists and weights of what is reached, again where a path is shorter";
    let bound = graph.bound(None, directions, true, because);
    let (bytes, least) = (PATHS_BYTES + graph.degree_bytes(directions), graph.with_weights(0));
    let run = move |graph: &StoredGraph, resources: &Resources<'_>, watch: &mut Watch<'_>| {
        let degrees = directions.iter().map(|along| graph.degrees(*along, resources.io));
        let degrees = degrees.collect::<Result<Vec<_>, _>>()?;
        // Of the direction that is not read nobody asks.
        let (first, last) = (&*degrees[0], &*degrees[degrees.len() - 1]);
        let step = match step {
            Some(step) => step,
            None => {
                let mean = mean_weight(&graph.file, directions[0], first, resources)?;
                (STEP_WEIGHTS * mean).max(f64::MIN_POSITIVE)
            }
        };
        let graph = Graph {
            file: &graph.file,
            degrees: Some((first, last)),
        };
        let paths = Paths {
            graph: &graph,
            directions,
            step,
        };
        paths.distances(&sources, resources, watch)
    };
    // Nothing is sent.
    let search = GraphAlgorithm::new(graph, "graph: distances", bytes, run);
    search.least(least).part(READING_PART_ALONE).bound(bound)
}
