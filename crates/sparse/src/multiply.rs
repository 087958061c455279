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

/// Sums of the tile's rows, `W` columns side by side (0: as many as the tile says), with or without values.
struct Forward<R, const W: usize, const VALUES: bool>(PhantomData<R>);
/// The same of the transposed tile.
struct Transposed<R, const W: usize, const VALUES: bool>(PhantomData<R>);

/// A tile of so many rows and columns, times the rows of `x`, added to those of `y`; both are `width` elements wide.
///
/// # Errors
/// A tile that is not what it says; `y` may have been added to.
pub fn multiply_tile(
    kernel: TileProduct,
    tile: Tile<'_>,
    (rows, columns): (usize, usize),
    width: usize,
    x: &[u8],
    y: &mut [u8],
) -> Result<(), Malformed> {
    let operands = SparseTile {
        bytes: tile.bytes,
        segments: tile.segments,
        entries: tile.entries,
        values: tile.values,
        rows,
        columns,
        width,
    };
    let mut fault = None;
    kernel(operands, x, y, &mut fault);
    fault.map_or(Ok(()), |fault| Err(Malformed(fault)))
}

fn tile_of<'a>(operands: &SparseTile<'a>) -> Tile<'a> {
    Tile {
        block: 0,
        entries: operands.entries,
        bytes: operands.bytes,
        segments: operands.segments,
        values: operands.values,
    }
}

impl<R: Ring, const W: usize, const VALUES: bool> TileBody for Forward<R, W, VALUES> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let mut values: &[R::T] = if VALUES { bytemuck::cast_slice(tile.values) } else { &[] };
        for segment in tile_of(&tile).segments(tile.rows, tile.columns) {
            let segment = match segment {
                Ok(segment) => segment,
                Err(Malformed(what)) => return *fault = Some(what),
            };
            if W != 1 {
                rows_of::<R, W, VALUES, 0>(&segment, values, x, y, tile.width);
            } else {
                match segment.width {
                    1 => rows_of::<R, W, VALUES, 1>(&segment, values, x, y, 1),
                    2 => rows_of::<R, W, VALUES, 2>(&segment, values, x, y, 1),
                    3 => rows_of::<R, W, VALUES, 3>(&segment, values, x, y, 1),
                    4 => rows_of::<R, W, VALUES, 4>(&segment, values, x, y, 1),
                    _ => rows_of::<R, W, VALUES, 0>(&segment, values, x, y, 1),
                }
            }
            if VALUES {
                values = &values[segment.columns.len()..];
            }
        }
    }
}

/// The rows of a segment; each has `K` entries, or with 0 as many as the segment says.
#[inline(always)]
fn rows_of<R: Ring, const W: usize, const VALUES: bool, const K: usize>(
    segment: &Segment<'_>,
    values: &[R::T],
    x: &[R::T],
    y: &mut [R::T],
    width: usize,
) {
    let mut at = 0;
    segment.for_rows(
        #[inline(always)]
        |first, numbers| {
            for (position, row) in numbers.iter().enumerate() {
                let count = if K > 0 { K } else { segment.count(first + position) };
                let columns = &segment.columns[at..at + count];
                let values: &[R::T] = if VALUES { &values[at..at + count] } else { &[] };
                let value = |entry: usize| if VALUES { values[entry] } else { R::ONE };
                let row = usize::from(*row);
                if W > 0 {
                    let sums: &mut [R::T; W] = y[row * W..].first_chunk_mut().expect("rows are whole");
                    let mut own = *sums;
                    for (entry, column) in columns.iter().enumerate() {
                        let x: &[R::T; W] = x[usize::from(*column) * W..].first_chunk().expect("rows are whole");
                        for lane in 0..W {
                            own[lane] = R::add(own[lane], R::multiply(value(entry), x[lane]));
                        }
                    }
                    *sums = own;
                } else {
                    let sums = &mut y[row * width..][..width];
                    for (entry, column) in columns.iter().enumerate() {
                        let x = &x[usize::from(*column) * width..][..width];
                        for (sum, x) in sums.iter_mut().zip(x) {
                            *sum = R::add(*sum, R::multiply(value(entry), *x));
                        }
                    }
                }
                at += count;
            }
        },
    );
}

impl<R: Ring, const W: usize, const VALUES: bool> TileBody for Transposed<R, W, VALUES> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let mut values: &[R::T] = if VALUES { bytemuck::cast_slice(tile.values) } else { &[] };
        let width = if W > 0 { W } else { tile.width };
        for segment in tile_of(&tile).segments(tile.rows, tile.columns) {
            let segment = match segment {
                Ok(segment) => segment,
                Err(Malformed(what)) => return *fault = Some(what),
            };
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
            if VALUES {
                values = &values[segment.columns.len()..];
            }
        }
    }
}

