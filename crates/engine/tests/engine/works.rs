//! Programs with tile algorithms: replayed by the checker at every size of the pool, and run.

use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use outcore_dtype::{DType, Scalar};
use outcore_engine::expr::staged::{Next, Room};
use outcore_engine::expr::Expr;
use outcore_engine::ops::{self, GatherOrder, NamedRows};
use outcore_engine::place::window::InBytes;
use outcore_engine::place::{Limits, Policy, Window};
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{Session, SessionOptions, Target, TraceLevel};
use outcore_engine::sparse::{self, Assembler, Duplicates, Semiring, SparseMatrix};
use outcore_engine::task::{Access, Algorithm, Alone, Bound, Grid, TaskOrder, Work};
use outcore_engine::{linalg, sort, EngineError};
use outcore_kernels::sort::Side;
use outcore_kernels::{Binary, Factor, Finish, Fourier, Generator, Reduce, Scan, Tally};
use outcore_store::{Io, SparseShape};

use crate::replay::{replay, replay_program, Case, Seen};
use crate::support::{apply, chunked, compute, made_value, session, stored};

mod algorithms;

use algorithms::{packed, pairs, rounds};

/// Elements of a row of three tiles and a bit.
const LENGTH: u64 = (3 << 19) + 777;
/// A matrix whose tiles, pairs of its chunks, stand in five rows of two.
const MATRIX: [u64; 2] = [2100, 2048];
const CHUNK: [u64; 2] = [512, 512];
/// A mask chooses what is larger.
const ABOVE: f64 = 0.6;

fn row(name: &str) -> Expr {
    stored(name, &[LENGTH])
}

fn number(value: f64) -> Expr {
    ops::constant(Scalar::Float(value), DType::F64).expect("a constant")
}

/// Numbers from 6 to 55.
fn whole(x: &Expr) -> Expr {
    ops::astype(&apply(Binary::Multiply, x, &number(50.0)), DType::I64).expect("a type")
}

fn sum(x: &Expr, axis: usize) -> Expr {
    ops::reduce(Reduce::Sum, Finish::Value, x, &[axis]).expect("an axis to sum over")
}

fn scan(op: Scan, x: &Expr, axis: usize) -> Expr {
    ops::scan(op, x, axis, None).expect("an axis to scan along")
}

/// A mask of a stored row, and how many of each granule it chooses.
fn above(x: &Expr) -> (Expr, Vec<u64>) {
    let rows = ops::granule(LENGTH);
    let counts = (0..LENGTH).step_by(rows as usize).map(|start| {
        let granule = start..(start + rows).min(LENGTH);
        granule.filter(|&flat| made_value(flat) > ABOVE).count() as u64
    });
    (apply(Binary::Greater, x, &number(ABOVE)), counts.collect())
}

fn compress(x: &Expr, mask: &Expr, counts: &[u64]) -> Expr {
    ops::compress(x, mask, counts).expect("counts of the mask")
}

fn gather(x: &Expr, index: &Expr, order: GatherOrder) -> Expr {
    ops::gather(x, index, order).expect("an index")
}

/// Scans along both axes, fed by a pass, and passes on what they give.
fn scans() -> Vec<Expr> {
    let x = chunked("works-scan", &MATRIX, &CHUNK);
    let down = scan(Scan::Sum, &apply(Binary::Multiply, &x, &x), 0);
    let across = scan(Scan::Max, &down, 1);
    vec![apply(Binary::Add, &across, &x), sum(&down, 0), scan(Scan::Sum, &x, 1)]
}

/// Tiles that cut long rows, which are read together.
fn wide() -> Vec<Expr> {
    let x = stored("works-wide", &[400, 16_384]);
    let down = scan(Scan::Sum, &x, 0);
    let across = scan(Scan::Prod, &apply(Binary::Add, &x, &down), 1);
    vec![sum(&across, 0), apply(Binary::Multiply, &down, &x)]
}

