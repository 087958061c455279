//! A trace of a program that is played: how busy its threads are over time, its slowest tasks, and when its instructions
//! were issued.
//!
//! Invariant: a trace takes less than 1 MiB beside its events, which the allowances beside the ledger bear, however long
//! the run: bins double in width when the run outgrows them, and samples are thinned.

use std::time::{Duration, Instant};

use outcore_store::{Ledger, Reservation};

use crate::run::session::overhead::resident_now;

/// How much of a run is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceLevel {
    #[default]
    None,
    /// Busy time in bins.
    Bins,
    /// Each task and each transfer as well, as many as `EventsRoom` has memory for.
    Events,
}

/// Kinds of work that threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Memory is touched first, which the kernel clears.
    Touch,
    Read,
    Compute,
    Write,
    Spill,
}

impl WorkKind {
    pub const ALL: [WorkKind; 5] = [
        WorkKind::Touch,
        WorkKind::Read,
        WorkKind::Compute,
        WorkKind::Write,
        WorkKind::Spill,
    ];

    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Touch => "touch",
            WorkKind::Read => "read",
            WorkKind::Compute => "compute",
            WorkKind::Write => "write",
            WorkKind::Spill => "spill",
        }
    }
}

/// The part of a program that work belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The producer of a task, the array of a transfer.
    pub of: u32,
    /// The number of a task in its producer; the first tile of a transfer.
    pub part: u32,
}

/// One task or transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: WorkKind,
    pub subject: Subject,
    /// The thread among those of its kind.
    pub lane: u16,
    pub start_ns: u64,
    pub length_ns: u64,
}

/// Work that has begun.
#[derive(Clone, Copy, Debug)]
pub struct WorkMark {
    kind: WorkKind,
    lane: usize,
    at_ns: u64,
}

/// Nanoseconds in which work of some kind was under way in any thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Reads, writes or spills.
    pub transfer_ns: u64,
    pub compute_ns: u64,
    /// Transfers and tasks at once.
    pub both_ns: u64,
    /// Nothing but first touches of memory.
    pub touch_ns: u64,
}

/// Resident bytes of the process at a time of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeSample {
    pub at_ns: u64,
    pub resident_bytes: u64,
}

/// Bins of one thread, in nanoseconds of work.
type Bins = Vec<u64>;

/// Events of a computation at most, and those that the allowances beside the ledger bear.
pub const EVENTS_MAX: usize = 1 << 18;
const EVENTS_LEAST: usize = 1 << 10;
/// Bytes of an event, with its text once the program has run.
const EVENT_BYTES: usize = size_of::<Event>() + 160;
const BINS: usize = 256;
const FIRST_BIN_NS: u64 = 1 << 12;
const SAMPLES_MAX: usize = 256;
const SLOWEST: usize = 12;
/// Runs that are shorter have no trace, unless events are kept.
const SECONDS_MIN: f64 = 0.005;
const LANES_MAX: usize = 64;

/// Memory for the events of a program: a part of what nobody needs while it runs.
pub struct EventsRoom {
    pub events: usize,
    reserved: Option<Reservation>,
}

impl EventsRoom {
    /// Bytes that the ledger is charged.
    pub fn bytes(&self) -> u64 {
        self.reserved.as_ref().map_or(0, |reserved| reserved.bytes() as u64)
    }

    pub fn within(ledger: &Ledger, spare_bytes: u64) -> EventsRoom {
        let bytes = (spare_bytes / 2).min((EVENTS_MAX * EVENT_BYTES) as u64) as usize;
        let reserved = ledger.reserve(bytes, "events of a timeline").ok();
        let events = reserved.as_ref().map_or(0, |_| bytes / EVENT_BYTES);
        EventsRoom {
            events: events.max(EVENTS_LEAST),
            reserved,
        }
    }
}

pub struct Trace {
    begin: Instant,
    bin_ns: u64,
    /// By kind of work: the threads that did it, and those that are free.
    lanes: [Vec<Bins>; WorkKind::ALL.len()],
    free: [Vec<usize>; WorkKind::ALL.len()],
    under_way: [u32; WorkKind::ALL.len()],
    changed_ns: u64,
    overlap: Overlap,
    slowest: Vec<Event>,
    events: Option<Vec<Event>>,
    events_max: usize,
    /// Events beyond those that are kept.
    pub events_left_out: u64,
    /// When the first instruction of each column was issued.
    issued_ns: Vec<u64>,
    /// Resident bytes of the process.
    samples: Vec<SizeSample>,
    sample_every_ns: u64,
}

impl Trace {
    pub fn new(level: TraceLevel, begin: Instant, events_max: usize) -> Option<Box<Trace>> {
        (level != TraceLevel::None).then(|| {
            Box::new(Trace {
                begin,
                bin_ns: FIRST_BIN_NS,
                lanes: Default::default(),
                free: Default::default(),
                under_way: Default::default(),
                changed_ns: 0,
                overlap: Overlap::default(),
                slowest: Vec::with_capacity(SLOWEST),
                events: (level == TraceLevel::Events).then(Vec::new),
                events_max,
                events_left_out: 0,
                issued_ns: Vec::new(),
                samples: Vec::new(),
                sample_every_ns: 1 << 20,
            })
        })
    }

