//! What a sweep reads: the pages of the lists it wants, in parts that are read and worked on one by one.

use std::ops::Range;

use outcore_coding::lists::{Extent, ListIndex, Vertex};
use outcore_store::{GraphFile, Part, PlacedRun, Section, PAGE};

use super::bits::{blocks, Bits};
use super::heading::Heading;
use crate::live::{each_part, BATCH_PAGES};

/// The vertices whose lists are read.
#[derive(Clone, Copy, Debug)]
pub enum VertexSet<'a> {
    All,
    Of(&'a Bits),
    /// Those of a list, which ascends: what nobody wants costs nothing.
    Listed(&'a [Vertex]),
}

impl VertexSet<'_> {
    /// How many of so many vertices are chosen.
    pub(crate) fn count(&self, vertices: u64) -> u64 {
        match self {
            VertexSet::All => vertices,
            VertexSet::Of(bits) => bits.count(),
            VertexSet::Listed(listed) => listed.len() as u64,
        }
    }

    /// Bytes of their lists.
    pub(crate) fn list_bytes(&self, index: &ListIndex) -> u64 {
        let mut bytes = 0;
        self.blocks(0..index.len() as Vertex, |first, bits| {
            index.each_of(first, bits, |_, span| bytes += span.bytes);
        });
        bytes
    }

    /// Calls `each` with those of a range, ascending, a block at a time that has any: its first vertex, and their bits.
    fn blocks(&self, range: Range<Vertex>, mut each: impl FnMut(Vertex, u32)) {
        match self {
            VertexSet::All => blocks(range, each),
            VertexSet::Of(bits) => bits.blocks(range, each),
            VertexSet::Listed(vertices) => {
                let from = vertices.partition_point(|vertex| *vertex < range.start);
                let to = vertices.partition_point(|vertex| *vertex < range.end);
                for members in vertices[from..to].chunk_by(|one, next| one / BLOCK == next / BLOCK) {
                    let bits = members.iter().fold(0, |bits, vertex| bits | 1 << (vertex % BLOCK));
                    each(members[0] / BLOCK * BLOCK, bits);
                }
            }
        }
    }
}

/// Weights, one for each neighbour: their index counts neighbours.
#[derive(Clone, Copy, Debug)]
pub struct WeightIndex<'a> {
    pub degrees: &'a ListIndex,
    /// Bytes of a weight.
    pub item: u64,
}

impl<'a> WeightIndex<'a> {
    /// Where the weights of a graph lie, if it has any and the degrees are known.
    pub fn new(file: &GraphFile, degrees: Option<&'a ListIndex>) -> Option<WeightIndex<'a>> {
        let item = file.shape().weights?.size() as u64;
        degrees.map(|degrees| WeightIndex { degrees, item })
    }

    pub(crate) fn span(&self, vertex: Vertex) -> Extent {
        self.times(self.degrees.span(vertex))
    }

    /// Where the weights of the vertices of a block end.
    fn end_of(&self, first: Vertex) -> u64 {
        self.degrees.end_of(first) * self.item
    }

    /// Where the weights of so many neighbours lie.
    fn times(&self, neighbours: Extent) -> Extent {
        Extent {
            offset: neighbours.offset * self.item,
            bytes: neighbours.bytes * self.item,
        }
    }
}

/// Pages that nobody wants are read where they join two runs: one request for two. All of them together are no more than
/// this part of the pages that are wanted, so that what is read is at most 9/8 of what holds the lists, whatever is chosen.
const BRIDGED: u64 = 8;
/// The most of them in a row.
const BRIDGE_PAGES: u64 = 4;
/// Pages in a run on the average from which on reading is one after the other.
const LONG_RUN: u64 = 16;
/// Vertices of a batch, at most: what is found at each waits until it is taken.
pub(crate) const BATCH_VERTICES: Vertex = 1 << 16;
/// Vertices whose lists are looked for together: those of one anchor of the index.
const BLOCK: Vertex = 32;
/// Vertices whose batches are cut in one go: a multiple of that.
const CUT_VERTICES: Vertex = 1 << 19;
const NOWHERE: Extent = Extent { offset: 0, bytes: 0 };

/// Bytes of a list from which on it is long. Neither this nor the size of a part depends on the memory: sums by parts have the
/// same bits in any.
pub(crate) const LONG_BYTES: u64 = BATCH_PAGES * PAGE as u64;
/// Neighbours of a part: a multiple of four.
pub(crate) const PART_NEIGHBOURS: usize = 1 << 18;

/// Neighbours in so many bytes of lists, at most: each takes a byte and two bits at least.
pub(crate) fn most_neighbours(list_bytes: u64) -> u64 {
    list_bytes * 4 / 5
}

/// Parts of a long list, at most.
fn parts_of(list_bytes: u64) -> usize {
    most_neighbours(list_bytes).div_ceil(PART_NEIGHBOURS as u64) as usize
}

pub(crate) fn pages_of(span: Extent) -> Range<u64> {
    span.offset / PAGE as u64..span.end().div_ceil(PAGE as u64)
}

/// Pages that are read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageSpan {
    pub pages: Range<u64>,
    /// Pages of the runs before.
    pub at: u64,
}

