//! Triangles.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use crate::graph::read::algorithm::GraphAlgorithm;
use crate::graph::read::batch::VertexSet;
use crate::graph::read::bits::Bits;
use crate::graph::read::heading::Heading;
use crate::graph::read::lists::Lists;
use crate::graph::read::selection::{List, ListScratch, ListSelection};
use crate::graph::read::stored::StoredGraph;
use crate::graph::read::sweep::{Round, Sweep};
use crate::live::{LiveOperator, Resources, Watch};
use crate::EngineError;

/// Lists of some vertices that follow each other, each of the ranks of the neighbours that stand higher.
struct RankedLists {
    first: Vertex,
    begins: Vec<u32>,
    neighbours: Vec<Vertex>,
}

/// Neighbours of a block, at most: where they begin has 32 bits.
const BLOCK_NEIGHBOURS: u64 = 1 << 31;

impl RankedLists {
    /// Room for some of so many vertices, and so many neighbours: what is not used is never touched.
    fn new(vertices: usize, neighbours: usize) -> RankedLists {
        RankedLists {
            first: 0,
            begins: Vec::with_capacity(vertices + 1),
            neighbours: Vec::with_capacity(neighbours),
        }
    }

    fn clear(&mut self) {
        self.begins.clear();
        self.neighbours.clear();
    }

    /// Adds the list of a vertex behind those there are, or more of the last one.
    fn add(&mut self, vertex: Vertex, higher: &[Vertex]) {
        if self.begins.is_empty() {
            self.first = vertex;
            self.begins.push(0);
        }
        let at = (vertex - self.first) as usize;
        self.begins.truncate(at + 1);
        self.begins.resize(at + 1, self.neighbours.len() as u32);
        self.neighbours.extend(higher);
        self.begins.push(self.neighbours.len() as u32);
    }

    /// The neighbours of a vertex that is in the block.
    fn of(&self, vertex: Vertex) -> &[Vertex] {
        let at = vertex.wrapping_sub(self.first) as usize;
        match (self.begins.get(at), self.begins.get(at.wrapping_add(1))) {
            (Some(begin), Some(end)) => &self.neighbours[*begin as usize..*end as usize],
            _ => &[],
        }
    }

    fn bytes(&self) -> u64 {
        4 * self.neighbours.len() as u64
    }
}

/// Bytes of memory for each vertex: ranks; where lists of a block begin, for which the order of ranks is gone; with `each`
/// counts by ranks, and in the end by vertices.
fn triangles_bytes(each: bool) -> u64 {
    4 + if each { 8 + 8 } else { 4 }
}

/// And marks of loops, and of each thread's.
fn marks_bytes(threads: usize) -> u64 {
    (1 + threads as u64).div_ceil(8)
}

/// The counts of triangles, and all that counting takes.
struct Counter<'a> {
    file: &'a GraphFile,
    /// Of each vertex: 0 for that with the most neighbours. Marks of those that have many lie close together, in a cache.
    ranks: Vec<u32>,
    /// Triangles of each vertex by its rank, where they are wanted.
    of: Vec<AtomicU64>,
    all: AtomicU64,
    resources: &'a Resources<'a>,
}

/// A thread's own: the marked neighbours of a vertex.
struct Marks {
    scratch: ListScratch,
    higher: Vec<Vertex>,
    marked: Bits,
}

impl<'a> Counter<'a> {
    fn new(file: &'a GraphFile, degrees: &ListIndex, each: bool, resources: &'a Resources<'a>) -> Counter<'a> {
        let counted = if each { degrees.len() } else { 0 };
        Counter {
            file,
            ranks: ranks(degrees),
            of: (0..counted).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
            resources,
        }
    }

    /// Every edge leads from the lower to the higher: few lead away from a vertex with many
    /// (Schank, Wagner 2005; Ortmann, Brandes 2014).
    fn is_higher(&self, other: Vertex, than: Vertex) -> bool {
        self.rank(other) < self.rank(than)
    }

    fn rank(&self, vertex: Vertex) -> u32 {
        self.ranks[vertex as usize]
    }

    /// Adds the neighbours that stand higher, each once: no more than the square root of twice the edges, however long the
    /// list is.
    fn add_higher(&self, list: &List<'_>, into: &mut Vec<Vertex>) {
        into.extend(
            list.unrepeated()
                .iter()
                .filter(|other| self.is_higher(**other, list.vertex)),
        );
        into.dedup();
    }

    fn selection(&self) -> ListSelection<'_> {
        ListSelection {
            file: self.file,
            direction: Direction::Out,
            chosen: VertexSet::All,
            weights: None,
        }
    }

