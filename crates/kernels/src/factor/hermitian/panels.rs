//! Dense to band: reflectors of a panel over all of its tiles, and the update of rank 2 b that they make of the rest.
//!
//! With the reflectors H = I − V T⁻¹ Vᴴ of a panel, Y = A V T⁻¹ and X = Y − ½ V (T⁻ᴴ Vᴴ Y), the rest becomes
//! Hᴴ A H = A − V Xᴴ − X Vᴴ.

use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::Hermitian;
use crate::factor::pivot_block::{larger, matrix, matrix_mut, rows_of, TileLayout};
use crate::factor::scalar::{times, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

impl Hermitian {
    /// The reflectors of a panel of `width` columns, whose tiles are below each other: they become V, whose columns are as many as
    /// those of `t`, or in the first of a few rows so many at its front. `r` becomes the triangle above them, of as many rows.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn panel(&self, width: usize, tiles: &mut [&mut [u8]], r: &mut [u8], t: &mut [u8], workspace: &mut [u8]) {
        in_type!(self, panel(width, tiles, r, t, Spare::new(workspace)));
    }

    /// Bytes of the workspace of [`Hermitian::panel`].
    pub fn panel_bytes(&self, width: usize) -> usize {
        in_type!(self, panel_bytes_of(width)) + SKIPPED
    }

    /// `A := A − V_i X_jᴴ − X_i V_jᴴ` for a tile of the rest, `[rows, columns]`, and tiles of `count` reflectors.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn update(&self, sizes: [usize; 2], a: &mut [u8], [vi, xi, vj, xj]: [&[u8]; 4], count: usize) {
        in_type!(self, update(sizes, a, [vi, xi, vj, xj], count));
    }

    /// `W := A V` or, of the adjoint, `W := Aᴴ V`; added to W unless `is_first`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn product(
        &self,
        (sizes, a, is_adjoint): ([usize; 2], &[u8], bool),
        v: &[u8],
        w: &mut [u8],
        count: usize,
        is_first: bool,
    ) {
        in_type!(self, product((sizes, a, is_adjoint), v, w, count, is_first));
    }

    /// `Y := W T⁻¹`, where W is the sum of parts.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn right_solve(&self, rows: usize, parts: &[&[u8]], t: &[u8], y: &mut [u8], count: usize) {
        in_type!(self, right_solve(rows, parts, t, y, count));
    }

    /// `M := T⁻ᴴ M`, or `T⁻¹ M`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn left_solve(&self, t: &[u8], m: (&mut [u8], TileLayout), columns: usize, count: usize, is_adjoint: bool) {
        in_type!(self, left_solve(t, m, columns, count, is_adjoint));
    }

    /// `X := Y − ½ V M` in the place of Y.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn halved(&self, rows: usize, v: &[u8], m: &[u8], y: &mut [u8], count: usize) {
        in_type!(self, halved(rows, v, m, y, count));
    }

    /// `C := C − V W` for rows of a matrix with so many columns, `layout` for both.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn subtract(&self, v: &[u8], w: &[u8], (c, layout): (&mut [u8], TileLayout), columns: usize, count: usize) {
        in_type!(self, subtract_of(v, w, (c, layout), columns, count));
    }

    /// `W := Vᴴ C`, added unless `is_first`.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn project(
        &self,
        v: &[u8],
        (c, w, layout): (&[u8], &mut [u8], TileLayout),
        columns: usize,
        count: usize,
        is_first: bool,
    ) {
        in_type!(self, project(v, (c, w, layout), columns, count, is_first));
    }
}

fn panel_bytes_of<T: FactorScalar>(width: usize) -> usize {
    taken::<T>(&[width * width])
}

/// V of a tile, which has that many columns at its front.
fn front<T: FactorScalar>(v: &[u8], rows: usize, count: usize) -> MatRef<'_, T> {
    let length = rows * count * size_of::<T>();
    matrix(&v[..length], rows, count, TileLayout::Columns)
}

fn accumulate(is_first: bool) -> Accum {
    if is_first {
        Accum::Replace
    } else {
        Accum::Add
    }
}

fn update<T: FactorScalar>([rows, columns]: [usize; 2], a: &mut [u8], [vi, xi, vj, xj]: [&[u8]; 4], count: usize) {
    let mut a = matrix_mut::<T>(a, rows, columns, TileLayout::Columns);
    let of = |tile, rows| front::<T>(tile, rows, count);
    for (left, right) in [(vi, xj), (xi, vj)] {
        let right = of(right, columns).transpose();
        times(
            a.as_mut(),
            Accum::Add,
            (of(left, rows), Conj::No),
            (right, Conj::Yes),
            -1.0,
        );
    }
}

fn product<T: FactorScalar>(
    ([rows, columns], a, is_adjoint): ([usize; 2], &[u8], bool),
    v: &[u8],
    w: &mut [u8],
    count: usize,
    is_first: bool,
) {
    let a = matrix::<T>(a, rows, columns, TileLayout::Columns);
    let (a, conjugate) = if is_adjoint {
        (a.transpose(), Conj::Yes)
    } else {
        (a, Conj::No)
    };
    let v = front::<T>(v, a.ncols(), count);
    let w = matrix_mut::<T>(w, a.nrows(), count, TileLayout::Columns);
    times(w, accumulate(is_first), (a, conjugate), (v, Conj::No), 1.0);
}

