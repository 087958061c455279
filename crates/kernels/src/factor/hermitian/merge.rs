//! Divide and conquer: eigenvalues and vectors of a tridiagonal matrix from those of its halves.
//!
//! Cuppen (1981), "A divide and conquer method for the symmetric tridiagonal eigenproblem", with the z of Gu and Eisenstat (1995), so
//! that vectors are orthonormal however close their values. A merge knows the halves by their values and the first and last rows of
//! their vectors alone; its own vectors are those of the halves times a matrix that its record makes, any tile of it at any time.
//! Poles that coincide are moved apart by a rounding, where others rotate them: so no column of the halves depends on another.

use std::ops::Range;

use faer::diag::{DiagMut, DiagRef};
use faer::linalg::evd;
use faer::linalg::evd::ComputeEigenvectors;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::roots::{exact_z, Secular, VectorElements, VectorSums};
use crate::factor::failure::Failure;
use crate::factor::pivot_block::{matrix, rows_of, TileLayout};
use crate::fence::shells::NumbersBody;
use crate::spare::{taken, Spare, SKIPPED};

/// Sizes of a merge: columns of both halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeSizes {
    pub halves: [usize; 2],
}

/// Values, and first and last rows of the vectors, of a part of a tridiagonal matrix.
struct NodeVectors<'a> {
    values: &'a [f64],
    first: &'a [f64],
    last: &'a [f64],
}

impl<'a> NodeVectors<'a> {
    fn new(data: &'a [u8]) -> NodeVectors<'a> {
        let data: &[f64] = bytemuck::cast_slice(data);
        let count = data.len() / 3;
        NodeVectors {
            values: &data[..count],
            first: &data[count..2 * count],
            last: &data[2 * count..],
        }
    }
}

/// Rows of a record: of the columns of the halves their poles, infinite without one, and z; of those of the merge the origin and the
/// distance from it, the scale, and the column of the halves that it is, or −1.
const ROWS: usize = 6;
/// Rows of numbers that a merge keeps while it lasts.
const KEPT: usize = 9;

impl MergeSizes {
    pub fn columns(&self) -> usize {
        self.halves[0] + self.halves[1]
    }

    /// Elements of the values and rows of a part of so many columns.
    pub fn node_elements(columns: usize) -> usize {
        3 * columns
    }

    pub fn record_elements(&self) -> usize {
        ROWS * self.columns()
    }

    /// Bytes of the workspace of [`MergeSizes::merge`].
    pub fn merge_bytes(&self) -> usize {
        let n = self.columns();
        taken::<f64>(&[n; KEPT]) + taken::<usize>(&[n, n]) + SKIPPED
    }

    /// The record of a merge, and its values and rows, of those of its halves and the element that joins them, which both have
    /// lost from their diagonals.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn merge(&self, halves: [&[u8]; 2], joint: f64, record: &mut [u8], node: &mut [u8], workspace: &mut [u8]) {
        let [upper, lower] = halves.map(NodeVectors::new);
        let columns = HalfColumns {
            upper,
            lower,
            split: self.halves[0],
        };
        let (n, mut spare) = (self.columns(), Spare::new(workspace));
        let order = spare.take::<usize>(n);
        order.iter_mut().enumerate().for_each(|(place, column)| *column = place);
        order.sort_unstable_by(|&a, &b| columns.value(a).total_cmp(&columns.value(b)).then(a.cmp(&b)));

        let largest = columns.value(order[0]).abs().max(columns.value(order[n - 1]).abs());
        let most = (0..n).fold(0.0f64, |most, column| most.max(columns.z(column).abs()));
        // As of z with a norm of 1, where here its square is 2.
        let tolerance = 8.0 * f64::EPSILON * largest.max(most);
        let is_kept = |column: usize| std::f64::consts::SQRT_2 * joint * columns.z(column).abs() > tolerance;

