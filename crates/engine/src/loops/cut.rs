//! The cut of a program into tasks: which loops are gone through one iteration a task, and where others are cut.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::affine::{enclose, tighten, Affine, CounterBox, CounterRange, DEPTH_MAX};
use super::dependences::dependences;
use super::distribution::distribute;
use super::embedding::{embed, Embedding, PlaceRanges};
use super::kernel::{line_block, LineCompiler, SharedKernel};
use super::program::{ArrayElement, LoopItem, LoopProgram};
use super::sweep::{chain_of, dependences_of, effort, lines_of, BlockChain, BlockSweep, SweepLines};
use crate::EngineError;

/// Tiles of an array of so many axes in a task, beyond which another cut is looked for: one and all of its neighbours.
fn tiles_max(axes: usize) -> usize {
    3usize.saturating_pow(axes.clamp(2, 4) as u32)
}

/// Tiles of all arrays that a task may have without being worse for it.
const TILES_OF_TASK: usize = 9;

/// A part of a program, in the order of its text.
#[derive(Clone, Debug)]
pub(super) enum ProgramPart {
    /// Tasks of each iteration of a loop, one iteration after the other.
    Exact { of: usize, parts: Vec<ProgramPart> },
    /// The tasks of a unit, by its number.
    Unit(usize),
}

/// Pieces of the counters of a loop: so many each, with a boundary at one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopPieces {
    pub first: i64,
    pub length: i64,
}

impl LoopPieces {
    const WHOLE: LoopPieces = LoopPieces {
        first: 0,
        length: i64::MAX,
    };

    /// The pieces of a range, in order.
    pub fn of(self, range: CounterRange) -> impl Iterator<Item = CounterRange> {
        let mut low = range.low;
        std::iter::from_fn(move || {
            if low > range.high {
                return None;
            }
            let end = match self.length {
                i64::MAX => range.high,
                length => low + (length - 1 - (low - self.first).rem_euclid(length)),
            };
            let piece = CounterRange {
                low,
                high: end.min(range.high),
            };
            low = piece.high + 1;
            Some(piece)
        })
    }
}

/// A loop that is cut into pieces, each of which is in one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutLoop {
    pub of: usize,
    pub pieces: LoopPieces,
}

/// Tasks that are alike: each runs the same items over a box of counters.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Loops around it of which each task has one iteration.
    pub exact: usize,
    /// The loops below them that are cut, the outermost first.
    pub band: Vec<CutLoop>,
    /// The items that a task runs, of the program whose loops are parted.
    pub items: Vec<LoopItem>,
    pub blocks: Vec<usize>,
    /// Where blocks of an imperfect nest are among the loops of the band.
    pub embedding: Option<Embedding>,
    /// The sweep of each block of the program, where it is one of the unit's.
    pub sweeps: Vec<Option<BlockSweep>>,
    /// The kernel of each block of the program that is compiled.
    pub kernels: Vec<Option<SharedKernel>>,
    /// Of each loop of the program the blocks below it, where lines go through all of them.
    pub lines_below: Vec<Option<Vec<usize>>>,
}

impl Unit {
    /// Loops that are cut into several pieces, the outermost first.
    pub fn cut(&self) -> impl Iterator<Item = &CutLoop> {
        self.band.iter().filter(|of| of.pieces != LoopPieces::WHOLE)
    }

    /// Constraints on the counters of a block in a task with these places.
    pub fn within(&self, block: usize, places: &PlaceRanges) -> Vec<Affine> {
        let embedding = self.embedding.as_ref();
        embedding.map_or(vec![], |embedding| embedding.within(block, places))
    }

    /// Whether each piece of the outermost loop that is cut is a sweep of its own, along the next; else all its tasks are one.
    pub fn has_sweeps(&self) -> bool {
        self.exact == 0 && self.cut().nth(1).is_some()
    }

    /// The loop along which sweeps go.
    pub fn swept(&self) -> Option<&CutLoop> {
        self.cut().nth(usize::from(self.has_sweeps()))
    }
}

/// The parts of a program, and its units.
pub(super) struct Cutting<'a> {
    program: &'a LoopProgram,
    /// The same with loops parted, as tasks run it.
    parted: LoopProgram,
    compiler: Option<&'a dyn LineCompiler>,
    pub units: Vec<Unit>,
}

