//! Breadth-first search.

use std::sync::Arc;

use outcore_coding::lists::Vertex;
use outcore_store::{large_vec, Direction, GraphFile};

use super::bfs_kept::{Keeping, KeptPart, UnmetLists};
use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::bits::{Bits, SharedBits};
use crate::graph::read::frontier::Frontier;
use crate::graph::read::heading::Heading;
use crate::graph::read::lists::{Lists, Looked};
use crate::graph::read::queue::{bytes_of_vertices, most_bytes_of_vertices, ResultBudget};
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::Sweep;
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// A vertex that was not met.
pub const UNMET: i32 = -1;

/// Bytes of memory for each vertex: its level, and a bit in each of four sets.
const LEVELS_BYTES: u64 = 5;

/// An iteration turns round where that reads less than so many times the bytes: most of what is read then is not decoded,
/// for a list ends with the first neighbour that is looked for.
const TURNED: u64 = 2;

/// A breadth-first search.
#[derive(Clone, Copy)]
pub struct BreadthFirst<'a> {
    pub file: &'a GraphFile,
    /// Along which edges it goes.
    pub directions: &'a [Direction],
    /// It goes no farther than so many edges.
    pub farthest: u32,
}

/// The part of the memory in which lists are kept.
const KEPT: u64 = 4;

/// The state of a search.
struct Known {
    levels: Vec<i32>,
    met: SharedBits,
    /// Bytes of the lists, of each direction, by which those that were not met could find a neighbour.
    left: Vec<u64>,
    /// Those lists themselves, once an iteration has turned round, where there is memory for all.
    kept: Vec<Option<UnmetLists>>,
    /// The vertices of a level, and of the next.
    active: Frontier,
    next: Frontier,
}

impl BreadthFirst<'_> {
    /// The distance of each vertex from the nearest source in edges. An iteration reads the lists of the vertices of a level,
    /// or where that pays those of all that were not met, which look for a neighbour in it (Beamer, Asanović, Patterson,
    /// "Direction-optimizing breadth-first search", SC 2012).
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says; what `watch` says.
    pub fn levels(
        &self,
        sources: &[Vertex],
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<i32>, EngineError> {
        let vertices = self.file.shape().vertices as usize;
        let bytes = |direction| self.file.section(direction).index.total_bytes();
        let mut levels = large_vec(vertices);
        levels.resize(vertices, UNMET);
        let mut known = Known {
            levels,
            met: SharedBits::none(vertices),
            left: self.directions.iter().map(|along| bytes(against(*along))).collect(),
            kept: self.directions.iter().map(|_| None).collect(),
            active: Frontier::none(vertices),
            next: Frontier::none(vertices),
        };
        let mut unmet = Bits::default();
        for source in sources {
            known.met.insert(*source);
            known.levels[*source as usize] = 0;
            known.next.insert(*source);
        }
        for distance in 0..self.farthest {
            std::mem::swap(&mut known.active, &mut known.next);
            known.next.clear();
            if known.active.is_empty() {
                break;
            }
            known.active.normalize();
            resources.iteration(known.active.count());
            for place in 0..self.directions.len() {
                self.step(distance, place, &mut known, &mut unmet, resources, watch)?;
            }
        }
        Ok(known.levels)
    }

    /// One direction of an iteration.
    fn step(
        &self,
        distance: u32,
        place: usize,
        known: &mut Known,
        unmet: &mut Bits,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let kept_bytes: u64 = known.kept.iter().flatten().map(UnmetLists::bytes).sum();
        let resources = &Resources {
            memory: resources.memory - kept_bytes,
            ..*resources
        };
        let Known {
            levels,
            met,
            left,
            kept,
            active,
            next,
        } = known;
        let (active, met) = (&*active, &*met);
        let take = |reached: Vec<Vertex>| {
            for vertex in reached {
                levels[vertex as usize] = distance as i32 + 1;
                next.insert(vertex);
            }
        };
        let way = match &kept[place] {
            Some(lists) => self.way_beside(lists, place, active, resources),
            None => self.way(place, &mut left[place], active, met, unmet, resources),
        };
        let (sweep, is_turned) = match way {
            Way::Straight(sweep) => (sweep, false),
            Way::Turned(sweep) => (sweep, true),
            Way::Kept => {
                let lists = kept[place].as_mut().expect("they were looked at");
                lists.search(self.file, resources.threads, met, |vertex| active.has(vertex), take)?;
                return watch();
            }
        };
        let looked_for = is_turned.then_some(active);
        let lists = look_through(&sweep, Heading::of(distance), met, looked_for, resources, take, watch)?;
        if is_turned {
            kept[place] = lists;
        }
        Ok(())
    }

    fn sweep<'s>(&self, direction: Direction, chosen: VertexSet<'s>, resources: &Resources<'s>) -> Sweep<'s>
    where
        Self: 's,
    {
        let selection = ListSelection {
            file: self.file,
            direction,
            chosen,
            weights: None,
        };
        Sweep::in_parts(selection, resources)
    }

    /// How an iteration goes whose active vertices have lists of their own to read, or others, those that are left, to look for them.
    fn way<'s>(
        &self,
        place: usize,
        left: &mut u64,
        active: &'s Frontier,
        met: &SharedBits,
        unmet: &'s mut Bits,
        resources: &Resources<'s>,
    ) -> Way<'s>
    where
        Self: 's,
    {
        let along = self.directions[place];
        let bytes = |direction| active.chosen().list_bytes(&self.file.section(direction).index);
        let straight = || self.sweep(along, active.chosen(), resources);
        let ahead = bytes(along);
        *left -= bytes(against(along));
        if *left >= TURNED * ahead {
            return Way::Straight(straight());
        }
        met.complement(active.vertices(), unmet);
        let turned = self.sweep(against(along), VertexSet::Of(unmet), resources);
        if turned.list_bytes() < TURNED * ahead {
            return Way::Turned(turned);
        }
        // Where lists are spread over many pages, that is what decides.
        let straight = straight();
        match turned.list_bytes() < TURNED * straight.list_bytes() {
            true => Way::Turned(turned),
            false => Way::Straight(straight),
        }
    }

    /// The same where the lists of those that are left are in memory.
    fn way_beside<'s>(
        &self,
        kept: &UnmetLists,
        place: usize,
        active: &'s Frontier,
        resources: &Resources<'s>,
    ) -> Way<'s>
    where
        Self: 's,
    {
        let pays = |ahead: u64| kept.bytes() < TURNED * ahead;
        // A list takes a byte at least.
        if pays(active.count()) {
            return Way::Kept;
        }
        let straight = self.sweep(self.directions[place], active.chosen(), resources);
        match pays(straight.list_bytes()) {
            true => Way::Kept,
            false => Way::Straight(straight),
        }
    }
}

