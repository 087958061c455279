//! The order of tile tasks. Several orders are proposed; placement simulates each and keeps the cheapest.
//!
//! Uses `plan`. Start with `Candidate` below.

pub mod beam;
pub mod blocking;
pub mod needed;
pub mod nests;
pub mod order;
pub mod pipeline;
pub mod search;
pub mod sharing;
pub mod task_graph;
pub mod tasks;
pub mod tiles;
pub mod writes;

pub use nests::NestBlocks;
pub use task_graph::TaskGraph;
pub use tasks::{Role, TaskList};
pub use tiles::{TileId, TileTable};

use crate::plan::{Plan, PlanOptions, Producer};

/// Above this many tasks only the plain orders are tried: ordering must not cost more than it saves.
pub const TASKS_FOR_SEARCH: u64 = 200_000;

/// Up to so many tasks the orders that works propose are tried too: they save whole reads, and tasks of works are long.
const TASKS_FOR_PROPOSALS: u64 = 10 * TASKS_FOR_SEARCH;

/// Up to so many tasks orders of programs without loops are searched for.
const TASKS_OF_ARRAYS: u64 = 4096;

/// Up to so many tasks several beginnings of orders are compared.
const TASKS_FOR_BEAM: u64 = 256;

/// Tasks that are placed altogether while numbers of sweeps are tried.
const SIMULATED_TASKS: u64 = 2_000_000;

/// Shares of memory that list schedules are found for: less of it leaves room for what is read ahead.
const SEARCHED: [f64; 3] = [0.9, 0.65, 0.4];

/// Shares of memory that blocks of products are cut for: one leaves room for reads ahead; others are for narrow blocks, that may
/// need less than they seem to, since operands come and go one after the other.
const LESS_BLOCKING: f64 = 0.8;
const MORE_BLOCKING: [f64; 4] = [1.1, 1.25, 1.45, 1.7];

/// Parts of memory for beam searches, which take more time.
const BEAMS: [f64; 2] = [1.0, 0.65];

/// One way to order a program's tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Each pass over a domain runs against the direction of the last one.
    pub alternate: bool,
    /// The first pass over a domain runs from its end: to begin with the tiles that the last program ended with.
    pub backwards: bool,
    /// Tasks of a consuming pass run as soon as their inputs exist.
    pub pipeline: bool,
    /// Passes over several dimensions walk down columns first.
    pub columns: bool,
    /// Passes whose cells share tiles follow those tiles.
    pub shared: bool,
    /// Works go by the order of this name, where they propose one.
    pub proposed: Option<&'static str>,
    /// Share of the tile memory that blocks of result tiles may take.
    pub blocking: f64,
    /// All tasks by an order found by search, which is for fewer bytes alone.
    pub found: Option<FoundOrder>,
}

/// An order of all tasks of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoundOrder {
    /// A list schedule that takes tiles to have so much of their memory.
    Listed(f64),
    /// The best of several beginnings at each task, where tiles have so much of their memory.
    Beam(f64),
    /// So many sweeps over the same tiles go over them together.
    Together(u32),
    /// Nests are gone through in blocks.
    Blocks(NestBlocks),
    /// Nests are gone through in cubes of so many pieces each way.
    Cubes(u32),
}

impl FoundOrder {
    fn name(self) -> String {
        match self {
            FoundOrder::Listed(share) => format!("searched, with {:.0} % of memory", share * 100.0),
            FoundOrder::Beam(share) => format!("beam search, with {:.0} % of memory", share * 100.0),
            FoundOrder::Together(sweeps) => format!("{sweeps} sweeps together"),
            FoundOrder::Blocks(NestBlocks {
                streamed,
                sides: [p, q],
            }) => format!("blocks of {p} x {q}, along loop {}", streamed + 1),
            FoundOrder::Cubes(side) => format!("cubes of {side} x {side} x {side}"),
        }
    }
}

impl Candidate {
    pub fn name(&self) -> String {
        let mut name = String::from(match (self.shared, self.columns) {
            (true, _) => "shared tiles",
            (false, true) => "columns",
            (false, false) => "rows",
        });
        if self.backwards {
            name.push_str(", backwards");
        }
        if self.alternate {
            name.push_str(", alternating");
        }
        if self.pipeline {
            name.push_str(", pipelined");
        }
        if let Some(proposed) = self.proposed {
            name.push_str(&format!(", {proposed}"));
        }
        if let Some(found) = self.found {
            name = found.name();
        }
        if self.blocking != PLAIN.blocking {
            name.push_str(&format!(", blocks in {:.0} % of memory", self.blocking * 100.0));
        }
        name
    }
}

/// The order of the text.
pub const PLAIN: Candidate = Candidate {
    alternate: false,
    backwards: false,
    pipeline: false,
    columns: false,
    shared: false,
    proposed: None,
    blocking: 0.95,
    found: None,
};

/// Whether orders of the tasks of a plan are searched for.
pub fn is_searched(plan: &Plan) -> bool {
    plan.tasks() <= TASKS_FOR_PROPOSALS && plan.works().any(|step| step.work.is_searched())
}

