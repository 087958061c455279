//! Band to narrow band by blocks of columns, and narrow band to tridiagonal by single ones: steps of several are told in turn, each
//! some steps behind that before, so that they run at once where tiles allow.

use std::ops::Range;
use std::sync::Arc;

use outcore_kernels::{BlockChase, Hermitian, SweepSpan};

use super::cut::{EigenSet, HermitianCut};
use crate::task::{Access, Bound, Work};
use crate::EngineError;

/// Chases that go on at once, and steps from one to the next, whose tiles have none in common.
const TOGETHER: usize = 4;
const LAG: usize = 4;

/// Steps of some chases: those of a few in turn, each behind that before.
fn in_turn(counts: &[usize]) -> Vec<[u32; 2]> {
    let mut order = vec![];
    for (group, counts) in counts.chunks(TOGETHER).enumerate() {
        let longest = counts.iter().copied().max().unwrap_or(0);
        for time in 0..longest + LAG * (counts.len() - 1) {
            for (place, &count) in counts.iter().enumerate() {
                if let Some(step) = time.checked_sub(place * LAG).filter(|&step| step < count) {
                    order.push([(group * TOGETHER + place) as u32, step as u32]);
                }
            }
        }
    }
    order
}

/// Band to narrow band, and the tiles of that.
#[derive(Debug)]
pub(super) struct Chases {
    cut: Arc<HermitianCut>,
    kernels: Hermitian,
    /// A block of columns and a step.
    order: Vec<[u32; 2]>,
}

impl Chases {
    pub fn new(cut: Arc<HermitianCut>, kernels: Hermitian) -> Chases {
        let [band, width] = cut.sizes();
        let count = |block: usize| cut.rows().saturating_sub((block + 1) * width).div_ceil(band);
        let counts: Vec<usize> = (0..cut.rows().div_ceil(width)).map(count).collect();
        let order = in_turn(&counts);
        Chases { cut, kernels, order }
    }

    /// The step of a task, the number of its tile of reflectors, and its place there; nothing of the tasks behind.
    fn chase(&self, task: u64) -> Option<(BlockChase, u64, usize)> {
        let &[block, step] = self.order.get(task as usize)?;
        let (block, step, sizes) = (block as usize, step as usize, self.cut.sizes());
        let each = sizes[0] / sizes[1];
        let chase = BlockChase::of(self.cut.rows(), sizes, block, step)?;
        Some((chase, self.cut.blocks(block / each, step), block % each))
    }
}

impl Work for Chases {
    fn label(&self) -> String {
        "band to narrow band".into()
    }
    fn tasks(&self) -> u64 {
        self.order.len() as u64 + u64::from(self.cut.tiles())
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        let band = cut.set(EigenSet::Band);
        let Some((chase, tile, place)) = self.chase(task) else {
            let tile = task - self.order.len() as u64;
            each(band, tile, Access::Read);
            return each(cut.set(EigenSet::Narrow), tile, Access::Create);
        };
        for tile in cut.band_shape().tiles_of(chase.columns()) {
            each(band, tile as u64, Access::Update);
        }
        let access = if place == 0 { Access::Create } else { Access::Update };
        each(cut.set(EigenSet::Blocks), tile, access);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.chase(task) {
            Some(_) => self.kernels.chase_bytes(self.cut.sizes()) as u64,
            None => 0,
        }
    }
    fn record_bytes(&self) -> u64 {
        size_of_val(&self.order[..]) as u64
    }
    fn operations(&self) -> f64 {
        6.0 * (self.cut.rows() as f64).powi(2) * self.cut.side() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let Some((chase, _, place)) = self.chase(task) else {
            let tile = (task - self.order.len() as u64) as u32;
            let width = self.cut.height(tile);
            self.kernels.narrowed(width, bound.reads[0], bound.writes[0]);
            return Ok(());
        };
        if let [tiles @ .., reflectors] = &mut bound.writes[..] {
            let each = BlockChase::elements(self.cut.sizes()) * self.cut.item();
            let reflectors = &mut reflectors[place * each..(place + 1) * each];
            self.kernels
                .chase(&chase, (self.cut.band_shape(), tiles), reflectors, workspace);
        }
        Ok(())
    }
}

