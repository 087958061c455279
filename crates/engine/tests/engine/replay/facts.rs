//! What tasks do to tiles, from the plan alone.

use super::*;

/// Outputs that are written as they are, or that have their place in memory already.
pub(super) struct Results {
    pub(super) in_memory: bool,
}

impl OutputCost for Results {
    fn frame_is_borrowed(&self, _output: usize, _region: &Region) -> bool {
        self.in_memory
    }
    fn write_bytes(&self, _output: usize, region: &Region) -> u64 {
        match self.in_memory {
            true => 0,
            false => region.elements() * 8,
        }
    }
    /// Of some formats, so that programs have results of both kinds.
    fn is_read_back(&self, output: usize) -> bool {
        !self.in_memory && output.is_multiple_of(2)
    }
}

/// Workspace of a task of a work, as it is charged.
pub(super) fn workspace(plan: &Plan, producer: u32, task: u32) -> u64 {
    let step = plan.producers[producer as usize].work();
    match step.map_or(0, |step| step.work.workspace_bytes(u64::from(task))) {
        0 => 0,
        bytes => FramePool::frame_bytes(bytes as usize) as u64,
    }
}

/// What a task does with a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Create,
    Update,
    /// Adds to a sum; the first to do so creates it.
    Add,
    /// Gives a part of what is joined in a tree; the last to do so fills the tile.
    Part,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) tile: TileId,
    pub(super) kind: Kind,
    /// The version that it finds: how often tasks with lower numbers write the tile.
    pub(super) finds: u32,
}

/// What all tasks do, in the order of producers and of their tasks' numbers, and what that makes of every tile.
pub(super) struct Facts {
    /// By producer and task.
    pub(super) touches: Vec<Vec<Vec<Touch>>>,
    /// The last version of every tile: zero where nobody writes it.
    pub(super) versions: Vec<u32>,
    /// How many parts make a tile.
    pub(super) parts: HashMap<TileId, u64>,
    /// Tasks that touch a tile.
    pub(super) uses: Vec<u32>,
    /// Tiles that some tasks write which are left out: what the others put there is nothing.
    pub(super) unfinished: HashSet<TileId>,
}

impl Facts {
    pub(super) fn new(plan: &Plan, tiles: &TileTable) -> Facts {
        let mut facts = Facts {
            touches: Vec::new(),
            versions: vec![0; tiles.len()],
            parts: HashMap::new(),
            uses: vec![0; tiles.len()],
            unfinished: HashSet::new(),
        };
        let mut finder = InputFinder::new(plan, tiles);
        for (index, producer) in plan.producers.iter().enumerate() {
            let mut tasks = Vec::new();
            for task in 0..producer.tasks() as u32 {
                let touched = find_touched(tiles, &mut finder, producer, task);
                let mut touches = Vec::new();
                for (tile, kind) in touched {
                    if plan.is_needed(index as u32, task) {
                        touches.push(facts.touch(plan, tiles, tile, kind));
                    } else if kind != Kind::Read {
                        facts.unfinished.insert(tile);
                    }
                }
                tasks.push(touches);
            }
            facts.touches.push(tasks);
        }
        facts
    }

    /// Takes down a touch, in the order of numbers.
    pub(super) fn touch(&mut self, plan: &Plan, tiles: &TileTable, tile: TileId, kind: Kind) -> Touch {
        let version = &mut self.versions[tile as usize];
        self.uses[tile as usize] += 1;
        let finds = match kind {
            Kind::Part => 0,
            _ => *version,
        };
        let is_unfinished = self.unfinished.contains(&tile);
        assert!(!is_unfinished || kind != Kind::Read, "unfinished tile {tile} is read");
        assert!(
            !is_unfinished || is_output(plan, tiles, tile),
            "tile {tile} is done nowhere"
        );
        match kind {
            Kind::Update if is_unfinished => {}
            Kind::Read => assert_eq!(
                *version > 0,
                is_computed(plan, tiles, tile),
                "tile {tile} is read before anything is in it"
            ),
            Kind::Create => assert_eq!(*version, 0, "tile {tile} is created twice"),
            Kind::Update => assert!(*version > 0, "tile {tile} is updated before it is created"),
            Kind::Add => {}
            Kind::Part => *self.parts.entry(tile).or_insert(0) += 1,
        }
        match kind {
            Kind::Read => {}
            Kind::Part => *version = 1,
            Kind::Create | Kind::Update | Kind::Add => *version += 1,
        }
        Touch { tile, kind, finds }
    }
}

/// The tiles that a task touches.
pub(super) fn find_touched(
    tiles: &TileTable,
    finder: &mut InputFinder<'_>,
    producer: &Producer,
    task: u32,
) -> BTreeMap<TileId, Kind> {
    let mut touched = BTreeMap::new();
    match producer {
        Producer::Pass(pass) => {
            let mut read = Vec::new();
            finder.find_task(producer, task, &mut read);
            touched.extend(read.into_iter().map(|tile| (tile, Kind::Read)));
            each_root(pass, tiles, task, |tile, kind| {
                assert!(touched.insert(tile, kind).is_none(), "a pass writes tile {tile} twice");
            });
        }
        Producer::Work(step) => step.operands(u64::from(task), &mut |array, index, access| {
            let kind = match access {
                Access::Read => Kind::Read,
                Access::Create => Kind::Create,
                Access::Update => Kind::Update,
            };
            let before = touched.insert(tiles.id(array, index), kind);
            // Two inputs may be one array.
            assert!(before.is_none_or(|before| (before, kind) == (Kind::Read, Kind::Read)));
        }),
    }
    touched
}

/// Calls `each` with what a task of a pass writes.
pub(super) fn each_root(pass: &Pass, tiles: &TileTable, task: u32, mut each: impl FnMut(TileId, Kind)) {
    let counts = pass.domain.counts();
    let mut cell = Vec::new();
    coordinates(&counts, u64::from(task), &mut cell);
    for root in &pass.roots {
        let tile = tiles.id(root.array, root_tile(&root.kept_dims(), &counts, &cell));
        let kind = match root.kind {
            RootKind::Map => Kind::Create,
            RootKind::Blocked => Kind::Add,
            RootKind::Reduce | RootKind::Contraction => Kind::Part,
            RootKind::Algorithm => panic!("algorithms are no passes"),
        };
        each(tile, kind);
    }
}