fn right_solve<T: FactorScalar>(rows: usize, parts: &[&[u8]], t: &[u8], y: &mut [u8], count: usize) {
    let mut y = matrix_mut::<T>(y, rows, count, TileLayout::Columns);
    y.fill(T::of(0.0));
    for part in parts {
        y += matrix::<T>(part, rows, count, TileLayout::Columns);
    }
    let t = matrix::<T>(t, count, count, TileLayout::Columns);
    // Y T = W is Tᵀ Yᵀ = Wᵀ.
    solve::solve_lower_triangular_in_place(t.transpose(), y.transpose_mut(), Par::Seq);
}

fn left_solve<T: FactorScalar>(
    t: &[u8],
    (m, layout): (&mut [u8], TileLayout),
    columns: usize,
    count: usize,
    is_adjoint: bool,
) {
    let m = matrix_mut::<T>(m, count, columns, layout);
    let t = matrix::<T>(t, count, count, TileLayout::Columns);
    match is_adjoint {
        true => solve::solve_lower_triangular_in_place_with_conj(t.transpose(), Conj::Yes, m, Par::Seq),
        false => solve::solve_upper_triangular_in_place(t, m, Par::Seq),
    }
}

fn halved<T: FactorScalar>(rows: usize, v: &[u8], m: &[u8], y: &mut [u8], count: usize) {
    let y = matrix_mut::<T>(y, rows, count, TileLayout::Columns);
    let m = matrix::<T>(m, count, count, TileLayout::Columns);
    times(y, Accum::Add, (front(v, rows, count), Conj::No), (m, Conj::No), -0.5);
}

fn subtract_of<T: FactorScalar>(
    v: &[u8],
    w: &[u8],
    (c, layout): (&mut [u8], TileLayout),
    columns: usize,
    count: usize,
) {
    let rows = rows_of::<T>(c, columns);
    let c = matrix_mut::<T>(c, rows, columns, layout);
    let w = matrix::<T>(w, count, columns, layout);
    times(c, Accum::Add, (front(v, rows, count), Conj::No), (w, Conj::No), -1.0);
}

fn project<T: FactorScalar>(
    v: &[u8],
    (c, w, layout): (&[u8], &mut [u8], TileLayout),
    columns: usize,
    count: usize,
    is_first: bool,
) {
    let rows = rows_of::<T>(c, columns);
    let v = front::<T>(v, rows, count).transpose();
    let c = matrix::<T>(c, rows, columns, layout);
    let w = matrix_mut::<T>(w, count, columns, layout);
    times(w, accumulate(is_first), (v, Conj::Yes), (c, Conj::No), 1.0);
}

fn panel<T: FactorScalar>(width: usize, tiles: &mut [&mut [u8]], r: &mut [u8], t: &mut [u8], mut spare: Spare<'_>) {
    let mut blocks: Vec<MatMut<'_, T>> = tiles
        .iter_mut()
        .map(|tile| {
            let rows = rows_of::<T>(tile, width);
            matrix_mut::<T>(tile, rows, width, TileLayout::Columns)
        })
        .collect();
    let count = width.min(blocks[0].nrows());
    let mut r = matrix_mut::<T>(r, count, width, TileLayout::Columns);
    r.fill(T::of(0.0));
    let mut t = matrix_mut::<T>(t, count, count, TileLayout::Columns);
    t.fill(T::of(0.0));
    let space = spare.take::<T>(width * width);
    let mut columns = PanelColumns {
        blocks: blocks.iter_mut().map(|block| block.as_mut()).collect(),
        r: r.as_mut(),
        t: t.as_mut(),
        space,
    };
    columns.reflect(0, count);
    if count < width {
        // Columns behind the last reflector are those of R.
        columns.turn([0, count], count..width);
        for column in count..width {
            for row in 0..count {
                columns.r[(row, column)] = columns.blocks[0][(row, column)];
            }
        }
    }
}

/// Sums of squares beside each other: one alone rounds to one side where all elements are equal.
const LANES: usize = 64;

/// The first row of a block that reflectors from a column on have.
fn first_row(block: usize, column: usize) -> usize {
    if block == 0 {
        column
    } else {
        0
    }
}

/// A panel whose columns become reflectors, one half after the other.
struct PanelColumns<'a, T> {
    blocks: Vec<MatMut<'a, T>>,
    r: MatMut<'a, T>,
    t: MatMut<'a, T>,
    space: &'a mut [T],
}

