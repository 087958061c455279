//! A file of a matrix whose entries a formula changes: tile by tile, by all threads.

use std::sync::Arc;

use outcore_coding::tiles::put_tiles;
use outcore_store::{PendingTile, RowBound, SparseFile, SparseOutput, TileRowRecord};

use super::formula::Formula;
use super::opened::made_tiles;
use super::operand::SparseOperand;
use super::placing::{Made, MakeTiles, TilePart, TileResult};
use super::SparseMatrix;
use crate::expr::Expr;
use crate::task::{Access, Bound, Recipe};
use crate::{ops, EngineError};

/// A matrix as a result that is stored: a file of its own.
///
/// # Errors
/// As [`Formula::new`].
pub(super) fn changed_file(matrix: &SparseMatrix) -> Result<Expr, EngineError> {
    let formula = match &matrix.formula {
        Some(formula) => formula.clone(),
        None => Arc::new(Formula::identity(matrix.file.matrix().dtype)?),
    };
    let changed = Arc::new(Made::new(Changed::new(matrix.clone(), formula)));
    Ok(ops::algorithm(changed, std::slice::from_ref(&matrix.tiles))?.swap_remove(0))
}

/// A matrix of changed entries.
#[derive(Clone, Debug)]
struct Changed {
    file: Arc<SparseFile>,
    formula: Arc<Formula>,
    result: TileResult,
}

fn records_of(file: &SparseFile, tile: usize) -> impl Iterator<Item = &TileRowRecord> {
    file.tile_rows(tile).map(|(record, _)| record)
}

impl Changed {
    fn new(matrix: SparseMatrix, formula: Arc<Formula>) -> Changed {
        let file = matrix.file.clone();
        let recipe = SparseOperand::Stored(matrix).described(Recipe::new("sparse entries"));
        let bound = |record: &TileRowRecord| RowBound {
            number: record.number,
            bytes: formula.row_bytes(&file, record),
            entries: record.entries,
        };
        let rows = (0..file.tiles()).map(|tile| records_of(&file, tile).map(bound).collect());
        let is_exact = file.is_tiled() && formula.keeps_all();
        let output = SparseOutput::new(file.matrix(), formula.dtype(), rows.collect(), is_exact);
        Changed {
            result: TileResult::new(output, 1, Some(recipe)),
            file,
            formula,
        }
    }
}

impl MakeTiles for Changed {
    fn label(&self) -> String {
        "sparse entries".into()
    }
    fn key(&self) -> Vec<u8> {
        self.formula.key().to_vec()
    }
    fn result(&self) -> &TileResult {
        &self.result
    }
    fn operands(&self, TilePart { tile, .. }: TilePart, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, tile, Access::Read);
    }
    fn workspace_bytes(&self, TilePart { tile, .. }: TilePart) -> u64 {
        let rows = records_of(&self.file, tile as usize);
        let bytes = rows.map(|record| self.formula.desk_bytes(&self.file, [record].into_iter()));
        bytes.max().unwrap_or(0)
    }
    fn operations(&self) -> f64 {
        self.file.matrix().entries as f64
    }
    fn make(
        &self,
        TilePart { tile, .. }: TilePart,
        bound: &mut Bound<'_>,
        workspace: &mut [u8],
    ) -> Result<(), EngineError> {
        let result_item = self.formula.item();
        let rows = self.result.output.rows[tile as usize].len();
        let mut pending = PendingTile::new(&mut *bound.writes[0], rows);
        for (record, place) in self.file.tile_rows(tile as usize) {
            let mut desk = self.formula.desk(&mut *workspace, record.entries);
            let made = made_tiles(&self.file, record, &bound.reads[0][place], (&self.formula, &mut desk))?;
            if made.is_empty() {
                continue;
            }
            let bytes = put_tiles(&made, result_item, pending.row());
            let entries = made.iter().map(|tile| tile.entries as u64).sum();
            pending.add(record.number, bytes, entries);
        }
        Ok(())
    }
}
