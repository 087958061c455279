//! The entries of a matrix as columns: an array for each formula, of an element for each entry, in the order of the file.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Interval, SparseFile};

use super::formula::Formula;
use super::opened::made_tiles;
use super::SparseMatrix;
use crate::expr::{grid, Expr};
use crate::ops;
use crate::task::{Access, Algorithm, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// An array for each formula, all of which keep all entries.
///
/// # Errors
/// Formulas that leave entries out or have no values; more entries than can be addressed.
pub fn entry_columns(matrix: &SparseMatrix, formulas: Vec<Arc<Formula>>) -> Result<Vec<Expr>, EngineError> {
    let file = &matrix.file;
    for formula in &formulas {
        formula.check(file.matrix())?;
        if !formula.keeps_all() || formula.dtype().is_none() {
            return Err(EngineError::Argument(
                "sparse: a column has a value of each entry".into(),
            ));
        }
    }
    let counts: Vec<u64> = (0..file.tiles()).map(|tile| matrix.entries_of(tile)).collect();
    let mut before = vec![0];
    before.extend(counts.iter().scan(0u64, |sum, count| {
        *sum += count;
        Some(*sum)
    }));
    let length = before[before.len() - 1];
    let types: Vec<DType> = formulas.iter().filter_map(|formula| formula.dtype()).collect();
    let column = |dtype: &DType| Grid {
        shape: vec![length],
        tile: grid::default_tile(&[length], *dtype),
        dtype: *dtype,
    };
    let bytes_of = |dtype: &DType| -> Arc<[u64]> { counts.iter().map(|count| count * dtype.size() as u64).collect() };
    let lengths: Vec<Arc<[u64]>> = types.iter().map(bytes_of).collect();
    let columns = EntryColumns {
        file: file.clone(),
        results: (types.iter().map(column))
            .chain(lengths.iter().map(|lengths| Grid::listed(lengths)))
            .collect(),
        formulas,
        lengths,
        before: before.into(),
    };
    let count = columns.formulas.len();
    let mut nodes = ops::algorithm(Arc::new(columns), std::slice::from_ref(&matrix.tiles))?;
    nodes.truncate(count);
    Ok(nodes)
}

/// Sets: the tiles, the columns, and what the tiles give of each column.
#[derive(Clone, Debug)]
struct EntryColumns {
    file: Arc<SparseFile>,
    formulas: Vec<Arc<Formula>>,
    results: Vec<Grid>,
    /// Bytes that each tile gives of each column.
    lengths: Vec<Arc<[u64]>>,
    /// Entries before each tile, and in all.
    before: Arc<[u64]>,
}

impl Algorithm for EntryColumns {
    fn name(&self) -> String {
        "sparse columns".into()
    }
    fn key(&self) -> Vec<u8> {
        self.formulas
            .iter()
            .flat_map(|formula| formula.key().to_vec())
            .collect()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn recipe(&self) -> Option<Recipe> {
        let recipe = Recipe::new("sparse columns").word(self.formulas.len() as u64);
        let formulas = self.formulas.iter();
        Some(formulas.fold(recipe, |recipe, formula| formula.described(recipe)))
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        let column = result.checked_sub(self.formulas.len())?;
        Some(self.lengths[column].clone())
    }
    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let columns = self.formulas.len();
        let mut works: Vec<Arc<dyn Work>> = vec![Arc::new(EntryWalk(self.clone()))];
        for column in 0..columns {
            works.push(Arc::new(JoinColumn {
                before: self.before.clone(),
                column: self.results[column].clone(),
                sets: [1 + columns + column, 1 + column],
            }));
        }
        works
    }
}

/// Tile by tile: what formulas give of its entries.
#[derive(Clone, Debug)]
struct EntryWalk(EntryColumns);

impl Work for EntryWalk {
    fn label(&self) -> String {
        "sparse columns".into()
    }
    fn tasks(&self) -> u64 {
        self.0.file.tiles() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, task, Access::Read);
        let columns = self.0.formulas.len();
        (0..columns).for_each(|column| each(1 + columns + column, task, Access::Create));
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let desk = |formula: &Arc<Formula>| {
            let rows = self.0.file.tile_rows(task as usize);
            let bytes = rows.map(|(record, _)| formula.desk_bytes(&self.0.file, [record].into_iter()));
            bytes.max().unwrap_or(0)
        };
        self.0.formulas.iter().map(desk).max().unwrap_or(0)
    }
    fn operations(&self) -> f64 {
        self.0.before[self.0.before.len() - 1] as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let file = &self.0.file;
        for (formula, out) in self.0.formulas.iter().zip(&mut bound.writes) {
            let mut done = 0;
            for (record, place) in file.tile_rows(task as usize) {
                let mut desk = formula.desk(&mut *workspace, record.entries);
                for tile in made_tiles(file, record, &bound.reads[0][place], (formula, &mut desk))? {
                    out[done..done + tile.values.len()].copy_from_slice(tile.values);
                    done += tile.values.len();
                }
            }
        }
        Ok(())
    }
}

/// Joins what tiles give of a column.
#[derive(Clone, Debug)]
struct JoinColumn {
    before: Arc<[u64]>,
    column: Grid,
    /// The pieces, and the column.
    sets: [usize; 2],
}

impl JoinColumn {
    fn elements(&self, task: u64) -> Interval {
        self.column.region(task)[0]
    }

    /// The pieces that have some of the elements.
    fn pieces(&self, elements: Interval) -> std::ops::Range<usize> {
        let first = self.before.partition_point(|before| *before <= elements.start) - 1;
        first..self.before.partition_point(|before| *before < elements.end())
    }
}

impl Work for JoinColumn {
    fn label(&self) -> String {
        "join columns".into()
    }
    fn tasks(&self) -> u64 {
        self.column.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        for piece in self.pieces(self.elements(task)) {
            each(self.sets[0], piece as u64, Access::Read);
        }
        each(self.sets[1], task, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.column.shape[0] as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let elements = self.elements(task);
        let item = self.column.dtype.size();
        for (piece, bytes) in self.pieces(elements).zip(&tiles.reads) {
            let own = Interval::between(self.before[piece], self.before[piece + 1]);
            let shared = own.intersection(elements);
            let from = (shared.start - own.start) as usize * item;
            let to = (shared.start - elements.start) as usize * item;
            let length = shared.length as usize * item;
            tiles.writes[0][to..to + length].copy_from_slice(&bytes[from..from + length]);
        }
        Ok(())
    }
}
