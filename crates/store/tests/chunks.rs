//! Zarr arrays of very many and very small chunks: what is read, in which windows, and what of the files is noticed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outcore_dtype::DType;
use outcore_store::{open, open_for, Interval, Io, Opening, Region, Reservation, Source, StoreError};
use proptest::prelude::*;

use crate::support::{pattern_of, read, tiles, write};

/// An array of bytes in shards, made by hand: `order` says in which order inner chunks lie in their shard, with `gap`
/// bytes before each; `missing` inner chunks are fill value.
struct Shards<'a> {
    shape: &'a [u64],
    shard: &'a [u64],
    inner: &'a [u64],
    codecs: &'a str,
    index_codecs: &'a str,
    location: &'a str,
    order: &'a dyn Fn(usize) -> usize,
    gap: usize,
    missing: &'a [usize],
}

const BYTES: &str = r#"{"name":"bytes"}"#;
const ZSTD: &str = r#"{"name":"bytes"},{"name":"zstd","configuration":{"level":1,"checksum":false}}"#;
const CRC: &str = r#"{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}"#;
const PLAIN_INDEX: &str = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;

impl Default for Shards<'_> {
    fn default() -> Self {
        Shards {
            shape: &[1000],
            shard: &[1000],
            inner: &[10],
            codecs: BYTES,
            index_codecs: CRC,
            location: "end",
            order: &|at| at,
            gap: 0,
            missing: &[],
        }
    }
}

impl Shards<'_> {
    fn metadata(&self) -> String {
        let Shards {
            shape,
            shard,
            inner,
            codecs,
            index_codecs,
            location,
            ..
        } = self;
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":{shape:?},"data_type":"uint8","fill_value":7,
            "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":{shard:?}}}}},
            "chunk_key_encoding":{{"name":"default"}},"codecs":[{{"name":"sharding_indexed","configuration":{{
            "chunk_shape":{inner:?},"codecs":[{codecs}],"index_codecs":[{index_codecs}],"index_location":"{location}"}}}}]}}"#
        )
    }

    /// One shard's file: `units` are its inner chunks' bytes in C order.
    fn file(&self, units: &[Vec<u8>]) -> Vec<u8> {
        let (mut data, mut entries) = (Vec::new(), vec![(u64::MAX, u64::MAX); units.len()]);
        let index_bytes = units.len() * 16 + if self.index_codecs == CRC { 4 } else { 0 };
        let base = if self.location == "start" { index_bytes } else { 0 };
        for at in 0..units.len() {
            let unit = (self.order)(at);
            if !self.missing.contains(&unit) {
                let encoded = match self.codecs {
                    BYTES => units[unit].clone(),
                    _ => zstd::bulk::compress(&units[unit], 1).unwrap(),
                };
                data.extend(vec![0xee; self.gap]);
                entries[unit] = ((base + data.len()) as u64, encoded.len() as u64);
                data.extend(encoded);
            }
        }
        let mut index: Vec<u8> = entries
            .iter()
            .flat_map(|&(offset, bytes)| [offset.to_le_bytes(), bytes.to_le_bytes()].concat())
            .collect();
        if self.index_codecs == CRC {
            index.extend(crc32c::crc32c(&index).to_le_bytes());
        }
        match self.location {
            "start" => [index, data].concat(),
            _ => [data, index].concat(),
        }
    }

    fn write(&self, path: &Path) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("zarr.json"), self.metadata()).unwrap();
        for region in tiles(&padded(self.shape, self.shard), self.shard) {
            let index: Vec<String> = region
                .start
                .iter()
                .zip(self.shard)
                .map(|(start, extent)| (start / extent).to_string())
                .collect();
            let units: Vec<Vec<u8>> = tiles(self.shard, self.inner)
                .iter()
                .map(|unit| self.unit(&region, unit))
                .collect();
            let file = path.join("c").join(index.join("/"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, self.file(&units)).unwrap();
        }
    }

    /// The bytes of an inner chunk: the pattern, and zeros beyond the array's edge.
    fn unit(&self, shard: &Region, unit: &Region) -> Vec<u8> {
        let start: Vec<u64> = shard.start.iter().zip(&unit.start).map(|(a, b)| a + b).collect();
        let whole = Region::new(start, unit.shape.clone());
        let mut bytes = vec![0; whole.elements() as usize];
        if let Some(inside) = whole.intersect(&Region::full(self.shape)) {
            let data = pattern_of(&inside, self.shape, DType::U8);
            let runs: Vec<_> = inside.relative_to(&whole.start).runs(&whole.shape).collect();
            let mut at = 0;
            for Interval {
                start: first,
                length: count,
            } in runs
            {
                bytes[first as usize..(first + count) as usize].copy_from_slice(&data[at..at + count as usize]);
                at += count as usize;
            }
        }
        bytes
    }
}

