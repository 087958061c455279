//! Tiles of low rank: a tile below the diagonal of a factor as a product U W of fewer elements, where that is as good to a
//! tolerance (block low rank: Amestoy and others, Improving multifrontal methods by means of block low-rank representations,
//! SISC 37 (2015)). Bases are found by random products with an error that is computed (Martinsson, Voronin, A randomized blocked
//! algorithm for efficiently computing rank-revealing factorizations of matrices, SISC 38 (2016)); the random numbers are the
//! same each time.
//!
//! A tile has its bytes, header included, in the first 8; then its elements row by row, or U and W.

use faer::{Accum, Conj, MatRef};

use super::panel::Panel;
use super::scalar::{rows, tile, times, FactorScalar};
use super::vectors::RightHandSides;
use crate::spare::{taken, Spare, SKIPPED};

/// Vectors that a basis grows by: a quarter of those it has, between these.
const STEPS: std::ops::RangeInclusive<usize> = 8..=64;

/// The elements of a tile of so many rows and columns.
#[derive(Clone, Copy, Debug)]
pub enum TileElements<'a> {
    Full(&'a [u8]),
    /// U of so many columns, W of so many rows.
    LowRank {
        rank: usize,
        u: &'a [u8],
        w: &'a [u8],
    },
}

impl<'a> TileElements<'a> {
    /// Bytes before the elements.
    pub const HEADER: usize = 8;

    /// The elements of a tile with a header; nothing where the header is of no such tile.
    pub fn of(tile: &'a [u8], [m, n]: [usize; 2], item: usize) -> Option<TileElements<'a>> {
        let bytes = TileElements::taken(tile);
        let elements = tile.get(TileElements::HEADER..bytes)?;
        if elements.len() == m * n * item {
            return Some(TileElements::Full(elements));
        }
        let one = (m + n) * item;
        if elements.len() > m * n * item || !elements.len().is_multiple_of(one) {
            return None;
        }
        let rank = elements.len() / one;
        if rank > TileElements::most([m, n]) {
            return None;
        }
        let (u, w) = elements.split_at(rank * m * item);
        Some(TileElements::LowRank { rank, u, w })
    }

    /// Bytes that a tile with a header takes, header included; 0 where that is cut off.
    pub fn taken(tile: &[u8]) -> usize {
        let header = tile.first_chunk().map_or(0, |header| u64::from_ne_bytes(*header));
        usize::try_from(header).unwrap_or(usize::MAX)
    }

    /// The largest rank that a tile of `m x n` is kept with: of three quarters of its elements.
    pub fn most([m, n]: [usize; 2]) -> usize {
        m * n * 3 / (4 * (m + n).max(1))
    }
}

impl Panel {
    /// Makes a tile with a header, of `m x n`, one of low rank where that has an error of at most `tolerance` in the Frobenius
    /// norm, and sets the header. Bytes behind the elements are zeros. With a workspace of [`Panel::compress_bytes`].
    ///
    /// # Panics
    /// When the tile or the workspace is too short.
    pub fn compress(&self, [m, n]: [usize; 2], tolerance: f64, tile: &mut [u8], workspace: &mut [u8]) {
        let (header, elements) = tile.split_at_mut(TileElements::HEADER);
        let taken = in_any_type!(self, compress([m, n], tolerance, elements, Spare::new(workspace)));
        elements[taken..].fill(0);
        header.copy_from_slice(&((TileElements::HEADER + taken) as u64).to_ne_bytes());
    }

    /// Bytes of the workspace of [`Panel::compress`].
    pub fn compress_bytes(&self, [m, n]: [usize; 2]) -> usize {
        let (item, most) = (self.dtype.size(), TileElements::most([m, n]));
        taken::<u8>(&[
            m * n * item,
            most * m * item,
            most * n * item,
            n * STEPS.end() * item,
            most * STEPS.end() * item,
        ]) + SKIPPED
    }

