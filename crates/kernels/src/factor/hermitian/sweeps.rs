//! A narrow band to a tridiagonal matrix: one column at a time loses all but its first element below the diagonal, and what that puts
//! below the band is chased down to its end, reflector by reflector.
//!
//! Bischof, Lang and Sun (2000), section 3.1. A span of sweeps goes through a stretch of the band together: sweep j does step
//! u − 2 j for each u of the span, so that spans follow one another as tasks.

use std::ops::{Add, AddAssign, Mul, MulAssign, Range, SubAssign};

use super::band::{BandShape, BandTiles};
use super::panels::{factor_of, Reflection};
use super::Hermitian;
use crate::factor::scalar::FactorScalar;
use crate::fence::shells::TilesBody;

/// How the reflectors of sweeps lie in tiles: `side` sweeps and as many steps as reflectors of `width` elements fill `side` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRecord {
    pub rows: usize,
    pub side: usize,
    pub width: usize,
}

impl SweepRecord {
    /// Steps of a tile.
    pub fn steps(&self) -> usize {
        self.side / self.width
    }

    /// Elements of a tile: those of each reflector, and its τ.
    pub fn elements(&self) -> usize {
        self.side * self.steps() * (self.width + 1)
    }

    /// Tiles of so many sweeps from a multiple of `side` on.
    pub fn tiles(&self, sweeps: usize) -> usize {
        // Two rows at least have a reflector.
        (self.rows.saturating_sub(sweeps * self.side + 2)).div_ceil(self.side)
    }

    /// Where a reflector lies in its tile.
    #[inline(always)]
    pub(super) fn place(&self, sweep: usize, step: usize) -> usize {
        (step % self.steps() * self.side + sweep % self.side) * (self.width + 1)
    }

    /// Rows that a reflector has, no, or one, where there is none.
    #[inline(always)]
    pub(super) fn rows_of(&self, sweep: usize, step: usize) -> Range<usize> {
        let first = (sweep + 1 + step * self.width).min(self.rows);
        first..self.rows.min(first + self.width)
    }
}

/// Sweeps, and steps of the first of them, that are done together: each next sweep is two steps behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepSpan {
    pub sweeps: Range<usize>,
    pub steps: Range<usize>,
}

impl SweepSpan {
    /// Steps of a sweep.
    fn steps_of(&self, sweep: usize) -> Range<usize> {
        // A step needs two more of the sweep before, whose last row is one of its own below.
        let behind = 2 * (sweep - self.sweeps.start);
        self.steps.start.saturating_sub(behind)..self.steps.end.saturating_sub(behind)
    }

    /// Sweeps and steps that have a reflector, and its rows.
    fn reflectors<'a>(&'a self, record: &'a SweepRecord) -> impl Iterator<Item = (usize, usize, Range<usize>)> + 'a {
        self.sweeps.clone().flat_map(move |sweep| {
            let rows = self
                .steps_of(sweep)
                .map(move |step| (sweep, step, record.rows_of(sweep, step)));
            rows.take_while(|(_, _, rows)| rows.len() > 1)
        })
    }

    /// Columns of the band that the span touches; none where it has nothing to do.
    pub fn columns(&self, record: &SweepRecord) -> Range<usize> {
        union(self.reflectors(record).map(|(sweep, step, rows)| {
            let start = if step == 0 { sweep } else { rows.start - record.width };
            start..rows.end
        }))
    }

    /// Tiles of reflectors that the span writes, of its row of them.
    pub fn records(&self, record: &SweepRecord) -> Range<usize> {
        let tile = |step: usize| step / record.steps();
        union(self.reflectors(record).map(|(_, step, _)| tile(step)..tile(step) + 1))
    }
}

/// The least range that has all of some.
fn union(ranges: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    let joined = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
    ranges.reduce(joined).unwrap_or(0..0)
}

