//! A band to a narrow one: some columns at a time become a triangle, and what that puts below the band is chased down to its end.
//!
//! Bischof, Lang and Sun (2000), section 3.2, with as many columns at a time as the narrow band is wide.

use std::ops::Range;

use faer::linalg::qr::no_pivoting::factor as qr;
use faer::linalg::triangular_solve as solve;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::band::{BandShape, BandTiles};
use super::Hermitian;
use crate::factor::pivot_block::{matrix_mut, TileLayout};
use crate::factor::scalar::{times, FactorScalar};
use crate::spare::{taken, Spare, SKIPPED};

/// A step of the chase of a block of columns: `width` columns from `start` on, whose elements of `rows` become a triangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockChase {
    /// The half width of the band.
    pub band: usize,
    pub width: usize,
    pub start: usize,
    pub rows: Range<usize>,
}

impl BlockChase {
    /// The step of a block of columns, nothing behind the last.
    pub fn of(rows: usize, [band, width]: [usize; 2], block: usize, step: usize) -> Option<BlockChase> {
        let first = (block + 1) * width + step * band;
        let start = if step == 0 { block * width } else { first - band };
        (first < rows).then(|| BlockChase {
            band,
            width,
            start,
            rows: first..rows.min(first + band),
        })
    }

    /// Columns whose elements change.
    pub fn columns(&self) -> Range<usize> {
        self.start..self.rows.end
    }

    pub fn count(&self) -> usize {
        self.rows.len().min(self.width)
    }

    /// Elements of the reflectors of a step and their triangle, whatever its rows.
    pub fn elements([band, width]: [usize; 2]) -> usize {
        band * width + width * width
    }
}

impl Hermitian {
    /// A step of a chase in the tiles of a band that have its columns. `reflectors` becomes V and, behind the place of a whole one,
    /// T.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn chase(
        &self,
        step: &BlockChase,
        (shape, tiles): (BandShape, &mut [&mut [u8]]),
        reflectors: &mut [u8],
        workspace: &mut [u8],
    ) {
        in_type!(self, chase(step, (shape, tiles), reflectors, Spare::new(workspace)));
    }

    /// Bytes of the workspace of [`Hermitian::chase`].
    pub fn chase_bytes(&self, sizes: [usize; 2]) -> usize {
        in_type!(self, chase_bytes_of(sizes)) + SKIPPED
    }
}

fn chase_bytes_of<T: FactorScalar>([band, width]: [usize; 2]) -> usize {
    let request = qr::qr_in_place_scratch::<T>(band, width, width, Par::Seq, Default::default());
    taken::<T>(&[band * band, band * width, width * width, band * width]) + request.size_bytes() + request.align_bytes()
}

/// V and T of a step, which lie in the place of one.
pub(super) fn split<'a, T: FactorScalar>(
    [band, width]: [usize; 2],
    rows: usize,
    reflectors: &'a [u8],
) -> (MatRef<'a, T>, MatRef<'a, T>) {
    let reflectors: &[T] = bytemuck::cast_slice(reflectors);
    let count = rows.min(width);
    let v = MatRef::from_column_major_slice(&reflectors[..rows * count], rows, count);
    let t = &reflectors[band * width..band * width + count * count];
    (v, MatRef::from_column_major_slice(t, count, count))
}

