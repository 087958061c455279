//! Approximate minimum degree on a quotient graph.
//!
//! Amestoy, Davis, Duff, "An approximate minimum degree ordering algorithm", SIAM J. Matrix Anal. Appl. 17 (1996):
//! elements and variables share one array of lists (section 2.4), degrees are bounded by equation (4.1), elements
//! without variables outside of the pivot's are absorbed (section 5, aggressive absorption), and variables of equal
//! lists become one (section 3.3, supervariables; by hash, as Ashcraft 1995).
//!
//! Vertices from `inner` on are the halo: they count in degrees and are never eliminated (Pellegrini, Roman, Amestoy,
//! "Hybridizing nested dissection and halo approximate minimum degree", Concurrency 12 (2000), section 3).

use super::lists::{DegreeLists, NONE};
use crate::watch::{Patience, Stopped};

/// `QuotientNode::elements` of an eliminated variable, which is an element now.
const ELEMENT: u32 = u32::MAX;
/// `QuotientNode::elements` of a variable merged into another; `start` names that one.
const MERGED: u32 = u32::MAX - 1;
/// `QuotientNode::start` of an element that no other absorbed.
const ROOT: u64 = u64::MAX;
/// Marks the first entry of a list, while lists move together.
const HEAD: u32 = 1 << 31;

/// A variable or an element.
///
/// A variable's list is `elements` elements, then variables. An element's list is its variables, and `mark` 0 says that
/// it is absorbed, with `start` the element that did so.
#[derive(Clone, Copy)]
pub(super) struct QuotientNode {
    pub(super) start: u64,
    pub(super) length: u32,
    pub(super) elements: u32,
    /// Of a variable: the bound of its external degree. Of an element: the weight of its variables.
    pub(super) degree: u32,
    /// Of an element, in one elimination: `flag` plus the weight of its variables outside of the pivot's element.
    pub(super) mark: u32,
}

impl QuotientNode {
    pub(super) fn is_merged(&self) -> bool {
        self.elements == MERGED
    }

    /// The element that absorbed this one.
    pub(super) fn absorber(&self) -> Option<u32> {
        (self.mark == 0 && self.start != ROOT).then_some(self.start as u32)
    }
}

/// The quotient graph, and the degrees of its variables in lists.
pub(crate) struct Quotient {
    pub(super) nodes: Vec<QuotientNode>,
    /// Weight of a variable, 0 once it is merged, negative while it is in the element being made.
    pub(super) weights: Vec<i32>,
    pub(super) entries: Vec<u32>,
    /// Number of used entries.
    free: usize,
    pub(super) lists: DegreeLists,
    /// Variables below this are to be eliminated.
    pub(super) inner: usize,
    /// Weight of all variables, and of those eliminated.
    total: i64,
    eliminated: i64,
    flag: u32,
    /// The largest weight of an element's variables so far: marks are no further above `flag`.
    largest: u32,
    pub(super) pivots: Vec<u32>,
    hashed: Vec<u32>,
}

/// The element of the pivot being eliminated.
struct Pivot {
    vertex: u32,
    weight: i32,
    /// Where its variables lie in the entries.
    start: usize,
    end: usize,
    degree: i64,
    /// Whether the element lies at the end of the entries, not in the place of the pivot's list.
    appended: bool,
}

/// Room that lists need beyond the edges: eliminations with little room compress often (section 6 of the paper).
pub(crate) fn entries_max(vertices: usize, directed: usize) -> usize {
    directed + directed / 5 + vertices + 1
}

impl Quotient {
    pub(crate) fn new() -> Quotient {
        Quotient {
            nodes: Vec::new(),
            weights: Vec::new(),
            entries: Vec::new(),
            free: 0,
            lists: DegreeLists::new(),
            inner: 0,
            total: 0,
            eliminated: 0,
            flag: 2,
            largest: 0,
            pivots: Vec::new(),
            hashed: Vec::new(),
        }
    }

    /// Makes this the graph of `vertices` vertices and at most `directed` edges without any; what it held is let go.
    pub(crate) fn begin(&mut self, vertices: usize, directed: usize, inner: usize) {
        assert!(vertices < HEAD as usize, "an ordering takes fewer than 2^31 vertices");
        self.nodes.clear();
        self.nodes.reserve_exact(vertices);
        self.weights.clear();
        self.weights.reserve_exact(vertices);
        self.pivots.clear();
        self.pivots.reserve_exact(inner);
        self.entries.clear();
        self.entries.reserve_exact(entries_max(vertices, directed));
        self.inner = inner;
        self.total = 0;
        self.eliminated = 0;
        self.flag = 2;
        self.largest = 0;
    }