/// Ascending runs of pages of one part of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageRuns {
    pub runs: Vec<PageSpan>,
    pub pages: u64,
    /// Of those, pages that nobody wants.
    bridged: u64,
}

impl PageRuns {
    /// Adds a span that begins no earlier than those there are. The whole of it is in one run then.
    fn add(&mut self, span: Extent) {
        if span.bytes == 0 {
            return;
        }
        let pages = pages_of(span);
        if let Some(last) = self.runs.last_mut() {
            let hole = pages.start.saturating_sub(last.pages.end);
            let wanted = self.pages - self.bridged;
            if hole == 0 || hole <= BRIDGE_PAGES.min((wanted / BRIDGED).saturating_sub(self.bridged)) {
                self.pages += pages.end.saturating_sub(last.pages.end);
                self.bridged += hole;
                last.pages.end = last.pages.end.max(pages.end);
                return;
            }
        }
        let at = self.pages;
        self.pages += pages.end - pages.start;
        self.runs.push(PageSpan { pages, at });
    }

    /// Whether all before a byte of the part, from the last span on, is in them.
    fn reach(&self, end: u64) -> bool {
        end <= self.runs.last().map_or(0, |run| run.pages.end * PAGE as u64)
    }

    /// Whether there are so many of them that most of the time goes into finding them.
    pub fn are_short(&self) -> bool {
        self.pages < LONG_RUN * self.runs.len() as u64
    }

    /// The runs, one behind the other from a byte of a frame on.
    pub fn placed(&self, part: Part, begin: usize) -> impl Iterator<Item = PlacedRun> + '_ {
        self.runs.iter().map(move |run| PlacedRun {
            part,
            pages: run.pages.clone(),
            place: begin + run.at as usize * PAGE,
        })
    }

    /// Where in the pages that were read a span lies. `run` is that of a span before it, and of this one after.
    pub fn place(&self, span: Extent, run: &mut usize) -> Range<usize> {
        if span.bytes == 0 {
            return 0..0;
        }
        let first = span.offset / PAGE as u64;
        while self.runs[*run].pages.end <= first {
            *run += 1;
        }
        let run = &self.runs[*run];
        let begin = (run.at * PAGE as u64 + span.offset - run.pages.start * PAGE as u64) as usize;
        begin..begin + span.bytes as usize
    }
}

/// Lists of some vertices, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListBatch {
    pub vertices: Range<Vertex>,
    pub lists: PageRuns,
    pub weights: PageRuns,
    /// Parts at most in which the one list of the batch is read; 0 where lists are read whole.
    pub parts: usize,
    /// Whether the cache has room for all before it and itself, and for itself and all behind it.
    pub is_first: bool,
    pub is_last: bool,
}

impl ListBatch {
    /// Pages that are read.
    pub fn pages(&self) -> u64 {
        self.lists.pages + self.weights.pages
    }

    /// Bytes that are read.
    pub fn bytes(&self) -> u64 {
        self.pages() * PAGE as u64
    }

