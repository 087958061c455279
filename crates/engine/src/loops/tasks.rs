//! Tasks of a loop program: tiles of what it writes, as they are before it, then boxes of iterations in the order of the text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::affine::{enclose, tighten, CounterBox, CounterRange, DEPTH_MAX};
use super::cut::{touched, CutLoop, Cutting, ProgramPart, Unit};
use super::embedding::{Embedding, PlaceRanges, PLACES_MAX};
use super::initial::{elements_of, initial_of, key_of, Initial};
use super::kernel::LineCompiler;
use super::line::TilePlaces;
use super::program::{LoopBlock, LoopProgram, LoopValues};
use super::reuse::nest_reuses;
use super::slices::block_operations;
use super::tiling::{in_own_tiles, in_tiles_of_uses};
use super::walk::{scratch_bytes, TaskWalk};
use crate::cancel;
use crate::expr::Expr;
use crate::ops::algorithm;
use crate::task::{Access, Alone, Bound, Grid, NestPlace, NestReuse, SweepPlace, Work};
use crate::EngineError;

/// Tasks of a program at most.
const TASKS_MAX: usize = 1 << 20;

/// A task: a unit, and the box of counters that it goes through.
#[derive(Clone, Copy, Debug)]
struct TaskBox {
    unit: u32,
    /// The number of the sweep: it grows whenever a unit is gone through again.
    sweep: u32,
    over: CounterBox,
    /// Where blocks have places: the ranges of these.
    places: PlaceRanges,
}

/// A tile that a task touches.
#[derive(Clone, Copy, Debug)]
struct TouchedTile {
    array: u32,
    tile: u32,
    is_written: bool,
}

/// A loop program as tasks over tiles.
#[derive(Clone, Debug)]
pub(super) struct LoopTasks {
    program: Arc<LoopProgram>,
    /// The program with loops parted, as tasks run it.
    parted: Arc<LoopProgram>,
    units: Arc<[Unit]>,
    boxes: Arc<[TaskBox]>,
    /// Tiles that the boxes touch, and where those of each end.
    touched: Arc<[TouchedTile]>,
    touched_ends: Arc<[usize]>,
    /// Of each unit the least numbers of pieces.
    least_pieces: Vec<[i64; 3]>,
    /// The least iteration of outermost loops that tasks have one of.
    least_iteration: i64,
    initial: Arc<[Initial]>,
    /// The tile set of each array: of an input, or of a result.
    sets: Vec<usize>,
    /// Arrays that are written, in the order of the results, with the first of the tasks that make their tiles.
    written: Vec<(usize, u64)>,
    /// How many of those there are; boxes come after them.
    makers: u64,
    /// Scratch memory of a task of each unit.
    scratch: Vec<u64>,
    results: Vec<Grid>,
    key: Vec<u8>,
    /// Functions of the user, by name.
    functions: Vec<String>,
}

