//! Files written here.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{clean_partials, create, open, parse_zarr_json, plan_sink, Io, IoPool, Layout, Region, Sink};
use proptest::prelude::*;

use crate::support::{fill, pattern_of, pool, read, read_all, write};

fn nothing_is_left_in(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn both_formats_round_trip_at_every_alignment() {
    let cases: [(&[u64], &[u64]); 7] = [
        (&[], &[]),
        (&[10], &[4]),
        (&[4096], &[1024]),
        (&[100, 70], &[32, 70]),
        (&[100, 70], &[32, 30]),
        (&[5, 6, 7], &[2, 6, 3]),
        (&[0, 3], &[1, 3]),
    ];
    for io in [Io::direct(), Io::buffered()] {
        for (shape, tile) in cases {
            for (dtype, suffix) in [
                (DType::F64, "npy"),
                (DType::F64, "zarr"),
                (DType::Bool, "npy"),
                (DType::C128, "zarr"),
            ] {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join(format!("a.{suffix}"));
                write(&path, shape, dtype, tile, &io).unwrap();
                let expected = pattern_of(&Region::full(shape), shape, dtype);
                assert_eq!(
                    read_all(&path, &io).unwrap(),
                    expected,
                    "{shape:?} {tile:?} {dtype} {suffix}"
                );
                assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
            }
        }
    }
}

/// Chunks at the edges are put together in strips of half a megabyte, of whole pages.
#[test]
fn chunks_wider_than_their_tiles_are_written_in_strips() {
    let cases: [(&[u64], &[u64]); 4] = [
        (&[700, 3000], &[256, 2048]),
        (&[1300, 1500], &[1200, 1001]),
        (&[3, 90, 700], &[2, 64, 512]),
        (&[5, 40_000], &[5, 30_001]),
    ];
    for (shape, tile) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (path, io) = (dir.path().join("a.zarr"), Io::direct());
        write(&path, shape, DType::F64, tile, &io).unwrap();
        let expected = pattern_of(&Region::full(shape), shape, DType::F64);
        assert!(read_all(&path, &io).unwrap() == expected, "{shape:?} {tile:?}");
        let chunk = fs::read(path.join("c").join(vec!["0"; shape.len() - 1].join("/")).join("1")).unwrap();
        assert_eq!(chunk.len() as u64, tile.iter().product::<u64>() * 8);
    }
}

#[test]
fn overhead_is_forecast_exactly() {
    for suffix in ["npy", "zarr"] {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan_sink(
            &dir.path().join(format!("a.{suffix}")),
            &[8, 8],
            DType::F32,
            &[4, 4],
            false,
        )
        .unwrap();
        assert!(nothing_is_left_in(dir.path()));
        let io = Io::direct();
        let sink = plan.create(&io).unwrap();
        assert_eq!(io.counters().bytes_written, plan.overhead_bytes());
        let before = io.counters();
        fill(&*sink, &[8, 8], DType::F32, &pool(), &io).unwrap();
        let tiles: u64 = crate::support::tiles(&[8, 8], sink.tile())
            .iter()
            .map(|tile| plan.write_bytes(tile))
            .sum();
        assert_eq!(io.counters().since(&before).bytes_written, tiles);
    }
}

#[test]
fn tiles_may_come_from_several_threads_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    for suffix in ["npy", "zarr"] {
        let path = dir.path().join(format!("a.{suffix}"));
        let (shape, tile, io, pool) = ([300, 40], [64, 17], Io::direct(), pool());
        let sink: Arc<dyn Sink> = create(&path, &shape, DType::F64, &tile, false, &io).unwrap();
        let threads = IoPool::new(4);
        for region in crate::support::tiles(&shape, &tile).into_iter().rev() {
            let (sink, io, pool) = (sink.clone(), io.clone(), pool.clone());
            threads.submit(Box::new(move || {
                let data = pattern_of(&region, &shape, DType::F64);
                let mut frame = pool.allocate(data.len(), "tile").unwrap();
                frame.copy_from_slice(&data);
                sink.write(&region, frame.padded(), &io).unwrap();
            }));
        }
        drop(threads);
        sink.finish(&io).unwrap();
        assert_eq!(
            read_all(&path, &io).unwrap(),
            pattern_of(&Region::full(&shape), &shape, DType::F64)
        );
    }
}

#[test]
fn nothing_has_the_final_name_before_finish_and_nothing_stays_after_abort() {
    for suffix in ["npy", "zarr"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("a.{suffix}"));
        let sink = create(&path, &[10], DType::F64, &[10], false, &Io::direct()).unwrap();
        assert!(!path.exists() && !nothing_is_left_in(dir.path()));
        assert_eq!(
            clean_partials(dir.path()).unwrap().count,
            0,
            "a living writer's output is kept"
        );
        sink.abort(&Io::direct());
        assert!(nothing_is_left_in(dir.path()));
        drop(create(&path, &[10], DType::F64, &[10], false, &Io::direct()).unwrap());
        assert!(nothing_is_left_in(dir.path()));
    }
}

