//! A graph of communities: kept in memory where it fits, else stored.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_dtype::DType;
use outcore_store::{volumes, Direction, GraphFile, GraphShape, GraphWriter};

use super::strength::times_power;
use crate::graph::read::batch::{VertexSet, WeightIndex};
use crate::graph::read::heading::Heading;
use crate::graph::read::lists::Lists;
use crate::graph::read::selection::{List, ListScratch, ListSelection, PartOfList};
use crate::graph::read::sweep::Sweep;
use crate::live::{Resources, Watch};
use crate::EngineError;

/// A graph whose lists are read in order, again and again.
pub(crate) enum EdgeSource<'a> {
    /// A file, the degrees that tell where its weights are, and the power of two by which weights are multiplied.
    Given(&'a GraphFile, Option<&'a ListIndex>, i32),
    Stored(Stored),
    Kept(KeptLists),
}

/// Lists in memory.
#[derive(Default)]
pub(crate) struct KeptLists {
    begins: Vec<u32>,
    neighbours: Vec<Vertex>,
    weights: Vec<f64>,
}

/// A file that goes with its last reader.
pub(crate) struct Stored {
    file: Arc<GraphFile>,
    degrees: ListIndex,
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = volumes::remove_file(self.file.path());
    }
}

/// Room for graphs of communities.
pub struct Coarse<'a> {
    /// Bytes of memory.
    pub bytes: u64,
    /// Where one is stored that does not fit.
    pub path: &'a mut dyn FnMut() -> Result<PathBuf, EngineError>,
}

/// Bytes of memory for each entry: the list it is in before, it, and either what sorting takes or its place in a new list.
const ENTRY_BYTES: u64 = 12 + 16 + 12;

/// Lists as they were read, for whoever works on them one by one.
#[derive(Default)]
struct Copied {
    ends: Vec<(Vertex, usize)>,
    neighbours: Vec<Vertex>,
    weights: Vec<f64>,
    /// Where it is a part of a list.
    part: Option<PartOfList>,
}

impl Copied {
    fn new(scratch: &mut ListScratch, lists: &Lists<'_>, exponent: i32) -> Result<Copied, EngineError> {
        let mut copied = Copied::default();
        lists.each(scratch, |list| {
            copied.neighbours.extend(list.neighbours);
            match exponent {
                0 => copied.weights.extend(list.weights),
                _ => copied
                    .weights
                    .extend(list.weights.iter().map(|weight| times_power(*weight, exponent))),
            }
            copied.ends.push((list.vertex, copied.neighbours.len()));
            copied.part = list.part;
        })?;
        Ok(copied)
    }

    fn each(&self, mut each: impl FnMut(&List<'_>)) {
        let mut begin = 0;
        for (vertex, end) in &self.ends {
            each(&List {
                vertex: *vertex,
                neighbours: &self.neighbours[begin..*end],
                weights: self.weights.get(begin..*end).unwrap_or(&[]),
                part: self.part,
            });
            begin = *end;
        }
    }
}

/// The neighbours of a list with their weights: 1 where there are none.
pub(crate) fn weighted<'a>(list: &'a List<'_>) -> impl Iterator<Item = (Vertex, f64)> + 'a {
    let weights = list.weights.iter().copied().chain(std::iter::repeat(1.0));
    list.neighbours.iter().copied().zip(weights)
}

impl EdgeSource<'_> {
    pub fn vertices(&self) -> usize {
        match self {
            EdgeSource::Given(file, ..) => file.shape().vertices as usize,
            EdgeSource::Stored(stored) => stored.file.shape().vertices as usize,
            EdgeSource::Kept(kept) => kept.begins.len() - 1,
        }
    }

