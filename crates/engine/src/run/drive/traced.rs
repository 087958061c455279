//! The trace of a program that ran, beside its forecast, as JSON for pages and as events for timelines.

use crate::place::occupancy::{ArrayOccupancy, Flow, Occupancy, PlacedTasks, StripColumn};
use crate::place::Start;
use crate::plan::ArrayKind;
use crate::run::play::stage::IoAccounts;
use crate::run::play::trace::{Event, Trace, WorkKind, EVENTS_MAX};
use crate::run::prepare::program::PreparedProgram;
use crate::run::prepare::report::{list, quoted};
use crate::run::session::estimate::PassDone;
use crate::schedule::tiles::coordinates;
use crate::schedule::TileId;

/// Programs of one computation whose traces are kept: the longest.
const TRACES_MAX: usize = 32;
/// Arrays whose occupancy is drawn: those that move and hold most.
const ARRAYS_MAX: usize = 40;

/// Flows between passes and these that are drawn.
const FLOWS_MAX: usize = 2_000;

/// The trace of one program.
pub struct ProgramTrace {
    /// The stage that the program is, in words.
    pub label: String,
    /// When it began, after the computation.
    pub begin_seconds: f64,
    pub seconds: f64,
    pub json: String,
    /// Tasks and transfers, where they were kept, and how many more there were.
    pub events: Vec<Event>,
    pub events_left_out: u64,
    /// Names of producers, and of arrays, where events were kept.
    pub names: [Vec<String>; 2],
}

impl ProgramTrace {
    /// The name of the work of an event.
    pub fn name(&self, event: &Event) -> &str {
        let [producers, arrays] = &self.names;
        let names = match event.kind {
            WorkKind::Compute => producers,
            _ => arrays,
        };
        names.get(event.subject.of as usize).map_or("", String::as_str)
    }
}

/// The events of programs in Chrome's trace format: complete events, microseconds.
pub fn timeline(traces: &[ProgramTrace]) -> String {
    let mut events = vec![];
    for trace in traces {
        let begin = trace.begin_seconds * 1e6;
        events.extend(trace.events.iter().map(|event| {
            let (kind, name) = (event.kind.name(), trace.name(event));
            let shown = if kind == "compute" {
                name.to_string()
            } else {
                format!("{kind} {name}")
            };
            format!(
                "{{\"name\":{},\"cat\":\"{kind}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3},\"dur\":{:.3}}}",
                quoted(&shown),
                event.kind as usize * 100 + usize::from(event.lane),
                begin + event.start_ns as f64 * 1e-3,
                event.length_ns as f64 * 1e-3
            )
        }));
        if trace.events_left_out > 0 {
            let name = format!("{} events more are not kept", trace.events_left_out);
            let at = begin + trace.seconds * 1e6;
            events.push(format!(
                "{{\"name\":{},\"ph\":\"I\",\"s\":\"g\",\"pid\":1,\"tid\":0,\"ts\":{at:.3}}}",
                quoted(&name)
            ));
        }
    }
    format!("[{}]", events.join(",\n"))
}

/// Leaves the longest traces, in their order.
pub(super) fn keep_longest(traces: &mut Vec<ProgramTrace>) {
    while traces.len() > TRACES_MAX {
        let lengths = traces.iter().enumerate();
        let shortest = lengths.min_by(|(_, one), (_, other)| one.seconds.total_cmp(&other.seconds));
        if let Some((place, _)) = shortest {
            traces.remove(place);
        }
    }
}

/// Leaves no more events of a computation than of one program, the earliest.
pub(super) fn bound_events(traces: &mut [ProgramTrace]) {
    let mut left = EVENTS_MAX;
    for trace in traces {
        let beyond = trace.events.len().saturating_sub(left);
        trace.events.truncate(left);
        trace.events.shrink_to_fit();
        trace.events_left_out += beyond as u64;
        left -= trace.events.len();
    }
}

impl PreparedProgram {
    /// The occupancy of memory by this program.
    pub fn occupancy(&self) -> Occupancy {
        let start: Vec<TileId> = self.start.iter().map(|&(tile, _)| tile).collect();
        self.placed_tasks(&start).occupancy()
    }

    fn placed_tasks<'a>(&'a self, start: &'a Start) -> PlacedTasks<'a> {
        PlacedTasks {
            plan: &self.plan,
            tiles: &self.tiles,
            tasks: &self.placed.tasks,
            program: &self.placed.program,
            slabs: &self.slabs,
            start,
        }
    }

