//! Rows that a mask chooses, once it is known how many each tile of the mask has.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_kernels::{compress as compress_items, count_true, nonzero_positions};

use super::{algorithm, copy_tiled, show};
use crate::expr::{grid, Expr};
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;
use outcore_dtype::DType;

/// Rows that are counted together, at least, of masks that have many of them.
const GRANULE: u64 = 1024;
/// Counts of a mask for which they are fewer: short masks choose from wide rows, whose tiles have few.
const COUNTS_MIN: u64 = 1 << 14;
/// Counts of one mask, at most.
const COUNTS_MAX: u64 = 1 << 20;

/// Rows that are counted together of a mask of `length`.
pub fn granule(length: u64) -> u64 {
    let mut rows = length.div_ceil(COUNTS_MIN).next_power_of_two().min(GRANULE);
    while length.div_ceil(rows) > COUNTS_MAX {
        rows *= 2;
    }
    rows
}

fn check_mask(what: &str, mask: &Expr) -> Result<(), EngineError> {
    if mask.dtype != DType::Bool || mask.ndim() != 1 {
        return Err(EngineError::DType(format!(
            "{what}: a mask of shape {} of {} is not a row of bool",
            show(&mask.shape),
            mask.dtype
        )));
    }
    Ok(())
}

/// The counts of a mask of `length` that is true everywhere.
pub fn full_counts(length: u64) -> Vec<u64> {
    let rows = granule(length);
    (0..length.div_ceil(rows))
        .map(|at| rows.min(length - at * rows))
        .collect()
}

/// The array in tiles of whole granules of rows.
fn in_granules(x: &Expr) -> Expr {
    let rows = granule(x.shape[0]);
    if x.tile[0].is_multiple_of(rows) || x.tile[0] >= x.shape[0] {
        return x.clone();
    }
    let mut tile = x.tile.clone();
    tile[0] = tile[0].next_multiple_of(rows).min(x.shape[0]);
    copy_tiled(x, tile)
}

/// How many elements of each granule of a one-dimensional mask are true, int64.
///
/// # Errors
/// A mask of another type or number of axes.
pub fn count_granules(mask: &Expr) -> Result<Expr, EngineError> {
    check_mask("count", mask)?;
    let (mask, rows) = (in_granules(mask), granule(mask.shape[0]));
    let counting = MaskCounts {
        rows,
        mask: mask.grid(),
        result: [Grid {
            shape: vec![mask.shape[0].div_ceil(rows)],
            tile: vec![mask.tile[0].div_ceil(rows)],
            dtype: DType::I64,
        }],
    };
    Ok(algorithm(Arc::new(counting), &[mask])?.swap_remove(0))
}

#[derive(Debug, Clone)]
struct MaskCounts {
    rows: u64,
    mask: Grid,
    result: [Grid; 1],
}

impl Alone for MaskCounts {
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("count granules"))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for MaskCounts {
    fn label(&self) -> String {
        "count true".into()
    }
    fn tasks(&self) -> u64 {
        self.mask.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, task, Access::Read);
        each(1, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.mask.shape.iter().product::<u64>() as f64
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let granules = tiles.reads[0].chunks(self.rows as usize);
        for (count, flags) in tiles.writes[0].chunks_exact_mut(size_of::<i64>()).zip(granules) {
            count.copy_from_slice(&(count_true(flags) as i64).to_ne_bytes());
        }
        Ok(())
    }
}

/// The rows of `x` for which `mask` is true. `counts` are those of `count_granules(mask)`.
///
/// # Errors
/// A mask that is none or has another length than `x` has rows; counts that cannot be.
pub fn compress(x: &Expr, mask: &Expr, counts: &[u64]) -> Result<Expr, EngineError> {
    compress_by(x, mask, ChosenCounts::OfGranules(counts))
}

/// The same with how many rows are chosen before each tile of them, and in all.
///
/// # Errors
/// As `compress`.
pub fn compress_before(x: &Expr, mask: &Expr, before: &[u64]) -> Result<Expr, EngineError> {
    compress_by(x, mask, ChosenCounts::BeforeTiles(before))
}

fn compress_by(x: &Expr, mask: &Expr, counts: ChosenCounts<'_>) -> Result<Expr, EngineError> {
    check_mask("compress", mask)?;
    if x.shape.first() != mask.shape.first() {
        return Err(EngineError::Shape(format!(
            "compress: a mask of shape {} does not choose rows of shape {}",
            show(&mask.shape),
            show(&x.shape)
        )));
    }
    let (x, mask) = (in_granules(x), in_granules(mask));
    let chosen = counts.rows(mask.shape[0], x.tile[0])?;
    let mut result = x.grid();
    result.shape[0] = chosen.total();
    result.tile[0] = x.tile[0].clamp(1, chosen.total().max(1));
    let compressing = Compress {
        chosen,
        mask: mask.grid(),
        rows: x.grid(),
        result: [result],
    };
    Ok(algorithm(Arc::new(compressing), &[x, mask])?.swap_remove(0))
}

