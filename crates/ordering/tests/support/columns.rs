//! Matrices to match.

use super::{random_numbers, Owned};
use outcore_ordering::SparseColumns;
use std::collections::BTreeMap;

pub struct OwnedColumns {
    pub rows: u32,
    pub starts: Vec<u64>,
    pub indices: Vec<u32>,
    pub sizes: Vec<f64>,
}

impl OwnedColumns {
    pub fn columns(&self) -> SparseColumns<'_> {
        SparseColumns {
            rows: self.rows,
            starts: &self.starts,
            indices: &self.indices,
            sizes: &self.sizes,
        }
    }

    pub fn width(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn entries(&self, column: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.starts[column] as usize..self.starts[column + 1] as usize;
        range.map(|at| (self.indices[at], self.sizes[at]))
    }

    /// Rows and entries by column, the first of each row.
    pub fn of_lists(rows: u32, lists: Vec<Vec<(u32, f64)>>) -> OwnedColumns {
        let mut owned = OwnedColumns {
            rows,
            starts: vec![0],
            indices: Vec::new(),
            sizes: Vec::new(),
        };
        for mut list in lists {
            list.sort_by_key(|entry| entry.0);
            list.dedup_by_key(|entry| entry.0);
            owned.indices.extend(list.iter().map(|entry| entry.0));
            owned.sizes.extend(list.iter().map(|entry| entry.1));
            owned.starts.push(owned.indices.len() as u64);
        }
        owned
    }

    /// Entries by row and column, zeros included.
    pub fn of_fn(rows: u32, columns: u32, mut entry: impl FnMut(usize, usize) -> f64) -> OwnedColumns {
        let mut list = |column| {
            (0..rows)
                .map(|row| (row, entry(row as usize, column as usize)))
                .collect()
        };
        OwnedColumns::of_lists(rows, (0..columns).map(&mut list).collect())
    }

    pub fn of_map(rows: u32, columns: u32, entries: &BTreeMap<(u32, u32), f64>) -> OwnedColumns {
        let mut lists = vec![Vec::new(); columns as usize];
        for (&(row, column), &entry) in entries {
            lists[column as usize].push((row, entry));
        }
        OwnedColumns::of_lists(rows, lists)
    }

    pub fn of_entries(size: u32, entries: &BTreeMap<(u32, u32), f64>) -> OwnedColumns {
        OwnedColumns::of_map(size, size, entries)
    }

    /// A symmetric matrix without diagonal.
    pub fn of_graph(graph: &Owned, entry: impl Fn(u32, u32) -> f64) -> OwnedColumns {
        let mut sizes = Vec::with_capacity(graph.neighbours.len());
        for vertex in 0..graph.vertices() {
            let list = &graph.neighbours[graph.starts[vertex] as usize..graph.starts[vertex + 1] as usize];
            sizes.extend(list.iter().map(|&other| entry(vertex as u32, other)));
        }
        OwnedColumns {
            rows: graph.vertices() as u32,
            starts: graph.starts.clone(),
            indices: graph.neighbours.clone(),
            sizes,
        }
    }

    pub fn mapped(&self, mut entry: impl FnMut(usize, usize, f64) -> f64) -> OwnedColumns {
        let columns = 0..self.width();
        let sizes = columns.flat_map(|column| self.entries(column).map(move |(row, size)| (row, column, size)));
        OwnedColumns {
            rows: self.rows,
            starts: self.starts.clone(),
            indices: self.indices.clone(),
            sizes: sizes
                .map(|(row, column, size)| entry(row as usize, column, size))
                .collect(),
        }
    }

    /// The greater one of each entry and that across the diagonal.
    pub fn with_transpose(&self) -> OwnedColumns {
        let mut entries = BTreeMap::new();
        for column in 0..self.width() as u32 {
            for (row, size) in self.entries(column as usize) {
                for place in [(row, column), (column, row)] {
                    let entry: &mut f64 = entries.entry(place).or_default();
                    *entry = entry.max(size);
                }
            }
        }
        OwnedColumns::of_entries(self.rows, &entries)
    }
}

/// So many entries in each row, in random columns.
pub fn random_columns(size: u32, each: u32, entry: impl Fn(u32) -> f64) -> OwnedColumns {
    let mut random = random_numbers(88_172_645_463_325_252);
    let mut lists = vec![Vec::new(); size as usize];
    for row in 0..size {
        for _ in 0..each {
            lists[random(size.into()) as usize].push((row, entry(random(1 << 32))));
        }
    }
    OwnedColumns::of_lists(size, lists)
}