    fn since_begin(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.begin).as_nanos() as u64
    }

    /// Work begins in the first free lane of its kind.
    pub fn begin(&mut self, kind: WorkKind, at: Instant) -> WorkMark {
        let at_ns = self.since_begin(at);
        let (free, lanes) = (&mut self.free[kind as usize], &mut self.lanes[kind as usize]);
        let first = free.iter().enumerate().min_by_key(|(_, &lane)| lane);
        let lane = match first.map(|(place, _)| place) {
            Some(place) => free.swap_remove(place),
            // Further threads share the last lane.
            None if lanes.len() == LANES_MAX => LANES_MAX - 1,
            None => {
                lanes.push(vec![]);
                lanes.len() - 1
            }
        };
        self.count(at_ns);
        self.under_way[kind as usize] += 1;
        WorkMark { kind, lane, at_ns }
    }

    /// Work ends.
    pub fn end(&mut self, begun: WorkMark, subject: Subject, at: Instant) {
        let WorkMark { kind, lane, at_ns } = begun;
        let end_ns = self.since_begin(at).max(at_ns);
        self.count(end_ns);
        self.under_way[kind as usize] -= 1;
        if !self.free[kind as usize].contains(&lane) {
            self.free[kind as usize].push(lane);
        }
        let event = Event {
            kind,
            subject,
            lane: lane as u16,
            start_ns: at_ns,
            length_ns: end_ns - at_ns,
        };
        self.fill(&event);
        self.rank(event);
        match &mut self.events {
            Some(events) if events.len() < self.events_max => events.push(event),
            Some(_) => self.events_left_out += 1,
            None => {}
        }
    }

    /// Adds the time since the last change to the kinds of work that were under way.
    fn count(&mut self, now_ns: u64) {
        let elapsed = now_ns.saturating_sub(self.changed_ns);
        self.changed_ns = self.changed_ns.max(now_ns);
        let is_under_way = |kind: WorkKind| self.under_way[kind as usize] > 0;
        let transfers = [WorkKind::Read, WorkKind::Write, WorkKind::Spill]
            .map(is_under_way)
            .contains(&true);
        let computes = is_under_way(WorkKind::Compute);
        let touches = is_under_way(WorkKind::Touch);
        let overlap = &mut self.overlap;
        overlap.transfer_ns += if transfers { elapsed } else { 0 };
        overlap.compute_ns += if computes { elapsed } else { 0 };
        overlap.both_ns += if transfers && computes { elapsed } else { 0 };
        overlap.touch_ns += if touches && !transfers && !computes { elapsed } else { 0 };
    }

    fn fill(&mut self, event: &Event) {
        let (begin, end) = (event.start_ns, event.start_ns + event.length_ns);
        while end > self.bin_ns * BINS as u64 {
            self.widen();
        }
        let (bin_ns, bins) = (
            self.bin_ns,
            &mut self.lanes[event.kind as usize][usize::from(event.lane)],
        );
        let (first, last) = (begin / bin_ns, end.saturating_sub(1).max(begin) / bin_ns);
        let needed = (last as usize + 1).min(BINS);
        if bins.len() < needed {
            bins.resize(needed, 0);
        }
        for bin in first..=last.min(BINS as u64 - 1) {
            let (from, to) = (begin.max(bin * bin_ns), end.min((bin + 1) * bin_ns));
            bins[bin as usize] += to.saturating_sub(from);
        }
    }

    /// Two bins become one.
    fn widen(&mut self) {
        self.bin_ns *= 2;
        for bins in self.lanes.iter_mut().flatten() {
            *bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    fn rank(&mut self, event: Event) {
        if event.kind == WorkKind::Touch {
            return;
        }
        if self.slowest.len() < SLOWEST {
            self.slowest.push(event);
            return;
        }
        let shortest = self.slowest.iter_mut().min_by_key(|kept| kept.length_ns);
        if let Some(shortest) = shortest.filter(|shortest| shortest.length_ns < event.length_ns) {
            *shortest = event;
        }
    }

    /// The first instruction of a column is issued.
    pub fn issue(&mut self, column: usize, at: Instant) {
        if self.issued_ns.len() <= column {
            let at_ns = self.since_begin(at);
            self.issued_ns.resize(column + 1, at_ns);
            self.sample(at_ns);
        }
    }

    /// The size of the process, where none was taken for a while.
    pub fn sample_at(&mut self, at: Instant) {
        self.sample(self.since_begin(at));
    }

    fn sample(&mut self, at_ns: u64) {
        let last = self.samples.last().map(|sample| sample.at_ns);
        if last.is_some_and(|last| at_ns < last + self.sample_every_ns) {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.sample_every_ns *= 2;
        }
        self.samples.push(SizeSample {
            at_ns,
            resident_bytes: resident_now(),
        });
    }

    /// Whether so long a run is looked at: the trace of a shorter one takes longer to write than it tells.
    pub fn is_worth(&self, seconds: f64) -> bool {
        self.events.is_some() || seconds >= SECONDS_MIN
    }

    pub fn overlap(&self) -> Overlap {
        self.overlap
    }

    pub fn slowest(&self) -> Vec<Event> {
        let mut slowest = self.slowest.clone();
        slowest.sort_by_key(|event| std::cmp::Reverse(event.length_ns));
        slowest
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.take().unwrap_or_default()
    }

    pub fn bin(&self) -> Duration {
        Duration::from_nanos(self.bin_ns)
    }

    /// The bins of the threads that did work of a kind, in percent of their width.
    pub fn busy_percents(&self, kind: WorkKind) -> Vec<Vec<u64>> {
        let percent = |&ns: &u64| (100 * ns + self.bin_ns / 2) / self.bin_ns;
        let lanes = self.lanes[kind as usize].iter();
        lanes.map(|bins| bins.iter().map(percent).collect()).collect()
    }

    pub fn issued_ns(&self) -> &[u64] {
        &self.issued_ns
    }

    pub fn samples(&self) -> &[SizeSample] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(level: TraceLevel) -> (Box<Trace>, Instant) {
        let begin = Instant::now();
        (Trace::new(level, begin, EVENTS_MAX).expect("it is traced"), begin)
    }

    fn at(begin: Instant, micros: u64) -> Instant {
        begin + Duration::from_micros(micros)
    }

    #[test]
    fn without_a_level_nothing_is_traced() {
        assert!(Trace::new(TraceLevel::None, Instant::now(), 0).is_none());
    }

    #[test]
    fn bins_hold_all_of_the_work_at_every_width() {
        let (mut trace, begin) = trace(TraceLevel::Bins);
        let mut sum = 0;
        for step in 0..2_000_u64 {
            let begun = trace.begin(WorkKind::Read, at(begin, 7 * step));
            trace.end(begun, Subject::default(), at(begin, 7 * step + 5));
            sum += 5_000;
        }
        let bins = &trace.lanes[WorkKind::Read as usize];
        assert_eq!(bins.len(), 1);
        assert_eq!(bins[0].iter().sum::<u64>(), sum);
        assert!(bins[0].len() <= BINS);
        assert_eq!(trace.overlap().transfer_ns, sum);
    }

    #[test]
    fn work_at_once_has_lanes_of_its_own() {
        let (mut trace, begin) = trace(TraceLevel::Events);
        let first = trace.begin(WorkKind::Read, at(begin, 0));
        let second = trace.begin(WorkKind::Read, at(begin, 10));
        let task = trace.begin(WorkKind::Compute, at(begin, 20));
        trace.end(first, Subject::default(), at(begin, 30));
        let third = trace.begin(WorkKind::Read, at(begin, 40));
        trace.end(second, Subject::default(), at(begin, 50));
        trace.end(task, Subject::default(), at(begin, 60));
        trace.end(third, Subject::default(), at(begin, 70));
        let lanes: Vec<u16> = trace.take_events().iter().map(|event| event.lane).collect();
        assert_eq!(lanes, [0, 1, 0, 0]);
        let overlap = trace.overlap();
        assert_eq!(
            (overlap.transfer_ns, overlap.compute_ns, overlap.both_ns),
            (70_000, 40_000, 40_000)
        );
    }

    #[test]
    fn the_slowest_are_kept_and_events_are_bounded() {
        let (mut trace, begin) = trace(TraceLevel::Events);
        for step in 0..EVENTS_MAX as u64 + 10 {
            let begun = trace.begin(WorkKind::Compute, at(begin, step));
            let length = if step == 77 { 5_000 } else { 1 };
            let subject = Subject {
                of: 1,
                part: step as u32,
            };
            trace.end(begun, subject, at(begin, step + length));
        }
        assert_eq!(trace.slowest()[0].subject.part, 77);
        assert_eq!(trace.slowest().len(), SLOWEST);
        assert_eq!(trace.events_left_out, 10);
        assert_eq!(trace.take_events().len(), EVENTS_MAX);
    }

    #[test]
    fn more_threads_than_lanes_share_the_last() {
        let (mut trace, begin) = trace(TraceLevel::Bins);
        let begun: Vec<WorkMark> = (0..LANES_MAX + 5)
            .map(|_| trace.begin(WorkKind::Write, at(begin, 0)))
            .collect();
        begun
            .into_iter()
            .for_each(|begun| trace.end(begun, Subject::default(), at(begin, 3)));
        assert_eq!(trace.busy_percents(WorkKind::Write).len(), LANES_MAX);
    }
}