        let kept = spare.take::<usize>(n);
        let rows: [&mut [f64]; KEPT] = std::array::from_fn(|_| spare.take::<f64>(n));
        let mut count = 0;
        for &column in order.iter().filter(|&&column| is_kept(column)) {
            let pole = columns.value(column);
            rows[0][count] = match count.checked_sub(1).map(|before| rows[0][before]) {
                Some(before) => pole.max((before + f64::EPSILON / 4.0 * largest).max(before.next_up())),
                None => pole,
            };
            rows[1][count] = columns.z(column);
            [rows[2][count], rows[3][count]] = columns.ends(column);
            kept[count] = column;
            count += 1;
        }
        let mut rows = rows.map(|row| &mut row[..count]);
        solve_roots(&mut rows, joint);

        let record: &mut [f64] = bytemuck::cast_slice_mut(record);
        let (of_halves, of_merge) = record.split_at_mut(2 * n);
        of_halves[..n].fill(f64::INFINITY);
        of_halves[n..].fill(0.0);
        for (place, &column) in kept[..count].iter().enumerate() {
            of_halves[column] = rows[0][place];
            of_halves[n + column] = rows[1][place];
        }
        let deflated = order.iter().copied().filter(|&column| !is_kept(column));
        sort_columns(deflated, &columns, &rows, (of_merge, bytemuck::cast_slice_mut(node)));
    }

    /// Some rows and columns of the matrix of a record, column by column.
    fn tile(&self, record: &[u8], rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        let record: &[f64] = bytemuck::cast_slice(record);
        let row = |number: usize| &record[number * self.columns()..(number + 1) * self.columns()];
        let own = [&row(0)[rows.clone()], &row(1)[rows.clone()]];
        let kernel = VectorElements::kernel();
        for (column, out) in columns.zip(out.chunks_exact_mut(rows.len())) {
            let source = row(5)[column];
            if source < 0.0 {
                kernel(&own, &[row(2)[column], row(3)[column], row(4)[column]], out);
                continue;
            }
            out.fill(0.0);
            if rows.contains(&(source as usize)) {
                out[source as usize - rows.start] = 1.0;
            }
        }
    }

    /// So many numbers of a workspace of [`MergeSizes::product_bytes`].
    pub fn numbers(workspace: &mut [u8], count: usize) -> &mut [f64] {
        Spare::new(workspace).take::<f64>(count)
    }

    /// Bytes of the workspace of [`MergeSizes::product`] for so many rows and columns of a tile.
    pub fn product_bytes([rows, columns]: [usize; 2]) -> usize {
        taken::<f64>(&[rows * columns]) + SKIPPED
    }

    /// `C := C + Z U`, or without C if `is_first`, where U are some rows and columns of the matrix of a record and Z has as many
    /// columns, column by column.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn product(
        &self,
        z: &[u8],
        (record, rows, columns): (&[u8], Range<usize>, Range<usize>),
        (c, layout): (&mut [f64], TileLayout),
        is_first: bool,
        workspace: &mut [u8],
    ) {
        let (inner, width) = (rows.len(), columns.len());
        let own = Spare::new(workspace).take::<f64>(inner * width);
        self.tile(record, rows, columns, own);
        let height = rows_of::<f64>(z, inner);
        let z = matrix::<f64>(z, height, inner, TileLayout::Columns);
        let own = MatRef::from_column_major_slice(own, inner, width);
        let c = match layout {
            TileLayout::Rows => MatMut::from_row_major_slice_mut(c, height, width),
            TileLayout::Columns => MatMut::from_column_major_slice_mut(c, height, width),
        };
        let accum = if is_first { Accum::Replace } else { Accum::Add };
        matmul(c, accum, z, own, 1.0, Par::Seq);
    }

    /// Bytes of the workspace of [`MergeSizes::leaf`].
    pub fn leaf_bytes(columns: usize) -> usize {
        let request =
            evd::self_adjoint_evd_scratch::<f64>(columns, ComputeEigenvectors::Yes, Par::Seq, Default::default());
        request.size_bytes() + request.align_bytes() + SKIPPED
    }

    /// Values and rows, and the vectors column by column, of a tridiagonal matrix.
    ///
    /// # Errors
    /// The iteration does not converge.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn leaf(
        [diagonal, below]: [&[f64]; 2],
        vectors: &mut [u8],
        node: &mut [u8],
        workspace: &mut [u8],
    ) -> Result<(), Failure> {
        let n = diagonal.len();
        let mut spare = Spare::new(workspace);
        let mut vectors = MatMut::from_column_major_slice_mut(bytemuck::cast_slice_mut::<u8, f64>(vectors), n, n);
        let node: &mut [f64] = bytemuck::cast_slice_mut(node);
        let (values, rows) = node.split_at_mut(n);
        evd::tridiagonal_self_adjoint_evd(
            DiagRef::from_slice(diagonal),
            DiagRef::from_slice(below),
            DiagMut::from_slice_mut(values),
            Some(vectors.as_mut()),
            Par::Seq,
            spare.stack(),
            Default::default(),
        )
        .map_err(|_| Failure::NoConvergence)?;
        for column in 0..n {
            rows[column] = vectors[(0, column)];
            rows[n + column] = vectors[(n - 1, column)];
        }
        Ok(())
    }
}

