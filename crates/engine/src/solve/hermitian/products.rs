//! Vectors of the parts of the tridiagonal matrix but the whole: those of the halves times the matrix of a record.

use std::sync::Arc;

use outcore_kernels::{MergeSizes, TileLayout};

use super::cut::{EigenSet, HermitianCut, TridiagonalPart};
use crate::task::{Access, Bound, Work};
use crate::EngineError;

#[derive(Debug)]
pub(super) struct HalfVectors {
    cut: Arc<HermitianCut>,
    /// Parts with halves, and the number of the first task of each.
    parts: Vec<(u32, u64)>,
    count: u64,
}

/// A tile of the vectors of a part, by a tile of those of its half.
struct HalfProduct<'a> {
    part: &'a TridiagonalPart,
    half: &'a TridiagonalPart,
    row: u32,
    column: u32,
    inner: u32,
}

impl HalfVectors {
    pub fn new(cut: Arc<HermitianCut>) -> HalfVectors {
        let (mut parts, mut count) = (vec![], 0);
        let all = cut.parts();
        for (number, part) in all[..all.len() - 1].iter().enumerate() {
            if let Some(halves) = part.halves {
                parts.push((number as u32, count));
                let inner = |half: u32| u64::from(all[half as usize].tiles.end - all[half as usize].tiles.start);
                let across = u64::from(part.tiles.end - part.tiles.start);
                count += halves.map(|half| inner(half).pow(2)).iter().sum::<u64>() * across;
            }
        }
        HalfVectors { cut, parts, count }
    }

    fn product(&self, task: u64) -> HalfProduct<'_> {
        let (number, start) = self.parts[self.parts.partition_point(|&(_, start)| start <= task) - 1];
        let part = &self.cut.parts()[number as usize];
        let mut at = task - start;
        let across = u64::from(part.tiles.end - part.tiles.start);
        let mut half = self.cut.half(part, part.tiles.start);
        let tiles = |half: &TridiagonalPart| u64::from(half.tiles.end - half.tiles.start);
        let upper = tiles(half).pow(2) * across;
        if at >= upper {
            at -= upper;
            half = self.cut.half(part, part.tiles.end - 1);
        }
        let inner = tiles(half);
        HalfProduct {
            part,
            half,
            row: half.tiles.start + (at / (inner * across)) as u32,
            column: part.tiles.start + (at / inner % across) as u32,
            inner: half.tiles.start + (at % inner) as u32,
        }
    }
}

impl Work for HalfVectors {
    fn label(&self) -> String {
        "vectors of parts".into()
    }
    fn tasks(&self) -> u64 {
        self.count
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (cut, of) = (&self.cut, self.product(task));
        let parts = cut.set(EigenSet::Parts);
        each(parts, of.half.vectors(of.row, of.inner), Access::Read);
        each(cut.set(EigenSet::Records), of.part.record.into(), Access::Read);
        let is_first = of.inner == of.half.tiles.start;
        let access = if is_first { Access::Create } else { Access::Update };
        each(parts, of.part.vectors(of.row, of.column), access);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let of = self.product(task);
        MergeSizes::product_bytes([of.inner, of.column].map(|tile| self.cut.height(tile))) as u64
    }
    fn operations(&self) -> f64 {
        // A whole of n has n³, its halves a quarter of that together, and so on.
        (self.cut.rows() as f64).powi(3) / 3.0
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (cut, of) = (&self.cut, self.product(task));
        let Some(sizes) = cut.merge(of.part) else {
            return Ok(());
        };
        let first = cut.rows_of_tiles(&of.part.tiles).start;
        let own = |tile: u32| {
            let rows = cut.rows_of(tile);
            rows.start - first..rows.end - first
        };
        sizes.product(
            bound.reads[0],
            (bound.reads[1], own(of.inner), own(of.column)),
            (bytemuck::cast_slice_mut(bound.writes[0]), TileLayout::Columns),
            of.inner == of.half.tiles.start,
            workspace,
        );
        Ok(())
    }
}