/// The positions at which `mask` is true, int64.
///
/// # Errors
/// As `compress`.
pub fn nonzero(mask: &Expr, counts: &[u64]) -> Result<Expr, EngineError> {
    nonzero_by(mask, ChosenCounts::OfGranules(counts))
}

/// The same with how many are true before each tile of the mask, and in all.
///
/// # Errors
/// As `nonzero`.
pub fn nonzero_before(mask: &Expr, before: &[u64]) -> Result<Expr, EngineError> {
    nonzero_by(mask, ChosenCounts::BeforeTiles(before))
}

fn nonzero_by(mask: &Expr, counts: ChosenCounts<'_>) -> Result<Expr, EngineError> {
    check_mask("nonzero", mask)?;
    let mask = in_granules(mask);
    let chosen = counts.rows(mask.shape[0], mask.tile[0])?;
    let shape = vec![chosen.total()];
    let locating = Nonzero {
        mask: mask.grid(),
        result: [Grid {
            tile: grid::default_tile(&shape, DType::I64),
            shape,
            dtype: DType::I64,
        }],
        chosen,
    };
    Ok(algorithm(Arc::new(locating), &[mask])?.swap_remove(0))
}

/// The rows that a mask chooses, counted.
enum ChosenCounts<'a> {
    /// Of each granule.
    OfGranules(&'a [u64]),
    /// Before each tile, and in all.
    BeforeTiles(&'a [u64]),
}

impl ChosenCounts<'_> {
    /// Of a mask of so many rows, for tiles of `rows` rows.
    fn rows(self, length: u64, rows: u64) -> Result<ChosenRows, EngineError> {
        match self {
            ChosenCounts::OfGranules(counts) => ChosenRows::new(length, rows, counts),
            ChosenCounts::BeforeTiles(before) => ChosenRows::of_tiles(length, rows, before),
        }
    }
}

/// How many rows are chosen before each tile of rows, and in all.
#[derive(Clone, Debug)]
struct ChosenRows {
    before: Vec<u64>,
}

impl ChosenRows {
    /// From the counts of granules, for tiles of `rows` rows.
    fn new(length: u64, rows: u64, counts: &[u64]) -> Result<ChosenRows, EngineError> {
        let each = granule(length);
        let of = |at: usize| each.min(length - at as u64 * each);
        let expected = length.div_ceil(each) as usize;
        if counts.len() != expected || counts.iter().enumerate().any(|(at, &count)| count > of(at)) {
            return Err(EngineError::Argument("counts are not those of the mask".into()));
        }
        let per_tile = rows.div_ceil(each) as usize;
        let mut before = vec![0];
        let mut total = 0;
        before.extend(counts.chunks(per_tile).map(|counts| {
            total += counts.iter().sum::<u64>();
            total
        }));
        Ok(ChosenRows { before })
    }

    /// From the rows before each tile of so many, and in all.
    fn of_tiles(length: u64, rows: u64, before: &[u64]) -> Result<ChosenRows, EngineError> {
        let whole = |at: usize| rows.min(length - at as u64 * rows);
        let fits = |(at, pair): (usize, &[u64])| pair[0] <= pair[1] && pair[1] - pair[0] <= whole(at);
        let tiles = length.div_ceil(rows.max(1)) as usize;
        if before.len() != tiles + 1 || before[0] != 0 || !before.windows(2).enumerate().all(fits) {
            return Err(EngineError::Argument("counts are not those of the mask".into()));
        }
        Ok(ChosenRows { before: before.into() })
    }

    fn total(&self) -> u64 {
        *self.before.last().expect("begins with zero")
    }

    /// The rows of the result that a tile of rows gives.
    fn rows_of(&self, tile: u64) -> Interval {
        Interval::between(self.before[tile as usize], self.before[tile as usize + 1])
    }

    /// The result's tiles of `rows` rows that a tile fills a part of, and whether it is the first to do so.
    fn targets(&self, tile: u64, rows: u64) -> impl Iterator<Item = (u64, Access)> {
        let range = self.rows_of(tile);
        range.tiles(rows).map(move |target| {
            let first = target * rows >= range.start;
            (target, if first { Access::Create } else { Access::Update })
        })
    }

    fn key(&self) -> Vec<u8> {
        self.before.iter().flat_map(|before| before.to_le_bytes()).collect()
    }
}

/// Calls `part` for every part of a result's tiles that a range of its rows lies in: the tile's place among those of the
/// range, its first row there, and the rows of the range.
fn parts(range: Interval, rows: u64, mut part: impl FnMut(usize, u64, Interval)) {
    let (start, end) = (range.start, range.end());
    let first = start / rows;
    let mut at = start;
    while at < end {
        let tile = at / rows;
        let to = ((tile + 1) * rows).min(end);
        part(
            (tile - first) as usize,
            at - tile * rows,
            Interval::new(at - start, to - at),
        );
        at = to;
    }
}

#[derive(Clone, Debug)]
struct Compress {
    chosen: ChosenRows,
    mask: Grid,
    /// How the rows are cut that are chosen from.
    rows: Grid,
    result: [Grid; 1],
}