#[test]
fn partial_outputs_of_the_dead_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".a.npy.outcore-partial-1-0"), [0; 7]).unwrap();
    fs::create_dir(dir.path().join(".b.zarr.outcore-partial-1-0")).unwrap();
    fs::write(dir.path().join(".b.zarr.outcore-partial-1-0/zarr.json"), [0; 3]).unwrap();
    fs::write(dir.path().join("a.npy"), []).unwrap();
    let cleaned = clean_partials(dir.path()).unwrap();
    assert_eq!((cleaned.count, cleaned.bytes), (2, 10));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn targets_are_checked_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let refuse = |name: &str, shape: &[u64], overwrite| {
        let error = plan_sink(&at(name), shape, DType::F64, shape, overwrite).err().unwrap();
        (error.code(), error.to_string().lines().count())
    };
    fs::write(at("there.npy"), []).unwrap();
    fs::create_dir(at("plain.zarr")).unwrap();
    assert_eq!(refuse("there.npy", &[1], false), ("exists", 1));
    assert_eq!(refuse("plain.zarr", &[1], true), ("format", 1));
    assert_eq!(refuse("no/where.npy", &[1], false), ("io", 1));
    assert_eq!(refuse("a.txt", &[1], false), ("unsupported", 1));
    assert_eq!(refuse("a.npy", &[1 << 50], false), ("space", 1));
    assert_eq!(refuse("a.npy", &[1 << 40, 1 << 40], false), ("invalid", 1));
}

