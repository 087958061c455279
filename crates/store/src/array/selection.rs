//! Few elements of an array as an array of their own: what lies between them is not read.

use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::region::{copy_lattice, Lattice};
use crate::array::source::{as_inner, Layout, ReadCost, Source};
use crate::base::page::PAGE;
use crate::{Io, Region, StoreError};

/// Evenly spaced positions along one axis, ascending: `start + step · i` for `i < count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Positions {
    pub start: u64,
    pub step: u64,
    pub count: u64,
}

impl Positions {
    /// One past the last position; the start where there is none.
    fn end(&self) -> u64 {
        self.start + self.count.saturating_sub(1) * self.step + u64::from(self.count > 0)
    }
}

impl std::fmt::Display for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.count, self.step) {
            (1, _) => write!(f, "{}", self.start),
            (_, 1) => write!(f, "{}:{}", self.start, self.end()),
            (_, step) => write!(f, "{}:{}:{step}", self.start, self.end()),
        }
    }
}

/// The elements of `inner` at some positions along each axis.
///
/// Invariant: every position lies in `inner`.
#[derive(Debug)]
pub struct Selection {
    inner: Arc<dyn Source>,
    positions: Vec<Positions>,
    shape: Vec<u64>,
    identity: String,
}

impl Selection {
    /// # Errors
    /// `invalid`, for positions outside of the array.
    pub fn new(inner: Arc<dyn Source>, positions: Vec<Positions>) -> Result<Selection, StoreError> {
        let inside = |(at, &length): (&Positions, &u64)| at.count == 0 || at.end() <= length;
        if positions.len() != inner.shape().len() || !positions.iter().zip(inner.shape()).all(inside) {
            return Err(StoreError::Invalid(format!(
                "{}: positions {positions:?} leave shape {:?}",
                inner.name(),
                inner.shape()
            )));
        }
        Ok(Selection {
            shape: positions.iter().map(|at| at.count).collect(),
            identity: format!("{}{}", inner.identity(), listed(&positions)),
            inner,
            positions,
        })
    }

    /// Calls `visit` with each piece of a region: the box of the inner array, and where it goes in the region.
    fn pieces<F>(&self, region: &Region, mut visit: F) -> Result<(), StoreError>
    where
        F: FnMut(&Region, &[u64]) -> Result<(), StoreError>,
    {
        region.check_in(&self.shape, &self.name())?;
        if region.is_empty() {
            return Ok(());
        }
        // Positions that touch are one piece; others are pieces of their own.
        let apart = |axis: usize| self.positions[axis].step > 1;
        let counts: Vec<u64> = (0..self.shape.len())
            .map(|axis| if apart(axis) { region.shape[axis] } else { 1 })
            .collect();
        let mut at = vec![0; counts.len()];
        loop {
            let start = (0..at.len())
                .map(|axis| {
                    let Positions { start, step, .. } = self.positions[axis];
                    start + (region.start[axis] + at[axis]) * step
                })
                .collect();
            let shape = (0..at.len())
                .map(|axis| if apart(axis) { 1 } else { region.shape[axis] })
                .collect();
            visit(&Region::new(start, shape), &at)?;
            let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < counts[axis]) else {
                return Ok(());
            };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }

    /// The box of the inner array that is the whole region, where there is only one.
    fn sole_piece(&self, region: &Region) -> Option<Region> {
        let whole = self
            .positions
            .iter()
            .zip(&region.shape)
            .all(|(at, &length)| at.step == 1 || length == 1);
        let mut sole = None;
        let found = whole.then(|| {
            self.pieces(region, |piece, _| {
                sole = Some(piece.clone());
                Ok(())
            })
        });
        found?.ok()?;
        sole
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.dtype().size()
    }
}

fn listed(positions: &[Positions]) -> String {
    let positions: Vec<String> = positions.iter().map(Positions::to_string).collect();
    format!("[{}]", positions.join(", "))
}

impl Source for Selection {
    as_inner!();

    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn layout(&self) -> Layout {
        Layout::Chunks(vec![1; self.shape.len()])
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        self.pieces(region, |piece, _| self.inner.check_region(piece))
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        if let Some(piece) = self.sole_piece(region) {
            return self.inner.cost(&piece, io);
        }
        let mut all = ReadCost::default();
        self.pieces(region, |piece, _| {
            let one = self.inner.cost(piece, io)?;
            all.read_bytes += one.read_bytes;
            all.frame_bytes = all.frame_bytes.max(one.frame_bytes);
            all.workspace_bytes = all.workspace_bytes.max(one.workspace_bytes);
            Ok(())
        })?;
        // The data, and behind it the piece that is being read.
        all.frame_bytes += self.data_bytes(region).next_multiple_of(PAGE);
        Ok(all)
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        if let Some(piece) = self.sole_piece(region) {
            return self.inner.read(&piece, frame, io);
        }
        let item = self.dtype().size();
        let (data, staging) = frame.split_at_mut(self.data_bytes(region).next_multiple_of(PAGE));
        self.pieces(region, |piece, at| {
            let from = self.inner.read(piece, staging, io)?;
            let source = Lattice::of_box(&piece.shape, &vec![0; at.len()]);
            let target = Lattice::of_box(&region.shape, at);
            copy_lattice(&staging[from..], &source, data, &target, &piece.shape, item);
            Ok(())
        })?;
        Ok(0)
    }
}