    fn load(
        &self,
        round: &Round<'_>,
        block: &mut RankedLists,
        loops: &mut Bits,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        round.run(
            self.resources,
            ListScratch::default,
            |scratch, lists| {
                let (mut ends, mut all, mut higher, mut loops) = (vec![], vec![], vec![], vec![]);
                lists.each(scratch, |list| {
                    if list.neighbours.binary_search(&list.vertex).is_ok() {
                        loops.push(list.vertex);
                    }
                    higher.clear();
                    self.add_higher(list, &mut higher);
                    all.extend(higher.iter().map(|other| self.rank(*other)));
                    ends.push((list.vertex, all.len()));
                })?;
                Ok((ends, all, loops))
            },
            |(ends, all, found)| {
                found.iter().for_each(|vertex| loops.insert(*vertex));
                let mut begin = 0;
                for (vertex, end) in ends {
                    block.add(vertex, &all[begin..end]);
                    begin = end;
                }
                Ok(())
            },
            watch,
        )
    }

    /// Counts the triangles whose middle vertex is in the block.
    fn count(
        &self,
        sweep: &Sweep<'_>,
        heading: Heading,
        block: &RankedLists,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let marks = || Marks {
            scratch: ListScratch::default(),
            higher: vec![],
            marked: Bits::none(self.ranks.len()),
        };
        let work = |marks: &mut Marks, lists: &Lists<'_>| {
            let Marks {
                scratch,
                higher,
                marked,
            } = marks;
            lists.each(scratch, |list| {
                self.add_higher(list, higher);
                if !list.is_end() {
                    return;
                }
                higher.iter().for_each(|other| marked.insert(self.rank(*other)));
                self.count_of(list.vertex, higher, marked, block);
                higher.drain(..).for_each(|other| marked.remove(self.rank(other)));
            })
        };
        self.resources.iteration(self.ranks.len() as u64);
        sweep.whole(heading).run(self.resources, marks, work, Ok, watch)
    }

    /// Counts all of them; gives the vertices that are their own neighbours.
    fn run(&self, block_bytes: u64, watch: &mut Watch<'_>) -> Result<Bits, EngineError> {
        let vertices = self.ranks.len();
        let mut loops = Bits::none(vertices);
        self.resources.iteration(vertices as u64);
        let sweep = Sweep::in_parts(self.selection(), self.resources);
        let block_bytes = block_bytes.min(4 * BLOCK_NEIGHBOURS);
        let most = self.file.shape().edges.min(block_bytes / 4);
        let mut block = RankedLists::new(vertices, most as usize);
        // A neighbour takes a byte of a list at least.
        let step = block_bytes / 4 / 4;
        let mut blocks = 0;
        for round in sweep.rounds(step, Heading::Ascending) {
            if block.bytes() + 4 * step > block_bytes && !block.begins.is_empty() {
                self.count(&sweep, Heading::of(blocks), &block, watch)?;
                block.clear();
                blocks += 1;
            }
            self.load(&round, &mut block, &mut loops, watch)?;
        }
        self.count(&sweep, Heading::of(blocks), &block, watch)?;
        Ok(loops)
    }

    /// Triangles of each vertex, where they are wanted.
    fn each(&self) -> impl Iterator<Item = u64> + '_ {
        let ranks = self.ranks.iter().filter(|_| !self.of.is_empty());
        ranks.map(|rank| self.of[*rank as usize].load(Relaxed))
    }

    /// Those of the lowest vertex.
    fn count_of(&self, vertex: Vertex, higher: &[Vertex], marked: &Bits, block: &RankedLists) {
        let mut all = 0;
        for middle in higher {
            let ends = block.of(*middle).iter().filter(|end| marked.has(**end));
            if self.of.is_empty() {
                all += ends.count() as u64;
                continue;
            }
            let mut count = 0;
            for end in ends {
                count += 1;
                self.of[*end as usize].fetch_add(1, Relaxed);
            }
            if count > 0 {
                self.of[self.rank(*middle) as usize].fetch_add(count, Relaxed);
                all += count;
            }
        }
        if all > 0 {
            self.all.fetch_add(all, Relaxed);
            if let Some(of) = self.of.get(self.rank(vertex) as usize) {
                of.fetch_add(all, Relaxed);
            }
        }
    }
}

