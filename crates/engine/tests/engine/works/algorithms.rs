//! Algorithms of tests: one whose works follow on each other, one whose tiles differ in size.

use super::*;

/// Two works: the first makes what the second goes on with.
#[derive(Debug)]
struct Rounds {
    results: [Grid; 2],
}

#[derive(Debug)]
struct Round {
    tiles: u64,
    is_first: bool,
}

impl Algorithm for Rounds {
    fn name(&self) -> String {
        "rounds".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn works(&self, inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let round = |is_first| Round {
            tiles: inputs[0].tiles(),
            is_first,
        };
        vec![Arc::new(round(true)), Arc::new(round(false))]
    }
}

impl Work for Round {
    fn label(&self) -> String {
        "round".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        if self.is_first {
            each(0, task, Access::Read);
            each(3, task, Access::Create);
        } else {
            each(1, task, Access::Read);
            each(3, task, Access::Update);
            each(2, task, Access::Create);
        }
    }
    fn operations(&self) -> f64 {
        1.0
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let read = tiles.reads[0];
        match &mut tiles.writes[..] {
            [kept] => kept.copy_from_slice(read),
            [kept, result] => {
                kept.iter_mut().zip(read).for_each(|(kept, read)| *kept ^= read);
                result.copy_from_slice(kept);
            }
            _ => unreachable!("one tile or two are written"),
        }
        Ok(())
    }
}

/// A stored row first, then one that a pass makes before that: its tiles are there before the first work is done.
pub(super) fn rounds() -> Vec<Expr> {
    let (x, y) = (row("works-rounds-x"), row("works-rounds-y"));
    let rounds = Rounds {
        results: [x.grid(), x.grid()],
    };
    let inputs = [x, apply(Binary::Multiply, &y, &y)];
    vec![ops::algorithm(Arc::new(rounds), &inputs)
        .expect("two rows")
        .swap_remove(0)]
}

/// Packs tiles into ones of different sizes, and mixes every two neighbours of those.
#[derive(Debug)]
pub(super) struct Packs {
    pub(super) results: [Grid; 2],
    pub(super) listed: Arc<[u64]>,
}

#[derive(Debug)]
struct Pack {
    tiles: u64,
    is_first: bool,
}

impl Packs {
    fn of(x: &Expr) -> Packs {
        let grid = x.grid();
        let sizes = (0..grid.tiles()).map(|tile| grid.bytes(tile) / (1 + tile % 3));
        let listed: Arc<[u64]> = sizes.collect();
        let largest = listed.iter().copied().max().expect("tiles");
        let packed = Grid {
            shape: vec![grid.tiles(), largest],
            tile: vec![1, largest],
            dtype: DType::U8,
        };
        Packs {
            results: [grid, packed],
            listed,
        }
    }
}

impl Algorithm for Packs {
    fn name(&self) -> String {
        "pack".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn listed(&self, result: usize) -> Option<Arc<[u64]>> {
        (result == 1).then(|| self.listed.clone())
    }
    fn works(&self, inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let tiles = inputs[0].tiles();
        [true, false]
            .map(|is_first| Arc::new(Pack { tiles, is_first }) as _)
            .to_vec()
    }
}

impl Work for Pack {
    fn label(&self) -> String {
        "pack".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        if self.is_first {
            each(0, task, Access::Read);
            each(2, task, Access::Create);
        } else {
            each(2, task, Access::Read);
            each(2, (task + 1) % self.tiles, Access::Read);
            each(1, task, Access::Create);
        }
    }
    fn operations(&self) -> f64 {
        1.0
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let made = &mut tiles.writes[0];
        if self.is_first {
            let (front, _) = tiles.reads[0].split_at(made.len());
            made.copy_from_slice(front);
        } else {
            let again = tiles.reads[0].iter().cycle().zip(tiles.reads[1].iter().cycle());
            made.iter_mut().zip(again).for_each(|(made, (a, b))| *made = a ^ b);
        }
        Ok(())
    }
}

/// Tiles of different sizes between two works.
pub(super) fn packed() -> Vec<Expr> {
    let x = row("works-packed");
    let results = ops::algorithm(Arc::new(Packs::of(&x)), &[x]).expect("a row");
    vec![results[0].clone()]
}

#[test]
fn tiles_of_different_sizes_are_for_algorithms_alone() {
    let x = row("works-listed");
    let results = ops::algorithm(Arc::new(Packs::of(&x)), &[x]).expect("a row");
    let made = results[0].grid().bytes(0);
    let case = Case::new(&results[..1], PlanOptions::ALL);
    let frames = |label: &str| {
        let arrays = case.plan.arrays.iter().enumerate();
        let found = arrays.filter(|(_, array)| array.listed().is_some() == (label == "packed"));
        let tiles = found
            .flat_map(|(id, array)| &case.tiles.weights[case.tiles.first[id] as usize..][..array.tiles() as usize]);
        tiles.map(|weight| weight.frame).collect::<Vec<_>>()
    };
    assert_eq!(
        frames("packed"),
        [made, made / 2, made.div_ceil(3).next_multiple_of(4096), 8192]
    );
    for wrong in [results[1].clone(), sum(&results[1], 0)] {
        let refused = outcore_engine::plan::plan(&[wrong], PlanOptions::ALL).map(drop);
        let error = refused.expect_err("the rest of each row is nowhere").to_string();
        assert!(error.contains("differ in size"), "{error}");
    }
}

/// The product of every two tiles of a row, summed: a table of numbers, each a tile.
#[derive(Clone, Debug)]
struct Pairs {
    tiles: u64,
    results: [Grid; 1],
    is_illegal: bool,
}

impl Alone for Pairs {
    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.is_illegal)]
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
}