/// A loop program over arrays: for each that is written, its values after the program. `words` and `values` are as
/// `program.rs` reads them; what `compiler` takes of it runs compiled, to the same bits.
///
/// # Errors
/// Words that tell no program, subscripts beyond their arrays, values that are not element-wise, more tasks than are listed.
pub fn loop_nest(
    inputs: &[Expr],
    words: &[i64],
    values: LoopValues<'_>,
    compiler: Option<&dyn LineCompiler>,
) -> Result<Vec<Expr>, EngineError> {
    let own: Vec<Expr> = inputs.iter().map(in_own_tiles).collect();
    let mut program = LoopProgram::read(words, values, &own)?;
    let has_own_tiles = |array: usize| !Arc::ptr_eq(&own[array], &inputs[array]);
    let inputs = &in_tiles_of_uses(&mut program, &own, &has_own_tiles)[..];
    let elements = elements_of(&mut program, inputs, &has_own_tiles);
    let (parts, units, parted) = Cutting::of(&program, compiler)?;
    let mut listing = Listing {
        program: &program,
        units: &units,
        boxes: vec![],
        touched: vec![],
        touched_ends: vec![],
        sweep: 0,
    };
    listing.list(&parts, &mut [CounterRange::default(); DEPTH_MAX])?;
    let Listing {
        boxes,
        touched,
        touched_ends,
        ..
    } = listing;
    let (initial, operands) = initial_of(inputs, elements);
    let (mut sets, mut written, mut results) = (vec![], vec![], vec![]);
    let mut first = 0;
    let is_read = |array: usize| !program.arrays[array].is_written;
    for (array, input) in inputs.iter().enumerate() {
        match &initial[array] {
            Initial::Input(operand) if is_read(array) => sets.push(*operand),
            _ => {
                sets.push(operands.len() + results.len());
                written.push((array, first));
                let grid = Grid {
                    tile: program.arrays[array].tile.clone(),
                    ..input.grid()
                };
                first += grid.tiles();
                results.push(grid);
            }
        }
    }
    let key = key_of(words, values, &initial, &results);
    let scratch = units.iter().map(|unit| scratch_bytes(&program, &unit.blocks)).collect();
    let mut tasks = LoopTasks {
        program: Arc::new(program),
        parted: Arc::new(parted),
        units: units.into(),
        boxes: boxes.into(),
        touched: touched.into(),
        touched_ends: touched_ends.into(),
        least_pieces: vec![],
        least_iteration: 0,
        initial: initial.into(),
        sets,
        written,
        makers: first,
        scratch,
        results,
        key,
        functions: values.functions.iter().map(|function| function.name()).collect(),
    };
    tasks.count_pieces();
    match tasks.results.is_empty() {
        true => Err(EngineError::Argument("loops: no array is written".into())),
        false => algorithm(Arc::new(tasks), &operands),
    }
}

/// Boxes of tasks while they are listed.
struct Listing<'a> {
    program: &'a LoopProgram,
    units: &'a [Unit],
    boxes: Vec<TaskBox>,
    touched: Vec<TouchedTile>,
    touched_ends: Vec<usize>,
    sweep: u32,
}

