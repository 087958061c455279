//! What stays in memory between programs, by digest: clean tiles of stored arrays, and values that were computed anyway.
//!
//! Both leave only when their memory is needed, tiles first: of those the ones of arrays that no expression reads any more,
//! then the ones used longest ago. A value that the caller no longer names leaves soon when it is large, with the crowd when
//! it is small. Tiles of a file that is gone, replaced or rewritten answer nothing any more, and leave with the next program.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};

use outcore_store::{Frame, FramePool, Layout, MemorySource, Reclaim, Source};

use super::locked;
use crate::expr::{Digest, Expr, Node, Op, SourceKey};
use crate::run::compute::value::TileMemory;
use crate::EngineError;

/// The digest of a stored array's node, and the tile's position in its grid.
pub(in crate::run) type KeptKey = (Digest, u64);

/// Programs after which a large value that nobody names and no program used is let go.
const GRACE: u64 = 2;
/// Values up to this size are small.
const SMALL: u64 = 64 << 10;
/// Most bytes and most values that are small and not named.
const SMALL_BYTES_MAX: u64 = 4 << 20;
const SMALL_COUNT_MAX: usize = 4096;
/// Up to this size a value lies on the heap, within the allowances beside the ledger, instead of in pages of its own.
const ON_HEAP: usize = 512;

/// Why a value is worth its memory, and what it is made of.
#[derive(Clone)]
pub(in crate::run) struct Worth {
    pub node: Weak<Node>,
    pub digest: Digest,
    /// Bytes that would be read to compute it again.
    pub cost: u64,
    /// The stored arrays below it.
    pub sources: Vec<Below>,
}

/// A stored array that a value was made of.
#[derive(Clone)]
pub(in crate::run) enum Below {
    Stored(Arc<dyn Source>),
    /// It is gone with its last reader, which the value is none of.
    Passing(Weak<dyn Source>),
}

impl Below {
    pub fn new(source: &Arc<dyn Source>) -> Below {
        match source.goes_with_readers() {
            true => Below::Passing(Arc::downgrade(source)),
            false => Below::Stored(source.clone()),
        }
    }

    /// The array, while there is one.
    pub fn get(&self) -> Option<Arc<dyn Source>> {
        match self {
            Below::Stored(source) => Some(source.clone()),
            Below::Passing(source) => source.upgrade(),
        }
    }
}

/// A value that was computed before.
#[derive(Clone)]
pub(in crate::run) struct Value {
    /// The value as an array in memory, cut into the tiles of the node that it is the value of.
    pub array: Expr,
    pub worth: Worth,
    /// Charged in the ledger.
    pub bytes: u64,
    used: u64,
}

impl Value {
    /// # Errors
    /// `changed`, when a file that it was computed from is not what it was.
    pub fn check(&self, thoroughly: bool) -> Result<(), EngineError> {
        for source in self.worth.sources.iter().filter_map(Below::get) {
            source.check_unchanged()?;
            if thoroughly {
                source.check_region(&outcore_store::Region::full(source.shape()))?;
            }
        }
        Ok(())
    }

    /// Its operator while the caller names it, and its shape.
    fn name(&self) -> String {
        let shape: Vec<String> = self.array.shape.iter().map(u64::to_string).collect();
        let label = self.worth.node.upgrade().map_or("value".into(), |node| node.label());
        format!("{label} of shape ({})", shape.join(", "))
    }

    fn is_named(&self) -> bool {
        self.worth.node.upgrade().is_some_and(|node| node.is_named())
    }

    /// Whether a program works with it, whose memory it stays for as long.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.array) > 1
    }
}

/// Arrays that no expression reads, whose files are looked at after a program, at most.
const LOOKS_MAX: usize = 64;

struct KeptTile {
    memory: Arc<TileMemory>,
    used: u64,
    of: Arc<TilesOf>,
}

/// The stored array that tiles are of.
struct TilesOf {
    node: Weak<Node>,
    name: String,
    /// Nothing where a record of many chunks would have to be held for it.
    source: Option<Below>,
}

