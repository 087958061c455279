//! Matchings of symmetric matrices: one scale for row and column, and cycles split into pairs (Duff, Pralet,
//! "Strategies for scaling and pivoting for sparse symmetric indefinite problems", SIAM J. Matrix Anal. Appl. 27
//! (2005)).

use super::assignment::Assignment;
use super::columns::{SparseColumns, NONE, STEPS_PER_VISIT};
use super::logarithm::{exp2, ScaleRange};
use super::solve::solve;
use crate::watch::{OrderingWatch, Patience, Stopped};

/// Scales of a symmetric matrix, and its vertices alone or in pairs, for pivots of order 1 and 2.
#[derive(Clone, Debug, PartialEq)]
pub struct SymmetricMatching {
    pub scale: Vec<f64>,
    /// For each vertex the other of its pair, or itself.
    pub partner: Vec<u32>,
    /// Number of vertices in matched rows: the structural rank.
    pub matched: u32,
}

/// Matches a symmetric matrix, given by all entries of both triangles, as [`match_entries`](crate::match_entries) does,
/// and splits the cycles of the matching into pairs.
///
/// Scales are `s[i] = sqrt(r[i] c[i])` of the matching's. Scaled entries `s[i] |a[i,j]| s[j]` are at most `1 + 1e-12`,
/// and those of matched pairs are 1 within `1e-12`. Where double precision has no such scales, theirs are within
/// 2^-1000 and 2^500, and scaled entries at most 1 if no size is above 2^500.
///
/// A cycle of one vertex leaves it alone, one of two is a pair. The longer ones of even length have two splittings,
/// whose products are equal in exact arithmetic, as all scaled entries of cycles are 1; that with fewer neighbours of
/// its pairs is taken. Odd cycles leave the vertex alone whose scaled diagonal entry is largest.
///
/// A structurally singular matrix is matched within the rows of a largest matching, where it is not singular (section 4
/// of the paper). Other vertices are alone, and get the largest scale that their entries allow, or 1.
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If the matrix is not square, has 2^31 rows or more, or an index that is no row.
pub fn symmetric_matching(columns: SparseColumns<'_>, watch: &OrderingWatch<'_>) -> Result<SymmetricMatching, Stopped> {
    let patience = Patience::new(watch.stop);
    assert_eq!(columns.rows as usize, columns.columns(), "a symmetric matrix is square");
    let mut assignment = solve(columns, None, &patience)?;
    if assignment.matched < columns.rows {
        let kept: Vec<bool> = assignment.rows.iter().map(|row| row.column != NONE).collect();
        drop(assignment);
        assignment = solve(columns, Some(&kept), &patience)?;
    }
    let Assignment {
        rows,
        column_duals: mut logarithms,
        row_of_column,
        matched,
        ..
    } = assignment;
    for (logarithm, row) in logarithms.iter_mut().zip(&rows) {
        patience.work(1)?;
        *logarithm = (*logarithm + row.dual) / 2.0;
    }
    drop(rows);
    scale_left(columns, &row_of_column, &mut logarithms, &patience)?;
    let partner = Splitting::new(columns, &row_of_column, &logarithms).split(&patience)?;
    let range = ScaleRange::of_squares(&logarithms);
    for logarithm in &mut logarithms {
        patience.work(STEPS_PER_VISIT)?;
        *logarithm = exp2(range.fit(*logarithm, 1.0));
    }
    Ok(SymmetricMatching {
        scale: logarithms,
        partner,
        matched,
    })
}

/// Gives each vertex without partner the largest scale that its entries with scaled vertices allow.
fn scale_left(
    matrix: SparseColumns<'_>,
    row_of_column: &[u32],
    logarithms: &mut [f64],
    patience: &Patience<'_>,
) -> Result<(), Stopped> {
    for (logarithm, _) in logarithms.iter_mut().zip(row_of_column).filter(|(_, &row)| row == NONE) {
        *logarithm = f64::INFINITY;
    }
    for vertex in 0..logarithms.len() {
        if logarithms[vertex] != f64::INFINITY {
            continue;
        }
        patience.work(STEPS_PER_VISIT * matrix.rows_of(vertex).len() + 1)?;
        let bounds = matrix.logarithms_of(vertex).filter_map(|(row, size)| {
            let is_scaled = logarithms[row] != f64::INFINITY;
            if row == vertex {
                Some(-size / 2.0)
            } else {
                is_scaled.then(|| -size - logarithms[row])
            }
        });
        let bound = bounds.fold(f64::INFINITY, f64::min);
        logarithms[vertex] = if bound == f64::INFINITY { 0.0 } else { bound };
    }
    Ok(())
}

/// The split of a matching's cycles into pairs.
struct Splitting<'a> {
    matrix: SparseColumns<'a>,
    row_of_column: &'a [u32],
    logarithms: &'a [f64],
    partner: Vec<u32>,
    /// The last pair that counted a vertex among its neighbours.
    counted: Vec<u32>,
    pairs: u32,
}