    /// `C −= A Bᴴ` for `A` of `m x k`, `B` of `n x k`, `C` of `m x n`, with a workspace of [`Panel::products_bytes`].
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract_tiles(
        &self,
        [m, n, k]: [usize; 3],
        a: TileElements<'_>,
        b: TileElements<'_>,
        c: &mut [u8],
        workspace: &mut [u8],
    ) {
        use TileElements::{Full, LowRank};
        let spare = Spare::new(workspace);
        match (a, b) {
            (Full(a), Full(b)) => self.subtract_product([m, n, k], a, b, c),
            // A Bᴴ = U (B Wᴴ)ᴴ.
            (LowRank { rank, u, w }, Full(b)) => {
                in_any_type!(self, subtract_left([m, n, k, rank], (u, w), b, c, spare));
            }
            // A Bᴴ = (A Wᴴ) Uᴴ.
            (Full(a), LowRank { rank, u, w }) => {
                in_any_type!(self, subtract_right([m, n, k, rank], a, (u, w), c, spare));
            }
            (
                LowRank { rank, u, w },
                LowRank {
                    rank: other,
                    u: v,
                    w: x,
                },
            ) => {
                in_any_type!(
                    self,
                    subtract_both([m, n, k], ([rank, other], [u, w], [v, x]), c, spare)
                );
            }
        }
    }

    /// Bytes of the workspace of [`Panel::subtract_tiles`].
    pub fn products_bytes(&self, [m, n, k]: [usize; 3]) -> usize {
        let item = self.dtype.size();
        let [left, right] = [TileElements::most([m, k]), TileElements::most([n, k])];
        taken::<u8>(&[left * right * item, left.max(right) * m.max(n) * item]) + SKIPPED
    }
}

impl RightHandSides {
    /// `Y −= U W X`, or `(U W)ᴴ X` (`adjoint`), for Y of `m x k` and X of `n x k`, with a workspace of
    /// [`RightHandSides::low_rank_bytes`].
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn subtract_low_rank(
        &self,
        [m, k, n]: [usize; 3],
        (rank, [u, w]): (usize, [&[u8]; 2]),
        adjoint: bool,
        x: &[u8],
        y: &mut [u8],
        workspace: &mut [u8],
    ) {
        let spare = Spare::new(workspace);
        in_any_type!(
            self.panel,
            subtract_low_rank([m, k, n], (rank, [u, w]), adjoint, (x, y), spare)
        );
    }

    /// Bytes of the workspace of [`RightHandSides::subtract_low_rank`] for tiles of `m x n`.
    pub fn low_rank_bytes(&self, [m, k, n]: [usize; 3]) -> usize {
        taken::<u8>(&[TileElements::most([m, n]) * k * self.panel.dtype.size()]) + SKIPPED
    }
}

/// `A Bᴴ` of so many columns of `A` and `B`, in memory of a workspace.
fn shared<'a, T: FactorScalar>(a: MatRef<'_, T>, b: MatRef<'_, T>, spare: &mut Spare<'a>) -> MatRef<'a, T> {
    let (height, width) = (a.nrows(), b.nrows());
    let to = spare.take::<T>(height * width);
    times(
        rows(to, height, width),
        Accum::Replace,
        (a, Conj::No),
        (b.transpose(), Conj::Yes),
        1.0,
    );
    MatRef::from_row_major_slice(to, height, width)
}

/// `C −= A Bᴴ`.
fn subtract<T: FactorScalar>(a: MatRef<'_, T>, b: MatRef<'_, T>, c: &mut [u8]) {
    let c = rows(bytemuck::cast_slice_mut(c), a.nrows(), b.nrows());
    times(c, Accum::Add, (a, Conj::No), (b.transpose(), Conj::Yes), -1.0);
}

fn subtract_left<T: FactorScalar>(
    [m, n, k, rank]: [usize; 4],
    (u, w): (&[u8], &[u8]),
    b: &[u8],
    c: &mut [u8],
    mut spare: Spare<'_>,
) {
    let inner = shared::<T>(tile(b, n, k), tile(w, rank, k), &mut spare);
    subtract(tile(u, m, rank), inner, c);
}

