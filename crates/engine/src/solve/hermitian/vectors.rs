//! Eigenvectors in bands of columns: those of the tridiagonal matrix, turned by the reflectors of all steps, the last first.

use std::sync::Arc;

use outcore_kernels::{Hermitian, MergeSizes, TileLayout};

use super::chases::Tridiagonal;
use super::cut::{EigenSet, HermitianCut, VECTORS};
use crate::solve::band::by_bands;
use crate::task::{Access, Bound, TaskOrder, Work};
use crate::EngineError;

/// A part of the work on a band of columns.
#[derive(Clone, Copy, Debug)]
enum VectorStep {
    /// Rows of vectors of the tridiagonal matrix, by a tile of those of its half.
    Merge {
        row: u32,
        inner: u32,
    },
    /// Turns two tiles of rows by a tile of reflectors.
    Sweeps {
        row: u32,
        tile: u32,
    },
    Blocks {
        row: u32,
        step: u32,
    },
    /// The projection on reflectors of a column of tiles, and what that takes from rows.
    Project {
        column: u32,
        row: u32,
    },
    Subtract {
        column: u32,
        row: u32,
    },
}

#[derive(Debug)]
pub(super) struct EigenVectors {
    cut: Arc<HermitianCut>,
    kernels: Hermitian,
    steps: Vec<VectorStep>,
}

impl EigenVectors {
    pub fn new(cut: Arc<HermitianCut>, kernels: Hermitian) -> EigenVectors {
        let (tiles, mut steps) = (cut.tiles(), vec![]);
        for row in 0..tiles {
            let inner = cut.half(cut.whole(), row).tiles.clone();
            steps.extend(inner.map(|inner| VectorStep::Merge { row, inner }));
        }
        for row in (0..tiles).rev() {
            let count = cut.record().tiles(row as usize) as u32;
            steps.extend((0..count).map(|tile| VectorStep::Sweeps { row, tile }));
        }
        for row in (0..tiles).rev() {
            let count = cut.chase_steps(row as usize) as u32;
            steps.extend((0..count).map(|step| VectorStep::Blocks { row, step }));
        }
        for column in (0..tiles - 1).rev() {
            steps.extend((column + 1..tiles).map(|row| VectorStep::Project { column, row }));
            steps.extend((column + 1..tiles).map(|row| VectorStep::Subtract { column, row }));
        }
        EigenVectors { cut, kernels, steps }
    }

    /// The band of columns and the step in it.
    fn step(&self, task: u64) -> (u64, VectorStep) {
        let steps = self.steps.len() as u64;
        (task / steps, self.steps[(task % steps) as usize])
    }

    /// Tiles of rows that a tile of reflectors turns.
    fn turned(&self, first: u32) -> std::ops::Range<u32> {
        first..self.cut.tiles().min(first + 2)
    }

    fn width(&self, band: u64) -> usize {
        self.cut.band_columns(band).len()
    }
}