fn padded(shape: &[u64], shard: &[u64]) -> Vec<u64> {
    shape
        .iter()
        .zip(shard)
        .map(|(length, shard)| length.next_multiple_of(*shard))
        .collect()
}

fn source(path: &Path) -> std::sync::Arc<dyn Source> {
    open(path, &Io::direct()).unwrap().source
}

/// Bytes and calls of reading a region, which is compared with the pattern.
fn reads(path: &Path, region: &Region, shape: &[u64]) -> (u64, u64) {
    let io = Io::direct();
    let opened = source(path);
    assert_eq!(
        read(&*opened, region, &io).unwrap(),
        pattern_of(region, shape, DType::U8)
    );
    (io.counters().bytes_read, io.counters().read_calls)
}

#[test]
fn neighbouring_inner_chunks_are_read_together() {
    let dir = tempfile::tempdir().unwrap();
    let all = Region::full(&[1_000_000]);
    let large = Shards {
        shape: &all.shape,
        shard: &all.shape,
        ..Shards::default()
    };
    // A hundred thousand inner chunks, sorted some ten thousands at a time.
    let forwards = |at| at;
    let backwards = |at| 99_999 - at;
    let orders: [&dyn Fn(usize) -> usize; 2] = [&forwards, &backwards];
    for (at, (codecs, order)) in [(BYTES, orders[0]), (ZSTD, orders[0]), (BYTES, orders[1])]
        .into_iter()
        .enumerate()
    {
        let path = dir.path().join(format!("{at}.zarr"));
        Shards { codecs, order, ..large }.write(&path);
        let file_bytes = fs::metadata(path.join("c/0")).unwrap().len();
        let (bytes, calls) = reads(&path, &all, &all.shape);
        assert!(
            calls <= 6 && bytes <= file_bytes,
            "{codecs}: {calls} calls, {bytes} bytes"
        );
    }
    let path = dir.path().join("2.zarr");
    let part = Region::new(vec![500_003], vec![5000]);
    assert_eq!(reads(&path, &part, &all.shape), (12_288, 1));
}

#[test]
fn inner_chunks_that_lie_far_apart_are_read_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (gap, calls) in [(8 << 10, 1), (16 << 10, 10)] {
        let path = dir.path().join(format!("{gap}.zarr"));
        let shards = Shards {
            shape: &[100],
            shard: &[100],
            gap,
            ..Shards::default()
        };
        shards.write(&path);
        assert_eq!(reads(&path, &Region::full(&[100]), &[100]).1, calls);
    }
}

#[test]
fn inner_chunks_that_are_missing_are_fill_value() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    let missing: Vec<usize> = (0..100).filter(|unit| unit % 3 == 1).collect();
    Shards {
        missing: &missing,
        ..Shards::default()
    }
    .write(&path);
    let bytes = read(&*source(&path), &Region::full(&[1000]), &Io::direct()).unwrap();
    for (unit, found) in bytes.chunks(10).enumerate() {
        let region = Region::new(vec![unit as u64 * 10], vec![10]);
        let expected = match missing.contains(&unit) {
            true => vec![7; 10],
            false => pattern_of(&region, &[1000], DType::U8),
        };
        assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_region_of_any_shards_reads_back(
        axes in proptest::collection::vec((1u64..4, 1u64..5, 1u64..30, any::<u8>(), any::<u8>()), 1..3),
        zstd in any::<bool>(),
        at_start in any::<bool>(),
        crc in any::<bool>(),
        step in prop_oneof![Just(1usize), Just(7), Just(31)],
        gap in prop_oneof![Just(0usize), Just(5), Just(9000)],
    ) {
        let inner: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let shard: Vec<u64> = axes.iter().map(|axis| axis.0 * axis.1).collect();
        let shape: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
        let units = axes.iter().map(|axis| axis.1 as usize).product::<usize>();
        let step = if units % step == 0 { 1 } else { step };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zarr");
        Shards {
            shape: &shape,
            shard: &shard,
            inner: &inner,
            codecs: if zstd { ZSTD } else { BYTES },
            index_codecs: if crc { CRC } else { PLAIN_INDEX },
            location: if at_start { "start" } else { "end" },
            order: &|at| at * step % units,
            gap,
            missing: &[],
        }.write(&path);
        let mut region = Region::full(&shape);
        for (axis, choice) in axes.iter().enumerate() {
            region.start[axis] = u64::from(choice.3) % shape[axis];
            region.shape[axis] = u64::from(choice.4) % (shape[axis] - region.start[axis]) + 1;
        }
        for region in [region, Region::full(&shape)] {
            prop_assert_eq!(read(&*source(&path), &region, &Io::direct()).unwrap(), pattern_of(&region, &shape, DType::U8));
        }
    }
}

