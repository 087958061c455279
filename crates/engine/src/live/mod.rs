//! Live work: reads follow from results so far, so that it is no program. It works in memory of the session's ledger,
//! with threads, I/O and counters of a run of its own, and with bounds where a program has numbers.
//!
//! An operator says what it needs (`operator.rs`), one rule shares the session's memory out (`memory.rs`), a run reserves it,
//! refuses where there is too little, counts and gives back (`run.rs`). Nothing else decides memory of live work.
//!
//! Uses `run` and the rooms below. Start with `operator.rs`, then `run.rs`.

mod activity;
mod cached;
mod memory;
mod operator;
mod pages;
mod resources;
mod run;

pub use activity::{Activity, Iterations};
pub use cached::RandomFile;
pub use memory::{
    cached_bytes, shares, working_bytes, CacheShare, LiveMemory, LiveShares, ReadingShare, CACHE_LEAST, CALL_BYTES,
    READING_MAX, READING_PART, READING_PART_ALONE,
};
pub use operator::{IoBound, LiveOperator};
pub use pages::{Paged, PagesOfSessions};
pub(crate) use resources::{each_part, no_memory, BATCH_PAGES};
pub use resources::{Frames, Resources, Watch, PORTION_PAGES};
pub use run::{forecast, LiveForecast, LiveRun};