impl TilesOf {
    fn new(node: &Expr) -> TilesOf {
        let source = match &node.op {
            Op::Source(key) if key.0.goes_with_readers() || key.0.layout() == Layout::RowMajor => {
                Some(Below::new(&key.0))
            }
            _ => None,
        };
        TilesOf {
            node: Arc::downgrade(node),
            name: node.label(),
            source,
        }
    }

    /// Whether an expression reads the array.
    fn is_read(&self) -> bool {
        self.node.strong_count() > 0
    }

    /// Whether no expression can come to read it.
    fn is_gone(&self) -> bool {
        let Some(below) = &self.source else { return false };
        below.get().is_none_or(|source| source.check_unchanged().is_err())
    }
}

/// The tiles of an array, or a value, that stay in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptArray {
    /// The file of an array; the operator that gave a value, and its shape.
    pub name: String,
    /// Nothing for a value.
    pub tiles: Option<u64>,
    pub bytes: u64,
}

/// Invariant: `tile_bytes` and `value_bytes` are the sums over `tiles` and `values` of what the ledger is charged.
#[derive(Default)]
struct ResidencyState {
    tiles: HashMap<KeptKey, KeptTile>,
    values: HashMap<Digest, Value>,
    tile_bytes: u64,
    value_bytes: u64,
    /// Programs that have run.
    programs: u64,
}

/// The tiles and values that a session keeps between programs.
#[derive(Default)]
pub(in crate::run) struct KeptTiles(Mutex<ResidencyState>);

pub(in crate::run) fn frame_bytes(tile: &TileMemory) -> usize {
    FramePool::frame_bytes(tile.padded().len())
}

impl ResidencyState {
    fn take_tile(&mut self, key: &KeptKey) -> Option<Arc<TileMemory>> {
        let tile = self.tiles.remove(key)?;
        self.tile_bytes -= frame_bytes(&tile.memory) as u64;
        Some(tile.memory)
    }

    fn forget(&mut self, digest: &Digest) {
        if let Some(value) = self.values.remove(digest) {
            self.value_bytes -= value.bytes;
        }
    }

    /// Drops tiles of arrays that can be read no more. Few of many are looked at after each program, the oldest first.
    fn drop_gone(&mut self) {
        let mut unread: HashMap<Digest, (u64, &TilesOf)> = HashMap::new();
        for ((array, _), tile) in self.tiles.iter().filter(|(_, tile)| !tile.of.is_read()) {
            unread.insert(*array, (tile.used, tile.of.as_ref()));
        }
        let mut oldest: Vec<(u64, Digest, &TilesOf)> = unread
            .into_iter()
            .map(|(array, (used, of))| (used, array, of))
            .collect();
        oldest.sort_by_key(|&(used, array, _)| (used, array));
        let looked = oldest.iter().take(LOOKS_MAX);
        let gone: HashSet<Digest> = looked
            .filter(|(.., of)| of.is_gone())
            .map(|&(_, array, _)| array)
            .collect();
        if gone.is_empty() {
            return;
        }
        let keys: Vec<KeptKey> = self.tiles.keys().filter(|key| gone.contains(&key.0)).copied().collect();
        keys.iter().for_each(|key| drop(self.take_tile(key)));
    }

    /// Tiles of arrays that no expression reads go first, then those that a program used longest ago; those of one program as
    /// the map has them, so that an even sample stays of what does not stay whole.
    fn drop_tiles(&mut self, allowed: u64) {
        if self.tile_bytes <= allowed {
            return;
        }
        let tiles = self.tiles.iter();
        let mut oldest: Vec<(bool, u64, KeptKey)> =
            tiles.map(|(key, tile)| (tile.of.is_read(), tile.used, *key)).collect();
        oldest.sort_by_key(|&(is_read, used, _)| (is_read, used));
        for (.., key) in oldest {
            if self.tile_bytes <= allowed {
                return;
            }
            self.take_tile(&key);
        }
    }

