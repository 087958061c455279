//! Products with the reflectors of both chases, of rows of two tiles below each other.
//!
//! Reflectors of sweeps behind each other, at the same step, begin one row below each other: those of a few are one block of hardly
//! more rows than one has (Bischof, Lang and Sun (2000), section 3.3).

use std::ops::Range;

use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::blocks::{split, BlockChase};
use super::sweeps::SweepRecord;
use super::Hermitian;
use crate::factor::pivot_block::{matrix_mut, rows_of, TileLayout};
use crate::factor::scalar::{times, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

impl Hermitian {
    /// `C := Q C` for the steps of blocks of columns whose reflectors a tile has, from `first` on, where `c` are the tiles of rows
    /// from `top` on, row by row.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn turn_blocks(
        &self,
        steps: &[BlockChase],
        reflectors: &[u8],
        (top, columns, c): (usize, usize, &mut [&mut [u8]]),
        workspace: &mut [u8],
    ) {
        in_type!(
            self,
            turn_blocks(steps, reflectors, (top, columns, c), Spare::new(workspace))
        );
    }

    /// `C := Q C` for a tile of reflectors of sweeps from `sweep` on, with steps from `step` on; `c` as in
    /// [`Hermitian::turn_blocks`].
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn turn_sweeps(
        &self,
        record: &SweepRecord,
        (sweep, step, reflectors): (usize, usize, &[u8]),
        (top, columns, c): (usize, usize, &mut [&mut [u8]]),
        workspace: &mut [u8],
    ) {
        in_type!(
            self,
            turn_sweeps(
                record,
                (sweep, step, reflectors),
                (top, columns, c),
                Spare::new(workspace)
            )
        );
    }

    /// Bytes of the workspace of both, for so many reflectors together and columns.
    pub fn turn_bytes(&self, width: usize, columns: usize) -> usize {
        in_type!(self, turn_bytes_of(width, columns)) + SKIPPED
    }

    /// `C := C + D W`, or without C if `is_first`, of a real W and a diagonal D; both row by row.
    ///
    /// # Panics
    /// When a slice has not the length that the sizes give.
    pub fn add_scaled(&self, diagonal: &[u8], w: &[f64], c: &mut [u8], columns: usize, is_first: bool) {
        in_type!(self, add_scaled(diagonal, w, c, columns, is_first));
    }
}

fn turn_bytes_of<T: FactorScalar>(width: usize, columns: usize) -> usize {
    taken::<T>(&[width * columns, 2 * width * width, width * width])
}

/// `C := C − V T⁻¹ Vᴴ C`, where C is rows of the tiles from `top` on.
fn turn<T: FactorScalar>(
    (v, t): (MatRef<'_, T>, MatRef<'_, T>),
    rows: &Range<usize>,
    (top, columns, c): (usize, usize, &mut [&mut [u8]]),
    space: &mut [T],
) {
    let count = v.ncols();
    let mut w = MatMut::from_row_major_slice_mut(&mut space[..count * columns], count, columns);
    let mut each = |step: &mut dyn FnMut(MatRef<'_, T>, MatMut<'_, T>)| {
        let mut first = top;
        for tile in c.iter_mut() {
            let height = rows_of::<T>(tile, columns);
            let own = rows.start.max(first)..rows.end.min(first + height);
            if !own.is_empty() {
                let c = matrix_mut::<T>(tile, height, columns, TileLayout::Rows);
                let v = v.subrows(own.start - rows.start, own.len());
                step(v, c.subrows_mut(own.start - first, own.len()));
            }
            first += height;
        }
    };
    let mut accum = Accum::Replace;
    each(&mut |v, c| {
        times(
            w.as_mut(),
            accum,
            (v.transpose(), Conj::Yes),
            (c.as_ref(), Conj::No),
            1.0,
        );
        accum = Accum::Add;
    });
    solve::solve_upper_triangular_in_place(t, w.as_mut(), Par::Seq);
    each(&mut |v, c| times(c, Accum::Add, (v, Conj::No), (w.as_ref(), Conj::No), -1.0));
}

fn turn_blocks<T: FactorScalar>(
    steps: &[BlockChase],
    reflectors: &[u8],
    (top, columns, c): (usize, usize, &mut [&mut [u8]]),
    mut spare: Spare<'_>,
) {
    let Some(sizes) = steps.first().map(|step| [step.band, step.width]) else {
        return;
    };
    let space = spare.take::<T>(sizes[1] * columns);
    let each = BlockChase::elements(sizes) * size_of::<T>();
    for (step, own) in steps.iter().zip(reflectors.chunks_exact(each)).rev() {
        let of = split::<T>(sizes, step.rows.len(), own);
        turn(of, &step.rows, (top, columns, &mut *c), space);
    }
}

fn turn_sweeps<T: FactorScalar>(
    record: &SweepRecord,
    (first_sweep, first_step, reflectors): (usize, usize, &[u8]),
    (top, columns, c): (usize, usize, &mut [&mut [u8]]),
    mut spare: Spare<'_>,
) {
    let (width, reflectors) = (record.width, bytemuck::cast_slice::<u8, T>(reflectors));
    let together = together(width);
    let space = spare.take::<T>(width * columns);
    let (v_space, t_space) = (spare.take::<T>(2 * width * width), spare.take::<T>(width * width));
    for sweep in (first_sweep..first_sweep + record.side).step_by(together).rev() {
        for step in first_step..first_step + record.steps() {
            let rows = record.rows_of(sweep, step);
            let rows = rows.start..record.rows.min(rows.end + together - 1);
            if rows.len() < 2 {
                break;
            }
            let v_space = &mut v_space[..rows.len() * together];
            let mut v = MatMut::from_column_major_slice_mut(v_space, rows.len(), together);
            let mut t = MatMut::from_column_major_slice_mut(&mut t_space[..together * together], together, together);
            v.fill(T::of(0.0));
            for column in 0..together {
                let place = record.place(sweep + column, step);
                let own = &reflectors[place..place + width];
                for (below, &value) in own.iter().enumerate().take(rows.len().saturating_sub(column)) {
                    v[(column + below, column)] = value;
                }
            }
            let of = (v.as_ref().transpose(), Conj::Yes);
            times(t.as_mut(), Accum::Replace, of, (v.as_ref(), Conj::No), 1.0);
            for column in 0..together {
                let tau = reflectors[record.place(sweep + column, step) + width];
                // A place without a reflector is cleared.
                t[(column, column)] = if tau.size() == 0.0 { T::of(1.0) } else { tau };
            }
            turn((v.as_ref(), t.as_ref()), &rows, (top, columns, &mut *c), space);
        }
    }
}

/// Reflectors of a width that make one block: a quarter as many, which has zeros in a fifth of its elements.
fn together(width: usize) -> usize {
    (width / 4).max(1)
}

fn add_scaled<T: FactorScalar + std::ops::Add<Output = T>>(
    diagonal: &[u8],
    w: &[f64],
    c: &mut [u8],
    columns: usize,
    is_first: bool,
) {
    let (diagonal, c): (&[T], &mut [T]) = (bytemuck::cast_slice(diagonal), bytemuck::cast_slice_mut(c));
    for ((c, w), &factor) in c.chunks_exact_mut(columns).zip(w.chunks_exact(columns)).zip(diagonal) {
        for (c, &w) in c.iter_mut().zip(w) {
            let own = factor.times(T::of(w));
            *c = if is_first { own } else { own + *c };
        }
    }
}
