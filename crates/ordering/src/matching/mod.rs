//! Matchings of largest product in sparse matrices, and the scales that make matched entries 1 and all others at most
//! 1.
//!
//! `assignment` holds the linear program in logarithms; `solve` goes from `greedy`, its first part, by way of `paths`,
//! which augments along shortest paths, to `settle`, which gives scales to rows and columns without partner.
//! `symmetric` splits cycles into pairs; `paired` is the graph whose vertices are pairs.

mod assignment;
mod columns;
mod greedy;
mod heap;
mod logarithm;
mod paired;
mod paths;
mod settle;
mod solve;
mod symmetric;

pub use columns::SparseColumns;
pub use paired::{compress, PairedGraph};
pub use symmetric::{symmetric_matching, SymmetricMatching};

use crate::watch::{OrderingWatch, Patience, Stopped};
use assignment::Assignment;
use columns::STEPS_PER_VISIT;
use logarithm::{exp2, ScaleRange};
use solve::solve;

/// A matching of rows and columns, and scales r and c of rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// For each column the row of its matched entry, or `u32::MAX`.
    pub row_of_column: Vec<u32>,
    pub row_scale: Vec<f64>,
    pub column_scale: Vec<f64>,
    /// Number of matched columns: the structural rank.
    pub matched: u32,
}

/// Matches the rows and columns of a matrix so that the product of the matched entries is largest, and scales the
/// matrix by the duals (Duff, Koster, "On algorithms for permuting large entries to the diagonal of a sparse matrix",
/// SIAM J. Matrix Anal. Appl. 22 (2001)).
///
/// Scales are positive and finite. Scaled entries `r[i] |a[i,j]| c[j]` are at most `1 + 1e-12`, and matched ones are 1
/// within `1e-12`. Some matrices have no such scales in double precision, such as a long bidiagonal one whose entries
/// beside the diagonal are the larger ones: scales are then within 2^-1000 and 2^500, scaled entries at most 1 if no
/// size is above 2^500, and some matched ones below 1.
///
/// A structurally singular matrix gets a matching of as many entries as there can be, of largest product among those of
/// the same rows and columns. Rows and columns without partner get the largest scale that their entries allow, or 1.
///
/// Time is O(n m log n) at worst for n rows and m entries; with 5 random entries in each of 10^6 rows about 5 us a row
/// (`examples/matching.rs`).
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If the matrix has 2^31 rows or columns or more, or an index that is no row.
pub fn match_entries(columns: SparseColumns<'_>, watch: &OrderingWatch<'_>) -> Result<Matching, Stopped> {
    let patience = Patience::new(watch.stop);
    let Assignment {
        rows,
        mut column_duals,
        row_of_column,
        matched,
        ..
    } = solve(columns, None, &patience)?;
    let mut row_scale: Vec<f64> = rows.iter().map(|row| row.dual).collect();
    drop(rows);
    let range = ScaleRange::of_products(&row_scale, &column_duals);
    for dual in &mut row_scale {
        patience.work(STEPS_PER_VISIT)?;
        *dual = exp2(range.fit(*dual, 1.0));
    }
    for dual in &mut column_duals {
        patience.work(STEPS_PER_VISIT)?;
        *dual = exp2(range.fit(*dual, -1.0));
    }
    Ok(Matching {
        row_of_column,
        row_scale,
        column_scale: column_duals,
        matched,
    })
}