#[test]
fn an_index_of_many_blocks_is_checked_and_read_through_whoever_asks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    let shape = [20_000];
    let shards = Shards {
        shape: &shape,
        shard: &shape,
        inner: &[1],
        ..Shards::default()
    };
    shards.write(&path);
    let opened = source(&path);
    let io = Io::direct();
    let all = Region::full(&shape);
    let cost = opened.cost(&all, &io).unwrap();
    assert_eq!(cost.read_bytes, 20_480);
    // The whole index for its checksum, then the blocks that are asked.
    assert!(io.counters().metadata_bytes_read > 2 * 320_000);
    assert!(cost.workspace_bytes < 3 << 20, "{cost:?}");
    // One bit of the index is wrong.
    let file = path.join("c/0");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() - 100_000;
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = source(&path).cost(&all, &io).unwrap_err().to_string();
    assert!(
        error.ends_with("c/0: shard index: crc32c: a checksum does not match"),
        "{error}"
    );
}

#[test]
fn indices_that_lie_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    let shards = Shards {
        index_codecs: PLAIN_INDEX,
        ..Shards::default()
    };
    shards.write(&path);
    let file = path.join("c/0");
    let right = fs::read(&file).unwrap();
    let all = Region::full(&[1000]);
    let refused = |entry: [u64; 2]| {
        let mut bytes = right.clone();
        let at = bytes.len() - 1600;
        bytes[at..at + 16].copy_from_slice(&entry.map(u64::to_le_bytes).concat());
        fs::write(&file, &bytes).unwrap();
        read(&*source(&path), &all, &Io::direct()).unwrap_err().to_string()
    };
    for entry in [[2600, 10], [u64::MAX - 1, 10], [0, u64::MAX], [u64::MAX, 1]] {
        let error = refused(entry);
        assert!(error.ends_with("points outside of its 2600 bytes"), "{entry:?} {error}");
    }
    assert!(refused([0, 11]).ends_with("a chunk of 11 bytes where 10 are expected"));
    fs::write(&file, &right[..1599]).unwrap();
    let error = read(&*source(&path), &all, &Io::direct()).unwrap_err().to_string();
    assert!(
        error.ends_with("a shard of 1599 bytes is too short for its index"),
        "{error}"
    );
}

/// A grid of 2⁶⁰ chunks costs what the files that exist cost.
#[test]
fn a_grid_without_files_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    fs::create_dir_all(path.join("c")).unwrap();
    let metadata = r#"{"zarr_format":3,"node_type":"array","shape":[1152921504606846976],"data_type":"uint8",
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},"fill_value":7,
        "chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes"}]}"#;
    fs::write(path.join("zarr.json"), metadata).unwrap();
    fs::write(path.join("c/1152921504606846970"), [3]).unwrap();
    let end = Region::new(vec![(1 << 60) - 10], vec![10]);
    let bytes = read(&*source(&path), &end, &Io::direct()).unwrap();
    assert_eq!(bytes, [7, 7, 7, 7, 3, 7, 7, 7, 7, 7]);
}

/// Chunks of five bytes, four of them, the third missing.
fn four_chunks(dir: &Path) -> PathBuf {
    let path = dir.join("a.zarr");
    write(&path, &[20], DType::U8, &[5], &Io::direct()).unwrap();
    fs::remove_file(path.join("c/2")).unwrap();
    path
}

fn chunk(number: u64) -> Region {
    Region::new(vec![number * 5], vec![5])
}