impl Hermitian {
    /// A span of sweeps over the tiles of a band that have its columns; `records` are the tiles of its reflectors, those that are new
    /// cleared.
    ///
    /// # Panics
    /// When a tile has not the length that the sizes give.
    pub fn sweep(
        &self,
        span: &SweepSpan,
        record: &SweepRecord,
        (shape, tiles): (BandShape, &mut [&mut [u8]]),
        records: &mut [&mut [u8]],
        workspace: &mut [u8],
    ) {
        in_type!(self, sweep(span, record, (shape, tiles), records, workspace));
    }

    /// Bytes of the workspace of [`Hermitian::sweep`].
    pub fn sweep_bytes(&self, record: &SweepRecord) -> usize {
        2 * record.width * self.dtype.size() + 64
    }

    /// Elements of the diagonal and below it of a tile of a tridiagonal band, `width` columns.
    pub fn tridiagonal(&self, width: usize, band: &[u8], mut each: impl FnMut(usize, f64, [f64; 2])) {
        match self.dtype {
            outcore_dtype::DType::F64 => {
                let band: &[f64] = bytemuck::cast_slice(band);
                let depth = band.len() / width.max(1);
                for (column, own) in band.chunks_exact(depth).enumerate() {
                    each(column, own[0], [own[1], 0.0]);
                }
            }
            _ => {
                let band: &[[f64; 2]] = bytemuck::cast_slice(band);
                let depth = band.len() / width.max(1);
                for (column, own) in band.chunks_exact(depth).enumerate() {
                    each(column, own[0][0], own[1]);
                }
            }
        }
    }
}

/// Numbers as loops over them take them.
trait LoopNumber: FactorScalar + Add<Output = Self> + Mul<Output = Self> + AddAssign + SubAssign + MulAssign {}
impl<T: FactorScalar + Add<Output = T> + Mul<Output = T> + AddAssign + SubAssign + MulAssign> LoopNumber for T {}

fn sweep<T: LoopNumber>(
    span: &SweepSpan,
    record: &SweepRecord,
    (shape, tiles): (BandShape, &mut [&mut [u8]]),
    records: &mut [&mut [u8]],
    workspace: &mut [u8],
) {
    let sizes = [
        span.sweeps.start,
        span.sweeps.end,
        span.steps.start,
        span.steps.end,
        record.rows,
        record.side,
        record.width,
        shape.depth,
        shape.side,
        shape.tiles_of(span.columns(record)).start,
        span.records(record).start,
    ];
    SpanSweeps::<T>::kernel()(tiles, records, &sizes, workspace);
}

struct SpanSweeps<T>(std::marker::PhantomData<T>);

impl<T: LoopNumber> TilesBody for SpanSweeps<T> {
    #[inline(always)]
    fn run(tiles: &mut [&mut [u8]], results: &mut [&mut [u8]], sizes: &[usize], space: &mut [u8]) {
        let &[sweep, sweeps, step, steps, rows, side, width, depth, columns, first, first_record] = sizes else {
            return;
        };
        let (span, record) = (
            SweepSpan {
                sweeps: sweep..sweeps,
                steps: step..steps,
            },
            SweepRecord { rows, side, width },
        );
        let shape = BandShape {
            rows,
            side: columns,
            depth,
        };
        let mut band = BandTiles::<T>::new(shape, first, tiles);
        let mut space = crate::spare::Spare::new(space);
        let y = space.take::<T>(width);
        for sweep in span.sweeps.clone() {
            for step in span.steps_of(sweep) {
                let own = record.rows_of(sweep, step);
                if own.len() < 2 {
                    break;
                }
                let tile: &mut [T] = bytemuck::cast_slice_mut(results[step / record.steps() - first_record]);
                let place = record.place(sweep, step);
                let (v, tau) = tile[place..place + width + 1].split_at_mut(width);
                let start = if step == 0 { sweep } else { own.start - width };
                tau[0] = T::of(reflect(&mut band, start, &own, v));
                if !tau[0].real().is_finite() && !tau[0].real().is_nan() {
                    // No reflector.
                    v.fill(T::zeroed());
                    tau[0] = T::of(1.0);
                    continue;
                }
                let inverse = T::of(1.0 / tau[0].real());
                turn(&mut band, start, &own, &v[..own.len()], inverse, y);
            }
        }
    }
}