    /// Adds the next vertex.
    pub(crate) fn add(&mut self, weight: u32, neighbours: impl Iterator<Item = u32>) {
        let start = self.entries.len();
        self.entries.extend(neighbours);
        let length = (self.entries.len() - start) as u32;
        self.nodes.push(QuotientNode {
            start: start as u64,
            length,
            elements: 0,
            degree: 0,
            mark: 1,
        });
        self.weights.push(weight as i32);
        self.total += i64::from(weight);
    }

    /// Eliminates all inner vertices; `pivots` are then the elements, and merged variables name those that took them.
    pub(crate) fn eliminate(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        self.free = self.entries.len();
        self.entries.resize(entries_max(self.nodes.len(), self.free), 0);
        self.count_degrees(patience)?;
        let target: i64 = self.weights[..self.inner].iter().map(|&weight| i64::from(weight)).sum();
        while self.eliminated < target {
            let vertex = self.lists.pop_least();
            let mut pivot = self.make_element(vertex);
            self.pivots.push(vertex);
            patience.work(pivot.end - pivot.start + 8)?;
            self.count_outside(&pivot, patience)?;
            self.update_variables(&mut pivot, patience)?;
            self.merge_equal(&pivot, patience)?;
            self.close(&pivot);
        }
        Ok(())
    }

    fn count_degrees(&mut self, patience: &Patience<'_>) -> Result<(), Stopped> {
        let buckets = (self.total as usize + 1).min(16 * self.nodes.len() + 64);
        self.lists.begin(self.inner, buckets);
        self.hashed.clear();
        self.hashed
            .resize((self.inner / 2).next_power_of_two().clamp(16, 1 << 16), NONE);
        for vertex in 0..self.inner {
            let node = self.nodes[vertex];
            let list = &self.entries[node.start as usize..][..node.length as usize];
            let degree = list.iter().map(|&other| self.weights[other as usize] as u32).sum();
            self.nodes[vertex].degree = degree;
            self.lists.insert(vertex as u32, degree);
            patience.work(node.length as usize + 4)?;
        }
        Ok(())
    }

    /// Takes a variable into the pivot's element, if it is not yet there.
    #[inline]
    fn take(&mut self, variable: u32, degree: &mut i64) -> bool {
        let weight = self.weights[variable as usize];
        if weight <= 0 {
            return false;
        }
        *degree += i64::from(weight);
        self.weights[variable as usize] = -weight;
        if (variable as usize) < self.inner {
            self.lists.remove(variable, self.nodes[variable as usize].degree);
        }
        true
    }

    /// The element of a pivot: its variables and those of its elements, which it absorbs.
    fn make_element(&mut self, vertex: u32) -> Pivot {
        let node = self.nodes[vertex as usize];
        let weight = self.weights[vertex as usize];
        self.eliminated += i64::from(weight);
        self.weights[vertex as usize] = -weight;
        let mut degree = 0;
        let (start, end);
        if node.elements == 0 {
            start = node.start as usize;
            let mut kept = start;
            for at in start..start + node.length as usize {
                let variable = self.entries[at];
                if self.take(variable, &mut degree) {
                    self.entries[kept] = variable;
                    kept += 1;
                }
            }
            end = kept;
        } else {
            (start, end) = self.gather(vertex, &mut degree);
        }
        let appended = node.elements != 0;
        let made = &mut self.nodes[vertex as usize];
        made.start = start as u64;
        made.length = (end - start) as u32;
        made.elements = ELEMENT;
        Pivot {
            vertex,
            weight,
            start,
            end,
            degree,
            appended,
        }
    }

    /// Appends the variables of the pivot's elements and its own.
    fn gather(&mut self, vertex: u32, degree: &mut i64) -> (usize, usize) {
        let node = self.nodes[vertex as usize];
        let list = node.start as usize;
        let needed = self.entries[list..][..node.elements as usize]
            .iter()
            .map(|&element| self.nodes[element as usize].length as usize)
            .sum::<usize>()
            + node.length as usize;
        if self.free + needed > self.entries.len() {
            self.compact();
            if self.free + needed > self.entries.len() {
                return self.gather_piecewise(vertex, degree);
            }
        }
        let list = self.nodes[vertex as usize].start as usize;
        let start = self.free;
        let mut end = start;
        for at in list..list + node.elements as usize {
            let element = self.entries[at] as usize;
            let (first, length) = (self.nodes[element].start as usize, self.nodes[element].length as usize);
            for at in first..first + length {
                let variable = self.entries[at];
                if self.take(variable, degree) {
                    self.entries[end] = variable;
                    end += 1;
                }
            }
            self.absorb(element, vertex);
        }
        for at in list + node.elements as usize..list + node.length as usize {
            let variable = self.entries[at];
            if self.take(variable, degree) {
                self.entries[end] = variable;
                end += 1;
            }
        }
        self.free = end;
        (start, end)
    }

