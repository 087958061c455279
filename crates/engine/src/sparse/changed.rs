//! A file of a matrix whose entries a formula changes: tile by tile, by all threads.

use std::sync::Arc;

use outcore_coding::tiles::{put_tiles, Tile, TileRow};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_store::{PendingTile, RowBound, SparseFile, SparseOutput, TileRowRecord};

use super::formula::{Formula, RowPlace};
use super::multiply::listed_grid;
use super::operand::SparseOperand;
use super::placing::{ends_of, Made, MakeTiles, TilePart, PLACED};
use super::SparseMatrix;
use crate::expr::Expr;
use crate::task::{Access, Bound, Grid, Recipe};
use crate::{ops, EngineError};

/// The set of the tiles that are made, behind that of the tiles that are read.
const MADE: usize = 1;

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
    /// How it is built again.
    recipe: Recipe,
    output: SparseOutput,
    results: [Grid; 2],
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
            results: [listed_grid(&output.lengths), ends_of(file.tiles() as u64)],
            output,
            file,
            formula,
            recipe,
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
    fn recipe(&self) -> Option<Recipe> {
        Some(self.recipe.clone())
    }
    fn output(&self) -> &SparseOutput {
        &self.output
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn tiles(&self) -> u64 {
        self.file.tiles() as u64
    }
    fn operands(&self, TilePart { tile, .. }: TilePart, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, tile, Access::Read);
    }
    fn sets(&self) -> [usize; 2] {
        [MADE, MADE + PLACED]
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
        let item = self.file.matrix().dtype.map_or(0, |dtype| dtype.size());
        let result_item = self.formula.dtype().map_or(0, |dtype: DType| dtype.size());
        let rows = self.output.rows[tile as usize].len();
        let mut pending = PendingTile::new(&mut *bound.writes[0], rows);
        for (record, place) in self.file.tile_rows(tile as usize) {
            let malformed = |Malformed(what): Malformed| {
                let number = record.number;
                EngineError::Store(self.file.malformed(format!("{what}, in tile row {number}")))
            };
            let row = TileRow::new(&bound.reads[0][place], item).map_err(malformed)?;
            let tiles: Result<Vec<Tile<'_>>, Malformed> = row.tiles().collect();
            let mut desk = self.formula.desk(&mut *workspace, record.entries);
            let place = RowPlace::of(&self.file, record.number);
            let tiles = tiles.map_err(malformed)?.into_iter();
            let made = self.formula.apply(tiles, place, &mut desk, &malformed)?;
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