/// Narrow band to tridiagonal, and its elements.
#[derive(Debug)]
pub(super) struct NarrowSweeps {
    cut: Arc<HermitianCut>,
    kernels: Hermitian,
    /// Sweeps of a span, and its steps.
    group: usize,
    /// A group of sweeps and a span.
    order: Vec<[u32; 2]>,
}

impl NarrowSweeps {
    pub fn new(cut: Arc<HermitianCut>, kernels: Hermitian) -> NarrowSweeps {
        let [side, width] = cut.sizes();
        let (rows, group) = (cut.rows(), (2 * side / width).min(side));
        // Of the last reflector, which has two rows, of each sweep.
        let last = |sweep: usize| rows.checked_sub(sweep + 3).map(|rest| rest / width);
        let spans = |first: usize| {
            let ends = (0..group).filter_map(|behind| last(first + behind).map(|step| step + 2 * behind));
            ends.max().map_or(0, |end| end / group + 1)
        };
        let counts: Vec<usize> = (0..rows).step_by(group).map(spans).collect();
        let order = in_turn(&counts);
        NarrowSweeps {
            cut,
            kernels,
            group,
            order,
        }
    }

    fn span(&self, [sweeps, span]: [u32; 2]) -> SweepSpan {
        let (first, start) = (sweeps as usize * self.group, span as usize * self.group);
        SweepSpan {
            sweeps: first..first + self.group,
            steps: start..start + self.group,
        }
    }

    /// The row of tiles of reflectors of a span, its tiles there, and those of them that are new.
    fn records(&self, at: [u32; 2]) -> (usize, Range<usize>, Range<usize>) {
        let (record, span) = (self.cut.record(), self.span(at));
        let (first, tiles) = (span.sweeps.start, span.records(&record));
        let seen = match at[1].checked_sub(1) {
            _ if first % record.side != 0 => tiles.end,
            None => 0,
            Some(before) => self.span([at[0], before]).records(&record).end,
        };
        let new = seen.clamp(tiles.start, tiles.end)..tiles.end;
        (first / record.side, tiles, new)
    }

    fn gathered(&self, task: u64) -> u32 {
        (task - self.order.len() as u64) as u32
    }
}

impl Work for NarrowSweeps {
    fn label(&self) -> String {
        "narrow band to tridiagonal".into()
    }
    fn tasks(&self) -> u64 {
        self.order.len() as u64 + u64::from(self.cut.tiles())
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        let narrow = cut.set(EigenSet::Narrow);
        let Some(&at) = self.order.get(task as usize) else {
            let tile = self.gathered(task);
            each(narrow, tile.into(), Access::Read);
            let access = if tile == 0 { Access::Create } else { Access::Update };
            return each(cut.set(EigenSet::Tridiagonal), 0, access);
        };
        for tile in cut.narrow_shape().tiles_of(self.span(at).columns(&cut.record())) {
            each(narrow, tile as u64, Access::Update);
        }
        let (row, tiles, new) = self.records(at);
        for tile in tiles {
            let access = if new.contains(&tile) {
                Access::Create
            } else {
                Access::Update
            };
            each(cut.set(EigenSet::Sweeps), cut.sweeps(row, tile), access);
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.order.get(task as usize) {
            Some(_) => self.kernels.sweep_bytes(&self.cut.record()) as u64,
            None => 0,
        }
    }
    fn record_bytes(&self) -> u64 {
        size_of_val(&self.order[..]) as u64
    }
    fn operations(&self) -> f64 {
        6.0 * (self.cut.rows() as f64).powi(2) * self.cut.sizes()[1] as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let cut = &self.cut;
        let Some(&at) = self.order.get(task as usize) else {
            return self.gather(self.gathered(task), bound);
        };
        let (span, record, shape) = (self.span(at), cut.record(), cut.narrow_shape());
        let (_, records, new) = self.records(at);
        let band = shape.tiles_of(span.columns(&record)).len();
        let (tiles, reflectors) = bound.writes.split_at_mut(band);
        for tile in new {
            reflectors[tile - records.start].fill(0);
        }
        self.kernels
            .sweep(&span, &record, (shape, tiles), reflectors, workspace);
        Ok(())
    }
}

impl NarrowSweeps {
    /// Takes the elements of a tile of the tridiagonal matrix, made real by the directions of its rows.
    fn gather(&self, tile: u32, bound: &mut Bound<'_>) -> Result<(), EngineError> {
        let cut = &self.cut;
        let mut matrix = TridiagonalMut::new(cut, bound.writes[0]);
        let first = cut.rows_of(tile).start;
        if tile == 0 {
            matrix.set_direction(0, [1.0, 0.0]);
        }
        self.kernels
            .tridiagonal(cut.height(tile), bound.reads[0], |column, diagonal, below| {
                matrix.take(first + column, diagonal, below);
            });
        if tile + 1 == cut.tiles() && !matrix.scale() {
            let name = cut.name();
            return Err(EngineError::LinAlg(format!(
                "{name}: the matrix has elements that are not finite, or too large"
            )));
        }
        Ok(())
    }
}

/// A tridiagonal matrix: its diagonal and the sizes of what is below, both over a power of two, that, and the directions of its
/// rows.
pub(super) struct Tridiagonal<'a> {
    pub diagonal: &'a [f64],
    pub below: &'a [f64],
    pub scale: f64,
    pub directions: &'a [u8],
}

