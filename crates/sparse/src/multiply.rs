//! Products of a tile with a dense block, in any semiring.
//!
//! Entries are taken row by row in the order of their columns, and every column of the dense block has sums of its own: so
//! results have the same bits however many columns stand beside each other.

use std::marker::PhantomData;

use outcore_dtype::DType;
use outcore_kernels::{SparseTile, TileBody};

use super::semiring::{complex, float32, float64, int64, truth, Ring};
use super::tile::{Malformed, Segment, Tile};
use super::Semiring;

/// Adds the product of a tile and a dense block to another block.
pub type TileProduct = fn(SparseTile<'_>, &[u8], &mut [u8], &mut Option<&'static str>);

/// Sums of the tile's rows, with or without values of its own.
struct Forward<R, const VALUES: bool>(PhantomData<R>);
/// The same of the transposed tile.
struct Transposed<R, const VALUES: bool>(PhantomData<R>);

/// A tile times the rows of `x`, added to those of `y`; both are `width` elements wide.
///
/// # Errors
/// Segments that cannot be told apart; `y` may have been added to.
///
/// # Panics
/// Rows or columns outside of `x` and `y`, which [`super::check_tile_row`] has refused.
pub fn multiply_tile(
    kernel: TileProduct,
    tile: Tile<'_>,
    width: usize,
    x: &[u8],
    y: &mut [u8],
) -> Result<(), Malformed> {
    let operands = SparseTile {
        bytes: tile.bytes,
        segments: tile.segments,
        entries: tile.entries,
        values: tile.values,
        width,
    };
    let mut fault = None;
    kernel(operands, x, y, &mut fault);
    fault.map_or(Ok(()), |fault| Err(Malformed(fault)))
}

/// Calls `each` with every segment and the values of its entries, if there are any.
#[inline(always)]
fn for_segments<T: bytemuck::Pod, const VALUES: bool>(
    operands: SparseTile<'_>,
    fault: &mut Option<&'static str>,
    mut each: impl FnMut(&Segment<'_>, &[T]),
) {
    let tile = Tile {
        block: 0,
        entries: operands.entries,
        bytes: operands.bytes,
        segments: operands.segments,
        values: operands.values,
    };
    let mut values: &[T] = if VALUES { bytemuck::cast_slice(tile.values) } else { &[] };
    for segment in tile.segments() {
        let segment = match segment {
            Ok(segment) => segment,
            Err(Malformed(what)) => return *fault = Some(what),
        };
        let own = segment.columns.len().min(values.len());
        each(&segment, &values[..own]);
        values = &values[own..];
    }
}

impl<R: Ring, const VALUES: bool> TileBody for Forward<R, VALUES> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let width = tile.width;
        for_segments::<R::T, VALUES>(
            tile,
            fault,
            #[inline(always)]
            |segment, values| {
                if width > 1 {
                    let rows = Rows { segment, values, width };
                    return rows.beside::<R, VALUES>(x, y);
                }
                let rows = Rows {
                    segment,
                    values,
                    width: 1,
                };
                match segment.width {
                    1 => rows.add::<R, VALUES, 1, 1>(0, x, y),
                    2 => rows.add::<R, VALUES, 1, 2>(0, x, y),
                    3 => rows.add::<R, VALUES, 1, 3>(0, x, y),
                    _ => rows.add::<R, VALUES, 1, 0>(0, x, y),
                }
            },
        );
    }
}

/// The rows of a segment, beside dense blocks of a width.
struct Rows<'a, T> {
    segment: &'a Segment<'a>,
    values: &'a [T],
    width: usize,
}

impl<T: bytemuck::Pod> Rows<'_, T> {
    /// All columns of the dense block, as many at a time as there are sums in registers.
    #[inline(always)]
    fn beside<R: Ring<T = T>, const VALUES: bool>(&self, x: &[T], y: &mut [T]) {
        let mut lane = 0;
        while lane < self.width {
            lane += match self.width - lane {
                16.. if R::WIDE => self.lanes::<R, VALUES, 16>(lane, x, y),
                8.. if R::WIDE => self.lanes::<R, VALUES, 8>(lane, x, y),
                4.. => self.lanes::<R, VALUES, 4>(lane, x, y),
                2.. if R::WIDE => self.lanes::<R, VALUES, 2>(lane, x, y),
                _ => self.lanes::<R, VALUES, 1>(lane, x, y),
            };
        }
    }

    #[inline(always)]
    fn lanes<R: Ring<T = T>, const VALUES: bool, const W: usize>(&self, lane: usize, x: &[T], y: &mut [T]) -> usize {
        self.add::<R, VALUES, W, 0>(lane, x, y);
        W
    }

    /// `W` columns from `lane` on. Each row has `K` entries, or with 0 as many as the segment says.
    #[inline(always)]
    fn add<R: Ring<T = T>, const VALUES: bool, const W: usize, const K: usize>(
        &self,
        lane: usize,
        x: &[T],
        y: &mut [T],
    ) {
        let (segment, width) = (self.segment, self.width);
        let mut at = 0;
        segment.for_rows(
            #[inline(always)]
            |first, numbers| {
                for (position, row) in numbers.iter().enumerate() {
                    let count = if K > 0 { K } else { segment.count(first + position) };
                    let columns = &segment.columns[at..at + count];
                    let values: &[T] = if VALUES { &self.values[at..at + count] } else { &[] };
                    let value = |entry: usize| if VALUES { values[entry] } else { R::ONE };
                    let sums: &mut [T; W] = y[usize::from(*row) * width + lane..]
                        .first_chunk_mut()
                        .expect("rows are whole");
                    let mut own = *sums;
                    for (entry, column) in columns.iter().enumerate() {
                        let x: &[T; W] = x[usize::from(*column) * width + lane..]
                            .first_chunk()
                            .expect("rows are whole");
                        for lane in 0..W {
                            own[lane] = R::add(own[lane], R::multiply(value(entry), x[lane]));
                        }
                    }
                    *sums = own;
                    at += count;
                }
            },
        );
    }
}

