//! Scales and order of a matrix that is factorized, and their place in a factor's file.

use std::sync::Arc;

use outcore_kernels::PivotedKind;
use outcore_store::FactorRecord;

use super::super::analysis::numbers;
use super::super::Analysis;
use super::fronts::PivotedFronts;

/// Scales of rows and columns, and the columns that take their places, in the order of elimination.
#[derive(Clone, Debug)]
pub struct PivotScaling {
    pub rows: Arc<[f64]>,
    pub columns: Arc<[f64]>,
    /// The column that is eliminated as each.
    pub order: Arc<[u32]>,
}

/// The record of a factor with pivoting: that of its analysis, then its kind, scales of rows and columns, the order of columns.
#[derive(Debug)]
pub struct PivotedRecord {
    pub analysis: Arc<Analysis>,
    pub scaling: PivotScaling,
    pub kind: PivotedKind,
}

/// Numbers of kinds in files.
const KINDS: [(PivotedKind, u32); 3] = [
    (PivotedKind::Hermitian, 1),
    (PivotedKind::Symmetric, 2),
    (PivotedKind::Unsymmetric, 3),
];

impl FactorRecord for PivotedRecord {
    fn sections(&self) -> Vec<&[u8]> {
        let number = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map_or(&0, |(_, number)| number);
        let mut sections = self.analysis.sections();
        sections.push(bytemuck::bytes_of(number));
        sections.push(bytemuck::cast_slice(&self.scaling.rows));
        sections.push(bytemuck::cast_slice(&self.scaling.columns));
        sections.push(bytemuck::cast_slice(&self.scaling.order));
        sections
    }
}

impl PivotedRecord {
    /// Sections of the record of a factor with pivoting.
    pub const SECTIONS: usize = 8;

    /// The record of a factor, whose tiles have so many bytes each with elements of a size.
    ///
    /// # Errors
    /// Why the sections are none: numbers that do not go together.
    pub fn restored(sections: &[&[u8]], tiles: &[u64], item: u64) -> Result<PivotedRecord, &'static str> {
        let (analysis, [kind, rows, columns, order]) = sections.split_at(sections.len().saturating_sub(4)) else {
            return Err("the record has other sections");
        };
        let analysis = Analysis::unchecked(analysis)?;
        let number = numbers::<u32>(kind)?;
        let kind = KINDS
            .iter()
            .find(|(_, own)| number == [*own])
            .ok_or("a factor of no known kind")?
            .0;
        let scaling = PivotScaling {
            rows: numbers::<f64>(rows)?.into(),
            columns: numbers::<f64>(columns)?.into(),
            order: numbers::<u32>(order)?.into(),
        };
        let count = analysis.rows() as usize;
        if [scaling.rows.len(), scaling.columns.len(), scaling.order.len()] != [count; 3] {
            return Err("scales are not those of the matrix");
        }
        let mut seen = vec![false; count];
        for &column in scaling.order.iter() {
            match seen.get_mut(column as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err("columns are in no order"),
            }
        }
        let goes_with = |analysis: &Analysis| PivotedFronts::new(analysis, kind, item).factor == tiles;
        let analysis = match goes_with(&analysis) {
            true => Some(analysis),
            false => analysis.as_dense().filter(goes_with),
        };
        Ok(PivotedRecord {
            analysis: Arc::new(analysis.ok_or("the tiles are not those of the record")?),
            scaling,
            kind,
        })
    }
}