/// What a mask chooses, its positions, and what is taken at them.
fn masks() -> Vec<Expr> {
    let (x, y) = (row("works-mask-x"), row("works-mask-y"));
    let (mask, counts) = above(&x);
    let chosen = compress(&apply(Binary::Add, &x, &y), &mask, &counts);
    let positions = ops::nonzero(&mask, &counts).expect("counts of the mask");
    let taken = gather(&y, &positions, GatherOrder::AtOnce);
    vec![scan(Scan::Sum, &chosen, 0), positions, sum(&taken, 0)]
}

/// Rows of several tiles side by side, by an index: held, swept over, and met in order.
fn taken() -> Vec<Expr> {
    let x = chunked("works-rows", &MATRIX, &CHUNK);
    let index = whole(&stored("works-index", &[1800]));
    let square = apply(Binary::Multiply, &x, &x);
    let grid = ops::gather_grid(&x, &index);
    let counting = Generator::Arange {
        start: Scalar::Int(0),
        step: Scalar::Int(1),
    };
    let in_order = ops::generate(counting, index.shape.clone(), DType::I64).expect("an index");
    let parts = (0..index.shape[0]).step_by(grid.tile[0] as usize);
    let ranges = parts.map(|first| NamedRows {
        first,
        last: (first + grid.tile[0]).min(index.shape[0]) - 1,
    });
    let met = GatherOrder::Sorted(Arc::new(ranges.collect()));
    vec![
        gather(&x, &index, GatherOrder::AtOnce),
        gather(&square, &index, GatherOrder::Sweeps(2)),
        sum(&gather(&x, &in_order, met), 0),
    ]
}

/// Two works one after the other, and a search.
fn counted() -> Vec<Expr> {
    let (x, y) = (row("works-count-x"), row("works-count-y"));
    let numbers = whole(&x);
    let bins = ops::tallied(Tally::Count, &numbers, None, None, 100_000, DType::I64).expect("numbers");
    let weighted =
        ops::tallied(Tally::Sum, &numbers, Some(&y), None, 100_000, DType::F64).expect("numbers and weights");
    let sorted = scan(Scan::Sum, &row("works-sorted"), 0);
    let places = ops::search(&sorted, &y, Side::Left).expect("two rows");
    vec![
        apply(Binary::Add, &ops::astype(&bins, DType::F64).expect("a type"), &weighted),
        sum(&places, 0),
    ]
}

/// Operands that are one array: a task names its tile twice.
fn twice() -> Vec<Expr> {
    let x = row("works-twice");
    let (mask, counts) = above(&x);
    let numbers = whole(&x);
    vec![
        compress(&mask, &mask, &counts),
        ops::tallied(Tally::Sum, &numbers, Some(&numbers), None, 100_000, DType::I64).expect("numbers"),
        gather(&numbers, &numbers, GatherOrder::Sweeps(2)),
    ]
}

/// Sorted by itself and by another, with passes on both sides.
fn sorted() -> Vec<Expr> {
    let (x, y) = (row("works-keys"), row("works-values"));
    let keys = apply(Binary::Multiply, &x, &y);
    let columns = sort::sort_by(&keys, &[y, keys.clone()], false, None).expect("columns");
    vec![apply(Binary::Subtract, &columns[0], &columns[1]), sum(&columns[2], 0)]
}

/// The same of stored keys, by buckets.
fn distributed() -> Vec<Expr> {
    let (x, y) = (row("works-keys"), row("works-values"));
    let columns = sort::sort_by(&x, &[y], true, Some(sort::Method::Distribution)).expect("columns");
    vec![sum(&columns[0], 0), columns[1].clone()]
}

fn quantiles() -> Vec<Expr> {
    let x = chunked("works-quantiles", &MATRIX, &CHUNK);
    let shifted = apply(Binary::Add, &x, &number(1.0));
    sort::order_statistics(&shifted, &[0.5]).expect("a matrix")
}

