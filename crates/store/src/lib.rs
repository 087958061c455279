//! Bytes on disk and bytes in memory.
//!
//! Everything above asks this room for frames (memory that the ledger has granted), sources (arrays to read), sinks
//! (arrays to write) and scratch (spilled tiles). Each of them says in advance exactly what it will transfer, so that a
//! plan's forecast is what happens.
//!
//! Architecture invariant: `unsafe` lives in `mapping.rs`, `pages.rs`, `shared.rs`, `heap.rs`, `io/ring.rs` and `volume/scatter.rs`
//! only.
#![deny(unsafe_code)]

mod alarm;
pub mod cache;
mod error;
mod frames;
mod gate;
mod graph;
#[allow(unsafe_code)] // a call to the allocator
mod heap;
mod held;
pub mod io;
mod journal;
mod ledger;
mod locked;
#[allow(unsafe_code)] // anonymous mappings
mod mapping;
mod mark;
mod memory;
mod npy;
#[allow(unsafe_code)] // pages lent to readers or an owner
mod pages;
mod partial;
mod picked;
mod pool;
mod process;
mod publish;
mod region;
mod resume;
mod rowmajor;
mod scratch;
mod selection;
#[allow(unsafe_code)] // disjoint mutable ranges of one buffer
mod shared;
mod sink;
mod size;
mod source;
mod sparse;
mod stamp;
mod sums;
mod sync;
mod text;
mod unzstd;
pub mod volume;
mod words;
mod zarr;

pub use error::{Standing, StoreError};
pub use frames::{Frame, FramePool, PAGE};
pub use graph::{parse_graph, Caching, Direction, GraphFile, GraphShape, GraphWriter, Part, PlacedRun, Section};
pub use heap::{have_few_arenas, return_freed_memory};
pub use held::Held;
pub use io::{Counters, Faults, Io};
pub use journal::JournalKey;
pub use ledger::{Ledger, Reclaim, Reservation};
pub use locked::Cleaned;
pub use mapping::{large_vec, AlignedBuffer, LargePages};
pub use mark::is_made_by;
pub use memory::{MemorySink, MemorySource};
pub use npy::{open_npy, open_raw, parse_npy_header, NpyFile, NpyHeader, RawArray};
pub use partial::{clean_partials, Partial};
pub use picked::Picked;
pub use pool::IoPool;
pub use process::{identity_of_its_own, process_nonce, Turn};
pub use publish::{publish, settle};
pub use region::Region;
pub use resume::{list_unfinished, remove_unfinished, resume_name, Look, Resumable, Unfinished};
pub use rowmajor::{normalize_bools, GROUP_STAGING_BYTES};
pub use scratch::{clean, scratch_room, Scratch, ScratchFolder, Slot, StagesFolder};
pub use selection::{Positions, Selection};
pub use shared::{ClaimedSlice, SharedBuffer};
pub use sink::{check_space, create, plan_sink, target_of, Sink, SinkPlan};
pub use size::{show_size, show_size_up};
pub use source::{may_change_unseen, open, open_for, Layout, MemoryView, Opened, Opening, ReadCost, Source};
pub use sparse::{
    open_rows, open_sparse, parse_sparse, CompressedRows, SparseFile, SparseShape, SparseWriter, TileRowRecord,
};
pub use sums::{agrees_with_sums, checksum_behind, remove_with_sums};
pub use text::{Columns, LineFormat, Lines, Number};
pub use unzstd::Unzstd;
pub use zarr::{parse_zarr_json, ZarrArray};

/// The result of everything here.
pub type Result<T> = std::result::Result<T, StoreError>;