impl Work for Pairs {
    fn label(&self) -> String {
        "pairs".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles * self.tiles
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (row, column) = (task / self.tiles, task % self.tiles);
        each(0, row, Access::Read);
        if column != row {
            each(0, column, Access::Read);
        }
        each(1, task, Access::Create);
        // The last of a row goes on with the first, so that their order counts.
        if column + 1 == self.tiles && self.tiles > 1 {
            each(1, row * self.tiles, Access::Update);
        }
    }
    fn orders(&self, memory: u64) -> Vec<TaskOrder> {
        let tile = self.tiles.max(1);
        let side = (memory / (1 << 23)).clamp(1, tile);
        let mut tasks: Vec<u32> = (0..self.tasks() as u32).collect();
        let block = |task: u32| (u64::from(task) / tile / side, u64::from(task) % tile / side);
        tasks.sort_by_key(|task| block(*task));
        if self.is_illegal {
            tasks.reverse();
        }
        vec![TaskOrder {
            name: "by blocks of pairs",
            tasks,
        }]
    }
    fn operations(&self) -> f64 {
        1.0
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let row: &[f64] = bytemuck::cast_slice(tiles.reads[0]);
        let column: &[f64] = tiles.reads.get(1).map_or(row, |column| bytemuck::cast_slice(column));
        let sum: f64 = row.iter().zip(column).map(|(a, b)| a * b).sum();
        let numbers = tiles
            .writes
            .iter_mut()
            .map(|tile| bytemuck::cast_slice_mut::<u8, f64>(tile));
        for (at, number) in numbers.enumerate() {
            number[0] = if at == 0 { sum } else { number[0] * 0.5 + sum };
        }
        Ok(())
    }
}

/// The table of a row of tiles of 4 MiB.
pub(super) fn pairs(tiles: u64, is_illegal: bool) -> Expr {
    let length = tiles << 19;
    let x = ops::copy_tiled(&stored("works-pairs", &[length]), vec![1 << 19]);
    let results = [Grid {
        shape: vec![tiles, tiles],
        tile: vec![1, 1],
        dtype: DType::F64,
    }];
    let pairs = Pairs {
        tiles,
        results,
        is_illegal,
    };
    ops::algorithm(Arc::new(pairs), &[x]).expect("a row").swap_remove(0)
}