/// An index too large to hold, into rows too large to hold.
fn taken_in_stages() -> Vec<Expr> {
    let (x, index) = (row("works-take-x"), whole(&row("works-take-index")));
    vec![apply(
        Binary::Add,
        &sort::take(&x, &index).expect("an index"),
        &number(1.0),
    )]
}

/// A tall matrix by tiles, and small ones whole.
fn factorized() -> Vec<Expr> {
    let x = stored("works-tall", &[300_000, 12]);
    let tall = linalg::factorize(Factor::Qr, &x, None).expect("a tall matrix");
    let triangle = linalg::factorize(Factor::Triangle, &apply(Binary::Multiply, &x, &x), None).expect("a tall matrix");
    let eye = ops::generate(Generator::Eye { k: 0 }, vec![6, 6], DType::F64).expect("a matrix");
    let many = apply(
        Binary::Add,
        &stored("works-many", &[40_000, 6, 6]),
        &apply(Binary::Multiply, &eye, &number(9.0)),
    );
    let inverses = linalg::factorize(Factor::Inverse, &many, None).expect("square matrices");
    vec![
        tall[0].clone(),
        apply(Binary::Add, &tall[1], &triangle[0]),
        sum(&inverses[0], 0),
    ]
}

/// Transforms down and across, rows of groups, and sums that begin anew.
fn transformed() -> Vec<Expr> {
    let x = chunked("works-fft", &MATRIX, &CHUNK);
    let down = ops::fourier(Fourier::FromReal, &x, 0, MATRIX[0], 1.0, Some(500)).expect("an axis");
    let across = ops::fourier(Fourier::Forward, &down, 1, MATRIX[1], 0.5, None).expect("an axis");
    let numbers = whole(&stored("works-groups", &MATRIX[..1]));
    let marks = apply(Binary::Greater, &stored("works-marks", &MATRIX[..1]), &number(ABOVE));
    let anew = ops::scan(Scan::Sum, &x, 0, Some(&marks)).expect("an axis to scan along");
    vec![
        across,
        ops::tallied(Tally::Max, &numbers, Some(&x), None, 60, DType::F64).expect("numbers and rows"),
        sum(&anew, 1),
    ]
}

/// A stored sparse matrix of some tile rows without entries, with values that are no float64.
fn sparse_matrix() -> SparseMatrix {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let path = MADE.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("works.ocs");
        let shape = SparseShape {
            rows: 500_000,
            columns: 450_000,
            side: 1 << 14,
            entries: 0,
            dtype: Some(DType::I32),
        };
        // 31 and 28 tiles: 5 bits each.
        let mut places: Vec<u64> = (0..400_000u64)
            .map(|i| (i * 7919 * 7919 % 450_000 / 3 * 2, i * 104_729 % 450_000))
            .map(|(row, column)| {
                let (tile_row, block) = (row >> 14, column >> 14);
                (tile_row << 5 | block) << 28 | (row & 0x3fff) << 14 | column & 0x3fff
            })
            .collect();
        places.sort_unstable();
        let values: Vec<u8> = (0..places.len() as i32)
            .flat_map(|i| (i % 5 - 2).to_ne_bytes())
            .collect();
        let io = Io::buffered();
        let mut made = Assembler::new(&path, shape, Duplicates::Sum, true, 2, &io).expect("a file");
        made.add(&places, &values, &io).expect("places in order");
        made.finish(&io).expect("a name");
        path
    });
    sparse::open(path, &Io::buffered()).expect("what was written")
}

/// Products of a sparse matrix, there and back.
fn multiplied() -> Vec<Expr> {
    let matrix = sparse_matrix();
    let x = stored("works-sparse", &[450_000, 6]);
    let matrix = sparse::SparseOperand::Stored(matrix);
    let there = sparse::product(&matrix, false, &x, Semiring::PlusTimes).expect("shapes that fit");
    let back = sparse::product(
        &matrix,
        true,
        &apply(Binary::Add, &there, &number(1.0)),
        Semiring::PlusTimes,
    );
    let least = sparse::product(&matrix, false, &apply(Binary::Multiply, &x, &x), Semiring::MinPlus);
    vec![back.expect("shapes that fit"), sum(&least.expect("shapes that fit"), 1)]
}

