//! What becomes of each column.

use outcore_dtype::DType;
use outcore_kernels::sort::KeyOrder;

use crate::task::Grid;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKind {
    /// Its elements in order.
    Sorted,
    /// Where the elements in order were.
    Positions,
    /// The elements on both sides of these places, from 0 to 1, in the order of those that are not NaN.
    Quantiles(Vec<f64>),
    /// The elements on both sides of the middle of each of so many groups; `omit` passes NaN over.
    Middles { groups: u64, omit: bool },
}

impl ColumnKind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            ColumnKind::Sorted => "sort",
            ColumnKind::Positions => "argsort",
            ColumnKind::Quantiles(_) => "quantile",
            ColumnKind::Middles { .. } => "median of groups",
        }
    }

    /// The part of a key that differs between kinds and orders.
    pub(super) fn key(&self, order: KeyOrder) -> Vec<u8> {
        let own = match self {
            ColumnKind::Sorted | ColumnKind::Positions => vec![],
            ColumnKind::Quantiles(fractions) => fractions.iter().flat_map(|fraction| fraction.to_ne_bytes()).collect(),
            ColumnKind::Middles { groups, omit } => [&groups.to_le_bytes()[..], &[u8::from(*omit)]].concat(),
        };
        [&[u8::from(order.descending())], &own[..]].concat()
    }

    /// How the results are cut where `x` has such a grid.
    pub(super) fn results(&self, x: &Grid) -> Vec<Grid> {
        let rows_of = |rows: u64, dtype| Grid {
            shape: [&[rows], &x.shape[1..]].concat(),
            tile: [&[rows.max(1)], &x.tile[1..]].concat(),
            dtype,
        };
        match self {
            ColumnKind::Sorted => vec![x.clone()],
            ColumnKind::Positions => vec![Grid {
                dtype: DType::I64,
                ..x.clone()
            }],
            ColumnKind::Quantiles(fractions) => {
                let asked = fractions.len() as u64;
                let numbers = Grid {
                    shape: x.shape[1..].to_vec(),
                    tile: x.tile[1..].to_vec(),
                    dtype: DType::I64,
                };
                let sides = rows_of(asked, x.dtype);
                vec![sides.clone(), sides, rows_of(asked, DType::F64), numbers]
            }
            ColumnKind::Middles { groups, .. } => vec![rows_of(*groups, x.dtype); 2],
        }
    }
}