impl<'a> Tridiagonal<'a> {
    pub fn new(cut: &HermitianCut, data: &'a [u8]) -> Tridiagonal<'a> {
        let rows = cut.rows();
        let (numbers, directions) = data.split_at(8 * (2 * rows + 2));
        let numbers: &[f64] = bytemuck::cast_slice(numbers);
        Tridiagonal {
            diagonal: &numbers[..rows],
            below: &numbers[rows..2 * rows],
            scale: numbers[2 * rows],
            directions,
        }
    }
}

struct TridiagonalMut<'a> {
    rows: usize,
    numbers: &'a mut [f64],
    directions: &'a mut [f64],
    is_complex: bool,
}

impl<'a> TridiagonalMut<'a> {
    fn new(cut: &HermitianCut, data: &'a mut [u8]) -> TridiagonalMut<'a> {
        let rows = cut.rows();
        let (numbers, directions) = data.split_at_mut(8 * (2 * rows + 2));
        TridiagonalMut {
            rows,
            numbers: bytemuck::cast_slice_mut(numbers),
            directions: bytemuck::cast_slice_mut(directions),
            is_complex: cut.item() > 8,
        }
    }

    fn direction(&self, row: usize) -> [f64; 2] {
        match self.is_complex {
            true => [self.directions[2 * row], self.directions[2 * row + 1]],
            false => [self.directions[row], 0.0],
        }
    }

    fn set_direction(&mut self, row: usize, [real, imaginary]: [f64; 2]) {
        if self.is_complex {
            (self.directions[2 * row], self.directions[2 * row + 1]) = (real, imaginary);
        } else {
            self.directions[row] = real;
        }
    }

    fn take(&mut self, row: usize, diagonal: f64, below: [f64; 2]) {
        self.numbers[row] = diagonal;
        if row + 1 == self.rows {
            self.numbers[self.rows + row] = 0.0;
            return;
        }
        let size = below[0].hypot(below[1]);
        self.numbers[self.rows + row] = size;
        let [a, b] = self.direction(row);
        let [c, d] = if size > 0.0 {
            below.map(|part| part / size)
        } else {
            [1.0, 0.0]
        };
        self.set_direction(row + 1, [a * c - b * d, a * d + b * c]);
    }

    /// Divides by a power of two near the largest size; whether all are finite.
    fn scale(&mut self) -> bool {
        let elements = &mut self.numbers[..2 * self.rows];
        let largest = elements.iter().fold(0.0f64, |most, value| {
            if value.is_nan() {
                f64::INFINITY
            } else {
                most.max(value.abs())
            }
        });
        let scale = if largest > 0.0 && largest.is_finite() {
            power_of_two(largest)
        } else {
            1.0
        };
        elements.iter_mut().for_each(|value| *value /= scale);
        self.numbers[2 * self.rows] = scale;
        self.numbers[2 * self.rows + 1] = 0.0;
        largest.is_finite()
    }
}

/// The power of two at or below a normal number; the least normal one below.
fn power_of_two(number: f64) -> f64 {
    f64::from_bits(number.to_bits() & 0x7ff0_0000_0000_0000).max(f64::MIN_POSITIVE)
}