/// A way to cut a nest.
struct Choice {
    exact: usize,
    band: Vec<CutLoop>,
    embedding: Option<Embedding>,
    /// Tiles that a task touches: one in the middle, and the one with most.
    tiles: usize,
    most: usize,
    /// Tiles of the array that has more of them in a task than it should.
    beyond: usize,
    tasks: f64,
}

impl Choice {
    /// The choice of a cut whose sample tasks touch so many tiles, each one of so many tasks; all of that so many times.
    fn of(
        exact: usize,
        band: Vec<CutLoop>,
        embedding: Option<Embedding>,
        samples: [(CutFootprint, f64); SAMPLES],
        times: f64,
    ) -> Choice {
        let touched = |of: &&(CutFootprint, f64)| of.0.tiles as f64 * of.1;
        let most = samples.iter().max_by(|a, b| touched(a).total_cmp(&touched(b)));
        let typical = Some(&samples[MIDDLE]).filter(|of| of.0.tiles > 0).or(most);
        Choice {
            exact,
            band,
            embedding,
            tiles: typical.map_or(0, |of| of.0.tiles),
            most: samples.iter().map(|of| of.0.tiles).max().unwrap_or(0),
            beyond: samples.iter().map(|of| of.0.beyond).max().unwrap_or(0),
            tasks: typical.map_or(0.0, |of| of.1) * times,
        }
    }

    /// The best choice has the least: tiles of one array beyond those that a task should have, then tiles that all tasks touch,
    /// more of which are better than many in one task; then tasks.
    fn rank(&self) -> [f64; 3] {
        let touched = self.tasks * self.tiles.max(1) as f64;
        let excess = self.most.max(TILES_OF_TASK) as f64 / TILES_OF_TASK as f64;
        [self.beyond as f64, touched * excess.sqrt(), self.tasks]
    }
}