fn subtract_right<T: FactorScalar>(
    [m, n, k, rank]: [usize; 4],
    a: &[u8],
    (u, w): (&[u8], &[u8]),
    c: &mut [u8],
    mut spare: Spare<'_>,
) {
    let inner = shared::<T>(tile(a, m, k), tile(w, rank, k), &mut spare);
    subtract(inner, tile(u, n, rank), c);
}

/// Two tiles of low rank: their ranks, and U and W of each.
type BothLowRank<'a> = ([usize; 2], [&'a [u8]; 2], [&'a [u8]; 2]);

fn subtract_both<T: FactorScalar>(
    [m, n, k]: [usize; 3],
    ([left, right], [u, w], [v, x]): BothLowRank<'_>,
    c: &mut [u8],
    mut spare: Spare<'_>,
) {
    // U (W Xᴴ) Vᴴ, the smaller rank last.
    let core = shared::<T>(tile(w, left, k), tile(x, right, k), &mut spare);
    let (u, v) = (tile::<T>(u, m, left), tile::<T>(v, n, right));
    if left < right {
        let inner = shared(core, v, &mut spare);
        let c = rows(bytemuck::cast_slice_mut(c), m, n);
        times(c, Accum::Add, (u, Conj::No), (inner, Conj::No), -1.0);
    } else {
        let to = spare.take::<T>(m * right);
        times(
            rows(&mut *to, m, right),
            Accum::Replace,
            (u, Conj::No),
            (core, Conj::No),
            1.0,
        );
        subtract(MatRef::from_row_major_slice(to, m, right), v, c);
    }
}

fn subtract_low_rank<T: FactorScalar>(
    [m, k, n]: [usize; 3],
    (rank, [u, w]): (usize, [&[u8]; 2]),
    adjoint: bool,
    (x, y): (&[u8], &mut [u8]),
    mut spare: Spare<'_>,
) {
    let inner = spare.take::<T>(rank * k);
    let (x, y) = (tile::<T>(x, n, k), rows::<T>(bytemuck::cast_slice_mut(y), m, k));
    // Of the adjoint U has the rows of X.
    let [first, last] = match adjoint {
        false => [(tile::<T>(w, rank, n), Conj::No), (tile::<T>(u, m, rank), Conj::No)],
        true => [
            (tile::<T>(u, n, rank).transpose(), Conj::Yes),
            (tile::<T>(w, rank, m).transpose(), Conj::Yes),
        ],
    };
    times(rows(inner, rank, k), Accum::Replace, first, (x, Conj::No), 1.0);
    let inner = MatRef::from_row_major_slice(inner, rank, k);
    times(y, Accum::Add, last, (inner, Conj::No), -1.0);
}

/// The sum of squares of the sizes of elements.
fn squares<T: FactorScalar>(elements: &[T]) -> f64 {
    elements.iter().map(|element| element.size().powi(2)).sum()
}

/// A number of ±1 for each place.
fn sign(place: u64) -> f64 {
    // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
    let mut bits = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    if (bits ^ (bits >> 31)) & 1 == 0 {
        1.0
    } else {
        -1.0
    }
}

/// Writes U and W over elements of `m x n`, and returns the bytes that they take; all of them where the rank is too large.
fn compress<T: FactorScalar>([m, n]: [usize; 2], tolerance: f64, elements: &mut [u8], mut spare: Spare<'_>) -> usize {
    let most = TileElements::most([m, n]);
    let (rest, random) = (spare.take::<T>(m * n), spare.take::<T>(n * STEPS.end()));
    let (basis, w) = (spare.take::<T>(most * m), spare.take::<T>(most * n));
    let shares = spare.take::<T>(most * STEPS.end());
    rest.copy_from_slice(&bytemuck::cast_slice::<u8, T>(elements)[..m * n]);
    let mut rank = 0;
    // Elements that are no numbers have no norm either, and stay.
    loop {
        if squares(rest).sqrt() <= tolerance {
            break;
        }
        let step = (rank / 4).clamp(*STEPS.start(), *STEPS.end()).min(most - rank);
        if step == 0 {
            return m * n * size_of::<T>();
        }
        for (place, number) in random[..n * step].iter_mut().enumerate() {
            *number = T::of(sign((rank * n + place) as u64 + 1));
        }
        let left = MatRef::from_row_major_slice(&*rest, m, n);
        let right = MatRef::from_row_major_slice(&random[..n * step], n, step);
        let (before, own) = basis[..(rank + step) * m].split_at_mut(rank * m);
        // Vectors of the basis are rows.
        times(
            rows(own, step, m).transpose_mut(),
            Accum::Replace,
            (left, Conj::No),
            (right, Conj::No),
            1.0,
        );
        orthonormalize([rank, step, m], before, own, &mut shares[..rank * step]);
        let own = MatRef::from_row_major_slice(&*own, step, m);
        let product = &mut w[rank * n..(rank + step) * n];
        times(
            rows(product, step, n),
            Accum::Replace,
            (own, Conj::Yes),
            (left, Conj::No),
            1.0,
        );
        let product = MatRef::from_row_major_slice(&*product, step, n);
        times(
            rows(rest, m, n),
            Accum::Add,
            (own.transpose(), Conj::No),
            (product, Conj::No),
            -1.0,
        );
        rank += step;
    }
    let to: &mut [T] = bytemuck::cast_slice_mut(elements);
    let (u, rest) = to.split_at_mut(rank * m);
    for (row, elements) in u.chunks_exact_mut(rank.max(1)).enumerate() {
        let column = basis[..rank * m].iter().skip(row).step_by(m);
        elements.iter_mut().zip(column).for_each(|(to, from)| *to = *from);
    }
    rest[..rank * n].copy_from_slice(&w[..rank * n]);
    rank * (m + n) * size_of::<T>()
}

/// Makes `step` vectors orthogonal to those before and to each other, of length 1; those without a share of their own become 0.
fn orthonormalize<T: FactorScalar>([rank, step, m]: [usize; 3], before: &[T], own: &mut [T], shares: &mut [T]) {
    for _ in 0..2 {
        if rank > 0 {
            let others = MatRef::from_row_major_slice(before, rank, m);
            let vectors = MatRef::from_row_major_slice(&*own, step, m);
            times(
                rows(shares, step, rank),
                Accum::Replace,
                (vectors, Conj::No),
                (others.transpose(), Conj::Yes),
                1.0,
            );
            let shares = MatRef::from_row_major_slice(&*shares, step, rank);
            times(
                rows(own, step, m),
                Accum::Add,
                (shares, Conj::No),
                (others, Conj::No),
                -1.0,
            );
        }
        for vector in 0..step {
            let (done, rest) = own.split_at_mut(vector * m);
            let vector = &mut rest[..m];
            let length = squares(vector).sqrt();
            for other in done.chunks_exact(m) {
                let share = other
                    .iter()
                    .zip(&*vector)
                    .fold(T::of(0.0), |sum, (other, own)| sum + other.conjugate().times(*own));
                vector
                    .iter_mut()
                    .zip(other)
                    .for_each(|(own, other)| *own -= share.times(*other));
            }
            let left = squares(vector).sqrt();
            // The rounding of a vector that depends on others is a direction as good as any once it is made orthogonal.
            let scale = if left > length * 1e-30 {
                T::of(1.0 / left)
            } else {
                T::of(0.0)
            };
            vector.iter_mut().for_each(|own| *own = own.times(scale));
        }
    }
}

#[cfg(test)]
mod tests {
    use outcore_dtype::DType;

    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        (1..=count as u64)
            .map(|at| sign(at * 31 + seed) * (at as f64 * 0.7 + seed as f64).sin())
            .collect()
    }

    /// The product of `m x k` and `k x n`.
    fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
        let element = |at: usize| (0..k).map(|inner| a[at / n * k + inner] * b[inner * n + at % n]).sum();
        (0..m * n).map(element).collect()
    }

    fn with_header(elements: &[f64]) -> Vec<u64> {
        let bytes = (elements.len() * 8 + TileElements::HEADER) as u64;
        std::iter::once(bytes)
            .chain(elements.iter().map(|element| element.to_bits()))
            .collect()
    }

    fn full(tile: TileElements<'_>, [m, n]: [usize; 2]) -> Vec<f64> {
        match tile {
            TileElements::Full(elements) => bytemuck::cast_slice(elements).to_vec(),
            TileElements::LowRank { rank, u, w } => {
                product(bytemuck::cast_slice(u), bytemuck::cast_slice(w), [m, rank, n])
            }
        }
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn tiles_are_kept_to_the_tolerance_or_as_they_are() {
        let panel = Panel::new(DType::F64).expect("double");
        let [m, n] = [90, 70];
        for (rank, is_low) in [(0, true), (1, true), (10, true), (60, false)] {
            let elements = product(&numbers(m * rank, 1), &numbers(rank * n, 2), [m, rank, n]);
            let mut tile = with_header(&elements);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut tile);
            let mut workspace = vec![0; panel.compress_bytes([m, n])];
            panel.compress([m, n], 1e-9, bytes, &mut workspace);
            let kept = TileElements::of(bytes, [m, n], 8).expect("a tile");
            assert_eq!(matches!(kept, TileElements::LowRank { .. }), is_low, "rank {rank}");
            assert!(distance(&full(kept, [m, n]), &elements) <= 1e-9, "rank {rank}");
            assert!(bytes[TileElements::taken(bytes)..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn products_are_those_of_full_tiles() {
        let panel = Panel::new(DType::F64).expect("double");
        let [m, n, k] = [40, 50, 60];
        let tile = |rows: usize, rank: usize, seed| {
            let elements = match rank {
                0 => numbers(rows * k, seed),
                rank => product(
                    &numbers(rows * rank, seed),
                    &numbers(rank * k, seed + 1),
                    [rows, rank, k],
                ),
            };
            let mut tile = with_header(&elements);
            if rank > 0 {
                let mut workspace = vec![0; panel.compress_bytes([rows, k])];
                panel.compress([rows, k], 1e-10, bytemuck::cast_slice_mut(&mut tile), &mut workspace);
            }
            (tile, elements)
        };
        for (left, right) in [(0, 0), (0, 3), (4, 0), (3, 9), (9, 3)] {
            let ((a, a_full), (b, b_full)) = (tile(m, left, 3), tile(n, right, 5));
            let mut c = numbers(m * n, 9);
            let mut expected = c.clone();
            panel.subtract_product(
                [m, n, k],
                bytemuck::cast_slice(&a_full),
                bytemuck::cast_slice(&b_full),
                bytemuck::cast_slice_mut(&mut expected),
            );
            let mut workspace = vec![0; panel.products_bytes([m, n, k])];
            let of = |tile, rows| TileElements::of(tile, [rows, k], 8).expect("a tile");
            let (a, b) = (of(bytemuck::cast_slice(&a), m), of(bytemuck::cast_slice(&b), n));
            panel.subtract_tiles([m, n, k], a, b, bytemuck::cast_slice_mut(&mut c), &mut workspace);
            assert!(distance(&c, &expected) < 1e-8, "{left} {right}");
        }
    }

    #[test]
    fn headers_of_other_tiles_are_refused() {
        let tile = with_header(&numbers(12, 1));
        let bytes: &[u8] = bytemuck::cast_slice(&tile);
        assert!(TileElements::of(bytes, [3, 4], 8).is_some());
        assert!(TileElements::of(bytes, [2, 5], 8).is_none());
        assert!(TileElements::of(&bytes[..40], [3, 4], 8).is_none());
        assert!(TileElements::of(&bytes[..4], [3, 4], 8).is_none());
        let mut short = tile.clone();
        for header in [0, 3, 9, 8 + 8 * 8, u64::MAX] {
            short[0] = header;
            assert!(
                TileElements::of(bytemuck::cast_slice(&short), [3, 4], 8).is_none(),
                "{header}"
            );
        }
        let mut square = with_header(&numbers(100, 1));
        for (rank, is_one) in [(3, true), (4, false)] {
            square[0] = 8 + rank * 20 * 8;
            let tile = TileElements::of(bytemuck::cast_slice(&square), [10, 10], 8);
            assert_eq!(tile.is_some(), is_one, "workspaces are for ranks below {rank}");
        }
    }
}