impl<'a> Splitting<'a> {
    fn new(matrix: SparseColumns<'a>, row_of_column: &'a [u32], logarithms: &'a [f64]) -> Splitting<'a> {
        Splitting {
            matrix,
            row_of_column,
            logarithms,
            partner: vec![NONE; row_of_column.len()],
            counted: vec![0; row_of_column.len()],
            pairs: 0,
        }
    }

    fn split(mut self, patience: &Patience<'_>) -> Result<Vec<u32>, Stopped> {
        let mut cycle = Vec::new();
        for first in 0..self.partner.len() as u32 {
            if self.partner[first as usize] != NONE {
                continue;
            }
            cycle.clear();
            let mut vertex = first;
            // Vertices are alone until they are paired. Symmetric matrices have cycles only.
            while vertex != NONE && self.partner[vertex as usize] == NONE {
                self.partner[vertex as usize] = vertex;
                cycle.push(vertex);
                vertex = self.row_of_column[vertex as usize];
            }
            patience.work(STEPS_PER_VISIT * cycle.len())?;
            if vertex != first || cycle.len() == 1 {
                continue;
            }
            let start = if cycle.len() % 2 == 1 {
                self.lone_place(&cycle, patience)? + 1
            } else if cycle.len() == 2 {
                0
            } else {
                self.even_start(&cycle, patience)?
            };
            let length = cycle.len();
            cycle.rotate_left(start % length);
            for pair in cycle.chunks_exact(2) {
                self.partner[pair[0] as usize] = pair[1];
                self.partner[pair[1] as usize] = pair[0];
            }
        }
        Ok(self.partner)
    }

    /// Place of the vertex of largest scaled diagonal entry, the first of equals.
    fn lone_place(&self, cycle: &[u32], patience: &Patience<'_>) -> Result<usize, Stopped> {
        let mut best = (0, f64::NEG_INFINITY);
        for (place, &vertex) in cycle.iter().enumerate() {
            let vertex = vertex as usize;
            let list = self.matrix.rows_of(vertex);
            patience.work(list.len() + STEPS_PER_VISIT)?;
            let entry = list.iter().position(|&row| row as usize == vertex);
            let size = entry.and_then(|entry| self.matrix.logarithm(vertex, entry));
            let scaled = size.map_or(f64::NEG_INFINITY, |size| size + 2.0 * self.logarithms[vertex]);
            if scaled > best.1 {
                best = (place, scaled);
            }
        }
        Ok(best.0)
    }

    /// 0 if pairs begin at even places of the cycle, 1 if at odd ones.
    fn even_start(&mut self, cycle: &[u32], patience: &Patience<'_>) -> Result<usize, Stopped> {
        let mut neighbours = [0; 2];
        for (place, &vertex) in cycle.iter().enumerate() {
            neighbours[place % 2] += self.neighbours_of_pair([vertex, cycle[(place + 1) % cycle.len()]], patience)?;
        }
        Ok(usize::from(neighbours[1] < neighbours[0]))
    }

    /// Number of rows with entries in either column.
    fn neighbours_of_pair(&mut self, pair: [u32; 2], patience: &Patience<'_>) -> Result<usize, Stopped> {
        self.pairs += 1;
        let mut neighbours = 0;
        for vertex in pair {
            let list = self.matrix.rows_of(vertex as usize);
            patience.work(STEPS_PER_VISIT * list.len())?;
            for &row in list {
                let counted = &mut self.counted[row as usize];
                neighbours += usize::from(*counted != self.pairs);
                *counted = self.pairs;
            }
        }
        Ok(neighbours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partners in a matrix whose scales are ones.
    fn split(row_of_column: &[u32], lists: &[Vec<u32>], sizes: &[f64]) -> Vec<u32> {
        let starts: Vec<u64> = (0..=lists.len())
            .map(|end| lists[..end].iter().map(|list| list.len() as u64).sum())
            .collect();
        let matrix = SparseColumns {
            rows: lists.len() as u32,
            starts: &starts,
            indices: &lists.concat(),
            sizes,
        };
        let logarithms = vec![0.0; lists.len()];
        let patience = Patience::new(&|| false);
        let partner = Splitting::new(matrix, row_of_column, &logarithms).split(&patience);
        partner.expect("is not stopped")
    }

    #[test]
    fn even_cycles_pair_vertices_of_like_neighbours() {
        // A cycle of four; vertices 4 to 7 are neighbours of two of its vertices each.
        for (pairs, partner) in [([[0, 1], [2, 3]], [1, 0, 3, 2]), ([[1, 2], [3, 0]], [3, 2, 1, 0])] {
            let mut lists: Vec<Vec<u32>> = (0..4).map(|at| vec![(at + 1) % 4, (at + 3) % 4]).collect();
            lists.extend((4..8).map(|at| vec![at]));
            for (at, pair) in pairs.iter().enumerate() {
                for &vertex in pair {
                    for leaf in [4 + 2 * at, 5 + 2 * at] {
                        lists[leaf].push(vertex as u32);
                        lists[vertex].push(leaf as u32);
                    }
                }
            }
            let sizes = vec![1.0; lists.concat().len()];
            let found = split(&[1, 2, 3, 0, 4, 5, 6, 7], &lists, &sizes);
            assert_eq!(found[..4], partner);
            assert_eq!(found[4..], [4, 5, 6, 7]);
        }
    }

    #[test]
    fn odd_cycles_leave_the_largest_diagonal_entry() {
        let lists: Vec<Vec<u32>> = (0..5).map(|at| vec![at, (at + 1) % 5, (at + 4) % 5]).collect();
        for lone in 0..5 {
            let mut sizes = [0.1, 1.0, 1.0].repeat(5);
            sizes[3 * lone] = 0.2;
            let found = split(&[1, 2, 3, 4, 0], &lists, &sizes);
            assert_eq!(found[lone], lone as u32);
            for step in [1, 3] {
                let (one, other) = ((lone + step) % 5, (lone + step + 1) % 5);
                assert_eq!((found[one], found[other]), (other as u32, one as u32));
            }
        }
    }

    #[test]
    fn chains_of_unsymmetric_matrices_are_left_alone() {
        let lists = vec![vec![1], vec![2], vec![]];
        assert_eq!(split(&[1, 2, NONE], &lists, &[1.0; 2]), [0, 1, 2]);
        assert_eq!(split(&[NONE, 0, 1], &lists, &[1.0; 2]), [0, 1, 2]);
    }
}