/// The orders worth simulating for `plan` with so much memory for tiles; `resumes` says that it finds tiles of an earlier program
/// in memory.
pub fn candidates(plan: &Plan, options: PlanOptions, memory: u64, resumes: bool) -> Vec<Candidate> {
    let plain = PLAIN;
    let mut all = vec![plain];
    if plan.tasks() > TASKS_FOR_SEARCH {
        return candidates_of_many(plan, plain, options, memory);
    }
    let walks = |producer: &Producer| producer.pass().is_none_or(|pass| !pass.domain.shape.is_empty());
    let several = plan.producers.iter().filter(|producer| walks(producer)).count() > 1;
    if options.alternate && several {
        all.push(Candidate {
            alternate: true,
            ..plain
        });
    }
    if options.pipeline && several {
        all.push(Candidate {
            pipeline: true,
            ..plain
        });
        all.push(Candidate {
            pipeline: true,
            alternate: options.alternate,
            ..plain
        });
    }
    if options.alternate && resumes {
        all.extend(all.clone().into_iter().map(|candidate| Candidate {
            backwards: true,
            ..candidate
        }));
    }
    if options.alternate && plan.passes().any(|pass| pass.domain.shape.len() >= 2) {
        all.push(Candidate { columns: true, ..plain });
        if options.pipeline && plan.producers.iter().any(|producer| producer.work().is_some()) {
            all.push(Candidate {
                columns: true,
                pipeline: true,
                ..plain
            });
        }
    }
    if options.share_tiles && plan.passes().any(sharing::may_share) {
        all.push(Candidate { shared: true, ..plain });
    }
    if plan.passes().any(blocking::is_blocked) {
        all.extend(all.clone().into_iter().map(|candidate| Candidate {
            blocking: LESS_BLOCKING,
            ..candidate
        }));
        all.extend(larger_blocks(plan, memory).map(|blocking| Candidate { blocking, ..plain }));
    }
    all.extend(proposed(plan, memory).into_iter().flat_map(|name| {
        let proposed = Some(name);
        [
            Candidate { proposed, ..plain },
            Candidate {
                proposed,
                pipeline: options.pipeline && several,
                ..plain
            },
        ]
    }));
    if options.search {
        all.extend(searched(plan, plain, memory));
    }
    all.dedup();
    all
}

/// Shares of memory that make larger blocks of products, where some would be one tile wide: twice as wide is half as much to read.
fn larger_blocks(plan: &Plan, memory: u64) -> impl Iterator<Item = f64> + '_ {
    let blocks = move |share: f64| -> Vec<[u64; 2]> {
        let products = plan.passes().filter(|pass| blocking::is_blocked(pass));
        products
            .map(|pass| blocking::blocks_of(pass, (memory as f64 * share) as u64))
            .collect()
    };
    let first = blocks(PLAIN.blocking);
    let is_narrow = first.iter().flatten().any(|&side| side == 1);
    let mut known = vec![first];
    let shares = MORE_BLOCKING.into_iter().filter(move |_| is_narrow);
    shares.filter(move |&share| {
        let found = blocks(share);
        let is_new = !known.contains(&found);
        known.push(found);
        is_new
    })
}

/// The orders found by search for a plan with works that have them.
fn searched(plan: &Plan, plain: Candidate, memory: u64) -> Vec<Candidate> {
    let is_small = plan.tasks() <= TASKS_OF_ARRAYS && plan.producers.len() > 1;
    if !plan.is_searched || !(is_small || is_searched(plan)) {
        return vec![];
    }
    let lists = SEARCHED.map(FoundOrder::Listed);
    let together = sweeps_together(plan).into_iter().map(FoundOrder::Together);
    let most = (SIMULATED_TASKS / plan.tasks().max(1)) as usize;
    let blocks = nests::blocks(plan, memory, most).into_iter().map(FoundOrder::Blocks);
    let beams = BEAMS.map(FoundOrder::Beam);
    let beams = beams.into_iter().filter(|_| plan.tasks() <= TASKS_FOR_BEAM);
    let cubes = nests::cubes(plan, memory, most).into_iter().map(FoundOrder::Cubes);
    let found = lists
        .into_iter()
        .chain(beams)
        .chain(together)
        .chain(blocks)
        .chain(cubes);
    found
        .map(|found| Candidate {
            found: Some(found),
            ..plain
        })
        .collect()
}

/// Numbers of sweeps that may go over their tiles together: about a third more each time, as many as there is time to simulate.
fn sweeps_together(plan: &Plan) -> Vec<u32> {
    let places = plan
        .works()
        .flat_map(|step| (0..step.work.tasks()).filter_map(|task| step.work.sweep_place(task)));
    let sweeps = places.map(|place| place.sweep + 1).max().unwrap_or(0);
    let most = (SIMULATED_TASKS / plan.tasks().max(1)) as usize;
    let more = |together: &u32| (*together < sweeps).then(|| (together + 1).max(together * 4 / 3).min(sweeps));
    let first = (sweeps > 1).then_some(2);
    std::iter::successors(first, more).take(most).collect()
}

/// The orders worth simulating for a plan of many tasks.
fn candidates_of_many(plan: &Plan, plain: Candidate, options: PlanOptions, memory: u64) -> Vec<Candidate> {
    let mut all = vec![plain];
    if options.pipeline && plan.producers.len() > 1 {
        all.push(Candidate {
            pipeline: true,
            ..plain
        });
    }
    if plan.tasks() <= TASKS_FOR_PROPOSALS {
        all.extend(proposed(plan, memory).into_iter().map(|name| Candidate {
            proposed: Some(name),
            ..plain
        }));
    }
    all
}

/// Names of the orders that works propose, each once.
fn proposed(plan: &Plan, memory: u64) -> Vec<&'static str> {
    let orders = plan.works().flat_map(|step| step.work.orders(memory));
    let mut names: Vec<&'static str> = orders.map(|order| order.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