    fn absorb(&mut self, element: usize, by: u32) {
        self.nodes[element].start = u64::from(by);
        self.nodes[element].mark = 0;
    }

    /// As `gather` when the sum of the lists finds no room: what is taken from a list shortens it, so that moving all
    /// lists together makes room again. The union of the lists is never longer than their sum.
    fn gather_piecewise(&mut self, vertex: u32, degree: &mut i64) -> (usize, usize) {
        let mut union = Vec::new();
        let node = self.nodes[vertex as usize];
        let list = node.start as usize;
        for at in list..list + node.length as usize {
            let other = self.entries[at];
            if at >= list + node.elements as usize {
                if self.take(other, degree) {
                    union.push(other);
                }
                continue;
            }
            let (first, length) = (
                self.nodes[other as usize].start as usize,
                self.nodes[other as usize].length as usize,
            );
            for at in first..first + length {
                let variable = self.entries[at];
                if self.take(variable, degree) {
                    union.push(variable);
                }
            }
            self.absorb(other as usize, vertex);
        }
        // The pivot's own list and its elements' are free now.
        self.nodes[vertex as usize].length = 0;
        self.compact();
        let start = self.free;
        self.entries[start..start + union.len()].copy_from_slice(&union);
        self.free += union.len();
        (start, self.free)
    }

