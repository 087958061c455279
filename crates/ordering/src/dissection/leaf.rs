//! Leaves of the dissection, ordered by minimum degree with the separators around them as halo.

use crate::degree::Quotient;
use crate::graph::View;
use crate::watch::{Patience, Stopped};

const EMPTY: u32 = u32::MAX;

/// Room for leaves, one after the other.
pub(super) struct LeafOrder {
    quotient: Quotient,
    /// Open hash table of the leaf's vertices and its halo: vertex, number in the leaf.
    table: Vec<(u32, u32)>,
    halo: Vec<u32>,
    /// For each halo vertex its neighbours in the leaf: pairs, sorted.
    halo_edges: Vec<(u32, u32)>,
}

impl LeafOrder {
    pub(super) fn new() -> LeafOrder {
        LeafOrder {
            quotient: Quotient::new(),
            table: Vec::new(),
            halo: Vec::new(),
            halo_edges: Vec::new(),
        }
    }

    /// Orders the vertices `leaf` of the whole graph; all their other neighbours are eliminated later.
    pub(super) fn order(&mut self, whole: View<'_>, leaf: &mut [u32], patience: &Patience<'_>) -> Result<(), Stopped> {
        let directed: usize = leaf.iter().map(|&vertex| whole.degree(vertex as usize)).sum();
        patience.work(4 * directed + leaf.len())?;
        self.table.clear();
        self.table.resize(
            (2 * (leaf.len() + directed.min(whole.vertices()))).next_power_of_two(),
            (EMPTY, 0),
        );
        for (number, &vertex) in leaf.iter().enumerate() {
            let place = self.place(vertex);
            self.table[place] = (vertex, number as u32);
        }
        self.halo.clear();
        self.halo_edges.clear();
        for (number, &vertex) in leaf.iter().enumerate() {
            for &other in whole.neighbours_of(vertex as usize) {
                let place = self.place(other);
                if self.table[place].0 == EMPTY {
                    self.table[place] = (other, (leaf.len() + self.halo.len()) as u32);
                    self.halo.push(other);
                }
                if self.table[place].1 as usize >= leaf.len() {
                    self.halo_edges.push((self.table[place].1, number as u32));
                }
            }
        }
        self.halo_edges.sort_unstable();
        self.fill_quotient(whole, leaf, directed);
        self.quotient.eliminate(patience)?;
        let vertices = leaf.to_vec();
        let mut at = 0;
        self.quotient.postorder(|number| {
            leaf[at] = vertices[number as usize];
            at += 1;
        });
        Ok(())
    }

    fn fill_quotient(&mut self, whole: View<'_>, leaf: &[u32], directed: usize) {
        let LeafOrder {
            quotient,
            table,
            halo,
            halo_edges,
        } = self;
        quotient.begin(leaf.len() + halo.len(), directed + halo_edges.len(), leaf.len());
        for &vertex in leaf {
            let list = whole.neighbours_of(vertex as usize).iter();
            quotient.add(
                whole.weight(vertex as usize),
                list.map(|&other| table[place_in(table, other)].1),
            );
        }
        let mut edges = halo_edges.as_slice();
        for (number, &vertex) in halo.iter().enumerate() {
            let end = edges.partition_point(|edge| edge.0 as usize <= leaf.len() + number);
            let (own, rest) = edges.split_at(end);
            quotient.add(whole.weight(vertex as usize), own.iter().map(|edge| edge.1));
            edges = rest;
        }
    }

    fn place(&self, vertex: u32) -> usize {
        place_in(&self.table, vertex)
    }
}

/// Where a vertex is in the table, or would be.
fn place_in(table: &[(u32, u32)], vertex: u32) -> usize {
    let mask = table.len() - 1;
    let mut place = vertex.wrapping_mul(0x9e37_79b1) as usize >> 7 & mask;
    while table[place].0 != vertex && table[place].0 != EMPTY {
        place = (place + 1) & mask;
    }
    place
}