    /// Values that nobody names go first, then those that cost least to compute again for their size.
    fn drop_values(&mut self, allowed: u64) {
        if self.value_bytes <= allowed {
            return;
        }
        let idle = self
            .values
            .values()
            .filter(|value| value.bytes > 0 && !value.is_in_use());
        let mut cheapest: Vec<(bool, u64, Digest)> = idle
            .map(|value| (value.is_named(), value.worth.cost / value.bytes, value.worth.digest))
            .collect();
        cheapest.sort_unstable();
        for (.., digest) in cheapest {
            if self.value_bytes <= allowed {
                return;
            }
            self.forget(&digest);
        }
    }

    /// Large values that nobody names, those that a program used longest ago first.
    fn drop_nameless(&mut self, allowed: u64) {
        if self.value_bytes <= allowed {
            return;
        }
        let values = self.values.values();
        let mut nameless: Vec<(u64, Digest)> = values
            .filter(|value| value.bytes > SMALL && !value.is_in_use() && !value.is_named())
            .map(|value| (value.used, value.worth.digest))
            .collect();
        nameless.sort_unstable();
        for (_, digest) in nameless {
            if self.value_bytes <= allowed {
                return;
            }
            self.forget(&digest);
        }
    }

    fn drop_crowd(&mut self) {
        let programs = self.programs;
        let mut small: Vec<(u64, u64, Digest)> = Vec::new();
        let mut gone: Vec<Digest> = Vec::new();
        for (digest, value) in &self.values {
            if value.is_in_use() || value.is_named() {
                continue;
            }
            if value.bytes <= SMALL {
                small.push((value.used, value.bytes, *digest));
            } else if value.used + GRACE < programs {
                gone.push(*digest);
            }
        }
        small.sort_unstable();
        let mut bytes: u64 = small.iter().map(|(_, bytes, _)| bytes).sum();
        let mut count = small.len();
        for (_, size, digest) in small {
            if bytes <= SMALL_BYTES_MAX && count <= SMALL_COUNT_MAX {
                break;
            }
            bytes -= size;
            count -= 1;
            gone.push(digest);
        }
        gone.iter().for_each(|digest| self.forget(digest));
    }
}

impl Reclaim for KeptTiles {
    fn bytes(&self) -> usize {
        let state = locked(&self.0);
        (state.tile_bytes + state.value_bytes) as usize
    }

    fn shrink_to(&self, allowed: usize) {
        let mut state = locked(&self.0);
        // A large value that nobody names is asked for again least likely.
        let tiles = state.tile_bytes;
        state.drop_nameless((allowed as u64).saturating_sub(tiles));
        let values = state.value_bytes;
        state.drop_tiles((allowed as u64).saturating_sub(values));
        let tiles = state.tile_bytes;
        state.drop_values((allowed as u64).saturating_sub(tiles));
    }
}

/// The memory of a value.
enum Bytes {
    Frame(Frame),
    Heap(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Frame(frame) => frame,
            Bytes::Heap(bytes) => bytes,
        }
    }
}

impl KeptTiles {
    pub fn clear(&self) {
        *locked(&self.0) = ResidencyState::default();
    }

    /// Bytes of values, which plans leave to them as long as they fit.
    pub fn value_bytes(&self) -> u64 {
        locked(&self.0).value_bytes
    }

    pub fn has_values(&self) -> bool {
        !locked(&self.0).values.is_empty()
    }

    /// The arrays and values that are kept, the most bytes first, but for tiny values, which lie on the heap.
    pub fn arrays(&self) -> Vec<KeptArray> {
        let state = locked(&self.0);
        let mut by_array: HashMap<Digest, KeptArray> = HashMap::new();
        for ((array, _), tile) in &state.tiles {
            let kept = by_array.entry(*array).or_insert_with(|| KeptArray {
                name: tile.of.name.clone(),
                tiles: Some(0),
                bytes: 0,
            });
            kept.tiles = kept.tiles.map(|tiles| tiles + 1);
            kept.bytes += frame_bytes(&tile.memory) as u64;
        }
        let values = state.values.values().filter(|value| value.bytes > 0);
        let values = values.map(|value| KeptArray {
            name: value.name(),
            tiles: None,
            bytes: value.bytes,
        });
        let mut all: Vec<KeptArray> = by_array.into_values().chain(values).collect();
        all.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        all
    }

