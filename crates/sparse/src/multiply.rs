//! Products of a tile with a dense block, in any semiring.
//!
//! Entries are taken row by row in the order of their columns, and every column of the dense block has sums of its own: so
//! results have the same bits however many columns stand beside each other.

use std::marker::PhantomData;

use outcore_coding::tiles::{Segment, Tile};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_kernels::{SparseTile, TileBody};

use super::semiring::{complex, float32, float64, int64, truth, Arithmetic};
use super::Semiring;

/// Adds the product of a tile and a dense block to another block.
pub type TileProduct = fn(SparseTile<'_>, &[u8], &mut [u8], &mut Option<&'static str>);

/// TileSums of the tile's rows, or of its columns where `BACK`, which is the transposed tile's product; with or without values
/// of its own.
struct TileSums<R, const VALUES: bool, const BACK: bool>(PhantomData<R>);

/// A tile times the rows of `x`, added to those of `y`; both are `width` elements wide.
///
/// # Errors
/// Segments that cannot be told apart; `y` may have been added to.
///
/// # Panics
/// TileRows or columns outside of `x` and `y`, which [`super::check_tile_row`] has refused.
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

impl<R: Arithmetic, const VALUES: bool, const BACK: bool> TileBody for TileSums<R, VALUES, BACK> {
    #[inline(always)]
    fn run(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>) {
        let (x, y): (&[R::T], &mut [R::T]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
        let width = tile.width;
        for_segments::<R::T, VALUES>(
            tile,
            fault,
            #[inline(always)]
            |segment, values| TileRows { segment, values, width }.of_all_columns::<R, VALUES, BACK>(x, y),
        );
    }
}

/// The rows of a segment, beside dense blocks of a width.
struct TileRows<'a, T> {
    segment: &'a Segment<'a>,
    values: &'a [T],
    width: usize,
}

impl<T: bytemuck::Pod> TileRows<'_, T> {
    /// All columns of the dense block, as many at a time as there are sums in registers; `BACK` for the transposed tile.
    #[inline(always)]
    fn of_all_columns<R: Arithmetic<T = T>, const VALUES: bool, const BACK: bool>(&self, x: &[T], y: &mut [T]) {
        if self.width == 1 {
            // Known to the compiler to be one column.
            TileRows { width: 1, ..*self }.by_count::<R, VALUES, BACK, 1>(0, x, y);
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

    #[inline(always)]
    fn lanes<R: Arithmetic<T = T>, const VALUES: bool, const BACK: bool, const W: usize>(
        &self,
        lane: usize,
        x: &[T],
        y: &mut [T],
    ) -> usize {
        if R::WIDE {
            self.by_count::<R, VALUES, BACK, W>(lane, x, y);
        } else {
            self.add::<R, VALUES, BACK, W, 0>(lane, x, y);
        }
        W
    }

    /// TileRows of few entries are most of a matrix without structure: a loop of known length keeps more of them under way.
    #[inline(always)]
    fn by_count<R: Arithmetic<T = T>, const VALUES: bool, const BACK: bool, const W: usize>(
        &self,
        lane: usize,
        x: &[T],
        y: &mut [T],
    ) {
        match self.segment.width {
            1 => self.add::<R, VALUES, BACK, W, 1>(lane, x, y),
            2 => self.add::<R, VALUES, BACK, W, 2>(lane, x, y),
            3 => self.add::<R, VALUES, BACK, W, 3>(lane, x, y),
            _ => self.add::<R, VALUES, BACK, W, 0>(lane, x, y),
        }
    }

    /// `W` columns from `lane` on. Each row has `K` entries, or with 0 as many as the segment says.
    #[inline(always)]
    fn add<R: Arithmetic<T = T>, const VALUES: bool, const BACK: bool, const W: usize, const K: usize>(
        &self,
        lane: usize,
        x: &[T],
        y: &mut [T],
    ) {
        let (segment, width) = (self.segment, self.width);
        let mut at = 0;
        let mut rows = segment.walk();
        while let Some((first, numbers)) = rows.next_rows() {
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
        }
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
fn add_products<R: Arithmetic, const W: usize>(sums: &mut [R::T; W], value: R::T, x: &[R::T; W]) {
    for lane in 0..W {
        sums[lane] = R::add(sums[lane], R::multiply(value, x[lane]));
    }
}

impl<R: Arithmetic, const VALUES: bool, const BACK: bool> TileSums<R, VALUES, BACK> {
    /// Only what has many columns in registers is worth other instructions than every processor has: one column waits for
    /// memory.
    fn product() -> TileProduct {
        match R::WIDE {
            true => Self::kernel(),
            false => Self::run,
        }
    }
}

fn valued<R: Arithmetic>(back: bool) -> TileProduct {
    match back {
        false => TileSums::<R, true, false>::product(),
        true => TileSums::<R, true, true>::product(),
    }
}

fn pattern<R: Arithmetic>(back: bool) -> TileProduct {
    match back {
        false => TileSums::<R, false, false>::product(),
        true => TileSums::<R, false, true>::product(),
    }
}

fn either<R: Arithmetic>(back: bool, has_values: bool) -> TileProduct {
    match has_values {
        true => valued::<R>(back),
        false => pattern::<R>(back),
    }
}

/// The kernel of a semiring over an ordered type. Values that a semiring does not look at are left alone, and where a matrix
/// has none, its ones times x are x: so these are one kernel.
macro_rules! ordered_kernel {
    ($module:ident, $semiring:expr, $back:expr, $valued:expr) => {
        match $semiring {
            Semiring::LorLand => return None,
            Semiring::PlusTimes if $valued => valued::<$module::PlusTimes>($back),
            Semiring::PlusTimes | Semiring::PlusSecond => pattern::<$module::PlusSecond>($back),
            Semiring::PlusFirst if $valued => valued::<$module::PlusFirst>($back),
            Semiring::PlusFirst | Semiring::PlusPair => pattern::<$module::PlusPair>($back),
            Semiring::MinPlus => either::<$module::MinPlus>($back, $valued),
            Semiring::MaxPlus => either::<$module::MaxPlus>($back, $valued),
            Semiring::MinTimes if $valued => valued::<$module::MinTimes>($back),
            Semiring::MinTimes | Semiring::MinSecond => pattern::<$module::MinSecond>($back),
            Semiring::MaxTimes if $valued => valued::<$module::MaxTimes>($back),
            Semiring::MaxTimes | Semiring::MaxSecond => pattern::<$module::MaxSecond>($back),
            Semiring::MinFirst => either::<$module::MinFirst>($back, $valued),
            Semiring::MaxFirst => either::<$module::MaxFirst>($back, $valued),
            Semiring::AnyPair => pattern::<$module::AnyPair>($back),
        }
    };
}

fn kernel(semiring: Semiring, dtype: DType, valued: bool, back: bool) -> Option<TileProduct> {
    use Semiring::{AnyPair, LorLand, PlusTimes};
    Some(match (dtype, semiring) {
        (DType::C64, PlusTimes) => either::<complex::Single>(back, valued),
        (DType::C128, PlusTimes) => either::<complex::Double>(back, valued),
        (DType::Bool, LorLand) => either::<truth::LorLand>(back, valued),
        (DType::Bool, AnyPair) => pattern::<truth::AnyPair>(back),
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