    /// The occupancy as JSON, for pictures of the plan.
    pub fn occupancy_json(&self) -> String {
        let occupancy = self.occupancy();
        let memory = occupancy
            .memory
            .iter()
            .map(|used| format!("[{},{},{}]", used.kept, used.passing, used.partial));
        let producers = occupancy.producers.iter().map(|columns| match columns {
            Some(columns) => format!("[{},{}]", columns.start, columns.end),
            None => "null".into(),
        });
        let shown = largest(&occupancy.arrays);
        let arrays = shown.iter().map(|&array| self.array_json(array, &occupancy));
        let is_shown = |&(&(_, array), _): &(&(u32, u32), &Flow)| shown.binary_search(&(array as usize)).is_ok();
        let flows = occupancy.flows.iter().filter(is_shown).take(FLOWS_MAX);
        let flows = flows.map(|((producer, array), flow)| format!("[{producer},{array},{},{}]", flow.taken, flow.made));
        format!(
            "{{\"columns\":{},\"memory\":{},\"passes\":{},\"arrays\":{},\"flows\":{},\"arrays_left_out\":{},\"results_bytes\":{},\
             \"unseen_bytes\":{}}}",
            occupancy.columns,
            list(memory),
            list(producers),
            list(arrays),
            list(flows),
            occupancy.arrays.len() - shown.len(),
            self.results_bytes(),
            self.unseen_bytes,
        )
    }

    fn array_json(&self, array: usize, occupancy: &Occupancy) -> String {
        let info = &self.plan.arrays[array];
        let account = &occupancy.arrays[array];
        let role = match (&info.kind, info.outputs.is_empty()) {
            (ArrayKind::Source(_), _) => "stored",
            (ArrayKind::Memory(_), _) => "memory",
            (ArrayKind::Computed, false) => "result",
            (ArrayKind::Computed, true) => "temporary",
        };
        let labels = match info.outputs.is_empty() {
            true => vec![info.label()],
            false => self.result_labels(array as u32),
        };
        let (resident, happens) = dense(account, occupancy.columns);
        format!(
            "{{\"array\":{array},\"names\":{},\"role\":\"{role}\",\"shape\":{},\"dtype\":{},\"tile\":{},\"tiles\":{},\
             \"bytes\":{},\"read\":{},\"read_again\":{},\"tiles_again\":{},\"written\":{},\"spilled\":{},\"peak\":{},\
             \"resident\":{},\"happens\":{}}}",
            list(labels.iter().map(|label| quoted(label))),
            list(info.node.shape.iter().map(u64::to_string)),
            quoted(&info.node.dtype.to_string()),
            list(info.node.tile.iter().map(u64::to_string)),
            account.tiles,
            account.bytes,
            account.read,
            account.read_again,
            account.tiles_again,
            account.written,
            account.spilled,
            account.peak,
            list(resident.iter().map(u64::to_string)),
            list(happens.iter().map(u8::to_string)),
        )
    }

    /// The program and its trace, when it has run.
    pub(super) fn traced(
        &self,
        mut trace: Box<Trace>,
        done: &[PassDone],
        accounts: &IoAccounts,
        seconds: f64,
    ) -> ProgramTrace {
        let start: Vec<TileId> = self.start.iter().map(|&(tile, _)| tile).collect();
        let bytes = self.placed_tasks(&start).occupancy_bytes();
        // The run has ended, so that what it had reserved is free; else pages do without strips of arrays.
        let room = self.session.ledger().reserve(bytes as usize, "occupancy of memory");
        let occupancy = room.map_or("null".into(), |_room| self.occupancy_json());
        let events = trace.take_events();
        let names = match events.is_empty() {
            true => Default::default(),
            false => [
                self.plan
                    .producers
                    .iter()
                    .map(|producer| producer.label().to_string())
                    .collect(),
                self.plan.arrays.iter().map(|array| array.label()).collect(),
            ],
        };
        ProgramTrace {
            label: String::new(),
            begin_seconds: 0.0,
            seconds,
            json: format!(
                "{{\"program\":{},\"occupancy\":{occupancy},{}}}",
                self.to_json(),
                self.busy_json(&trace, done, accounts)
            ),
            events,
            events_left_out: trace.events_left_out,
            names,
        }
    }