    /// Moves all lists to the front, without the gaps between them.
    fn compact(&mut self) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let is_listed = node.length > 0 && node.elements != MERGED && node.mark != 0;
            if is_listed {
                let head = &mut self.entries[node.start as usize];
                node.start = u64::from(*head);
                *head = index as u32 | HEAD;
            }
        }
        let (mut from, mut to) = (0, 0);
        while from < self.free {
            let entry = self.entries[from];
            if entry & HEAD == 0 {
                from += 1;
                continue;
            }
            let node = &mut self.nodes[(entry & !HEAD) as usize];
            let length = node.length as usize;
            self.entries[to] = node.start as u32;
            node.start = to as u64;
            self.entries.copy_within(from + 1..from + length, to + 1);
            from += length;
            to += length;
        }
        self.free = to;
    }

    /// For each element of the pivot's variables, the weight of its variables outside of the pivot's element.
    fn count_outside(&mut self, pivot: &Pivot, patience: &Patience<'_>) -> Result<(), Stopped> {
        if u64::from(self.flag) + 2 * self.total as u64 + 2 > u64::from(u32::MAX) {
            for node in &mut self.nodes {
                node.mark = u32::from(node.mark != 0);
            }
            self.flag = 2;
        }
        let flag = self.flag;
        for at in pivot.start..pivot.end {
            let variable = self.entries[at] as usize;
            let QuotientNode { start, elements, .. } = self.nodes[variable];
            patience.work(elements as usize)?;
            let weight = self.weights[variable].unsigned_abs();
            for &element in &self.entries[start as usize..][..elements as usize] {
                let node = &mut self.nodes[element as usize];
                if node.mark >= flag {
                    node.mark -= weight;
                } else if node.mark != 0 {
                    node.mark = flag + node.degree - weight;
                }
            }
        }
        Ok(())
    }

    /// The first terms of each variable's degree, its list without what the pivot's element covers, and its hash.
    fn update_variables(&mut self, pivot: &mut Pivot, patience: &Patience<'_>) -> Result<(), Stopped> {
        let flag = self.flag;
        for at in pivot.start..pivot.end {
            let variable = self.entries[at] as usize;
            let node = self.nodes[variable];
            patience.work(node.length as usize)?;
            let start = node.start as usize;
            let (mut hash, mut degree, mut kept) = (0u32, 0u64, start);
            for at in start..start + node.elements as usize {
                let element = self.entries[at];
                let mark = self.nodes[element as usize].mark;
                if mark > flag {
                    degree += u64::from(mark - flag);
                    self.entries[kept] = element;
                    kept += 1;
                    hash = hash.wrapping_add(element);
                } else if mark != 0 {
                    self.absorb(element as usize, pivot.vertex);
                }
            }
            let elements_end = kept;
            for at in start + node.elements as usize..start + node.length as usize {
                let other = self.entries[at];
                let weight = self.weights[other as usize];
                if weight > 0 {
                    degree += weight as u64;
                    self.entries[kept] = other;
                    kept += 1;
                    hash = hash.wrapping_add(other);
                }
            }
            let is_inner = variable < self.inner;
            if kept == start && is_inner {
                // The pivot's element is all it has: it goes with the pivot (mass elimination).
                let weight = -self.weights[variable];
                pivot.degree -= i64::from(weight);
                pivot.weight += weight;
                self.eliminated += i64::from(weight);
                self.merge(variable, pivot.vertex);
                continue;
            }
            // The pivot comes first; at least one entry was dropped for it, the pivot itself or an element it absorbed.
            self.entries[kept] = self.entries[elements_end];
            self.entries[elements_end] = self.entries[start];
            self.entries[start] = pivot.vertex;
            let updated = &mut self.nodes[variable];
            updated.elements = (elements_end - start + 1) as u32;
            updated.length = (kept - start + 1) as u32;
            updated.degree = u64::from(updated.degree).min(degree) as u32;
            if is_inner {
                let bucket = hash as usize & (self.hashed.len() - 1);
                self.lists.chain(variable as u32, self.hashed[bucket], hash);
                self.hashed[bucket] = variable as u32;
            }
        }
        Ok(())
    }

    fn merge(&mut self, variable: usize, into: u32) {
        self.weights[variable] = 0;
        self.nodes[variable].elements = MERGED;
        self.nodes[variable].start = u64::from(into);
    }

    /// Merges the pivot's variables of equal lists.
    fn merge_equal(&mut self, pivot: &Pivot, patience: &Patience<'_>) -> Result<(), Stopped> {
        self.flag += self.largest + 1;
        for at in pivot.start..pivot.end {
            let variable = self.entries[at] as usize;
            if variable >= self.inner || self.weights[variable] >= 0 {
                continue;
            }
            let bucket = self.lists.hash(variable as u32) as usize & (self.hashed.len() - 1);
            let mut first = std::mem::replace(&mut self.hashed[bucket], NONE);
            while first != NONE && self.lists.next(first) != NONE {
                self.merge_into(first, patience)?;
                first = self.lists.next(first);
            }
        }
        Ok(())
    }

    /// Merges into `first` those behind it in its chain whose lists are equal to its own.
    fn merge_into(&mut self, first: u32, patience: &Patience<'_>) -> Result<(), Stopped> {
        let QuotientNode {
            start,
            length,
            elements,
            ..
        } = self.nodes[first as usize];
        let hash = self.lists.hash(first);
        let mut is_marked = false;
        let (mut before, mut other) = (first, self.lists.next(first));
        while other != NONE {
            let node = self.nodes[other as usize];
            let next = self.lists.next(other);
            let mut is_equal = node.length == length && node.elements == elements && self.lists.hash(other) == hash;
            if is_equal && !is_marked {
                is_marked = true;
                self.mark_list(start, length);
            }
            if is_equal {
                patience.work(length as usize)?;
                // The first entry of both is the pivot.
                let rest = &self.entries[node.start as usize + 1..][..length as usize - 1];
                is_equal = rest.iter().all(|&entry| self.nodes[entry as usize].mark == self.flag);
            }
            if is_equal {
                self.weights[first as usize] += self.weights[other as usize];
                self.merge(other as usize, first);
                self.lists.set_next(before, next);
            } else {
                before = other;
            }
            other = next;
        }
        self.flag += u32::from(is_marked);
        Ok(())
    }

    fn mark_list(&mut self, start: u64, length: u32) {
        for &entry in &self.entries[start as usize + 1..][..length as usize - 1] {
            self.nodes[entry as usize].mark = self.flag;
        }
    }

    /// Completes the degrees of the element's variables, and drops those merged from its list.
    fn close(&mut self, pivot: &Pivot) {
        let left = self.total - self.eliminated;
        let mut kept = pivot.start;
        for at in pivot.start..pivot.end {
            let variable = self.entries[at];
            let weight = -self.weights[variable as usize];
            if weight <= 0 {
                continue;
            }
            self.weights[variable as usize] = weight;
            let node = &mut self.nodes[variable as usize];
            let outside = pivot.degree - i64::from(weight);
            node.degree = (i64::from(node.degree) + outside).min(left - i64::from(weight)) as u32;
            if (variable as usize) < self.inner {
                self.lists.insert(variable, node.degree);
            }
            self.entries[kept] = variable;
            kept += 1;
        }
        let node = &mut self.nodes[pivot.vertex as usize];
        node.length = (kept - pivot.start) as u32;
        node.degree = pivot.degree as u32;
        self.largest = self.largest.max(node.degree);
        node.mark = 1;
        if kept == pivot.start {
            node.mark = 0;
            node.start = ROOT;
        }
        if pivot.appended {
            self.free = kept;
        }
    }
}