/// The kernels of one ring, for the widths that pay.
macro_rules! forward {
    ($R:ty, $valued:expr, $width:expr, [$($W:literal),*]) => {
        match ($width, $valued) {
            $(($W, true) => Forward::<$R, $W, true>::kernel(),
            ($W, false) => Forward::<$R, $W, false>::kernel(),)*
            (_, true) => Forward::<$R, 0, true>::kernel(),
            (_, false) => Forward::<$R, 0, false>::kernel(),
        }
    };
}

macro_rules! transposed {
    ($R:ty, $valued:expr, $width:expr) => {
        match ($width, $valued) {
            (1, true) => Transposed::<$R, 1, true>::kernel(),
            (1, false) => Transposed::<$R, 1, false>::kernel(),
            (_, true) => Transposed::<$R, 0, true>::kernel(),
            (_, false) => Transposed::<$R, 0, false>::kernel(),
        }
    };
}

/// Calls a macro with the ring of a semiring over an ordered type.
macro_rules! with_ordered {
    ($module:ident, $semiring:expr, $call:ident!($($rest:tt)*)) => {
        match $semiring {
            Semiring::PlusTimes | Semiring::LorLand => return None,
            Semiring::PlusPair => $call!($module::PlusPair, $($rest)*),
            Semiring::PlusFirst => $call!($module::PlusFirst, $($rest)*),
            Semiring::PlusSecond => $call!($module::PlusSecond, $($rest)*),
            Semiring::MinPlus => $call!($module::MinPlus, $($rest)*),
            Semiring::MaxPlus => $call!($module::MaxPlus, $($rest)*),
            Semiring::MinTimes => $call!($module::MinTimes, $($rest)*),
            Semiring::MaxTimes => $call!($module::MaxTimes, $($rest)*),
            Semiring::MinFirst => $call!($module::MinFirst, $($rest)*),
            Semiring::MinSecond => $call!($module::MinSecond, $($rest)*),
            Semiring::MaxFirst => $call!($module::MaxFirst, $($rest)*),
            Semiring::MaxSecond => $call!($module::MaxSecond, $($rest)*),
            Semiring::AnyPair => $call!($module::AnyPair, $($rest)*),
        }
    };
}

/// The product of a tile in a semiring over elements of a type, `width` of them side by side; `valued` says whether the
/// matrix has values, which are of that type. Nothing where the type does not make the semiring.
pub fn product_kernel(semiring: Semiring, dtype: DType, valued: bool, width: usize) -> Option<TileProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::F64, PlusTimes) => forward!(float64::PlusTimes, valued, width, [1, 2, 4, 8, 16]),
        (DType::F32, PlusTimes) => forward!(float32::PlusTimes, valued, width, [1, 2, 4, 8, 16]),
        (DType::I64, PlusTimes) => forward!(int64::PlusTimes, valued, width, [1]),
        (DType::C64, PlusTimes) => forward!(complex::Single, valued, width, [1]),
        (DType::C128, PlusTimes) => forward!(complex::Double, valued, width, [1]),
        (DType::Bool, LorLand) => forward!(truth::LorLand, valued, width, [1]),
        (DType::Bool, AnyPair) => forward!(truth::AnyPair, valued, width, [1]),
        (DType::F64, _) => with_ordered!(float64, semiring, forward!(valued, width, [1])),
        (DType::F32, _) => with_ordered!(float32, semiring, forward!(valued, width, [1])),
        (DType::I64, _) => with_ordered!(int64, semiring, forward!(valued, width, [1])),
        _ => return None,
    })
}

/// As [`product_kernel`], of the transposed tile.
pub fn transposed_kernel(semiring: Semiring, dtype: DType, valued: bool, width: usize) -> Option<TileProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::F64, PlusTimes) => transposed!(float64::PlusTimes, valued, width),
        (DType::F32, PlusTimes) => transposed!(float32::PlusTimes, valued, width),
        (DType::I64, PlusTimes) => transposed!(int64::PlusTimes, valued, width),
        (DType::C64, PlusTimes) => transposed!(complex::Single, valued, width),
        (DType::C128, PlusTimes) => transposed!(complex::Double, valued, width),
        (DType::Bool, LorLand) => transposed!(truth::LorLand, valued, width),
        (DType::Bool, AnyPair) => transposed!(truth::AnyPair, valued, width),
        (DType::F64, _) => with_ordered!(float64, semiring, transposed!(valued, width)),
        (DType::F32, _) => with_ordered!(float32, semiring, transposed!(valued, width)),
        (DType::I64, _) => with_ordered!(int64, semiring, transposed!(valued, width)),
        _ => return None,
    })
}