/// Gives `take` those that are met for the first time: all neighbours, or with active vertices to look for, the vertices that
/// have one of these as a neighbour. Lists that have none are kept then, where there is memory for all.
fn look_through(
    sweep: &Sweep<'_>,
    heading: Heading,
    met: &SharedBits,
    looked_for: Option<&Frontier>,
    resources: &Resources<'_>,
    mut take: impl FnMut(Vec<Vertex>),
    watch: &mut Watch<'_>,
) -> Result<Option<UnmetLists>, EngineError> {
    let keeping = Keeping::new(looked_for.map_or(0, |_| resources.memory / KEPT));
    let resources = &Resources {
        memory: resources.memory - keeping.most(),
        ..*resources
    };
    let look = |scratch: &mut ListScratch, lists: &Lists<'_>| {
        let (mut reached, mut piece) = (vec![], KeptPart::default());
        let mut find = |vertex| {
            if met.insert(vertex) {
                reached.push(vertex);
            }
        };
        if let Some(active) = looked_for {
            let keeps = keeping.is_on();
            let take = |vertex, looked: Looked<'_>| match looked {
                Looked::Has => find(vertex),
                Looked::HasNot(list) if keeps => piece.push(vertex, list),
                Looked::HasNot(_) => (),
                Looked::HasNotInPart => keeping.give_up(),
            };
            lists.each_with(|neighbour| active.has(neighbour), take)?;
        } else {
            lists.each(scratch, |list| list.neighbours.iter().for_each(|vertex| find(*vertex)))?;
        }
        Ok((reached, keeping.keep(piece)))
    };
    // Where those that were found take all the memory there is for them, they are counted before others are looked for.
    let budget = ResultBudget {
        bytes: resources.memory / 2,
        most: most_bytes_of_vertices,
        weigh: |(reached, _): &(Vec<Vertex>, KeptPart)| bytes_of_vertices(reached),
    };
    let (mut rest, mut pieces) = (Some(sweep.whole(heading)), vec![]);
    while let Some(round) = rest {
        let reached = |(reached, piece)| {
            pieces.push(piece);
            take(reached);
            Ok(())
        };
        rest = round.run_within(resources, &budget, ListScratch::default, look, reached, watch)?;
    }
    Ok(looked_for.and_then(|_| keeping.whole(pieces)))
}

/// How an iteration goes in a direction.
enum Way<'s> {
    /// The lists of the active vertices are read.
    Straight(Sweep<'s>),
    /// Those of all that were not met are, which look for an active neighbour.
    Turned(Sweep<'s>),
    /// So they do, in lists that were kept.
    Kept,
}

fn against(direction: Direction) -> Direction {
    match direction {
        Direction::Out => Direction::In,
        Direction::In => Direction::Out,
    }
}

/// A search of a stored graph: see [`BreadthFirst::levels`]. Its bound is that of so many `searches` one after the other.
pub fn levels(
    graph: Arc<StoredGraph>,
    sources: Vec<Vertex>,
    directions: &'static [Direction],
    farthest: u32,
    searches: u64,
) -> impl LiveOperator<Output = Vec<i32>> + Send {
    // Where a search turns round it reads less than twice of what it would have read.
    let most = 2 * graph.each_bytes(directions, false);
    let because = match searches {
        1 => "each list, or less than twice as much of those not met".into(),
        searches => format!("{searches} searches at most"),
    };
    let bound = graph.bound(Some(most.saturating_mul(searches)), graph.both(), false, because);
    GraphAlgorithm::new(graph, "graph: levels", LEVELS_BYTES, move |graph, resources, watch| {
        let search = BreadthFirst {
            file: &graph.file,
            directions,
            farthest,
        };
        search.levels(&sources, resources, watch)
    })
    .bound(bound)
}