/// The triangles of an undirected graph; edges from a vertex to itself, and edges that are there again, do not count. With
/// `each`, also those that each vertex is in. Lists of as many vertices as `block_bytes` holds are in memory at a time.
/// I/O: one read of the lists, and one for each block.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn triangles(
    file: &GraphFile,
    degrees: &ListIndex,
    each: bool,
    block_bytes: u64,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<(u64, Vec<u64>), EngineError> {
    let counter = Counter::new(file, degrees, each, resources);
    counter.run(block_bytes, watch)?;
    let mut of = Vec::with_capacity(counter.of.len());
    of.extend(counter.each());
    Ok((counter.all.into_inner(), of))
}

/// Of the pairs of neighbours of each vertex, the part that are neighbours of each other: c = 2 t / d (d - 1), where a loop
/// is no neighbour; 0 for fewer than two (Watts, Strogatz 1998). I/O and errors: those of `triangles`.
#[allow(clippy::missing_errors_doc)] // it says
pub fn clustering(
    file: &GraphFile,
    degrees: &ListIndex,
    block_bytes: u64,
    resources: &Resources<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, EngineError> {
    let counter = Counter::new(file, degrees, true, resources);
    let loops = counter.run(block_bytes, watch)?;
    let neighbours = degrees.spans(0..Vertex::MAX);
    let neighbours = neighbours.map(|(vertex, span)| span.bytes - u64::from(loops.has(vertex)).min(span.bytes));
    let mut coefficients = Vec::with_capacity(degrees.len());
    coefficients.extend(neighbours.zip(counter.each()).map(|(neighbours, triangles)| {
        let pairs = neighbours as f64 * neighbours.saturating_sub(1) as f64;
        if pairs > 0.0 {
            2.0 * triangles as f64 / pairs
        } else {
            0.0
        }
    }));
    Ok(coefficients)
}

/// The place of each vertex in the order of degrees, the highest first; of several the lowest vertex first.
fn ranks(degrees: &ListIndex) -> Vec<u32> {
    let mut order: Vec<Vertex> = (0..degrees.len() as Vertex).collect();
    let mut of: Vec<u32> = Vec::with_capacity(degrees.len());
    of.extend(degrees.spans(0..Vertex::MAX).map(|(_, span)| span.bytes as u32));
    order.sort_unstable_by_key(|vertex| (std::cmp::Reverse(of[*vertex as usize]), *vertex));
    let mut ranks = of;
    for (vertex, rank) in order.into_iter().zip(0..) {
        ranks[vertex as usize] = rank;
    }
    ranks
}
/// The triangles of a stored graph, and with `each` those of each vertex: see [`triangles`].
pub fn triangles_of(graph: Arc<StoredGraph>, each: bool) -> impl LiveOperator<Output = (u64, Vec<u64>)> + Send {
    counted(graph, each, move |file, degrees, block_bytes, resources, watch| {
        triangles(file, degrees, each, block_bytes, resources, watch)
    })
}

/// Clustering coefficients of a stored graph: see [`clustering`].
pub fn clustering_of(graph: Arc<StoredGraph>) -> impl LiveOperator<Output = Vec<f64>> + Send {
    counted(graph, true, clustering)
}

/// A part of the memory for reading, of which a block of lists has the rest.
const READ_PART: u64 = 4;

/// A count with memory for a block of lists.
fn counted<T: Send>(
    graph: Arc<StoredGraph>,
    each: bool,
    count: impl Fn(&GraphFile, &ListIndex, u64, &Resources<'_>, &mut Watch<'_>) -> Result<T, EngineError> + Send + Sync,
) -> impl LiveOperator<Output = T> + Send {
    let because = "one read of the lists, and one for each part of them that memory holds";
    let bound = graph.bound(None, &[Direction::Out], false, because);
    let bytes = triangles_bytes(each) + graph.degree_bytes(&[Direction::Out]);
    let counting = GraphAlgorithm::new(graph, "graph: triangles", bytes, move |graph, resources, watch| {
        let degrees = graph.degrees(Direction::Out, resources.io)?;
        let memory = resources.memory / READ_PART;
        let resources = Resources { memory, ..*resources };
        count(&graph.file, &degrees, memory * (READ_PART - 1), &resources, watch)
    });
    counting.for_threads(marks_bytes).bound(bound)
}