    fn busy_json(&self, trace: &Trace, done: &[PassDone], accounts: &IoAccounts) -> String {
        let seconds = |ns: u64| format!("{:.6}", ns as f64 * 1e-9);
        let lanes = WorkKind::ALL.iter().map(|&kind| {
            let lanes = trace.busy_percents(kind).into_iter();
            let bins = lanes.map(|bins| list(bins.iter().map(u64::to_string)));
            format!("\"{}\":{}", kind.name(), list(bins))
        });
        let lanes: Vec<String> = lanes.collect();
        let overlap = trace.overlap();
        let (read, written) = accounts.bytes();
        let read = read.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0);
        let read = list(read.map(|(array, bytes)| format!("[{array},{bytes}]")));
        let files = self.outputs.iter().zip(written);
        let files = files.filter_map(|(output, bytes)| Some((output.file()?.path().display().to_string(), bytes)));
        let written = list(files.map(|(path, bytes)| format!("[{},{bytes}]", quoted(&path))));
        let samples = trace.samples().iter();
        format!(
            "\"bin_seconds\":{},\"lanes\":{{{}}},\"transfer_seconds\":{},\"compute_seconds\":{},\"both_seconds\":{},\
             \"touch_seconds\":{},\"issued\":{},\"samples\":{},\"slowest\":{},\"pass_seconds\":{},\"read\":{},\"written\":{}",
            trace.bin().as_secs_f64(),
            lanes.join(","),
            seconds(overlap.transfer_ns),
            seconds(overlap.compute_ns),
            seconds(overlap.both_ns),
            seconds(overlap.touch_ns),
            list(trace.issued_ns().iter().map(|&ns| seconds(ns))),
            list(samples.map(|sample| format!("[{},{}]", seconds(sample.at_ns), sample.resident_bytes))),
            list(trace.slowest().iter().map(|event| self.slow_json(event))),
            list(done.iter().map(|pass| seconds(pass.compute_ns))),
            read,
            written,
        )
    }

    fn slow_json(&self, event: &Event) -> String {
        let (of, part) = (event.subject.of as usize, event.subject.part);
        let (name, counts, part) = match event.kind {
            WorkKind::Compute => {
                let producer = &self.plan.producers[of];
                let counts = producer
                    .pass()
                    .map_or(vec![producer.tasks()], |pass| pass.domain.counts());
                (producer.label().to_string(), counts, u64::from(part))
            }
            _ => {
                let array = &self.plan.arrays[of];
                (array.label(), array.counts.clone(), self.tiles.locate(part).1)
            }
        };
        let mut at = Vec::new();
        coordinates(&counts, part, &mut at);
        let (start, length) = (event.start_ns as f64 * 1e-9, event.length_ns as f64 * 1e-9);
        format!(
            "[\"{}\",{of},{},{start:.6},{length:.6},{},{}]",
            event.kind.name(),
            quoted(&name),
            event.lane,
            list(at.iter().map(u64::to_string))
        )
    }
}

/// Numbers of the arrays that move and hold most, in their order.
fn largest(arrays: &[ArrayOccupancy]) -> Vec<usize> {
    let weight = |account: &ArrayOccupancy| account.read + account.written + 2 * account.spilled + account.peak;
    let mut shown: Vec<usize> = (0..arrays.len()).filter(|&array| weight(&arrays[array]) > 0).collect();
    shown.sort_by_key(|&array| std::cmp::Reverse(weight(&arrays[array])));
    shown.truncate(ARRAYS_MAX);
    shown.sort_unstable();
    shown
}

/// Resident bytes in percent of the array, and happenings, of every column.
fn dense(account: &ArrayOccupancy, columns: usize) -> (Vec<u64>, Vec<u8>) {
    let (mut resident, mut happens) = (vec![0; columns], vec![0; columns]);
    let percent = |bytes: u64| (100 * bytes).div_ceil(account.bytes.max(1)).min(100);
    let mut strip = account.strip.iter().peekable();
    let mut before = 0;
    for column in 0..columns {
        let here = strip.next_if(|change: &&StripColumn| usize::from(change.column) == column);
        resident[column] = percent(here.map_or(before, |change| change.most));
        if let Some(change) = here {
            (before, happens[column]) = (change.end, change.happens);
        }
    }
    (resident, happens)
}