/// The reflector of a column, which is left with one element of `rows`.
#[inline(always)]
fn reflect<T: LoopNumber>(band: &mut BandTiles<'_, T>, start: usize, rows: &Range<usize>, v: &mut [T]) -> f64 {
    let column = &mut band.column(start)[rows.start - start..rows.end - start];
    let mut most = 0.0f64;
    for &value in &column[1..] {
        let size = value.sum_of_parts();
        most = if size > most || size.is_nan() { size } else { most };
    }
    let first = column[0].sum_of_parts();
    let factor = factor_of(if first > most { first } else { most });
    let scale = most * factor;
    let mut squares = 0.0;
    if scale > 0.0 {
        for value in &column[1..] {
            let part = value.size() * factor / scale;
            squares += part * part;
        }
    }
    let Reflection {
        beta,
        factor,
        head,
        tau,
    } = Reflection::new(column[0], scale * squares.sqrt(), factor);
    v.fill(T::zeroed());
    v[0] = T::of(1.0);
    for (v, value) in v[1..].iter_mut().zip(&mut column[1..]) {
        *v = (*value * T::of(factor)).over(head);
        *value = T::zeroed();
    }
    column[0] = beta;
    tau
}

/// Elements of a row by those of another, conjugate ones, added up.
#[inline(always)]
fn dot<T: LoopNumber>(left: &[T], right: &[T]) -> T {
    const LANES: usize = 8;
    let mut sums = [T::zeroed(); LANES];
    let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = lefts.remainder().iter().zip(rights.remainder());
    let mut last = T::zeroed();
    for (&left, &right) in rest {
        last += left.conjugate() * right;
    }
    for (left, right) in lefts.zip(rights) {
        for lane in 0..LANES {
            sums[lane] += left[lane].conjugate() * right[lane];
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + last
}

#[inline(always)]
fn add<T: LoopNumber>(to: &mut [T], factor: T, from: &[T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// Turns the band by a reflector: the columns before its own on the left, its diagonal block from both sides, and the
/// rows below from the right.
#[inline(always)]
fn turn<T: LoopNumber>(
    band: &mut BandTiles<'_, T>,
    start: usize,
    rows: &Range<usize>,
    v: &[T],
    inverse: T,
    space: &mut [T],
) {
    let minus = T::of(-1.0);
    for column in start + 1..rows.start {
        let own = &mut band.column(column)[rows.start - column..rows.end - column];
        let product = dot(v, own) * inverse * minus;
        add(own, product, v);
    }

    let height = rows.len();
    let y = &mut space[..height];
    y.fill(T::zeroed());
    for place in 0..height {
        let own = &band.column(rows.start + place)[..height - place];
        let below = &own[1..];
        let sum = dot(below, &v[place + 1..]) + T::of(own[0].real()) * v[place];
        y[place] += sum;
        add(&mut y[place + 1..], v[place], below);
    }
    for y in &mut *y {
        *y *= inverse;
    }
    let middle = dot(v, y) * inverse * T::of(-0.5);
    add(y, middle, v);
    for place in 0..height {
        let own = &mut band.column(rows.start + place)[..height - place];
        let factors = [y[place].conjugate(), v[place].conjugate()];
        for ((own, &v), &y) in own.iter_mut().zip(&v[place..]).zip(&y[place..]) {
            *own -= v * factors[0] + y * factors[1];
        }
    }

    let below = rows.end..band.shape.rows.min(rows.end + band.shape.depth / 2);
    if below.is_empty() {
        return;
    }
    let sums = &mut space[..below.len()];
    sums.fill(T::zeroed());
    for (place, &v) in v.iter().enumerate() {
        let column = rows.start + place;
        add(sums, v, &band.column(column)[below.start - column..below.end - column]);
    }
    for (place, &v) in v.iter().enumerate() {
        let column = rows.start + place;
        let factor = v.conjugate() * inverse * minus;
        add(
            &mut band.column(column)[below.start - column..below.end - column],
            factor,
            sums,
        );
    }
}