impl Listing<'_> {
    /// Lists the tasks of parts; the counters of loops around them have one value each.
    fn list(&mut self, parts: &[ProgramPart], over: &mut CounterBox) -> Result<(), EngineError> {
        for part in parts {
            match part {
                ProgramPart::Unit(unit) => {
                    let below = self.units[*unit].band.clone();
                    match &self.units[*unit].embedding {
                        Some(embedding) => {
                            let whole = self.places(embedding, over)?;
                            self.cut_places(*unit, 0, &whole, &mut PlaceRanges::default(), over)?;
                        }
                        None => self.cut(*unit, &below, over)?,
                    }
                    self.sweep += 1;
                }
                ProgramPart::Exact { of, parts } => {
                    let (depth, range) = self.counters(*of, over);
                    for at in range.low..=range.high {
                        cancel::check();
                        over[depth] = CounterRange { low: at, high: at };
                        self.list(parts, over)?;
                    }
                    over[depth] = CounterRange::default();
                }
            }
        }
        Ok(())
    }

    /// The depth of a loop, and its counters within the box of those around it.
    fn counters(&self, of: usize, over: &CounterBox) -> (usize, CounterRange) {
        let of = &self.program.loops[of];
        (of.depth, of.counters(over))
    }

    fn cut(&mut self, unit: usize, band: &[CutLoop], over: &mut CounterBox) -> Result<(), EngineError> {
        let Some((outer, inner)) = band.split_first() else {
            return self.add(unit, over);
        };
        let (depth, range) = self.counters(outer.of, over);
        let is_sweep = self.units[unit].has_sweeps() && self.units[unit].cut().next() == Some(outer);
        for piece in outer.pieces.of(range) {
            cancel::check();
            over[depth] = piece;
            self.cut(unit, inner, over)?;
            self.sweep += u32::from(is_sweep);
        }
        over[depth] = CounterRange::default();
        Ok(())
    }

    /// The places of all blocks, within loops around that have one value each.
    fn places(&self, embedding: &Embedding, over: &CounterBox) -> Result<PlaceRanges, EngineError> {
        let mut hull: Option<CounterBox> = None;
        for (block, places) in embedding
            .places
            .iter()
            .enumerate()
            .filter(|(_, places)| !places.is_empty())
        {
            let of = &self.program.blocks[block];
            let Some(mut own) = self.program.whole(&of.path)? else {
                continue;
            };
            own[..embedding.first].copy_from_slice(&over[..embedding.first]);
            if !tighten(&mut own, &of.constraints) {
                continue;
            }
            let mut ranges = CounterBox::default();
            for (range, place) in ranges.iter_mut().zip(places) {
                *range = place.range(&own);
            }
            enclose(&mut hull, ranges);
        }
        let none = CounterRange { low: 0, high: -1 };
        Ok(hull.map_or([none; PLACES_MAX], |hull| std::array::from_fn(|place| hull[place])))
    }

    /// Adds the tasks of a unit whose blocks have places, from one of these loops on.
    fn cut_places(
        &mut self,
        unit: usize,
        at: usize,
        whole: &PlaceRanges,
        ranges: &mut PlaceRanges,
        over: &CounterBox,
    ) -> Result<(), EngineError> {
        let Some(cut) = self.units[unit].band.get(at).copied() else {
            return self.add_placed(unit, ranges, over);
        };
        let is_sweep = self.units[unit].has_sweeps() && self.units[unit].cut().next() == Some(&cut);
        for piece in cut.pieces.of(whole[at]) {
            cancel::check();
            ranges[at] = piece;
            self.cut_places(unit, at + 1, whole, ranges, over)?;
            self.sweep += u32::from(is_sweep);
        }
        Ok(())
    }

    /// Adds the task whose places are in these ranges, unless no block has an iteration there.
    fn add_placed(&mut self, unit: usize, ranges: &PlaceRanges, over: &CounterBox) -> Result<(), EngineError> {
        let of = &self.units[unit];
        let Some(embedding) = &of.embedding else { return Ok(()) };
        let mut all: Option<CounterBox> = None;
        for &block in &of.blocks {
            let LoopBlock { path, constraints, .. } = &self.program.blocks[block];
            let Some(mut own) = self.program.whole(path)? else {
                continue;
            };
            own[..of.exact].copy_from_slice(&over[..of.exact]);
            if tighten(&mut own, &[&constraints[..], &embedding.within(block, ranges)].concat()) {
                enclose(&mut all, own);
            }
        }
        match all {
            Some(over) => self.push(unit, over, *ranges),
            None => Ok(()),
        }
    }

    /// Adds a task, unless no block of it has an iteration in its box.
    fn add(&mut self, unit: usize, over: &CounterBox) -> Result<(), EngineError> {
        let mut all: Option<CounterBox> = None;
        let of = &self.units[unit];
        for &block in &of.blocks {
            let LoopBlock { path, constraints, .. } = &self.program.blocks[block];
            let mut own = *over;
            for &inner in &path[(of.exact + of.band.len()).min(path.len())..] {
                let (depth, range) = self.counters(inner, &own);
                own[depth] = range;
            }
            let is_empty = own[..path.len()].iter().any(|range| range.is_empty());
            if is_empty || !tighten(&mut own, constraints) {
                continue;
            }
            enclose(&mut all, own);
        }
        match all {
            Some(over) => self.push(unit, over, PlaceRanges::default()),
            None => Ok(()),
        }
    }

    fn push(&mut self, unit: usize, over: CounterBox, places: PlaceRanges) -> Result<(), EngineError> {
        if self.boxes.len() == TASKS_MAX {
            return Err(EngineError::Argument(format!(
                "loops: more than {TASKS_MAX} tasks; larger tiles, or fewer iterations of the outer loops, make fewer"
            )));
        }
        self.boxes.push(TaskBox {
            unit: unit as u32,
            sweep: self.sweep,
            over,
            places,
        });
        self.touch(unit, &over, &places)
    }

    /// Adds the tiles that a box touches, those of an array in order.
    fn touch(&mut self, unit: usize, over: &CounterBox, places: &PlaceRanges) -> Result<(), EngineError> {
        let mut tiles: BTreeMap<(usize, u64), bool> = BTreeMap::new();
        let of = &self.units[unit];
        for &block in &of.blocks {
            let within = of.within(block, places);
            touched(self.program, block, over, &within, &mut |element, tile, is_write| {
                *tiles.entry((element.array, tile)).or_default() |= is_write;
            });
        }
        for ((array, tile), is_written) in tiles {
            let tile = u32::try_from(tile)
                .map_err(|_| EngineError::Argument("loops: an array with more than 4294967295 tiles".into()))?;
            self.touched.push(TouchedTile {
                array: array as u32,
                tile,
                is_written,
            });
        }
        self.touched_ends.push(self.touched.len());
        Ok(())
    }
}