    /// Calls `each` with the chosen lists, by ascending vertices, long ones in parts: they are read and decoded by several
    /// threads, and handed over here.
    pub fn each(
        &self,
        chosen: VertexSet<'_>,
        mut each: impl FnMut(&List<'_>),
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        resources.iteration(chosen.count(self.vertices() as u64));
        let (file, degrees, exponent, cache) = match self {
            EdgeSource::Given(file, degrees, exponent) => (*file, *degrees, *exponent, resources.cache),
            EdgeSource::Stored(stored) => (&*stored.file, Some(&stored.degrees), 0, None),
            EdgeSource::Kept(kept) => {
                let is_chosen = |vertex: &Vertex| match chosen {
                    VertexSet::All => true,
                    VertexSet::Of(bits) => bits.has(*vertex),
                    VertexSet::Listed(listed) => listed.binary_search(vertex).is_ok(),
                };
                resources.activity.ask(chosen.count(self.vertices() as u64));
                let all = 0..self.vertices() as Vertex;
                all.filter(is_chosen).for_each(|vertex| each(&kept.list(vertex)));
                return watch();
            }
        };
        let selection = ListSelection {
            file,
            direction: Direction::Out,
            chosen,
            weights: WeightIndex::new(file, degrees),
        };
        let resources = Resources { cache, ..*resources };
        let take = |copied: Copied| {
            copied.each(&mut each);
            Ok(())
        };
        let work = |scratch: &mut ListScratch, lists: &Lists<'_>| Copied::new(scratch, lists, exponent);
        Sweep::in_parts(selection, &resources).whole(Heading::Ascending).run(
            &resources,
            ListScratch::default,
            work,
            take,
            watch,
        )
    }
}

impl KeptLists {
    fn list(&self, vertex: Vertex) -> List<'_> {
        let [begin, end] = [0, 1].map(|behind| self.begins[vertex as usize + behind] as usize);
        let place = begin..end;
        List {
            vertex,
            neighbours: &self.neighbours[place.clone()],
            weights: &self.weights[place],
            part: None,
        }
    }

    fn new(communities: usize, entries: &[(u64, f64)]) -> KeptLists {
        let mut kept = KeptLists {
            begins: vec![0; communities + 1],
            neighbours: entries.iter().map(|(key, _)| *key as Vertex).collect(),
            weights: entries.iter().map(|(_, weight)| *weight).collect(),
        };
        entries
            .iter()
            .for_each(|(key, _)| kept.begins[(key >> 32) as usize + 1] += 1);
        for vertex in 0..communities {
            kept.begins[vertex + 1] += kept.begins[vertex];
        }
        kept
    }
}

/// Entries by row and column, of rows from `from` to before `end`.
struct CommunityRows {
    entries: Vec<(u64, f64)>,
    most: usize,
    end: Vertex,
}

impl CommunityRows {
    fn add(&mut self, row: Vertex, column: Vertex, weight: f64) -> bool {
        if row < self.end {
            self.entries.push((u64::from(row) << 32 | u64::from(column), weight));
            if self.entries.len() >= self.most {
                return self.shrink();
            }
        }
        true
    }

    /// Adds up what is in one place, in the order in which it came.
    fn add_up(&mut self) {
        self.entries.sort_by_key(|(key, _)| *key);
        self.entries.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 += next.1;
            }
            same
        });
    }

    /// Adds up; where that is not enough, leaves later rows to another pass. Whether there is room again.
    fn shrink(&mut self) -> bool {
        self.add_up();
        if self.entries.len() > self.most / 2 {
            let row = (self.entries[self.most / 2].0 >> 32) as Vertex;
            self.end = row;
            let kept = self.entries.partition_point(|(key, _)| ((key >> 32) as Vertex) < row);
            self.entries.truncate(kept);
            return kept > 0;
        }
        true
    }
}

/// A pass over a graph, with the communities of its vertices.
pub(crate) struct Merging<'a> {
    pub source: &'a EdgeSource<'a>,
    /// Numbers without holes, and higher ones of vertices that are left out.
    pub labels: &'a [Vertex],
    pub communities: usize,
    /// For each community, below 0.
    pub sums: &'a RefCell<Vec<f64>>,
}