/// The programs of a computation, as if the facts of each were the worst there can be.
fn programs(outputs: &[Expr], room: Room) -> Vec<Vec<Expr>> {
    let mut programs = Vec::new();
    let outputs = ops::resolve(outputs, &mut |waiting| {
        let mut stages = waiting.key.0.begin(&waiting.inputs, room).expect("room enough");
        let mut next = stages.next(&[], room, &Io::memory()).expect("a first stage");
        let mut after = 0;
        loop {
            match next {
                Next::Done(results) => return Ok::<_, EngineError>(results),
                Next::Stage { outputs, .. } => programs.push(outputs.into_iter().map(|(node, _)| node).collect()),
            }
            after += 1;
            next = stages.assume(after, room)?;
        }
    });
    programs.push(outputs.expect("room enough"));
    programs
}

/// Computations by name, each with the rooms in MiB that its stages begin in.
fn all() -> Vec<(&'static str, Vec<Expr>, Vec<u64>)> {
    vec![
        ("scans", scans(), vec![24]),
        ("long rows", wide(), vec![24]),
        ("masks", masks(), vec![24]),
        ("rows taken", taken(), vec![24]),
        ("counts", counted(), vec![24]),
        ("operands twice", twice(), vec![24]),
        ("works in turn", rounds(), vec![24]),
        ("pairs of tiles", vec![pairs(5, false)], vec![64]),
        ("tiles of different sizes", packed(), vec![24]),
        ("sort", sorted(), vec![16, 512]),
        ("sort by distribution", distributed(), vec![24]),
        ("quantiles", quantiles(), vec![64]),
        ("rows taken in stages", taken_in_stages(), vec![16, 512]),
        ("factorizations", factorized(), vec![16, 512]),
        ("transforms and groups", transformed(), vec![16, 512]),
        ("sparse products", multiplied(), vec![24, 512]),
    ]
}

/// Replays a program at pools from the smallest that fits to one that holds all.
fn replay_everywhere(name: &str, outputs: &[Expr], options: PlanOptions) -> Seen {
    let mut seen = Seen::default();
    for case in [Case::new(outputs, options), Case::in_memory(outputs, options)] {
        assert!(case.plan.passes().count() + case.plan.works().count() > 0, "{name}");
        // No larger pool is needed: partial results of passes are small beside the tiles of these works.
        let least = case.largest_task();
        for policy in Policy::ALL {
            let in_bytes = |most| Window {
                tasks: 16,
                bytes: Some(InBytes { most, tasks_min: 1 }),
            };
            for (window, memory) in [
                (Window::of_tasks(1), least),
                (Window::of_tasks(6), least),
                (Window::of_tasks(6), 2 * least),
                (Window::of_tasks(16), 2 * least),
                (in_bytes(least / 4), 2 * least),
                (in_bytes(least), 2 * least),
                (Window::of_tasks(6), 2 * case.all_tiles()),
            ] {
                let limits = Limits {
                    policy,
                    ..Limits::new(memory, window)
                };
                let placed = case.place_within(options, limits).unwrap_or_else(|shortage| {
                    panic!("{name}, {}, {window:?}, {memory} bytes: {shortage:?}", policy.name())
                });
                seen.add(replay(&case, &placed, memory));
            }
        }
    }
    seen
}

#[test]
fn programs_of_works_can_be_played_in_every_pool() {
    let mut seen = Seen::default();
    for (name, outputs, rooms) in all() {
        for mebibytes in rooms {
            let room = Room {
                memory: mebibytes << 20,
                threads: 2,
            };
            for program in programs(&outputs, room) {
                for options in [PlanOptions::ALL, PlanOptions::NONE] {
                    seen.add(replay_everywhere(name, &program, options));
                }
            }
        }
    }
    let Seen {
        groups,
        workspaces,
        updates_of_spilled,
        read_back,
        passes_between,
    } = seen;
    let all = [groups, workspaces, updates_of_spilled, read_back, passes_between];
    assert!(all.iter().all(|&count| count > 0), "nothing to check: {seen:?}");
}