fn chase<T: FactorScalar>(
    step: &BlockChase,
    (shape, tiles): (BandShape, &mut [&mut [u8]]),
    reflectors: &mut [u8],
    mut spare: Spare<'_>,
) {
    let (rows, count, sizes) = (&step.rows, step.count(), [step.band, step.width]);
    let first = shape.tiles_of(step.columns()).start;
    let mut band = BandTiles::<T>::new(shape, first, tiles);
    let whole = spare.take::<T>(step.band * step.band);
    let products = spare.take::<T>(step.band * step.width);
    let middle = spare.take::<T>(step.width * step.width);
    factorize(step, &mut band, reflectors, (products, middle), &mut spare);
    let (v, t) = split::<T>(sizes, rows.len(), reflectors);

    // The rest of the columns on the left, by the adjoint.
    band.each_block(rows, step.start + step.width..rows.start, |own, mut c| {
        let mut w = MatMut::from_column_major_slice_mut(&mut whole[..count * own.len()], count, own.len());
        times(
            w.as_mut(),
            Accum::Replace,
            (v.transpose(), Conj::Yes),
            (c.as_ref(), Conj::No),
            1.0,
        );
        solve::solve_lower_triangular_in_place_with_conj(t.transpose(), Conj::Yes, w.as_mut(), Par::Seq);
        times(c.as_mut(), Accum::Add, (v, Conj::No), (w.as_ref(), Conj::No), -1.0);
    });

    // The diagonal block, from both sides.
    let height = rows.len();
    let mut a = MatMut::from_column_major_slice_mut(&mut whole[..height * height], height, height);
    band.take_diagonal(rows, a.as_mut());
    let mut y = MatMut::from_column_major_slice_mut(&mut products[..height * count], height, count);
    times(y.as_mut(), Accum::Replace, (a.as_ref(), Conj::No), (v, Conj::No), 1.0);
    solve::solve_lower_triangular_in_place(t.transpose(), y.as_mut().transpose_mut(), Par::Seq);
    let mut m = MatMut::from_column_major_slice_mut(&mut middle[..count * count], count, count);
    times(
        m.as_mut(),
        Accum::Replace,
        (v.transpose(), Conj::Yes),
        (y.as_ref(), Conj::No),
        1.0,
    );
    solve::solve_lower_triangular_in_place_with_conj(t.transpose(), Conj::Yes, m.as_mut(), Par::Seq);
    times(y.as_mut(), Accum::Add, (v, Conj::No), (m.as_ref(), Conj::No), -0.5);
    for (left, right) in [(v, y.as_ref()), (y.as_ref(), v)] {
        times(
            a.as_mut(),
            Accum::Add,
            (left, Conj::No),
            (right.transpose(), Conj::Yes),
            -1.0,
        );
    }
    band.put_diagonal(rows, a.as_ref());

    // Rows below, from the right.
    let below = rows.end..shape.rows.min(rows.end + step.band);
    if below.is_empty() {
        return;
    }
    let mut u = MatMut::from_column_major_slice_mut(&mut products[..below.len() * count], below.len(), count);
    band.each_block(&below, rows.clone(), |own, c| {
        let v = v.subrows(own.start - rows.start, own.len());
        let accum = if own.start == rows.start {
            Accum::Replace
        } else {
            Accum::Add
        };
        times(u.as_mut(), accum, (c.as_ref(), Conj::No), (v, Conj::No), 1.0);
    });
    solve::solve_lower_triangular_in_place(t.transpose(), u.as_mut().transpose_mut(), Par::Seq);
    band.each_block(&below, rows.clone(), |own, c| {
        let v = v.subrows(own.start - rows.start, own.len());
        times(c, Accum::Add, (u.as_ref(), Conj::No), (v.transpose(), Conj::Yes), -1.0);
    });
}

/// The reflectors of the first columns of a step, which become a triangle.
fn factorize<T: FactorScalar>(
    step: &BlockChase,
    band: &mut BandTiles<'_, T>,
    reflectors: &mut [u8],
    (panel, triangle): (&mut [T], &mut [T]),
    spare: &mut Spare<'_>,
) {
    let (height, count) = (step.rows.len(), step.count());
    let columns = step.start..step.start + step.width;
    let mut panel = MatMut::from_column_major_slice_mut(&mut panel[..height * step.width], height, step.width);
    band.each_block(&step.rows, columns.clone(), |own, block| {
        panel
            .as_mut()
            .subcols_mut(own.start - columns.start, own.len())
            .copy_from(block);
    });
    let mut t = MatMut::from_column_major_slice_mut(&mut triangle[..count * count], count, count);
    t.fill(T::of(0.0));
    qr::qr_in_place(panel.as_mut(), t.as_mut(), Par::Seq, spare.stack(), Default::default());
    band.each_block(&step.rows, columns.clone(), |own, mut block| {
        let first = own.start - columns.start;
        for column in 0..own.len() {
            for row in 0..height {
                let is_above = row <= first + column;
                block[(row, column)] = if is_above {
                    panel[(row, first + column)]
                } else {
                    T::of(0.0)
                };
            }
        }
    });
    let (v, behind) = reflectors.split_at_mut(step.band * step.width * size_of::<T>());
    let mut v = matrix_mut::<T>(
        &mut v[..height * count * size_of::<T>()],
        height,
        count,
        TileLayout::Columns,
    );
    for column in 0..count {
        for row in 0..height {
            v[(row, column)] = match row.cmp(&column) {
                std::cmp::Ordering::Less => T::of(0.0),
                std::cmp::Ordering::Equal => T::of(1.0),
                std::cmp::Ordering::Greater => panel[(row, column)],
            };
        }
    }
    matrix_mut::<T>(
        &mut behind[..count * count * size_of::<T>()],
        count,
        count,
        TileLayout::Columns,
    )
    .copy_from(t);
}