    /// Neighbours in it, at most.
    pub fn most_neighbours(&self, weights: Option<WeightIndex<'_>>) -> u64 {
        let bytes = |runs: &PageRuns| runs.pages * PAGE as u64;
        let weighed = weights.map_or(u64::MAX, |index| bytes(&self.weights) / index.item);
        most_neighbours(bytes(&self.lists)).min(weighed)
    }

    fn is_full(&self, pages: u64) -> bool {
        // Half of them without weights: more neighbours are found in a page then.
        (2 * self.lists.pages).max(self.lists.pages + self.weights.pages) >= pages
    }

    /// How it is read by way of a cache, if it is, and whether the cache keeps it. Where the next sweep turns round, that is what
    /// comes last, which is met first then: what comes first is there if the sweep before kept it, and what is between would
    /// only come and go. Where each sweep goes the same way, the cache keeps what comes first.
    pub fn caching(&self, heading: Heading, is_one_way: bool) -> Option<bool> {
        let is_kept = match heading {
            Heading::Ascending if is_one_way => self.is_first,
            Heading::Ascending => self.is_last,
            Heading::Descending => self.is_first,
        };
        let is_met = !is_one_way && (self.is_first || self.is_last);
        let are_short = self.lists.are_short() || self.weights.are_short();
        (is_kept || is_met || are_short).then_some(is_kept)
    }
}

/// Says which batches of one of so many portions, which are thought to be alike, are the first and the last for which a cache
/// of so many pages has room.
pub(crate) fn rank(batches: &mut [ListBatch], portion: usize, portions: usize, cached: u64) {
    let pages: u64 = batches.iter().map(ListBatch::pages).sum();
    let (mut before, all) = (portion as u64 * pages, portions as u64 * pages);
    for batch in batches {
        let behind = all - before - batch.pages();
        (batch.is_first, batch.is_last) = (before < cached, behind < cached);
        before += batch.pages();
    }
}

/// The places in the file of a vertex's list and, where they are read, of its weights.
pub(crate) struct ListExtents {
    pub list: Extent,
    pub weights: Extent,
}

/// Calls `each` with the chosen vertices of a range that have a list, ascending, and where that lies.
pub(crate) fn spans(
    section: &Section,
    weights: Option<WeightIndex<'_>>,
    chosen: VertexSet<'_>,
    range: Range<Vertex>,
    mut each: impl FnMut(Vertex, ListExtents),
) {
    chosen.blocks(range, |first, bits| spans_of(section, weights, first, bits, &mut each));
}

/// The same of some vertices of a block. Their lists, and their weights, are found on one way through it.
fn spans_of(
    section: &Section,
    weights: Option<WeightIndex<'_>>,
    first: Vertex,
    bits: u32,
    each: &mut impl FnMut(Vertex, ListExtents),
) {
    let mut give = |vertex, list: Extent, weights| {
        if list.bytes > 0 {
            each(vertex, ListExtents { list, weights });
        }
    };
    let Some(index) = weights else {
        return section
            .index
            .each_of(first, bits, |vertex, list| give(vertex, list, NOWHERE));
    };
    let mut of = [NOWHERE; BLOCK as usize];
    let note = |vertex, span| of[(vertex - first) as usize] = index.times(span);
    index.degrees.each_of(first, bits, note);
    let give = |vertex, list| give(vertex, list, of[(vertex - first) as usize]);
    section.index.each_of(first, bits, give);
}

/// How a sweep is cut into batches: of so many pages or little more. A list is never cut; a long one is a batch of its own,
/// which is read part by part, where they are wanted so.
#[derive(Clone, Copy)]
pub(crate) struct BatchCutting<'a> {
    pub section: &'a Section,
    pub weights: Option<WeightIndex<'a>>,
    pub chosen: VertexSet<'a>,
    pub pages: u64,
    pub portion_pages: u64,
    pub in_parts: bool,
}

/// Vertices of a list that are few enough for one portion, wherever their lists lie.
const PORTION_LISTED: usize = 1 << 16;

/// Bytes that the batches of so many vertices take, where their lists and weights lie in so many pages.
pub(crate) fn plan_bytes(pages: u64, vertices: u64) -> u64 {
    // A run for every other page, and batches of 32 pages at the least, unless they have many vertices; twice while they grow.
    let batches = pages / 32 + vertices / u64::from(BATCH_VERTICES) + 2;
    2 * (pages / 2 * size_of::<PageSpan>() as u64 + batches * size_of::<ListBatch>() as u64)
}

