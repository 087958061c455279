//! Triangles.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::Chosen;
use super::bits::Bits;
use super::means::{Means, Watch};
use super::sweep::{Heading, Lists, Round, Sweep};
use super::wanted::{List, Scratch, Wanted};
use crate::EngineError;

/// Lists of some vertices that follow each other, each of the ranks of the neighbours that stand higher.
#[derive(Default)]
struct Block {
    first: Vertex,
    begins: Vec<usize>,
    neighbours: Vec<Vertex>,
}

impl Block {
    fn clear(&mut self) {
        self.begins.clear();
        self.neighbours.clear();
    }

    /// Adds the list of a vertex behind those there are.
    fn add(&mut self, vertex: Vertex, higher: &[Vertex]) {
        if self.begins.is_empty() {
            self.first = vertex;
            self.begins.push(0);
        }
        self.begins
            .resize((vertex - self.first) as usize + 1, self.neighbours.len());
        self.neighbours.extend(higher);
        self.begins.push(self.neighbours.len());
    }

    /// The neighbours of a vertex that is in the block.
    fn of(&self, vertex: Vertex) -> &[Vertex] {
        let at = vertex.wrapping_sub(self.first) as usize;
        match (self.begins.get(at), self.begins.get(at.wrapping_add(1))) {
            (Some(begin), Some(end)) => &self.neighbours[*begin..*end],
            _ => &[],
        }
    }

    fn bytes(&self) -> u64 {
        8 * self.begins.len() as u64 + 4 * self.neighbours.len() as u64
    }
}

/// Bytes of memory for each vertex, and for each vertex and thread.
pub const TRIANGLES_BYTES: (u64, u64) = (8 + 8 + 4 + 16, 1);

/// What triangles are counted with.
struct Counter<'a> {
    file: &'a GraphFile,
    /// Of each vertex: 0 for that with the most neighbours. Marks of those that have many lie close together, in a cache.
    ranks: Vec<u32>,
    /// Triangles of each vertex by its rank, where they are wanted.
    of: Vec<AtomicU64>,
    all: AtomicU64,
    means: &'a Means<'a>,
}

/// A thread's own: the marked neighbours of a vertex.
struct Marks {
    scratch: Scratch,
    higher: Vec<Vertex>,
    marked: Bits,
}

impl Counter<'_> {
    /// Every edge leads from the lower to the higher: few lead away from a vertex with many
    /// (Schank, Wagner 2005; Ortmann, Brandes 2014).
    fn is_higher(&self, other: Vertex, than: Vertex) -> bool {
        self.rank(other) < self.rank(than)
    }

    fn rank(&self, vertex: Vertex) -> u32 {
        self.ranks[vertex as usize]
    }

    /// The neighbours that stand higher, each once.
    fn higher(&self, list: &List<'_>, into: &mut Vec<Vertex>) {
        into.clear();
        into.extend(
            list.neighbours
                .iter()
                .filter(|other| self.is_higher(**other, list.vertex)),
        );
        into.dedup();
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            file: self.file,
            direction: Direction::Out,
            chosen: Chosen::All,
            weights: None,
        }
    }

    fn load(&self, round: &Round<'_>, block: &mut Block, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        round.run(
            self.means,
            Scratch::default,
            |scratch, lists| {
                let (mut ends, mut all, mut higher) = (vec![], vec![], vec![]);
                lists.each(scratch, |list| {
                    self.higher(list, &mut higher);
                    all.extend(higher.iter().map(|other| self.rank(*other)));
                    ends.push((list.vertex, all.len()));
                })?;
                Ok((ends, all))
            },
            |(ends, all)| {
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
        block: &Block,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let marks = || Marks {
            scratch: Scratch::default(),
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
                self.higher(list, higher);
                higher.iter().for_each(|other| marked.insert(self.rank(*other)));
                self.count_of(list.vertex, higher, marked, block);
                higher.iter().for_each(|other| marked.remove(self.rank(*other)));
            })
        };
        self.means.iteration(self.ranks.len() as u64);
        sweep.whole(heading).run(self.means, marks, work, Ok, watch)
    }

    /// Those of the lowest vertex.
    fn count_of(&self, vertex: Vertex, higher: &[Vertex], marked: &Bits, block: &Block) {
        let mut all = 0;
        for middle in higher {
            let ends = block.of(*middle).iter().filter(|end| marked.has(**end));
            if self.of.is_empty() {
                all += ends.count() as u64;
                continue;
            }
            let mut found = 0;
            for end in ends {
                found += 1;
                self.of[*end as usize].fetch_add(1, Relaxed);
            }
            if found > 0 {
                self.of[self.rank(*middle) as usize].fetch_add(found, Relaxed);
                all += found;
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
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(u64, Vec<u64>), EngineError> {
    let vertices = degrees.len();
    let counter = Counter {
        file,
        ranks: ranks(degrees),
        of: (0..if each { vertices } else { 0 })
            .map(|_| AtomicU64::new(0))
            .collect(),
        all: AtomicU64::new(0),
        means,
    };
    means.iteration(vertices as u64);
    let sweep = Sweep::new(counter.wanted(), means);
    let mut block = Block::default();
    // A neighbour takes a byte of a list at least.
    let step = block_bytes / 4 / 4;
    let mut blocks = 0;
    for round in sweep.rounds(step, Heading::Ascending) {
        if block.bytes() + 4 * step > block_bytes && !block.begins.is_empty() {
            counter.count(&sweep, Heading::of(blocks), &block, watch)?;
            block.clear();
            blocks += 1;
        }
        counter.load(&round, &mut block, watch)?;
    }
    counter.count(&sweep, Heading::of(blocks), &block, watch)?;
    let by_rank: Vec<u64> = counter.of.into_iter().map(AtomicU64::into_inner).collect();
    let ranks = counter.ranks.iter().filter(|_| each);
    let of = ranks.map(|rank| by_rank[*rank as usize]).collect();
    Ok((counter.all.into_inner(), of))
}

/// The place of each vertex in the order of degrees, the highest first; of several the lowest vertex first.
fn ranks(degrees: &ListIndex) -> Vec<u32> {
    let mut order: Vec<Vertex> = (0..degrees.len() as Vertex).collect();
    let of: Vec<u32> = degrees
        .spans(0..Vertex::MAX)
        .map(|(_, span)| span.bytes as u32)
        .collect();
    order.sort_unstable_by_key(|vertex| (std::cmp::Reverse(of[*vertex as usize]), *vertex));
    let mut ranks = of;
    for (vertex, rank) in order.into_iter().zip(0..) {
        ranks[vertex as usize] = rank;
    }
    ranks
}