impl LoopTasks {
    /// The array and the tile that a task makes as they are before the program, if it is one of those.
    fn made(&self, task: u64) -> Option<(usize, u64)> {
        if task >= self.makers {
            return None;
        }
        let after = self.written.partition_point(|(_, first)| *first <= task);
        let (array, first) = self.written[after - 1];
        Some((array, task - first))
    }

    /// The number of the box of a task.
    fn box_of(&self, task: u64) -> usize {
        (task - self.makers) as usize
    }

    fn boxed(&self, task: u64) -> &TaskBox {
        &self.boxes[self.box_of(task)]
    }

    /// Finds the least numbers of pieces of each unit.
    fn count_pieces(&mut self) {
        let mut least = vec![[i64::MAX; 3]; self.units.len()];
        for of in self.boxes.iter() {
            let (pieces, least) = (self.pieces_of(of), &mut least[of.unit as usize]);
            *least = std::array::from_fn(|at| least[at].min(pieces[at]));
        }
        self.least_pieces = least;
        let below_one = self.boxes.iter().filter(|of| self.units[of.unit as usize].exact == 1);
        self.least_iteration = below_one.map(|of| of.over[0].low).min().unwrap_or(0);
    }

    /// The numbers of the pieces of the first loops that are cut, which may be negative.
    fn pieces_of(&self, of: &TaskBox) -> [i64; 3] {
        let mut pieces = [0; 3];
        for (piece, cut) in pieces.iter_mut().zip(self.units[of.unit as usize].cut()) {
            let low = self.piece_of(of, cut).low;
            *piece = (low - cut.pieces.first).div_euclid(cut.pieces.length);
        }
        pieces
    }

    /// The counters of a loop that is cut which a task goes through.
    fn piece_of(&self, of: &TaskBox, cut: &CutLoop) -> CounterRange {
        let depth = self.program.loops[cut.of].depth;
        match &self.units[of.unit as usize].embedding {
            Some(embedding) => of.places[depth - embedding.first],
            None => of.over[depth],
        }
    }

    /// The place of a task among those below one loop: its iteration, and the row and column of the first tile that it writes.
    fn place_by_tile(&self, task: u64) -> Option<NestPlace> {
        let of = self.boxed(task);
        if self.units[of.unit as usize].exact != 1 {
            return None;
        }
        let written = self.touched(task).iter().find(|of| of.is_written)?;
        let array = &self.program.arrays[written.array as usize];
        let &[_, columns] = &array.shape[..] else { return None };
        let count = columns.div_ceil(array.tile[1].max(1)) as u32;
        let iteration = (of.over[0].low - self.least_iteration) as u32;
        let pieces = [iteration, written.tile / count, written.tile % count];
        // All nests below the loop are one.
        Some(NestPlace { nest: 0, pieces })
    }