    /// Which of an array's tiles are here.
    pub fn tiles_of(&self, array: Digest, tiles: u64) -> Vec<u64> {
        let state = locked(&self.0);
        if state.tiles.is_empty() {
            return vec![];
        }
        (0..tiles)
            .filter(|&index| state.tiles.contains_key(&(array, index)))
            .collect()
    }

    /// Hands out tiles, or nothing when one of them is gone.
    pub fn take_tiles<'a>(&self, keys: impl Iterator<Item = &'a KeptKey>) -> Option<Vec<Arc<TileMemory>>> {
        let mut state = locked(&self.0);
        keys.map(|key| state.take_tile(key)).collect()
    }

    /// Ends a program: what it leaves is kept, and what has had its time goes.
    pub fn keep(&self, tiles: impl Iterator<Item = (Expr, u64, Arc<TileMemory>)>) {
        let mut state = locked(&self.0);
        state.programs += 1;
        let used = state.programs;
        let mut arrays: HashMap<Digest, Arc<TilesOf>> = HashMap::new();
        for (array, index, memory) in tiles {
            let key = (array.digest(), index);
            state.take_tile(&key);
            state.tile_bytes += frame_bytes(&memory) as u64;
            let of = arrays
                .entry(key.0)
                .or_insert_with(|| Arc::new(TilesOf::new(&array)))
                .clone();
            state.tiles.insert(key, KeptTile { memory, used, of });
        }
        state.drop_crowd();
        state.drop_gone();
    }

    /// The value of a node, if it was computed before.
    pub fn value(&self, node: &Expr) -> Option<Value> {
        let mut state = locked(&self.0);
        let used = state.programs;
        let digest = node.digest();
        let is_gone = |value: &Value| value.worth.sources.iter().any(|below| below.get().is_none());
        if state.values.get(&digest).is_some_and(is_gone) {
            state.forget(&digest);
        }
        let value = state.values.get_mut(&digest)?;
        value.used = used;
        value.worth.node = Arc::downgrade(node);
        Some(value.clone())
    }

    /// Remembers a value by the frame it was computed into.
    pub fn remember(&self, worth: Worth, frame: Frame) {
        let bytes = FramePool::frame_bytes(frame.len()) as u64;
        self.insert(worth, Bytes::Frame(frame), bytes);
    }

    /// Remembers a copy of a small value: the caller may write to what it was given.
    pub fn remember_copy(&self, worth: Worth, value: &[u8], pool: &FramePool) {
        if value.len() <= ON_HEAP {
            return self.insert(worth, Bytes::Heap(value.to_vec()), 0);
        }
        let ledger = pool.ledger();
        let missing = (ledger.used() + FramePool::frame_bytes(value.len())).saturating_sub(ledger.limit());
        if missing > 0 {
            let mut state = locked(&self.0);
            let allowed = state.tile_bytes.saturating_sub(missing as u64);
            state.drop_tiles(allowed);
        }
        if let Ok(mut frame) = pool.allocate(value.len(), "a remembered value") {
            frame.copy_from_slice(value);
            self.remember(worth, frame);
        }
    }

    fn insert(&self, worth: Worth, memory: Bytes, bytes: u64) {
        let Some(node) = worth.node.upgrade() else { return };
        let mut strides = vec![1i64; node.ndim()];
        for axis in (1..node.ndim()).rev() {
            strides[axis - 1] = strides[axis] * node.shape[axis].max(1) as i64;
        }
        let Ok(source) = MemorySource::new(Arc::new(memory), node.dtype, 0, &node.shape, &strides) else {
            return;
        };
        let op = Op::Source(SourceKey(Arc::new(source)));
        let array = Node::intern(op, vec![], node.shape.clone(), node.dtype, node.tile.clone());
        let mut state = locked(&self.0);
        let (used, digest) = (state.programs, worth.digest);
        state.forget(&digest);
        state.value_bytes += bytes;
        let value = Value {
            array,
            worth,
            bytes,
            used,
        };
        state.values.insert(digest, value);
    }
}
