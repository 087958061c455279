//! Fail the n-th call, for every n.

use std::fs;
use std::path::Path;

use outcore_dtype::DType;
use outcore_store::{open, FramePool, Io, Ledger, Region, StoreError};

use crate::support::{pattern_of, read_all, write};

/// Repeats `attempt` with the first, second, ... call failing, until it succeeds; each failure must leave nothing.
fn fail_each_call(setting: &str, code: &str, attempt: impl Fn(&Path, &Io) -> Result<(), StoreError>) {
    for nth in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let io = Io::with_faults(outcore_store::Faults::parse(&setting.replace('#', &nth.to_string())).unwrap());
        match attempt(dir.path(), &io) {
            Ok(()) => {
                assert!(nth > 1, "{setting}: no call was made to fail");
                return;
            }
            Err(error) => assert_eq!(error.code(), code, "{error}"),
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{setting} {nth}");
    }
}

#[test]
fn every_failing_write_or_sync_leaves_no_output() {
    for suffix in ["npy", "zarr"] {
        for setting in ["write:#", "write:#:enospc", "torn-write:#", "sync:#"] {
            let name = format!("a.{suffix}");
            let code = if setting.ends_with("enospc") { "space" } else { "io" };
            fail_each_call(setting, code, |dir, io| {
                write(&dir.join(&name), &[100, 9], DType::F64, &[32, 4], io)
            });
        }
    }
}

#[test]
fn short_transfers_change_nothing() {
    let expected = pattern_of(&Region::full(&[100, 9]), &[100, 9], DType::F64);
    for suffix in ["npy", "zarr"] {
        for nth in 1..8 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(format!("a.{suffix}"));
            let setting = format!("short-write:{nth},short-read:{nth}");
            let io = Io::with_faults(outcore_store::Faults::parse(&setting).unwrap());
            write(&path, &[100, 9], DType::F64, &[64, 9], &io).unwrap();
            assert_eq!(read_all(&path, &io).unwrap(), expected, "{suffix} {setting}");
        }
    }
}

#[test]
fn every_failing_read_is_reported_with_path_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    for suffix in ["npy", "zarr"] {
        let path = dir.path().join(format!("a.{suffix}"));
        write(&path, &[100, 9], DType::F64, &[32, 4], &Io::direct()).unwrap();
        for nth in 1.. {
            let io = Io::with_faults(outcore_store::Faults::parse(&format!("read:{nth}")).unwrap());
            match read_all(&path, &io) {
                Ok(_) => {
                    assert!(nth > 1);
                    break;
                }
                Err(error @ StoreError::Io { .. }) => {
                    assert!(error.to_string().contains("cannot read at byte"))
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn every_refused_reservation_gives_all_memory_back() {
    for nth in 1..4 {
        let pool = FramePool::new(Ledger::new(1 << 20));
        pool.ledger().fail_at(Some(nth));
        let frames: Result<Vec<_>, _> = (0..3).map(|_| pool.allocate(5000, "tile")).collect();
        assert_eq!(frames.err().unwrap().code(), "memory");
        assert_eq!(pool.ledger().used(), 0);
    }
}

#[test]
fn damaged_chunks_are_refused_by_codec_and_never_panic() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in [
        "gzip",
        "zstd",
        "blosc_lz4",
        "blosc_zstd",
        "crc32c",
        "gzip_crc32c",
        "shard_zstd",
        "shard_start",
    ] {
        let chunk = fixtures.join(format!("{name}.zarr/c/0/0"));
        let whole = fs::read(&chunk).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let dir = tempfile::tempdir().unwrap();
            let copy = dir.path().join("a.zarr");
            fs::create_dir_all(copy.join("c/0")).unwrap();
            fs::copy(fixtures.join(format!("{name}.zarr/zarr.json")), copy.join("zarr.json")).unwrap();
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(copy.join("c/0/0"), &damaged).unwrap();
            let flipped = read_all(&copy, &Io::direct());
            assert!(!name.contains("crc32c") || flipped.is_err());
            fs::write(copy.join("c/0/0"), &whole[..at]).unwrap();
            let error = open(&copy, &Io::direct())
                .and_then(|_| read_all(&copy, &Io::direct()))
                .err();
            assert_eq!(
                error.map(|error| error.to_string().lines().count()),
                Some(1),
                "{name} cut at {at}"
            );
        }
    }
}