impl Merging<'_> {
    /// The rows from one on: as many as there is room for.
    fn rows(
        &self,
        from: Vertex,
        most: usize,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(Vec<(u64, f64)>, Vertex), EngineError> {
        let mut rows = CommunityRows {
            // What is not used is never touched, and what grows is there twice.
            entries: Vec::with_capacity(most),
            most,
            end: self.communities as Vertex,
        };
        let (mut around, mut fits) = (vec![], true);
        let mut sums = self.sums.borrow_mut();
        let add = |list: &List<'_>| {
            let own = self.labels[list.vertex as usize];
            if own < from || own >= rows.end || !fits {
                return;
            }
            add_up(list, self.labels, &mut sums, &mut around, |other, weight| {
                // What is within a community is met from both ends, and a loop once.
                if other == list.vertex || self.labels[other as usize] != own {
                    weight
                } else {
                    weight / 2.0
                }
            });
            if !list.is_end() {
                return;
            }
            for other in around.drain(..) {
                fits &= rows.add(own, other, sums[other as usize]);
                sums[other as usize] = ABSENT;
            }
        };
        self.source.each(VertexSet::All, add, resources, watch)?;
        rows.add_up();
        if !fits {
            return Err(EngineError::Memory {
                operator: "graph: communities".into(),
                need: 2 * ENTRY_BYTES * self.communities as u64,
                available: ENTRY_BYTES * most as u64,
                smallest: 2 * ENTRY_BYTES * self.communities as u64,
                exact: false,
                detail: "for the neighbours of one community".into(),
                planning: false,
            });
        }
        Ok((rows.entries, rows.end))
    }

    /// The graph of the communities.
    pub fn merged(
        &self,
        coarse: &mut Coarse<'_>,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<EdgeSource<'static>, EngineError> {
        // Places of entries have 32 bits.
        let most = (coarse.bytes / ENTRY_BYTES).clamp(2, u64::from(u32::MAX)) as usize;
        let all = self.communities as Vertex;
        let (entries, mut end) = self.rows(0, most, resources, watch)?;
        if end == all {
            return Ok(EdgeSource::Kept(KeptLists::new(self.communities, &entries)));
        }
        let mut edges = entries.len() as u64;
        drop(entries);
        while end < all {
            let (entries, next) = self.rows(end, most, resources, watch)?;
            (edges, end) = (edges + entries.len() as u64, next);
        }
        let path = (coarse.path)()?;
        let made = self.write(&path, edges, most, resources, watch);
        if made.is_err() {
            let _ = volumes::remove_file(&path);
        }
        made.map(EdgeSource::Stored)
    }

    fn write(
        &self,
        path: &Path,
        edges: u64,
        most: usize,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Stored, EngineError> {
        let shape = GraphShape {
            vertices: self.communities as u64,
            edges,
            directed: false,
            weights: Some(DType::F64),
        };
        let mut writer = GraphWriter::create(path, shape, false, resources.io)?;
        let mut begin = 0;
        while begin < self.communities as Vertex {
            let (entries, end) = self.rows(begin, most, resources, watch)?;
            push(&mut writer, &entries, begin..end, resources)?;
            begin = end;
        }
        writer.finish(None, resources.io)?;
        let file = GraphFile::open(path, resources.io)?;
        let degrees = file.degrees(Direction::Out, resources.io)?;
        Ok(Stored { file, degrees })
    }
}

fn push(
    writer: &mut GraphWriter,
    entries: &[(u64, f64)],
    rows: Range<Vertex>,
    resources: &Resources<'_>,
) -> Result<(), EngineError> {
    let (mut neighbours, mut weights) = (vec![], vec![]);
    let mut at = 0;
    for row in rows {
        neighbours.clear();
        weights.clear();
        while let Some((key, weight)) = entries.get(at).filter(|(key, _)| (key >> 32) as Vertex == row) {
            neighbours.push(*key as Vertex);
            weights.extend(weight.to_le_bytes());
            at += 1;
        }
        writer.push(&neighbours, &weights, resources.io)?;
    }
    Ok(())
}

/// The sum of a community that no neighbour is in.
pub(crate) const ABSENT: f64 = -1.0;

/// Adds the weights of a list by the communities of the neighbours, which `around` then has in the order they were met.
pub(crate) fn add_up(
    list: &List<'_>,
    labels: &[Vertex],
    sums: &mut [f64],
    around: &mut Vec<Vertex>,
    weight_of: impl Fn(Vertex, f64) -> f64,
) {
    for (other, weight) in weighted(list) {
        let label = labels[other as usize];
        // One that is left out has edges of weight 0 only.
        let Some(sum) = sums.get_mut(label as usize) else {
            continue;
        };
        if *sum < 0.0 {
            *sum = 0.0;
            around.push(label);
        }
        *sum += weight_of(other, weight);
    }
}
