//! Betweenness: of the shortest paths between two vertices, those that lead through a third.

use outcore_graph::Vertex;
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::frontier::Frontier;
use super::means::{Means, Watch};
use super::program::{run, Delivery, Graph, Outbox, VertexProgram};
use super::sums::Sums;
use super::sweep::{Heading, Sweep};
use super::wanted::{List, Scratch, Wanted};
use crate::EngineError;

/// What is known of a vertex in a search: its distance, and the shortest paths to it.
#[derive(Clone, Copy, Debug)]
struct Path {
    level: i32,
    count: f64,
}

const UNMET: i32 = -1;

/// Counts shortest paths from one vertex.
struct Counting;

impl VertexProgram for Counting {
    type State = Path;
    type Message = f64;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out]
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn run(&self, _: u32, _: Vertex, _: &mut Path) -> bool {
        true
    }

    fn on_edges(&self, iteration: u32, list: &List<'_>, states: &[Path], outbox: &mut Outbox<f64>) {
        let count = states[list.vertex as usize].count;
        for neighbour in list.neighbours {
            let level = states[*neighbour as usize].level;
            if level == UNMET || level == iteration as i32 + 1 {
                outbox.send(*neighbour, count);
            }
        }
    }

    fn on_message(&self, iteration: u32, _: Vertex, state: &mut Path, count: f64) -> bool {
        state.level = iteration as i32 + 1;
        state.count += count;
        true
    }
}

/// Bytes of memory for each vertex: paths, dependencies, the order of the search, the sums and sets.
pub const BETWEENNESS_BYTES: u64 = 16 + 8 + 4 + 8 + 1;

/// For each vertex, the sum over the sources s of δ_s(v) = Σ σ_v / σ_w (1 + δ_s(w)) over those w behind v
/// (Brandes, "A faster algorithm for betweenness centrality", 2001). I/O: what is reached from a source is read twice.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn betweenness(
    file: &GraphFile,
    sources: &[Vertex],
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, EngineError> {
    let vertices = file.shape().vertices as usize;
    let mut sums = vec![0.0; vertices];
    let mut behind = Sums::new(file.path(), vertices)?;
    let never = Path {
        level: UNMET,
        count: 0.0,
    };
    let mut paths = vec![never; vertices];
    let mut active = Frontier::none(vertices);
    for source in sources {
        paths.fill(never);
        paths[*source as usize] = Path { level: 0, count: 1.0 };
        active.clear();
        active.insert(*source);
        let graph = Graph { file, degrees: None };
        let levels = run(
            &graph,
            &mut Counting,
            &mut paths,
            &mut active,
            Delivery::Synchronous,
            means,
            watch,
        )?;
        behind.clear();
        let (order, begins) = by_level(&paths, levels as usize);
        // Those farthest away have none behind them.
        for level in (0..levels.saturating_sub(1) as usize).rev() {
            let chosen = &order[begins[level] as usize..begins[level + 1] as usize];
            let heading = Heading::of(level as u32);
            depend(file, chosen, heading, &paths, &behind, means, watch)?;
        }
        for vertex in order.iter().filter(|vertex| *vertex != source) {
            sums[*vertex as usize] += behind.of(*vertex);
        }
    }
    Ok(sums)
}

/// The vertices that were met, level by level, and where each level begins.
fn by_level(paths: &[Path], levels: usize) -> (Vec<Vertex>, Vec<u32>) {
    let mut begins = vec![0; levels + 1];
    let met = || paths.iter().enumerate().filter(|(_, path)| path.level != UNMET);
    met().for_each(|(_, path)| begins[path.level as usize + 1] += 1);
    for level in 0..levels {
        begins[level + 1] += begins[level];
    }
    let mut order = vec![0; begins[levels] as usize];
    for (vertex, path) in met() {
        let next = &mut begins[path.level as usize];
        order[*next as usize] = vertex as Vertex;
        *next += 1;
    }
    // Each is now where the next one begins.
    begins.rotate_right(1);
    begins[0] = 0;
    (order, begins)
}

/// The dependencies of some vertices of a level, which ascend, on those of the next.
fn depend(
    file: &GraphFile,
    chosen: &[Vertex],
    heading: Heading,
    paths: &[Path],
    behind: &Sums,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), EngineError> {
    means.iteration(chosen.len() as u64);
    let wanted = Wanted {
        file,
        direction: Direction::Out,
        chosen: Chosen::Listed(chosen),
        weights: None,
    };
    let of = |list: &List<'_>| {
        let own = paths[list.vertex as usize];
        let parts = list.neighbours.iter().map(|neighbour| {
            let other = paths[*neighbour as usize];
            match other.level == own.level + 1 {
                true => own.count / other.count * (1.0 + behind.of(*neighbour)),
                false => 0.0,
            }
        });
        parts.sum::<f64>()
    };
    // What is added for this level is not looked at before the next.
    Sweep::in_parts(wanted, means).whole(heading).run(
        means,
        Scratch::default,
        |scratch, lists| lists.each(scratch, |list| behind.add(list.vertex, of(list))),
        Ok,
        watch,
    )
}