/// Tiles of results that an earlier run left are not written again by tasks that are run for others, unless whole.
#[test]
fn what_is_left_of_works_can_be_played() {
    for (name, outputs, rooms) in all() {
        let room = Room {
            memory: rooms[0] << 20,
            threads: 2,
        };
        for program in programs(&outputs, room) {
            let results = Case::new(&program, PlanOptions::ALL).result_tiles();
            for every in 2..=4 {
                let done: Vec<_> = results.iter().copied().step_by(every).collect();
                let case = Case::new(&program, PlanOptions::ALL).gone_on_with(&done);
                let memory = case.largest_task();
                let placed = case.place(PlanOptions::ALL, memory, 4, Policy::NextUse);
                let placed = placed.unwrap_or_else(|| panic!("{name}: {memory} bytes hold every task"));
                replay(&case, &placed, memory);
            }
        }
    }
}

/// The checker itself: a program that leaves out an instruction, or has one twice, is refused.
#[test]
fn a_program_with_a_fault_cannot_be_played() {
    let case = Case::new(&masks(), PlanOptions::ALL);
    let memory = case.largest_task();
    let placed = || case.place(PlanOptions::ALL, memory, 2, Policy::Lru).expect("fits");
    replay(&case, &placed(), memory);
    let instructions = placed().program.instructions;
    let mut kinds = HashSet::new();
    for (at, instruction) in instructions.iter().enumerate() {
        if !kinds.insert(std::mem::discriminant(instruction)) {
            continue;
        }
        let (mut without, mut twice) = (placed(), placed());
        without.program.instructions.remove(at);
        twice.program.instructions.insert(at, *instruction);
        for faulty in [without, twice] {
            let played = catch_unwind(AssertUnwindSafe(|| replay(&case, &faulty, memory)));
            assert!(played.is_err(), "{instruction:?}");
        }
    }
    assert!(kinds.len() >= 8, "{} kinds of instructions", kinds.len());
}

/// Runs a computation in a pool, after its programs were replayed. Gives the bits of its results.
fn run(name: &str, outputs: &[Expr], (pool, threads, policy): (u64, usize, Policy)) -> Vec<Vec<u8>> {
    let session = session(pool, threads, policy, PlanOptions::ALL);
    let targets = vec![Target::Memory; outputs.len()];
    let chain = session.plan_chain(outputs, &targets, &mut || Ok(()));
    let chain = chain.unwrap_or_else(|error| panic!("{name}, {threads} threads, {}: {error}", policy.name()));
    for stage in &chain.stages {
        replay_program(&stage.program);
    }
    let outcome = chain.run(TraceLevel::None, &mut |_| Ok(())).expect("runs");
    for stage in &outcome.stages {
        // What is read of sources without files passes no counter.
        assert_eq!(
            stage.forecast[1..],
            stage.counted[1..],
            "{name}: what is forecast is what happens"
        );
    }
    let results = outcome.results.iter().zip(outputs);
    results
        .map(|(frame, output)| frame.as_ref().expect("a result in memory")[..output.nbytes() as usize].to_vec())
        .collect()
}

/// The pool that the first refusal of a computation names: it is planned there.
fn smallest_pool(name: &str, outputs: &[Expr], threads: usize, policy: Policy) -> u64 {
    let targets = vec![Target::Memory; outputs.len()];
    let plan = |pool| {
        let session = session(pool, threads, policy, PlanOptions::ALL);
        session.plan_chain(outputs, &targets, &mut || Ok(())).map(drop)
    };
    let least = 64 << 10;
    let named = match plan(least) {
        Err(EngineError::Memory {
            smallest, exact: true, ..
        }) => smallest,
        Err(error) => panic!("{name}: {error}"),
        Ok(()) => return least,
    };
    match plan(named) {
        Err(error) => panic!("{name}: {named} bytes were said to work: {error}"),
        Ok(()) => named,
    }
}

