//! Products of a tile with a dense block, in any semiring.
//!
//! Entries are taken row by row in the order of their columns, and every column of the dense block has sums of its own: so
//! results have the same bits however many columns stand beside each other.

use std::marker::PhantomData;

use outcore_coding::tiles::{Segment, Tile};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_kernels::{SparseTile, TileBody};

use super::semiring::{complex, float32, float64, int64, truth, Ring};
use super::Semiring;

/// Adds the product of a tile and a dense block to another block.
pub type TileProduct = fn(SparseTile<'_>, &[u8], &mut [u8], &mut Option<&'static str>);

/// Sums of the tile's rows, or of its columns where `BACK`, which is the transposed tile's product; with or without values
/// of its own.
struct Sums<R, const VALUES: bool, const BACK: bool>(PhantomData<R>);

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

impl<R: Ring, const VALUES: bool, const BACK: bool> TileBody for Sums<R, VALUES, BACK> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let width = tile.width;
        for_segments::<R::T, VALUES>(
            tile,
            fault,
            #[inline(always)]
            |segment, values| Rows { segment, values, width }.of_all_columns::<R, VALUES, BACK>(x, y),
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
    /// All columns of the dense block, as many at a time as there are sums in registers; `BACK` for the transposed tile.
    #[inline(always)]
    fn of_all_columns<R: Ring<T = T>, const VALUES: bool, const BACK: bool>(&self, x: &[T], y: &mut [T]) {
        if self.width == 1 {
            // Known to the compiler to be one column.
            Rows { width: 1, ..*self }.lanes::<R, VALUES, BACK, 1>(0, x, y);
            return;
        }
        let mut lane = 0;
        while lane < self.width {
            lane += match self.width - lane {
                16.. if R::WIDE => self.lanes::<R, VALUES, BACK, 16>(lane, x, y),
                8.. if R::WIDE => self.lanes::<R, VALUES, BACK, 8>(lane, x, y),
                4.. => self.lanes::<R, VALUES, BACK, 4>(lane, x, y),
                2.. if R::WIDE => self.lanes::<R, VALUES, BACK, 2>(lane, x, y),
                _ => self.lanes::<R, VALUES, BACK, 1>(lane, x, y),
            };
        }
    }

    /// Rows of few entries are most of a matrix without structure: a loop of known length keeps more of them under way.
    #[inline(always)]
    fn lanes<R: Ring<T = T>, const VALUES: bool, const BACK: bool, const W: usize>(
        &self,
        lane: usize,
        x: &[T],
        y: &mut [T],
    ) -> usize {
        match self.segment.width {
            1 if R::WIDE || self.width == 1 => self.add::<R, VALUES, BACK, W, 1>(lane, x, y),
            2 if R::WIDE || self.width == 1 => self.add::<R, VALUES, BACK, W, 2>(lane, x, y),
            3 if R::WIDE || self.width == 1 => self.add::<R, VALUES, BACK, W, 3>(lane, x, y),
            _ => self.add::<R, VALUES, BACK, W, 0>(lane, x, y),
        }
        W
    }

    /// `W` columns from `lane` on. Each row has `K` entries, or with 0 as many as the segment says.
    #[inline(always)]
    fn add<R: Ring<T = T>, const VALUES: bool, const BACK: bool, const W: usize, const K: usize>(
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
                    let row = usize::from(*row) * width + lane;
                    let place = |column: &u16| usize::from(*column) * width + lane;
                    if BACK {
                        let x: [T; W] = *lanes_of(x, row);
                        for (entry, column) in columns.iter().enumerate() {
                            add_products::<R, W>(sums_of(y, place(column)), value(entry), &x);
                        }
                    } else {
                        let sums: &mut [T; W] = sums_of(y, row);
                        let mut own = *sums;
                        for (entry, column) in columns.iter().enumerate() {
                            add_products::<R, W>(&mut own, value(entry), lanes_of(x, place(column)));
                        }
                        *sums = own;
                    }
                    at += count;
                }
            },
        );
    }
}