impl Compress {
    /// Tiles of the array side by side.
    fn across(&self) -> u64 {
        self.rows.counts()[1..].iter().product()
    }

    /// The rows of a tile.
    fn rows_of(&self, row_tile: u64) -> Interval {
        let start = row_tile * self.rows.tile[0];
        Interval::between(start, (start + self.rows.tile[0]).min(self.rows.shape[0]))
    }
}

impl Alone for Compress {
    fn key(&self) -> Vec<u8> {
        self.chosen.key()
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("compress").words(self.chosen.before.clone()))
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for Compress {
    fn label(&self) -> String {
        "compress".into()
    }

    fn tasks(&self) -> u64 {
        self.rows.tiles()
    }

    /// A tile of which no row is chosen is not read.
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (tile, across) = (task / self.across(), task % self.across());
        let mut is_read = false;
        for (target, access) in self.chosen.targets(tile, self.result[0].tile[0]) {
            each(2, target * self.across() + across, access);
            is_read = true;
        }
        if is_read {
            each(0, task, Access::Read);
            let flags = self.rows_of(tile).tiles(self.mask.tile[0]);
            flags.for_each(|flags| each(1, flags, Access::Read));
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        // Rows chosen of one tile go to two of the result at times: through here.
        let chosen = self.chosen.rows_of(task / self.across()).length;
        let region = self.rows.region(task);
        let row: u64 = region[1..].iter().map(|along| along.length).product();
        let flags = region[0].length.next_multiple_of(64);
        flags + chosen * row * self.rows.dtype.size() as u64
    }

    fn operations(&self) -> f64 {
        4.0 * self.rows.shape.iter().product::<u64>() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let Some((rows, flags)) = tiles.reads.split_first() else {
            return Ok(());
        };
        let (tile, region) = (task / self.across(), self.rows.region(task));
        let row: u64 = region[1..].iter().map(|along| along.length).product();
        let row_bytes = row as usize * self.rows.dtype.size();
        let (space, chosen) = workspace.split_at_mut((region[0].length as usize).next_multiple_of(64));
        let mask = &mut space[..region[0].length as usize];
        copy_flags(&self.mask, self.rows_of(tile), flags, mask);
        let range = self.chosen.rows_of(tile);
        if count_true(mask) != range.length {
            return Err(changed());
        }
        let rows_max = self.result[0].tile[0];
        let inside = |at: u64| at as usize * row_bytes;
        if let [target] = &mut tiles.writes[..] {
            compress_items(row_bytes, mask, rows, &mut target[inside(range.start % rows_max)..]);
            return Ok(());
        }
        compress_items(row_bytes, mask, rows, chosen);
        parts(range, rows_max, |place, first, part| {
            let part = &chosen[inside(part.start)..inside(part.end())];
            tiles.writes[place][inside(first)..][..part.len()].copy_from_slice(part);
        });
        Ok(())
    }
}

/// The flags of a range, out of the tiles that overlap it.
fn copy_flags(grid: &Grid, range: Interval, tiles: &[&[u8]], into: &mut [u8]) {
    for (tile, flags) in range.tiles(grid.tile[0]).zip(tiles) {
        let start = tile * grid.tile[0];
        let part = range.intersection(Interval::new(start, flags.len() as u64));
        into[(part.start - range.start) as usize..(part.end() - range.start) as usize]
            .copy_from_slice(&flags[(part.start - start) as usize..(part.end() - start) as usize]);
    }
}

fn changed() -> EngineError {
    EngineError::Plan(
        "a mask chose other rows than when it was counted: what it is made of must give the same values each time"
            .into(),
    )
}

#[derive(Clone, Debug)]
struct Nonzero {
    chosen: ChosenRows,
    mask: Grid,
    result: [Grid; 1],
}

impl Alone for Nonzero {
    fn key(&self) -> Vec<u8> {
        self.chosen.key()
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("nonzero").words(self.chosen.before.clone()))
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for Nonzero {
    fn label(&self) -> String {
        "nonzero".into()
    }

    fn tasks(&self) -> u64 {
        self.mask.tiles()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let mut is_read = false;
        for (target, access) in self.chosen.targets(task, self.result[0].tile[0]) {
            each(1, target, access);
            is_read = true;
        }
        if is_read {
            each(0, task, Access::Read);
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        self.chosen.rows_of(task).length * size_of::<i64>() as u64
    }

    fn operations(&self) -> f64 {
        4.0 * self.mask.shape.iter().product::<u64>() as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let Some(flags) = tiles.reads.first() else {
            return Ok(());
        };
        let range = self.chosen.rows_of(task);
        if count_true(flags) != range.length {
            return Err(changed());
        }
        nonzero_positions(flags, task * self.mask.tile[0], workspace);
        let inside = |at: u64| at as usize * size_of::<i64>();
        parts(range, self.result[0].tile[0], |place, first, part| {
            let part = &workspace[inside(part.start)..inside(part.end())];
            tiles.writes[place][inside(first)..][..part.len()].copy_from_slice(part);
        });
        Ok(())
    }
}