/// The columns of both halves, one behind the other.
struct HalfColumns<'a> {
    upper: NodeVectors<'a>,
    lower: NodeVectors<'a>,
    split: usize,
}

impl HalfColumns<'_> {
    fn value(&self, column: usize) -> f64 {
        match column.checked_sub(self.split) {
            None => self.upper.values[column],
            Some(column) => self.lower.values[column],
        }
    }

    fn z(&self, column: usize) -> f64 {
        match column.checked_sub(self.split) {
            None => self.upper.last[column],
            Some(column) => self.lower.first[column],
        }
    }

    /// The first and last row of both halves together.
    fn ends(&self, column: usize) -> [f64; 2] {
        match column.checked_sub(self.split) {
            None => [self.upper.first[column], 0.0],
            Some(column) => [0.0, self.lower.last[column]],
        }
    }
}

/// Of poles, z, and first and last rows: z becomes that of the roots, and behind them come their origins, distances, scales, and
/// the first and last rows of their vectors.
fn solve_roots(rows: &mut [&mut [f64]; KEPT], joint: f64) {
    let [poles, z, firsts, lasts, origins, distances, scales, new_firsts, new_lasts] = rows;
    let count = poles.len();
    let secular = Secular {
        poles,
        z,
        inverse_rho: 1.0 / joint,
    };
    for root in 0..count {
        (origins[root], distances[root]) = secular.root(root);
    }
    // In a row of its own, as all roots go into each.
    for (at, exact) in scales.iter_mut().enumerate() {
        *exact = exact_z(poles, [origins, distances], at).copysign(z[at]);
    }
    z.copy_from_slice(scales);
    let kernel = VectorSums::kernel();
    for root in 0..count {
        let mut sums = [0.0; 3];
        kernel(&[poles, z, firsts, lasts], &[origins[root], distances[root]], &mut sums);
        let scale = 1.0 / sums[0].sqrt();
        scales[root] = scale;
        (new_firsts[root], new_lasts[root]) = (sums[1] * scale, sums[2] * scale);
    }
}

/// Columns of a merge in the order of their values: its roots, and columns of the halves as they are.
fn sort_columns(
    deflated: impl Iterator<Item = usize>,
    columns: &HalfColumns<'_>,
    rows: &[&mut [f64]; KEPT],
    (record, node): (&mut [f64], &mut [f64]),
) {
    let n = node.len() / 3;
    let mut deflated = deflated.peekable();
    let mut root = 0;
    for to in 0..n {
        let of_root = rows[4].get(root).map(|origin| origin + rows[5][root]);
        let next = deflated.next_if(|&column| of_root.is_none_or(|root| columns.value(column) <= root));
        let (facts, own) = match (next, of_root) {
            (Some(column), _) => {
                let [first, last] = columns.ends(column);
                ([0.0, 0.0, 0.0, column as f64], [columns.value(column), first, last])
            }
            (None, value) => {
                let at = root;
                root += 1;
                (
                    [rows[4][at], rows[5][at], rows[6][at], -1.0],
                    [value.unwrap_or(f64::NAN), rows[7][at], rows[8][at]],
                )
            }
        };
        facts
            .into_iter()
            .enumerate()
            .for_each(|(row, fact)| record[row * n + to] = fact);
        own.into_iter()
            .enumerate()
            .for_each(|(row, own)| node[row * n + to] = own);
    }
}