impl Cutting<'_> {
    pub fn of(
        program: &LoopProgram,
        compiler: Option<&dyn LineCompiler>,
    ) -> Result<(Vec<ProgramPart>, Vec<Unit>, LoopProgram), EngineError> {
        let mut cutting = Cutting {
            program,
            parted: program.clone(),
            compiler,
            units: vec![],
        };
        let parts = cutting.parts(&program.items, 0)?;
        Ok((parts, cutting.units, cutting.parted))
    }

    /// Parts of items below so many loops, each gone through one iteration at a time.
    fn parts(&mut self, items: &[LoopItem], exact: usize) -> Result<Vec<ProgramPart>, EngineError> {
        let parts = items.iter().map(|&item| self.part(item, exact));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn part(&mut self, item: LoopItem, exact: usize) -> Result<Vec<ProgramPart>, EngineError> {
        let program = self.program;
        let mut chain = vec![];
        let mut below = item;
        while let LoopItem::Loop(of) = below {
            if program.called_along(below).is_some() {
                break;
            }
            chain.push(of);
            match program.loops[of].items[..] {
                [next] => below = next,
                [] => return Ok(vec![]),
                _ => break,
            }
        }
        let blocks = program.blocks_below(item);
        let Some(whole) = self.whole(&blocks)? else {
            return Ok(vec![]);
        };
        let choices = (0..chain.len().max(1)).map(|at| self.choice(&chain, at, exact, &blocks, &whole));
        let choices = choices.chain(self.embedded(exact, &blocks, &whole));
        let is_less = |a: &Choice, b: &Choice| {
            let pairs = a.rank().into_iter().zip(b.rank());
            pairs.fold(Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(&b)))
        };
        let best = choices.min_by(is_less);
        let Some(best) = best else {
            return Ok(vec![]);
        };
        let has_inner = |of: &usize| {
            program.loops[*of]
                .items
                .iter()
                .any(|item| matches!(item, LoopItem::Loop(_)))
        };
        let last = chain
            .last()
            .filter(|of| program.loops[**of].items.len() > 1 && has_inner(of));
        if let Some(&last) = last.filter(|_| best.beyond > 0) {
            let parts = self.parts(&program.loops[last].items, exact + chain.len())?;
            return Ok(around(&chain, parts));
        }
        let whole_item = chain.get(best.exact).map_or(item, |&of| LoopItem::Loop(of));
        let mut unit = Unit {
            exact: exact + best.exact,
            items: distribute(&mut self.parted, whole_item, exact + best.exact),
            band: best.band,
            embedding: best.embedding,
            blocks,
            sweeps: vec![None; program.blocks.len()],
            kernels: vec![None; program.blocks.len()],
            lines_below: vec![None; self.parted.loops.len()],
        };
        self.add_lines(&mut unit, &whole.map(|range| range.length() as f64))?;
        self.units.push(unit);
        let unit = ProgramPart::Unit(self.units.len() - 1);
        Ok(around(&chain[..best.exact], vec![unit]))
    }

    /// Finds the lines of all blocks of a unit, and compiles those that the compiler takes.
    fn add_lines(&self, unit: &mut Unit, lengths: &[f64; DEPTH_MAX]) -> Result<(), EngineError> {
        let program = &self.parted;
        for block in unit.blocks.clone() {
            if unit.sweeps[block].is_some() || program.blocks[block].call.is_some() {
                continue;
            }
            let depth = program.blocks[block].path.len();
            let chain = chain_of(program, block, unit.exact).unwrap_or_else(|| BlockChain {
                first: depth,
                depth,
                blocks: vec![block],
            });
            let found = dependences_of(program, &chain);
            let lines_of = |compiled| match chain.first == depth {
                true => SweepLines::Single,
                false => lines_of(program, &chain, &found, lengths, compiled),
            };
            let own = lines_of(false);
            let mut lines = if self.compiler.is_some() { lines_of(true) } else { own };
            let effort = |block: usize| effort(program, block, own, lengths);
            let kernels = self.compiled(&chain, lines, &effort)?;
            if kernels.iter().any(Option::is_none) {
                lines = own;
                self.check_calls(&chain)?;
            }
            for (&block, kernel) in chain.blocks.iter().zip(&kernels) {
                unit.sweeps[block] = Some(BlockSweep {
                    first: chain.first,
                    lines,
                });
                if kernels.iter().all(Option::is_some) {
                    unit.kernels[block].clone_from(kernel);
                }
            }
            if let Some(&first) = program.blocks[block].path.get(chain.first) {
                unit.lines_below[first] = Some(chain.blocks);
            }
        }
        Ok(())
    }

    /// Refuses blocks that only a compiler can run.
    fn check_calls(&self, chain: &BlockChain) -> Result<(), EngineError> {
        let mut steps = chain.blocks.iter().flat_map(|&block| &self.parted.blocks[block].steps);
        match steps.all(|step| step.value.is_some()) {
            true => Ok(()),
            false => Err(EngineError::Argument(
                "loops: statements that call functions of outcore.jit are always compiled: not with compiled=False"
                    .into(),
            )),
        }
    }

    /// The kernel of each block of a chain.
    fn compiled(
        &self,
        chain: &BlockChain,
        lines: SweepLines,
        effort: &dyn Fn(usize) -> f64,
    ) -> Result<Vec<Option<SharedKernel>>, EngineError> {
        let compile = |&block: &usize| {
            let direction = lines.direction(chain.depth);
            let Some(compiler) = self.compiler else { return Ok(None) };
            match line_block(&self.parted, &self.parted.blocks[block], &direction, effort(block)) {
                Some(block) => compiler.compile(&block),
                None => Ok(None),
            }
        };
        chain.blocks.iter().map(compile).collect()
    }

    /// Boxes with one iteration of the first loops, so many: the first, one in the middle, the last.
    fn samples(&self, blocks: &[usize], whole: &CounterBox, exact: usize) -> [SampleTask; SAMPLES] {
        std::array::from_fn(|place| {
            let mut over = *whole;
            for depth in 0..=exact {
                over = self.tightened(blocks, &over);
                if let Some(range) = over.get_mut(depth).filter(|_| depth < exact) {
                    let at = [range.low, (range.low + range.high) / 2, range.high][place];
                    *range = CounterRange { low: at, high: at };
                }
            }
            SampleTask {
                over,
                places: PlaceRanges::default(),
                tasks: 1.0,
            }
        })
    }

    /// A box as small as bounds and guards of blocks have it, or as it is where none of them runs.
    fn tightened(&self, blocks: &[usize], over: &CounterBox) -> CounterBox {
        let mut hull = None;
        for &block in blocks {
            let mut own = *over;
            if tighten(&mut own, &self.program.blocks[block].constraints) {
                enclose(&mut hull, own);
            }
        }
        hull.unwrap_or(*over)
    }

    /// The box of all blocks.
    fn whole(&self, blocks: &[usize]) -> Result<Option<CounterBox>, EngineError> {
        let mut all: Option<CounterBox> = None;
        for &block in blocks {
            if let Some(over) = self.program.whole(&self.program.blocks[block].path)? {
                enclose(&mut all, over);
            }
        }
        Ok(all)
    }

    /// The cut of a chain of loops of which the first are gone through one iteration at a time.
    fn choice(&self, chain: &[usize], first: usize, exact: usize, blocks: &[usize], whole: &CounterBox) -> Choice {
        let found = dependences(self.program, blocks, exact + first);
        let mut band = vec![];
        let mut samples = self.samples(blocks, whole, exact + first);
        for (at, &of) in chain.iter().enumerate().skip(first) {
            let depth = exact + at;
            let mut held = found.iter().filter(|dependence| !dependence.is_between_updates);
            let can_be_cut = held.all(|dependence| dependence.distances[depth].0.is_some_and(|least| least >= 0));
            let pieces = match can_be_cut {
                true => self.pieces(blocks, depth),
                false => LoopPieces::WHOLE,
            };
            for (place, sample) in samples.iter_mut().enumerate() {
                let (piece, count) = piece_of(pieces, sample.over[depth], place);
                (sample.over[depth], sample.tasks) = (piece, sample.tasks * count);
            }
            band.push(CutLoop { of, pieces });
        }
        let footprints = samples.map(|sample| (self.footprint(blocks, &sample.over, &|_| vec![]), sample.tasks));
        let iterations = (exact..exact + first).map(|depth| whole[depth].length() as f64);
        Choice::of(first, band, None, footprints, iterations.product())
    }

    /// The cut of an imperfect nest by the loops of its deepest block.
    fn embedded(&self, exact: usize, blocks: &[usize], whole: &CounterBox) -> Option<Choice> {
        let embedding = embed(self.program, blocks, exact)?;
        let path = &self.program.blocks[embedding.main].path;
        let (mut band, mut samples) = (vec![], self.samples(blocks, whole, exact));
        for (place, &is_cut) in embedding.is_cut.iter().enumerate() {
            let depth = exact + place;
            let pieces = match is_cut {
                true => self.pieces(&[embedding.main], depth),
                false => LoopPieces::WHOLE,
            };
            for (at, sample) in samples.iter_mut().enumerate() {
                // Other blocks may have another loop at this depth.
                let own = self.tightened(&[embedding.main], &sample.over);
                let (piece, count) = piece_of(pieces, own[depth], at);
                (sample.places[place], sample.tasks) = (piece, sample.tasks * count);
            }
            band.push(CutLoop {
                of: path[depth],
                pieces,
            });
        }
        let footprints = samples.map(|sample| {
            let within = |block: usize| embedding.within(block, &sample.places);
            (self.footprint(blocks, &sample.over, &within), sample.tasks)
        });
        Some(Choice::of(0, band, Some(embedding), footprints, 1.0))
    }

    /// Pieces of a loop that follow the tiles of the array with the shortest along it, of one that is written where several are.
    fn pieces(&self, blocks: &[usize], depth: usize) -> LoopPieces {
        let steps = blocks.iter().flat_map(|&block| &self.program.blocks[block].steps);
        let written = steps.clone().filter_map(|step| step.written());
        let read = steps.flat_map(|step| step.reads());
        let axes = written.chain(read).flat_map(|element| {
            let array = &self.program.arrays[element.array];
            let lengths = array.shape.iter().zip(&array.tile);
            element.subscripts.iter().zip(lengths)
        });
        let cut = axes.filter(|(subscript, (length, tile))| subscript.coefficients[depth] != 0 && tile < length);
        let pieces = cut.map(|(subscript, (_, &tile))| {
            let (by, tile) = (subscript.coefficients[depth], tile as i64);
            let begins = if by > 0 {
                (-subscript.constant).rem_euclid(tile)
            } else {
                (subscript.constant + 1).rem_euclid(tile)
            };
            LoopPieces {
                first: begins / by.abs(),
                length: (tile / by.abs()).max(1),
            }
        });
        pieces.min_by_key(|pieces| pieces.length).unwrap_or(LoopPieces::WHOLE)
    }

    fn tiles_max(&self, array: usize) -> usize {
        tiles_max(self.program.arrays[array].shape.len())
    }

    /// Tiles that blocks touch over a box; of many no more are counted than show that they are.
    fn footprint(&self, blocks: &[usize], over: &CounterBox, within: &dyn Fn(usize) -> Vec<Affine>) -> CutFootprint {
        let mut all: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for &block in blocks {
            touched(self.program, block, over, &within(block), &mut |element, tile, _| {
                let tiles = all.entry(element.array).or_default();
                if tiles.len() <= 4 * self.tiles_max(element.array) {
                    tiles.insert(tile);
                }
            });
        }
        let beyond = all.iter().filter(|(&array, tiles)| tiles.len() > self.tiles_max(array));
        CutFootprint {
            tiles: all.values().map(BTreeSet::len).sum(),
            beyond: beyond.map(|(_, tiles)| tiles.len()).max().unwrap_or(0),
        }
    }
}