impl<R: Ring, const VALUES: bool> TileBody for Transposed<R, VALUES> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let width = tile.width;
        for_segments::<R::T, VALUES>(
            tile,
            fault,
            #[inline(always)]
            |segment, values| match width {
                1 => scatter::<R, VALUES>(segment, values, 1, x, y),
                _ => scatter::<R, VALUES>(segment, values, width, x, y),
            },
        );
    }
}

/// Adds to the rows of `y` that the columns of a segment are.
#[inline(always)]
fn scatter<R: Ring, const VALUES: bool>(
    segment: &Segment<'_>,
    values: &[R::T],
    width: usize,
    x: &[R::T],
    y: &mut [R::T],
) {
    let mut at = 0;
    segment.for_rows(
        #[inline(always)]
        |first, numbers| {
            for (position, row) in numbers.iter().enumerate() {
                let x = &x[usize::from(*row) * width..][..width];
                let count = segment.count(first + position);
                for (entry, column) in segment.columns[at..at + count].iter().enumerate() {
                    let value = if VALUES { values[at + entry] } else { R::ONE };
                    let sums = &mut y[usize::from(*column) * width..][..width];
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum = R::add(*sum, R::multiply(value, *x));
                    }
                }
                at += count;
            }
        },
    );
}

/// Which way a tile is multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Transposed,
}

/// The kernel of a ring. Only those that have many columns in registers are worth other instructions than every processor
/// has: one column waits for memory.
fn of_ring<R: Ring>(way: Way, valued: bool) -> TileProduct {
    match (way, valued) {
        (Way::Forward, true) if R::WIDE => Forward::<R, true>::kernel(),
        (Way::Forward, false) if R::WIDE => Forward::<R, false>::kernel(),
        (Way::Forward, true) => Forward::<R, true>::run,
        (Way::Forward, false) => Forward::<R, false>::run,
        (Way::Transposed, true) if R::WIDE => Transposed::<R, true>::kernel(),
        (Way::Transposed, false) if R::WIDE => Transposed::<R, false>::kernel(),
        (Way::Transposed, true) => Transposed::<R, true>::run,
        (Way::Transposed, false) => Transposed::<R, false>::run,
    }
}

/// The kernel of a semiring over an ordered type.
macro_rules! ordered_kernel {
    ($module:ident, $semiring:expr, $way:expr, $valued:expr) => {
        match $semiring {
            Semiring::LorLand => return None,
            Semiring::PlusTimes => of_ring::<$module::PlusTimes>($way, $valued),
            Semiring::PlusPair => of_ring::<$module::PlusPair>($way, $valued),
            Semiring::PlusFirst => of_ring::<$module::PlusFirst>($way, $valued),
            Semiring::PlusSecond => of_ring::<$module::PlusSecond>($way, $valued),
            Semiring::MinPlus => of_ring::<$module::MinPlus>($way, $valued),
            Semiring::MaxPlus => of_ring::<$module::MaxPlus>($way, $valued),
            Semiring::MinTimes => of_ring::<$module::MinTimes>($way, $valued),
            Semiring::MaxTimes => of_ring::<$module::MaxTimes>($way, $valued),
            Semiring::MinFirst => of_ring::<$module::MinFirst>($way, $valued),
            Semiring::MinSecond => of_ring::<$module::MinSecond>($way, $valued),
            Semiring::MaxFirst => of_ring::<$module::MaxFirst>($way, $valued),
            Semiring::MaxSecond => of_ring::<$module::MaxSecond>($way, $valued),
            Semiring::AnyPair => of_ring::<$module::AnyPair>($way, $valued),
        }
    };
}

fn kernel(semiring: Semiring, dtype: DType, valued: bool, way: Way) -> Option<TileProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::C64, PlusTimes) => of_ring::<complex::Single>(way, valued),
        (DType::C128, PlusTimes) => of_ring::<complex::Double>(way, valued),
        (DType::Bool, LorLand) => of_ring::<truth::LorLand>(way, valued),
        (DType::Bool, AnyPair) => of_ring::<truth::AnyPair>(way, valued),
        (DType::F64, _) => ordered_kernel!(float64, semiring, way, valued),
        (DType::F32, _) => ordered_kernel!(float32, semiring, way, valued),
        (DType::I64, _) => ordered_kernel!(int64, semiring, way, valued),
        _ => return None,
    })
}

/// The product of a tile in a semiring over elements of a type; `valued` says whether the matrix has values, which are of
/// that type. Nothing where the type does not make the semiring.
pub fn product_kernel(semiring: Semiring, dtype: DType, valued: bool) -> Option<TileProduct> {
    kernel(semiring, dtype, valued, Way::Forward)
}

/// As [`product_kernel`], of the transposed tile.
pub fn transposed_kernel(semiring: Semiring, dtype: DType, valued: bool) -> Option<TileProduct> {
    kernel(semiring, dtype, valued, Way::Transposed)
}