#[test]
fn overwriting_replaces_only_when_finished() {
    for suffix in ["npy", "zarr"] {
        let dir = tempfile::tempdir().unwrap();
        let (path, io) = (dir.path().join(format!("a.{suffix}")), Io::direct());
        write(&path, &[10], DType::U8, &[10], &io).unwrap();
        let old = open(&path, &io).unwrap().source;
        let sink = create(&path, &[20], DType::U8, &[20], true, &io).unwrap();
        assert_eq!(read_all(&path, &io).unwrap().len(), 10);
        old.check_unchanged().unwrap();
        fill(&*sink, &[20], DType::U8, &pool(), &io).unwrap();
        assert_eq!(read_all(&path, &io).unwrap().len(), 20);
        assert_eq!(old.check_unchanged().unwrap_err().code(), "changed");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_rewritten_chunk_changes_the_identity() {
    let dir = tempfile::tempdir().unwrap();
    let (path, io) = (dir.path().join("a.zarr"), Io::direct());
    write(&path, &[10], DType::U8, &[5], &io).unwrap();
    let source = open(&path, &io).unwrap().source;
    assert_eq!(source.layout(), Layout::Chunks(vec![5]));
    assert_eq!(open(&path, &io).unwrap().source.identity(), source.identity());
    fs::write(path.join("c/1"), [9; 5]).unwrap();
    assert_eq!(source.check_region(&Region::full(&[10])).unwrap_err().code(), "changed");
    assert_eq!(read(&*source, &Region::full(&[10]), &io).unwrap_err().code(), "changed");
    assert_ne!(open(&path, &io).unwrap().source.identity(), source.identity());
    fs::write(path.join("c/1"), [9; 4]).unwrap();
    let error = read_all(&path, &io).unwrap_err().to_string();
    assert!(
        error.ends_with("c/1: a chunk of 4 bytes where 5 are expected"),
        "{error}"
    );
}

#[test]
fn columns_of_a_wide_file_read_only_their_pages() {
    let dir = tempfile::tempdir().unwrap();
    let (path, io) = (dir.path().join("a.npy"), Io::direct());
    let shape = [16, 32768];
    write(&path, &shape, DType::F64, &[16, 32768], &io).unwrap();
    let source = open(&path, &io).unwrap().source;
    let column = Region::new(vec![0, 100], vec![16, 10]);
    assert_eq!(source.cost(&column, &io).unwrap().read_bytes, 16 * 4096);
    assert_eq!(
        read(&*source, &column, &io).unwrap(),
        pattern_of(&column, &shape, DType::F64)
    );
}

#[test]
fn truncated_files_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (path, io) = (dir.path().join("a.npy"), Io::direct());
    write(&path, &[1000], DType::F64, &[1000], &io).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in [0, 5, 11, 100, 4096, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = open(&path, &io).err().unwrap();
        assert_eq!(
            (error.code(), error.to_string().lines().count()),
            ("format", 1),
            "{length}: {error}"
        );
    }
}

#[test]
fn a_file_cut_short_under_way_is_an_error_and_not_a_hang() {
    let dir = tempfile::tempdir().unwrap();
    let (path, io) = (dir.path().join("a.npy"), Io::direct());
    write(&path, &[10_000], DType::F64, &[10_000], &io).unwrap();
    let source = open(&path, &io).unwrap().source;
    for length in [50_100, 8192, 100, 0] {
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        let error = read(&*source, &Region::full(&[10_000]), &io).unwrap_err().to_string();
        assert!(error.contains("bytes early"), "{error}");
    }
}

const JSON: &str = r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"float32",
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
"chunk_key_encoding":{"name":"default"},"fill_value":"0x7fc00000","codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#;

#[test]
fn unknown_things_in_zarr_json_are_named() {
    parse_zarr_json(JSON.as_bytes()).unwrap();
    let refused = |from: &str, to: &str| parse_zarr_json(JSON.replace(from, to).as_bytes()).unwrap_err();
    assert_eq!(
        refused("\"name\":\"bytes\"", "\"name\":\"lzma\""),
        "codec \"lzma\" is not supported"
    );
    assert_eq!(
        refused("regular", "hexagonal"),
        "chunk grid \"hexagonal\" is not supported, only \"regular\" and \"rectilinear\""
    );
    assert_eq!(refused("float32", "string"), "data type \"string\" is not supported");
    assert_eq!(
        refused("\"array\"", "\"group\""),
        "this is a Zarr group, not an array; name one of its arrays"
    );
    assert_eq!(
        refused("\"zarr_format\":3", "\"zarr_format\":2"),
        "Zarr format 2 is not supported, only 3"
    );
    assert_eq!(
        refused("0x7fc00000", "0x 0\u{80}0000"),
        "fill value \"0x 0\u{80}0000\" does not fit float32"
    );
    assert!(refused("[4]", "[9223372036854775807]").ends_with("overflows"));
    assert!(refused("[2]", "[0]").contains("does not suit"));
}

#[test]
fn attributes_may_hold_numbers_that_json_has_not() {
    let with = |attributes: &str| {
        let json = JSON.replacen('{', &format!("{{\"attributes\":{attributes},"), 1);
        parse_zarr_json(json.as_bytes())
    };
    with(r#"{"missing":NaN,"range":[-Infinity,Infinity],"text":"a \" NaN, {","back":"\\","last":NaN}"#).unwrap();
    assert!(with(r#"{"missing":Nan}"#).is_err());
}

proptest! {
    #[test]
    fn damaged_zarr_json_never_panics(at in 0usize..JSON.len(), bytes in proptest::collection::vec(any::<u8>(), 0..6)) {
        let mut damaged = JSON.as_bytes().to_vec();
        let end = (at + bytes.len()).min(damaged.len());
        damaged.splice(at..end, bytes.iter().copied());
        let _ = parse_zarr_json(&damaged);
        let _ = parse_zarr_json(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))] // each case syncs a file system
    #[test]
    fn any_region_of_a_written_array_reads_back(
        axes in proptest::collection::vec((1u64..40, 1u64..40, any::<u8>(), any::<u8>()), 1..4),
        zarr in any::<bool>(),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let tile: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let dir = tempfile::tempdir().unwrap();
        let (path, io) = (dir.path().join(if zarr { "a.zarr" } else { "a.npy" }), Io::direct());
        write(&path, &shape, DType::I32, &tile, &io).unwrap();
        let mut region = Region::full(&shape);
        for (axis, choice) in axes.iter().enumerate() {
            region.start[axis] = u64::from(choice.2) % shape[axis];
            region.shape[axis] = u64::from(choice.3) % (shape[axis] - region.start[axis]) + 1;
        }
        let source = open(&path, &io).unwrap().source;
        prop_assert_eq!(read(&*source, &region, &io).unwrap(), pattern_of(&region, &shape, DType::I32));
    }
}

/// For the readers of other libraries: set `OUTCORE_KEEP` to a directory and open what is left there.
#[test]
fn every_type_is_written_in_both_formats() {
    let scratch = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("OUTCORE_KEEP").map(std::path::PathBuf::from);
    let dir = kept.as_deref().unwrap_or(scratch.path());
    let io = Io::direct();
    for dtype in DType::ALL {
        for (name, shape, tile) in [
            ("m", &[70u64, 9][..], &[32u64, 4][..]),
            ("s", &[], &[]),
            ("v", &[2000], &[1024]),
        ] {
            for suffix in ["npy", "zarr"] {
                let path = dir.join(format!("{dtype}-{name}.{suffix}"));
                write(&path, shape, dtype, tile, &io).unwrap();
                assert_eq!(
                    read_all(&path, &io).unwrap(),
                    pattern_of(&Region::full(shape), shape, dtype)
                );
            }
        }
    }
}