/// Tiles that a task touches, and those of an array with more than a task should have.
struct CutFootprint {
    tiles: usize,
    beyond: usize,
}

/// Tasks that stand for all: the first, one in the middle, the last.
const SAMPLES: usize = 3;
const MIDDLE: usize = 1;

/// One of those tasks, and of how many it is one where it is.
#[derive(Clone, Copy)]
struct SampleTask {
    over: CounterBox,
    places: PlaceRanges,
    tasks: f64,
}

/// The piece of a range that is the first, one in the middle or the last, and how many there are.
fn piece_of(pieces: LoopPieces, range: CounterRange, place: usize) -> (CounterRange, f64) {
    let all: Vec<CounterRange> = pieces.of(range).take(1 << 16).collect();
    let at = [0, all.len() / 2, all.len().saturating_sub(1)][place];
    let none = CounterRange { low: 0, high: -1 };
    (all.get(at).copied().unwrap_or(none), pieces.of(range).count() as f64)
}

/// Parts within loops that are gone through one iteration at a time.
fn around(chain: &[usize], parts: Vec<ProgramPart>) -> Vec<ProgramPart> {
    let wrapped = chain.iter().rev();
    wrapped.fold(parts, |parts, &of| vec![ProgramPart::Exact { of, parts }])
}

