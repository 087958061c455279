//! The arrays of a plan: stored ones, and those that are held as tiles.

use std::collections::HashMap;
use std::sync::Arc;

use outcore_store::{Layout, Region, Source};

use super::gather::ArrayId;
use crate::expr::{grid, Expr, Op};

/// Where an array's tiles come from.
#[derive(Clone, Debug)]
pub enum ArrayKind {
    /// Read from disk.
    Source(Arc<dyn Source>),
    /// The caller's memory, borrowed.
    Memory(Arc<dyn Source>),
    /// Computed by a pass.
    Computed,
}

#[derive(Clone, Debug)]
pub struct ArrayInfo {
    pub node: Expr,
    pub kind: ArrayKind,
    pub counts: Vec<u64>,
    /// Outputs (positions in the request) that this array's tiles are written to.
    pub outputs: Vec<usize>,
}

impl ArrayInfo {
    pub fn tiles(&self) -> u64 {
        match self.kind {
            ArrayKind::Memory(_) => 0,
            _ => self.counts.iter().fold(1, |tiles, &count| tiles.saturating_mul(count)),
        }
    }

    /// Bytes of each tile, where tiles differ in size and are less than the grid says.
    pub fn listed(&self) -> Option<Arc<[u64]>> {
        match (&self.node.op, &self.kind) {
            (Op::Algorithm(key, result), _) => key.0.listed(*result),
            (_, ArrayKind::Source(source)) => source.listed(),
            _ => None,
        }
    }

    /// Bytes of the tile that is a region of the array.
    pub fn tile_bytes(&self, index: u64, region: &Region) -> u64 {
        match self.listed() {
            Some(listed) => listed[index as usize],
            None => region.elements() * self.node.dtype.size() as u64,
        }
    }

    /// The source, when its tiles cut its rows, so that neighbours are better read together.
    pub fn grouped_source(&self) -> Option<&Arc<dyn Source>> {
        match &self.kind {
            ArrayKind::Source(source) if source.layout() == Layout::RowMajor => {
                let cut = self.counts.len() >= 2 && self.counts.last().is_some_and(|&count| count > 1);
                Some(source).filter(|_| cut)
            }
            _ => None,
        }
    }

    pub fn label(&self) -> String {
        match &self.kind {
            ArrayKind::Computed => format!("{}#{}", self.node.label(), self.node.id),
            ArrayKind::Source(source) | ArrayKind::Memory(source) => source.name(),
        }
    }
}

/// Arrays by node, filled as passes are compiled.
#[derive(Default)]
pub struct ArrayTable {
    pub arrays: Vec<ArrayInfo>,
    by_node: HashMap<u64, ArrayId>,
}

impl ArrayTable {
    pub fn id(&mut self, node: &Expr, materialized: bool) -> ArrayId {
        *self.by_node.entry(node.id).or_insert_with(|| {
            let kind = match &node.op {
                Op::Source(key) if !materialized => match key.0.layout() {
                    Layout::Memory => ArrayKind::Memory(key.0.clone()),
                    _ => ArrayKind::Source(key.0.clone()),
                },
                _ => ArrayKind::Computed,
            };
            let counts = grid::counts(&node.shape, &node.tile);
            self.arrays.push(ArrayInfo {
                node: node.clone(),
                kind,
                counts,
                outputs: vec![],
            });
            self.arrays.len() as ArrayId - 1
        })
    }
}