#[test]
fn works_give_the_same_bits_in_every_pool() {
    for (name, outputs, _) in all() {
        let expected = run(name, &outputs, (1 << 30, 1, Policy::NextUse));
        for (threads, factor, policy) in [
            (1, 1, Policy::CleanFirstLru),
            (2, 1, Policy::NextUse),
            (4, 1, Policy::Lru),
            (2, 2, Policy::Clock),
            (4, 2, Policy::ConsumerCount),
        ] {
            let pool = factor * smallest_pool(name, &outputs, threads, policy);
            let found = run(name, &outputs, (pool, threads, policy));
            assert!(
                found == expected,
                "{name}, {threads} threads, {}, {pool} bytes",
                policy.name()
            );
        }
    }
}

/// Writes what a mask chooses to a file, going on with what is there; with a fault if there is one.
fn store(path: &Path, faults: Option<String>) -> Result<(), EngineError> {
    let x = row("works-resume");
    let (mask, counts) = above(&x);
    let options = SessionOptions {
        faults,
        ..session(256 << 20, 2, Policy::NextUse, PlanOptions::ALL)
            .options()
            .clone()
    };
    let target = Target::Path {
        path: path.to_path_buf(),
        overwrite: true,
        chunks: None,
        resume: true,
        annotations: None,
        update: None,
        codecs: None,
        part: None,
    };
    let chosen = compress(&x, &mask, &counts);
    let chain = Arc::new(Session::new(options)?).plan_chain(&[chosen], &[target], &mut || Ok(()))?;
    chain.run(TraceLevel::None, &mut |_| Ok(())).map(drop)
}

/// A task that fills the end of one tile and the beginning of the next runs again where only the first is done.
#[test]
fn what_a_mask_chooses_is_whole_after_it_was_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = folder.path().join("expected.npy");
    store(&expected, None).expect("runs");
    let expected = std::fs::read(expected).expect("a file");
    let mut failures = 0;
    for nth in 1.. {
        let path = folder.path().join(format!("{nth}.npy"));
        if store(&path, Some(format!("write:{nth}"))).is_ok() {
            break;
        }
        failures += 1;
        store(&path, None).expect("goes on");
        let found = std::fs::read(path).expect("a file");
        assert!(found == expected, "gone on with after write {nth} failed");
    }
    assert!(failures > 2, "only {failures} writes");
}

/// By rows every pair reads a tile anew where few are held; by blocks a tile serves as many pairs as a block has.
#[test]
fn an_order_that_a_work_proposes_is_taken_where_it_moves_less() {
    let ample = session(256 << 20, 2, Policy::NextUse, PlanOptions::ALL);
    let expected = compute(&ample, &[pairs(16, false)]);
    let fixed = PlanOptions {
        search: false,
        ..PlanOptions::ALL
    };
    let narrow = session(40 << 20, 2, Policy::NextUse, fixed);
    let read = |is_illegal| {
        let prepared = narrow
            .prepare(&[pairs(16, is_illegal)], &[Target::Memory])
            .expect("fits");
        (
            prepared.placed.candidate.name(),
            prepared.placed.program.totals.read_bytes,
        )
    };
    let (name, read_bytes) = read(false);
    assert!(name.contains("by blocks of pairs"), "{name}");
    // An order that turns conflicts round is passed over.
    let (by_numbers, more_bytes) = read(true);
    assert!(!by_numbers.contains("by blocks"), "{by_numbers}");
    assert!(2 * read_bytes < more_bytes, "{read_bytes} of {more_bytes}");
    assert_eq!(compute(&narrow, &[pairs(16, false)]), expected);
    assert_eq!(compute(&narrow, &[pairs(16, true)]), expected);
}