/// Calls `each` with the elements of a block, the tiles that they may touch over a box where `within` holds, and whether they
/// write there.
pub(super) fn touched(
    program: &LoopProgram,
    block: usize,
    over: &CounterBox,
    within: &[Affine],
    each: &mut dyn FnMut(&ArrayElement, u64, bool),
) {
    let of = &program.blocks[block];
    let mut over = *over;
    if !tighten(&mut over, &[&of.constraints, within].concat()) {
        return;
    }
    for step in &of.steps {
        let reads = step.reads().map(|element| (element, false));
        for (element, is_write) in reads.chain(step.written().map(|element| (element, true))) {
            let array = &program.arrays[element.array];
            let axes = element.subscripts.iter().zip(array.shape.iter().zip(&array.tile));
            let spans: Vec<[u64; 3]> = axes
                .map(|(subscript, (&length, &tile))| {
                    let range = subscript.range(&over);
                    let last = length.saturating_sub(1);
                    let place = |at: i64| (at.max(0) as u64).min(last) / tile.max(1);
                    [place(range.low), place(range.high), length.div_ceil(tile.max(1))]
                })
                .collect();
            each_tile(&spans, 0, 0, &mut |tile| each(element, tile, is_write));
        }
    }
}

fn each_tile(spans: &[[u64; 3]], axis: usize, so_far: u64, each: &mut dyn FnMut(u64)) {
    match spans.get(axis) {
        None => each(so_far),
        Some(&[low, high, count]) => {
            for at in low..=high {
                each_tile(spans, axis + 1, so_far * count + at, each);
            }
        }
    }
}