impl BatchCutting<'_> {
    /// Vertices whose batches are known at once: lists of so many pages, or one list.
    pub fn portions(&self) -> Vec<Range<Vertex>> {
        let index = &self.section.index;
        let vertices = index.len() as Vertex;
        if matches!(self.chosen, VertexSet::Listed(listed) if listed.len() <= PORTION_LISTED) {
            return std::iter::once(0..vertices).filter(|all| !all.is_empty()).collect();
        }
        // A neighbour takes a byte of a list at least.
        let pages = self.portion_pages / (1 + self.weights.map_or(0, |index| index.item));
        let (mut portions, mut begin) = (vec![], 0);
        while begin < vertices {
            let mut end = index.vertex_at(index.span(begin).offset + pages * PAGE as u64);
            // Ranges that are cut in one go are not cut again.
            let even = end / CUT_VERTICES * CUT_VERTICES;
            if end < vertices && even > begin {
                end = even;
            }
            end = end.max(begin + 1);
            portions.push(begin..end);
            begin = end;
        }
        portions
    }

    /// The batches of a portion; many vertices are looked at in several threads. Which batches there are does not depend on
    /// how many.
    pub fn batches(&self, portion: Range<Vertex>, threads: usize) -> Vec<ListBatch> {
        match (self.chosen, self.weights) {
            (VertexSet::All, None) => self.even(portion),
            (VertexSet::Listed(_), _) => self.of(portion),
            _ => {
                let ranges = portion.clone().step_by(CUT_VERTICES as usize);
                let ranges = ranges.map(|begin| begin..portion.end.min(begin.saturating_add(CUT_VERTICES)));
                let mut batches = vec![vec![]; ranges.len()];
                let threads = threads.min(ranges.len());
                each_part(batches.iter_mut().zip(ranges), threads, |(batches, range)| {
                    *batches = self.of(range)
                });
                batches.into_iter().flatten().collect()
            }
        }
    }

    /// Parts in which the list is read, or 0.
    fn parts(&self, list_bytes: u64) -> usize {
        match self.in_parts && list_bytes > LONG_BYTES {
            true => parts_of(list_bytes),
            false => 0,
        }
    }

    /// Those of all vertices without weights. What lies where follows from the index: no list needs be looked at. A long one
    /// is alone.
    fn even(&self, portion: Range<Vertex>) -> Vec<ListBatch> {
        let (index, vertices) = (&self.section.index, portion.end);
        let (mut done, mut batch) = (vec![], ListBatch::default());
        let mut begin = index.vertex_at(index.span(portion.start).offset);
        while begin < vertices {
            let offset = index.span(begin).offset;
            let end = index.vertex_at(offset + self.pages * PAGE as u64);
            let end = end.clamp(begin + 1, begin.saturating_add(BATCH_VERTICES)).min(vertices);
            let bytes = index.span(end).offset - offset;
            batch.vertices = begin..end;
            batch.parts = if end == begin + 1 { self.parts(bytes) } else { 0 };
            if batch.parts == 0 {
                batch.lists.add(Extent { offset, bytes });
            }
            if bytes > 0 {
                done.push(std::mem::take(&mut batch));
            }
            begin = end;
        }
        done
    }

    /// Those of the chosen vertices of a range.
    fn of(&self, range: Range<Vertex>) -> Vec<ListBatch> {
        let BatchCutting {
            section,
            weights,
            pages,
            ..
        } = *self;
        let mut done: Vec<ListBatch> = vec![];
        let mut batch = ListBatch::default();
        batch.vertices.start = range.start;
        let mut count = 0;
        self.chosen.blocks(range.clone(), |first, bits| {
            // Many blocks lie in pages that are read anyway: their lists need not be looked for.
            let weights_end = weights.map_or(0, |index| index.end_of(first));
            let is_read = batch.lists.reach(section.index.end_of(first)) && batch.weights.reach(weights_end);
            if is_read && !batch.is_full(pages) && count + bits.count_ones() <= BATCH_VERTICES {
                count += bits.count_ones();
                return;
            }
            spans_of(section, weights, first, bits, &mut |vertex, extents: ListExtents| {
                count += 1;
                let parts = self.parts(extents.list.bytes);
                if batch.is_full(pages) || count > BATCH_VERTICES || parts > 0 && !batch.lists.runs.is_empty() {
                    count = 1;
                    batch.vertices.end = vertex;
                    done.push(std::mem::take(&mut batch));
                    batch.vertices.start = vertex;
                }
                if parts > 0 {
                    done.push(ListBatch {
                        vertices: vertex..vertex + 1,
                        parts,
                        ..ListBatch::default()
                    });
                    count = 0;
                    batch.vertices.start = vertex + 1;
                    return;
                }
                batch.lists.add(extents.list);
                batch.weights.add(extents.weights);
            });
        });
        if !batch.lists.runs.is_empty() {
            batch.vertices.end = range.end;
            done.push(batch);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However far apart the wanted lists lie, what is read beside their pages is an eighth of those.
        #[test]
        fn few_pages_are_read_that_nobody_wants(steps in prop::collection::vec((0u64..6 * PAGE as u64, 1u64..3 * PAGE as u64), 1..300)) {
            let (mut runs, mut wanted, mut offset) = (PageRuns::default(), std::collections::BTreeSet::new(), 0);
            let mut spans = vec![];
            for (hole, bytes) in steps {
                let span = Extent { offset: offset + hole, bytes };
                offset = span.end();
                runs.add(span);
                wanted.extend(pages_of(span));
                spans.push(span);
            }
            let read: Vec<u64> = runs.runs.iter().flat_map(|run| run.pages.clone()).collect();
            prop_assert!(read.is_sorted_by(|first, second| first < second), "a page is read twice");
            prop_assert_eq!(read.len() as u64, runs.pages);
            prop_assert_eq!(runs.bridged, runs.pages - wanted.len() as u64);
            prop_assert!(8 * runs.pages <= 9 * wanted.len() as u64, "{} pages for {}", runs.pages, wanted.len());
            let mut run = 0;
            for span in spans {
                let place = runs.place(span, &mut run);
                prop_assert_eq!(read[place.start / PAGE], span.offset / PAGE as u64);
                prop_assert_eq!(read[(place.end - 1) / PAGE], (span.end() - 1) / PAGE as u64);
            }
        }
    }

    #[test]
    fn a_cache_keeps_the_end_of_a_long_sweep_and_is_asked_for_its_beginning() {
        let of = |pages: u64| {
            let mut batch = ListBatch::default();
            batch.lists.add(Extent {
                offset: 0,
                bytes: pages * PAGE as u64,
            });
            batch
        };
        let ways = |pages, cached, portion, portions, heading, is_one_way| {
            let mut batches = vec![of(pages); 10];
            rank(&mut batches, portion, portions, cached);
            let of = |batch: &ListBatch| match batch.caching(heading, is_one_way) {
                Some(true) => 'k',
                Some(false) => 'a',
                None => '-',
            };
            batches.iter().map(of).collect::<String>()
        };
        let (up, down) = (Heading::Ascending, Heading::Descending);
        assert_eq!(ways(20, 50, 0, 1, up, false), "aaa----kkk");
        assert_eq!(ways(20, 50, 0, 1, down, false), "kkk----aaa");
        assert_eq!(ways(20, 50, 0, 1, up, true), "kkk-------");
        assert_eq!(ways(20, 120, 0, 1, up, false), "aaaakkkkkk");
        assert_eq!(ways(20, 200, 0, 1, up, false), "kkkkkkkkkk");
        assert_eq!(ways(20, 50, 0, 2, up, false), "aaa-------");
        assert_eq!(ways(20, 50, 1, 2, up, false), "-------kkk");
        assert_eq!(ways(20, 50, 0, 2, up, true), "kkk-------");
        assert_eq!(ways(20, 50, 1, 2, up, true), "----------");
        assert_eq!(ways(20, 0, 0, 1, up, false), "----------");
        assert_eq!(ways(1, 1, 0, 1, up, false), "aaaaaaaaak");
    }
}