#[inline(always)]
fn lanes_of<T, const W: usize>(x: &[T], at: usize) -> &[T; W] {
    x[at..].first_chunk().expect("rows are whole")
}

#[inline(always)]
fn sums_of<T, const W: usize>(y: &mut [T], at: usize) -> &mut [T; W] {
    y[at..].first_chunk_mut().expect("rows are whole")
}

/// Adds the products of an entry with `W` columns.
#[inline(always)]
fn add_products<R: Ring, const W: usize>(sums: &mut [R::T; W], value: R::T, x: &[R::T; W]) {
    for lane in 0..W {
        sums[lane] = R::add(sums[lane], R::multiply(value, x[lane]));
    }
}

impl<R: Ring, const VALUES: bool, const BACK: bool> Sums<R, VALUES, BACK> {
    /// Only what has many columns in registers is worth other instructions than every processor has: one column waits for
    /// memory.
    fn product() -> TileProduct {
        match R::WIDE {
            true => Self::kernel(),
            false => Self::run,
        }
    }
}

fn of_ring<R: Ring>(back: bool, valued: bool) -> TileProduct {
    match (back, valued) {
        (false, false) => Sums::<R, false, false>::product(),
        (false, true) => Sums::<R, true, false>::product(),
        (true, false) => Sums::<R, false, true>::product(),
        (true, true) => Sums::<R, true, true>::product(),
    }
}

/// The kernel of a semiring over an ordered type.
macro_rules! ordered_kernel {
    ($module:ident, $semiring:expr, $back:expr, $valued:expr) => {
        match $semiring {
            Semiring::LorLand => return None,
            Semiring::PlusTimes => of_ring::<$module::PlusTimes>($back, $valued),
            Semiring::PlusPair => of_ring::<$module::PlusPair>($back, $valued),
            Semiring::PlusFirst => of_ring::<$module::PlusFirst>($back, $valued),
            Semiring::PlusSecond => of_ring::<$module::PlusSecond>($back, $valued),
            Semiring::MinPlus => of_ring::<$module::MinPlus>($back, $valued),
            Semiring::MaxPlus => of_ring::<$module::MaxPlus>($back, $valued),
            Semiring::MinTimes => of_ring::<$module::MinTimes>($back, $valued),
            Semiring::MaxTimes => of_ring::<$module::MaxTimes>($back, $valued),
            Semiring::MinFirst => of_ring::<$module::MinFirst>($back, $valued),
            Semiring::MinSecond => of_ring::<$module::MinSecond>($back, $valued),
            Semiring::MaxFirst => of_ring::<$module::MaxFirst>($back, $valued),
            Semiring::MaxSecond => of_ring::<$module::MaxSecond>($back, $valued),
            Semiring::AnyPair => of_ring::<$module::AnyPair>($back, $valued),
        }
    };
}

fn kernel(semiring: Semiring, dtype: DType, valued: bool, back: bool) -> Option<TileProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::C64, PlusTimes) => of_ring::<complex::Single>(back, valued),
        (DType::C128, PlusTimes) => of_ring::<complex::Double>(back, valued),
        (DType::Bool, LorLand) => of_ring::<truth::LorLand>(back, valued),
        (DType::Bool, AnyPair) => of_ring::<truth::AnyPair>(back, valued),
        (DType::F64, _) => ordered_kernel!(float64, semiring, back, valued),
        (DType::F32, _) => ordered_kernel!(float32, semiring, back, valued),
        (DType::I64, _) => ordered_kernel!(int64, semiring, back, valued),
        _ => return None,
    })
}

/// The product of a tile in a semiring over elements of a type; `valued` says whether the matrix has values, which are of
/// that type. Nothing where the type does not make the semiring.
pub fn product_kernel(semiring: Semiring, dtype: DType, valued: bool) -> Option<TileProduct> {
    kernel(semiring, dtype, valued, false)
}

/// As [`product_kernel`], of the transposed tile.
pub fn transposed_kernel(semiring: Semiring, dtype: DType, valued: bool) -> Option<TileProduct> {
    kernel(semiring, dtype, valued, true)
}