impl<T: FactorScalar> PanelColumns<'_, T> {
    fn reflect(&mut self, start: usize, count: usize) {
        if count == 1 {
            return self.reflector(start);
        }
        let half = count / 2;
        self.reflect(start, half);
        self.turn([start, half], start + half..start + count);
        self.reflect(start + half, count - half);
        // T above its diagonal.
        let mut together = self.t.as_mut().submatrix_mut(start, start + half, half, count - half);
        for (number, block) in self.blocks.iter().enumerate() {
            let first = first_row(number, start + half);
            let rows = block.nrows() - first;
            let left = block.as_ref().submatrix(first, start, rows, half);
            let right = block.as_ref().submatrix(first, start + half, rows, count - half);
            times(
                together.as_mut(),
                accumulate(number == 0),
                (left.transpose(), Conj::Yes),
                (right, Conj::No),
                1.0,
            );
        }
    }

    /// Columns behind reflectors, by their adjoint.
    fn turn(&mut self, [start, count]: [usize; 2], columns: std::ops::Range<usize>) {
        let width = columns.len();
        let mut w = MatMut::from_column_major_slice_mut(&mut self.space[..count * width], count, width);
        for (number, block) in self.blocks.iter().enumerate() {
            let first = first_row(number, start);
            let rows = block.nrows() - first;
            let v = block.as_ref().submatrix(first, start, rows, count);
            let c = block.as_ref().submatrix(first, columns.start, rows, width);
            times(
                w.as_mut(),
                accumulate(number == 0),
                (v.transpose(), Conj::Yes),
                (c, Conj::No),
                1.0,
            );
        }
        let t = self.t.as_ref().submatrix(start, start, count, count);
        solve::solve_lower_triangular_in_place_with_conj(t.transpose(), Conj::Yes, w.as_mut(), Par::Seq);
        for (number, block) in self.blocks.iter_mut().enumerate() {
            let first = first_row(number, start);
            let rows = block.nrows() - first;
            let (left, right) = block.as_mut().split_at_col_mut(columns.start);
            let v = left.as_ref().submatrix(first, start, rows, count);
            let c = right.submatrix_mut(first, 0, rows, width);
            times(c, Accum::Add, (v, Conj::No), (w.as_ref(), Conj::No), -1.0);
        }
    }

    /// The reflector of a column, which begins at its diagonal.
    fn reflector(&mut self, column: usize) {
        for row in 0..column {
            self.r[(row, column)] = self.blocks[0][(row, column)];
            self.blocks[0][(row, column)] = T::of(0.0);
        }
        let alpha = self.blocks[0][(column, column)];
        let mut most = 0.0;
        self.each_tail(column, |value| most = larger(value.size(), most));
        let factor = factor_of(larger(alpha.size(), most));
        let scale = most * factor;
        let (mut parts, mut lane) = ([0.0; LANES], 0);
        if scale > 0.0 {
            self.each_tail(column, |value| {
                let part = value.size() * factor / scale;
                parts[lane] += part * part;
                lane = (lane + 1) % LANES;
            });
        }
        let squares: f64 = parts.iter().sum();
        let Reflection {
            beta,
            factor,
            head,
            tau,
        } = Reflection::new(alpha, scale * squares.sqrt(), factor);
        self.r[(column, column)] = beta;
        self.t[(column, column)] = T::of(tau);
        self.each_tail(column, |value| {
            *value = match tau.is_infinite() {
                true => T::of(0.0),
                false => value.times(T::of(factor)).over(head),
            };
        });
        self.blocks[0][(column, column)] = T::of(1.0);
    }

    fn each_tail(&mut self, column: usize, mut each: impl FnMut(&mut T)) {
        for number in 0..self.blocks.len() {
            for row in first_row(number, column + 1)..self.blocks[number].nrows() {
                each(&mut self.blocks[number][(row, column)]);
            }
        }
    }
}

/// A reflector I − v vᴴ ÷ τ: the first element becomes `beta`, and v has those below times `factor` and divided by `head`.
/// Without any below there is no reflector, and τ is infinite.
pub(super) struct Reflection<T> {
    pub beta: T,
    pub factor: f64,
    pub head: T,
    pub tau: f64,
}

/// Sizes below which columns are multiplied by a power of two: their inverses are no numbers, or they have few digits.
const TINY: f64 = 1e-280;
/// A power of two that makes numbers of them.
const LARGE: f64 = 1.2676506002282294e30;

/// The factor of a column before its norm is taken, by its largest size: subnormal numbers become normal.
pub(super) fn factor_of(largest: f64) -> f64 {
    if largest < TINY {
        LARGE.powi(2)
    } else {
        1.0
    }
}

impl<T: FactorScalar> Reflection<T> {
    /// Of a first element, and the norm of those below times `factor`.
    pub fn new(alpha: T, tail: f64, factor: f64) -> Reflection<T> {
        if tail == 0.0 {
            return Reflection {
                beta: alpha,
                factor: 1.0,
                head: T::of(1.0),
                tau: f64::INFINITY,
            };
        }
        let alpha = alpha.times(T::of(factor));
        let size = alpha.size();
        let norm = size.hypot(tail);
        // Far below the rest the first element has no direction that counts.
        let sign = if size < f64::MIN_POSITIVE {
            T::of(1.0)
        } else {
            alpha.over(T::of(size))
        };
        let share = tail / (size + norm);
        Reflection {
            beta: sign.times(T::of(-norm / factor)),
            factor,
            head: sign.times(T::of(size + norm)),
            tau: 0.5 * (1.0 + share * share),
        }
    }
}