    /// Tiles that a task touches.
    fn touched(&self, task: u64) -> &[TouchedTile] {
        let at = self.box_of(task);
        let begin = at.checked_sub(1).map_or(0, |before| self.touched_ends[before]);
        &self.touched[begin..self.touched_ends[at]]
    }
}

impl Alone for LoopTasks {
    fn key(&self) -> Vec<u8> {
        self.key.clone()
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }

    fn functions(&self) -> Vec<String> {
        self.functions.clone()
    }
}

impl Work for LoopTasks {
    fn label(&self) -> String {
        "loops".into()
    }

    fn tasks(&self) -> u64 {
        self.results.iter().map(Grid::tiles).sum::<u64>() + self.boxes.len() as u64
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        if let Some((array, tile)) = self.made(task) {
            if let Initial::Input(operand) = self.initial[array] {
                each(operand, tile, Access::Read);
            }
            return each(self.sets[array], tile, Access::Create);
        }
        for of in self.touched(task) {
            let access = if of.is_written { Access::Update } else { Access::Read };
            each(self.sets[of.array as usize], of.tile.into(), access);
        }
    }

    fn is_searched(&self) -> bool {
        true
    }

    fn calls_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    fn is_preparation(&self, task: u64) -> bool {
        self.made(task).is_some()
    }

    fn sweep_place(&self, task: u64) -> Option<SweepPlace> {
        if self.made(task).is_some() {
            return None;
        }
        let of = self.boxed(task);
        let unit = &self.units[of.unit as usize];
        let along = unit.swept()?;
        Some(SweepPlace {
            sweep: of.sweep,
            position: self.piece_of(of, along).low,
            // Pieces of a loop that is cut as well need not wait for each other.
            lag: if unit.has_sweeps() { 0 } else { along.pieces.length },
        })
    }

    fn nest_place(&self, task: u64) -> Option<NestPlace> {
        if self.made(task).is_some() {
            return None;
        }
        let of = self.boxed(task);
        let unit = &self.units[of.unit as usize];
        if !unit.has_sweeps() {
            return self.place_by_tile(task);
        }
        let (pieces, least) = (self.pieces_of(of), self.least_pieces[of.unit as usize]);
        let pieces = std::array::from_fn(|at| (pieces[at] - least[at]) as u32);
        Some(NestPlace { nest: of.unit, pieces })
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.made(task) {
            Some(_) => 0,
            None => self.scratch[self.boxed(task).unit as usize],
        }
    }

    fn record_bytes(&self) -> u64 {
        (size_of_val(&self.boxes[..]) + size_of_val(&self.touched[..]) + size_of_val(&self.touched_ends[..])) as u64
    }

    fn reuses(&self) -> Vec<NestReuse> {
        nest_reuses(&self.program)
    }

    fn operations(&self) -> f64 {
        let of = |of: &TaskBox| {
            let blocks = self.units[of.unit as usize].blocks.iter();
            let operations = blocks.map(|&block| block_operations(&self.program.blocks[block], &of.over));
            operations.sum::<f64>()
        };
        self.boxes.iter().map(of).sum()
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        if let Some((array, _)) = self.made(task) {
            match &self.initial[array] {
                Initial::Input(_) => tiles.writes[0].copy_from_slice(tiles.reads[0]),
                Initial::Element(element) => {
                    let places = tiles.writes[0].chunks_exact_mut(element.len());
                    places.for_each(|place| place.copy_from_slice(element));
                }
            }
            return Ok(());
        }
        let of = self.boxed(task);
        let (mut reads, mut writes) = (0, 0);
        let mut places = vec![];
        for tile in self.touched(task) {
            let count = if tile.is_written { &mut writes } else { &mut reads };
            places.push(((tile.array as usize, u64::from(tile.tile)), (tile.is_written, *count)));
            *count += 1;
        }
        let unit = &self.units[of.unit as usize];
        TaskWalk::new(
            &self.parted,
            unit,
            (of.over, of.places),
            TilePlaces(places),
            tiles,
            workspace,
        )
        .run()
    }
}
