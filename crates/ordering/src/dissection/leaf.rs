//! Leaves of the dissection, ordered by minimum degree with the separators around them as halo.

use crate::degree::Quotient;
use crate::graph::View;
use crate::watch::{Patience, Stopped};

const EMPTY: u32 = u32::MAX;
/// Leaves of more neighbours in all are ordered without a halo, whose share in their degrees is small.
const HALO_DIRECTED_MAX: usize = 1 << 14;

/// Room for leaves, one after the other.
pub(super) struct LeafOrder {
    quotient: Quotient,
    numbers: Numbers,
    /// Pairs of a halo vertex's number and a neighbour's in the leaf.
    halo_edges: Vec<(u32, u32)>,
}

/// The vertices of a leaf, then of its halo, with the number of each.
struct Numbers {
    vertices: Vec<u32>,
    /// Numbers by the hash of their vertex, open addressing.
    table: Vec<u32>,
}

impl LeafOrder {
    pub(super) fn new() -> LeafOrder {
        let numbers = Numbers {
            vertices: Vec::new(),
            table: Vec::new(),
        };
        LeafOrder {
            quotient: Quotient::new(),
            numbers,
            halo_edges: Vec::new(),
        }
    }

    /// Orders the vertices `leaf` of the whole graph; all their other neighbours are eliminated later.
    pub(super) fn order(&mut self, whole: View<'_>, leaf: &mut [u32], patience: &Patience<'_>) -> Result<(), Stopped> {
        let directed: usize = leaf.iter().map(|&vertex| whole.degree(vertex as usize)).sum();
        patience.work(leaf.len())?;
        let has_halo = directed <= HALO_DIRECTED_MAX;
        self.number(whole, leaf, if has_halo { directed } else { 0 }, patience)?;
        self.fill_quotient(whole, leaf.len(), directed, patience)?;
        self.quotient.eliminate(patience)?;
        let LeafOrder { quotient, numbers, .. } = self;
        let mut at = 0;
        quotient.postorder(|number| {
            leaf[at] = numbers.vertices[number as usize];
            at += 1;
        });
        if !has_halo {
            *self = LeafOrder::new();
        }
        Ok(())
    }

    /// Numbers the leaf and at most `halo_max` vertices around it.
    fn number(
        &mut self,
        whole: View<'_>,
        leaf: &[u32],
        halo_max: usize,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        let LeafOrder {
            numbers, halo_edges, ..
        } = self;
        numbers.begin(leaf.len(), leaf.len() + halo_max);
        halo_edges.clear();
        for &vertex in leaf {
            numbers.number(vertex);
        }
        if halo_max == 0 {
            return Ok(());
        }
        for (number, &vertex) in leaf.iter().enumerate() {
            let list = whole.neighbours_of(vertex as usize);
            patience.work(2 * list.len())?;
            for &other in list {
                let other = numbers.number(other);
                if other as usize >= leaf.len() {
                    halo_edges.push((other, number as u32));
                }
            }
        }
        halo_edges.sort_unstable();
        Ok(())
    }

    fn fill_quotient(
        &mut self,
        whole: View<'_>,
        leaf: usize,
        directed: usize,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        let LeafOrder {
            quotient,
            numbers,
            halo_edges,
        } = self;
        quotient.begin(numbers.vertices.len(), directed + halo_edges.len(), leaf);
        for &vertex in &numbers.vertices[..leaf] {
            let list = whole.neighbours_of(vertex as usize);
            patience.work(2 * list.len())?;
            quotient.add(
                whole.weight(vertex as usize),
                list.iter().filter_map(|&other| numbers.find(other)),
            );
        }
        let mut edges = halo_edges.as_slice();
        for (number, &vertex) in numbers.vertices.iter().enumerate().skip(leaf) {
            let own = edges.iter().take_while(|edge| edge.0 as usize == number).count();
            let (own, rest) = edges.split_at(own);
            quotient.add(whole.weight(vertex as usize), own.iter().map(|edge| edge.1));
            edges = rest;
        }
        Ok(())
    }
}

impl Numbers {
    fn begin(&mut self, vertices: usize, vertices_max: usize) {
        self.vertices.clear();
        self.vertices.reserve_exact(vertices);
        self.table.clear();
        let places = (vertices_max + vertices_max / 3 + 1).next_power_of_two();
        self.table.reserve_exact(places);
        self.table.resize(places, EMPTY);
    }

    /// Where a vertex is in the table, or would be.
    #[inline]
    fn place(&self, vertex: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut place = (vertex.wrapping_mul(0x9e37_79b1) >> 7) as usize & mask;
        while self.table[place] != EMPTY && self.vertices[self.table[place] as usize] != vertex {
            place = (place + 1) & mask;
        }
        place
    }

    fn find(&self, vertex: u32) -> Option<u32> {
        Some(self.table[self.place(vertex)]).filter(|&number| number != EMPTY)
    }

    /// The number of a vertex, the next one if it is new.
    fn number(&mut self, vertex: u32) -> u32 {
        let place = self.place(vertex);
        if self.table[place] == EMPTY {
            self.table[place] = self.vertices.len() as u32;
            self.vertices.push(vertex);
        }
        self.table[place]
    }
}