impl Work for EigenVectors {
    fn label(&self) -> String {
        "eigenvectors".into()
    }
    fn tasks(&self) -> u64 {
        self.steps.len() as u64 * self.cut.bands()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, step) = self.step(task);
        let cut = &self.cut;
        let tile = |row: u32| u64::from(row) * cut.bands() + band;
        let mut turn = |set: EigenSet, number: u64, first: u32| {
            each(cut.set(set), number, Access::Read);
            self.turned(first)
                .for_each(|row| each(VECTORS, tile(row), Access::Update));
        };
        match step {
            VectorStep::Merge { row, inner } => {
                let half = cut.half(cut.whole(), row);
                each(cut.set(EigenSet::Parts), half.vectors(row, inner), Access::Read);
                each(cut.set(EigenSet::Records), cut.whole().record.into(), Access::Read);
                each(cut.set(EigenSet::Tridiagonal), 0, Access::Read);
                let is_first = inner == half.tiles.start;
                let access = if is_first { Access::Create } else { Access::Update };
                each(VECTORS, tile(row), access);
            }
            VectorStep::Sweeps { row, tile } => {
                let number = cut.sweeps(row as usize, tile as usize);
                turn(EigenSet::Sweeps, number, row + tile);
            }
            VectorStep::Blocks { row, step } => {
                turn(EigenSet::Blocks, cut.blocks(row as usize, step as usize), row + step);
            }
            VectorStep::Project { column, row } => {
                each(cut.set(EigenSet::Tiles), cut.lower(row, column), Access::Read);
                each(VECTORS, tile(row), Access::Read);
                if row + 1 == cut.tiles() {
                    each(cut.set(EigenSet::Triangles), column.into(), Access::Read);
                }
                let access = if row == column + 1 {
                    Access::Create
                } else {
                    Access::Update
                };
                each(cut.set(EigenSet::Projections), cut.projection(column, band), access);
            }
            VectorStep::Subtract { column, row } => {
                each(cut.set(EigenSet::Tiles), cut.lower(row, column), Access::Read);
                each(
                    cut.set(EigenSet::Projections),
                    cut.projection(column, band),
                    Access::Read,
                );
                each(VECTORS, tile(row), Access::Update);
            }
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        let bytes = (self.cut.rows() * self.cut.side() * self.cut.item()) as u64;
        by_bands(self.steps.len() as u32, self.cut.bands(), bytes, memory)
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let (band, step) = self.step(task);
        let width = self.width(band);
        let bytes = match step {
            VectorStep::Merge { row, inner } => {
                let own = MergeSizes::product_bytes([self.cut.height(inner), width]);
                own + MergeSizes::product_bytes([self.cut.height(row), width])
            }
            VectorStep::Sweeps { .. } | VectorStep::Blocks { .. } => {
                self.kernels.turn_bytes(self.cut.sizes()[1], width)
            }
            VectorStep::Project { .. } | VectorStep::Subtract { .. } => 0,
        };
        bytes as u64
    }
    fn record_bytes(&self) -> u64 {
        size_of_val(&self.steps[..]) as u64
    }
    fn operations(&self) -> f64 {
        let columns = self.cut.columns();
        let (n, m) = (self.cut.rows() as f64, (columns.end - columns.start) as f64);
        // The product, and those with the reflectors of three steps, of which blocks of sweeps are a quarter longer than they are.
        7.5 * n * n * m
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, step) = self.step(task);
        let (cut, kernels, layout) = (&self.cut, &self.kernels, TileLayout::Rows);
        let (width, side) = (self.width(band), cut.side());
        match step {
            VectorStep::Merge { row, inner } => self.merge([row, inner], band, bound, workspace),
            VectorStep::Sweeps { row, tile } => {
                let record = cut.record();
                let own = (row as usize * side, tile as usize * record.steps(), bound.reads[0]);
                let to = ((row + tile) as usize * side, width, &mut bound.writes[..]);
                kernels.turn_sweeps(&record, own, to, workspace);
            }
            VectorStep::Blocks { row, step } => {
                let steps = cut.blocks_of(row as usize, step as usize);
                let to = ((row + step) as usize * side, width, &mut bound.writes[..]);
                kernels.turn_blocks(&steps, bound.reads[0], to, workspace);
            }
            VectorStep::Project { column, row } => {
                let (count, is_first) = (cut.reflectors(column), row == column + 1);
                let of = (bound.reads[1], &mut *bound.writes[0], layout);
                kernels.project(bound.reads[0], of, width, count, is_first);
                if let Some(t) = bound.reads.get(2) {
                    kernels.left_solve(t, (bound.writes[0], layout), width, count, false);
                }
            }
            VectorStep::Subtract { column, .. } => {
                let to = (&mut *bound.writes[0], layout);
                kernels.subtract(bound.reads[0], bound.reads[1], to, width, cut.reflectors(column));
            }
        }
        Ok(())
    }
}

impl EigenVectors {
    fn merge(&self, [row, inner]: [u32; 2], band: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) {
        let cut = &self.cut;
        let Some(sizes) = cut.merge(cut.whole()) else {
            return;
        };
        let (width, rows) = (self.width(band), cut.rows_of(row));
        let is_first = inner == cut.half(cut.whole(), row).tiles.start;
        let (own, rest) = workspace.split_at_mut(MergeSizes::product_bytes([rows.len(), width]));
        let product = MergeSizes::numbers(own, rows.len() * width);
        sizes.product(
            bound.reads[0],
            (bound.reads[1], cut.rows_of(inner), cut.band_columns(band)),
            (&mut *product, TileLayout::Rows),
            true,
            rest,
        );
        let directions = Tridiagonal::new(cut, bound.reads[2]).directions;
        let own = &directions[rows.start * cut.item()..rows.end * cut.item()];
        self.kernels.add_scaled(own, product, bound.writes[0], width, is_first);
    }
}