/// What was opened before `change` notices it in the chunks that it uses, and only there.
fn notices(change: impl Fn(&Path), reason: &str, number: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = four_chunks(dir.path());
    let io = Io::direct();
    let opened = source(&path);
    change(&path);
    opened.check_unchanged().unwrap();
    for other in (0..4).filter(|&other| other != number) {
        opened.check_region(&chunk(other)).unwrap();
        read(&*opened, &chunk(other), &io).unwrap();
    }
    let errors = [
        opened.check_region(&chunk(number)).unwrap_err(),
        opened.check_region(&Region::full(&[20])).unwrap_err(),
        read(&*opened, &chunk(number), &io).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), "changed");
        let end = format!(
            "a.zarr/c/{number}: changed since it was opened ({reason}); open it again to read what is there now"
        );
        assert!(error.to_string().ends_with(&end), "{error}");
    }
    assert_ne!(source(&path).identity(), opened.identity());
}

#[test]
fn changes_are_noticed_in_the_chunks_that_are_used() {
    notices(
        |path| fs::write(path.join("c/1"), [9; 5]).unwrap(),
        "modified or replaced",
        1,
    );
    notices(
        |path| fs::write(path.join("c/1"), [9; 4]).unwrap(),
        "5 bytes then, 4 now",
        1,
    );
    notices(|path| fs::remove_file(path.join("c/3")).unwrap(), "it is gone", 3);
    notices(
        |path| fs::write(path.join("c/2"), [9; 5]).unwrap(),
        "it was not there then",
        2,
    );
    let replace = |path: &Path| {
        fs::write(path.join("new"), [9; 5]).unwrap();
        fs::rename(path.join("new"), path.join("c/0")).unwrap();
    };
    notices(replace, "modified or replaced", 0);
    let restore_time = |path: &Path| {
        let file = path.join("c/0");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, [9; 5]).unwrap();
        let opened = fs::OpenOptions::new().write(true).open(&file).unwrap();
        opened.set_modified(time).unwrap();
    };
    notices(restore_time, "modified or replaced", 0);
}

#[test]
fn a_permission_changed_under_way_is_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = four_chunks(dir.path());
    let (io, opened) = (Io::direct(), source(&path));
    let permit = |mode| fs::set_permissions(path.join("c/1"), fs::Permissions::from_mode(mode)).unwrap();
    permit(0o600);
    assert_eq!(read(&*opened, &chunk(1), &io).unwrap_err().code(), "changed");
    let opened = source(&path);
    io.begin_run();
    // The clock of the file system has gone on when it shows another time than it did in the run.
    let time_now = || {
        fs::write(path.join("c/other"), []).unwrap();
        fs::remove_file(path.join("c/other")).unwrap();
        fs::metadata(path.join("c")).unwrap().modified().unwrap()
    };
    let before = time_now();
    while time_now() == before {}
    permit(0o644);
    read(&*opened, &chunk(1), &io).unwrap();
}

#[test]
fn files_that_are_no_chunks_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let path = four_chunks(dir.path());
    let opened = source(&path);
    for name in ["c/4", "c/01", "c/1.partial", "c/x", "README"] {
        fs::write(path.join(name), [0; 3]).unwrap();
    }
    assert_eq!(source(&path).identity(), opened.identity());
    fs::remove_file(path.join("c/1")).unwrap();
    fs::create_dir(path.join("c/1")).unwrap();
    let error = open(&path, &Io::direct()).err().unwrap().to_string();
    assert!(error.ends_with("c/1: a chunk that is not a regular file"), "{error}");
}

/// Counts what opening asks for, and ends it at the `last` look.
#[derive(Default)]
struct Counting {
    looks: usize,
    last: Option<usize>,
    kept: usize,
}

impl Opening for Counting {
    fn look(&mut self) -> Result<(), StoreError> {
        self.looks += 1;
        match self.last {
            Some(last) if self.looks >= last => Err(StoreError::Invalid("enough".into())),
            _ => Ok(()),
        }
    }
    fn keep(&mut self, bytes: usize) -> Result<Option<Reservation>, StoreError> {
        self.kept += bytes;
        Ok(None)
    }
}

#[test]
fn opening_many_chunks_can_be_ended_and_says_what_it_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zarr");
    let shape = [3000, 2];
    write(&path, &shape, DType::U8, &[2, 2], &Io::direct()).unwrap();
    let mut all = Counting::default();
    open_for(&path, &Io::direct(), &mut all).unwrap();
    assert!(all.looks >= 1500 / 256, "{}", all.looks);
    assert!((1500 * 24..1500 * 100).contains(&all.kept), "{}", all.kept);
    let mut ended = Counting {
        last: Some(3),
        ..Counting::default()
    };
    let error = open_for(&path, &Io::direct(), &mut ended).err().unwrap();
    assert_eq!((error.to_string().as_str(), ended.looks), ("enough", 3));
}
