//! Bytes on disk and bytes in memory.
//!
//! Everything above asks this room for frames (memory that the ledger has granted), sources (arrays to read), sinks
//! (arrays to write) and scratch (spilled tiles). Each of them says in advance exactly what it will transfer, so that a
//! plan's forecast is what happens.
//!
//! Architecture invariant: a room uses only rooms to its left: `base ← memory ← backend ← volume ← io ← durable ← maintain ←
//! cache ← array ← chunked ← formats ← registry ← outputs`. `unsafe` lives in `memory/mapping.rs`, `memory/pages.rs`,
//! `memory/shared.rs`, `base/heap.rs`, `backend/ring.rs`, `backend/stable.rs` and `volume/scatter.rs` only.
#![deny(unsafe_code)]

mod array;
mod backend;
mod base;
pub mod cache;
mod chunked;
mod durable;
mod formats;
pub mod io;
mod maintain;
mod memory;
mod outputs;
mod registry;
/// Files over several disks, and the upkeep of them.
pub mod volumes {
    pub use crate::durable::locked::remove_tree;
    pub use crate::durable::rename::{exchange, is_within, replace};
    pub use crate::maintain::admin::{add, create, info, record_places, remove, set_weights, MemberInfo, VolumeInfo};
    pub use crate::maintain::rebalance::{rebalance, Rebalanced};
    pub use crate::maintain::scan::{check, Checked};
    pub use crate::volume::{
        errno, parse_member, remove_file, BlockLayout, Description, DiskCounters, DiskError, Stub,
    };
}
mod volume;
/// Stores of objects behind a network.
pub mod remote {
    pub use crate::backend::remote::{mount, tag_of, RemoteFacts, RemoteStore, RemoteVisit};
}

pub use array::annotations::{Annotation, AnnotationValue, Annotations};
pub use array::format::{Ability, ArrayUpdate, UpdatableArray};
pub use array::in_memory::{MemorySink, MemorySource};
pub use array::picked::Picked;
pub use array::publish::{discard_replaced, publish};
pub use array::record::{FieldPlace, StoredRecords};
pub use array::region::Region;
pub use array::rowmajor::{normalize_bools, GROUP_STAGING_BYTES};
pub use array::selection::{Positions, Selection};
pub use array::sink::{Sink, WriteCosts};
pub use array::source::{may_change_unseen, Layout, MemoryView, Opened, Opening, RawArray, ReadCost, Source};
pub use array::stored::{StoredGroup, StoredMember, StoredObject};
pub use base::error::{Result, StandingOutput, StoreError};
pub use base::heap::{keep_little_freed, return_freed_memory};
pub use base::identity::{identity_of_its_own, process_nonce};
pub use base::interval::Interval;
pub use base::page::PAGE;
pub use base::pool::IoPool;
pub use base::size::{show_size, show_size_up};
pub use base::unwanted::{is_unwanted, watch_unwanted, UnwantedFlag};
pub use chunked::pages::{parquet_chunks, ParquetChunks, CHUNK_FACTS};
pub use durable::journal::JournalKey;
pub use durable::locked::Cleaned;
pub use durable::mark::is_made_by;
pub use durable::partial::{clean_partials, Partial};
pub use durable::scratch::{clean, scratch_room, Scratch, ScratchFolder, Slot};
pub use durable::stages::StagesFolder;
pub use durable::target::{check_space, target_of};
pub use formats::factor::{open_factor, parse_factor, FactorFile, FactorOutput, FactorRecord};
pub use formats::graph::{
    parse_graph, Caching, Direction, GraphFile, GraphShape, GraphWriter, Part, PlacedRun, Section,
};
pub use formats::hdf5::{decode_hdf5_chunk, FilePart};
pub use formats::netcdf3::{parse_netcdf3_header, NetCdf3Header};
pub use formats::npy::{open_npy, open_raw, parse_npy_header, NpyFile, NpyHeader};
pub use formats::sparse::{
    open_rows, open_sparse, parse_sparse, place_pending, CompressedRows, PendingTile, RowBound, SparseFile,
    SparseOutput, SparseShape, SparseWriter, TileRowRecord, FIRST_OFFSET,
};
pub use formats::text::{LineFormat, Lines, NumberType, TextColumns, Unzstd};
pub use formats::zarr::parse_zarr_json;
pub use io::{Counters, Faults, Io};
pub use memory::frames::{Frame, FramePool};
pub use memory::ledger::{Ledger, Reclaim, Reservation};
pub use memory::mapping::{large_vec, AlignedBuffer, LargePages};
pub use memory::shared::{ClaimedSlice, SharedBuffer};
pub use memory::turn::Turn;
pub use outputs::durable_tiles::Look;
pub use outputs::held::{hold_factor, hold_sparse, Held};
pub use outputs::resume::{list_unfinished, remove_unfinished, resume_name, Resumable, Unfinished};
pub use outputs::sums::{agrees_with_sums, checksum_behind, remove_with_sums};
pub use registry::create::{create, plan_sink, SinkPlan};
pub use registry::formats::{find_updatable, formats, FormatFacts};
pub use registry::listing::{decode_listed_chunk, open_listing, ChunkListing};
pub use registry::open::{find_for, open, open_for};
