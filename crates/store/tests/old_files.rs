//! Files written by NumPy 2.4 and zarr-python 3.1; `expected.bin` beside an array holds what they read from it.

use std::path::{Path, PathBuf};

use outcore_store::{open, Io, Region};
use proptest::prelude::*;

use crate::support::{read, read_all};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn zarr_arrays() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut arrays: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "zarr"))
        .collect();
    arrays.sort();
    arrays
}

#[test]
fn every_zarr_array_reads_as_zarr_python_reads_it() {
    let arrays = zarr_arrays();
    assert!(arrays.len() > 40, "fixtures are missing");
    for path in arrays {
        let expected = std::fs::read(path.join("expected.bin")).unwrap();
        for io in [Io::direct(), Io::buffered()] {
            assert_eq!(read_all(&path, &io).unwrap(), expected, "{}", path.display());
        }
        open(&path, &Io::direct()).unwrap().source.check_unchanged().unwrap();
    }
}

/// What `gen.py` of the fixtures stored: `arange(12) % 101` as 3 by 4, little-endian.
fn numbers(size: usize) -> Vec<u8> {
    (0..12u64)
        .flat_map(|value| value.to_le_bytes()[..size].to_vec())
        .collect()
}

#[test]
fn every_npy_file_reads_as_numpy_reads_it() {
    let io = Io::direct();
    for (name, size) in [
        ("int8", 1),
        ("uint16", 2),
        ("int32", 4),
        ("uint64", 8),
        ("big", 4),
        ("v2", 4),
        ("v3", 4),
    ] {
        let path = fixtures().join(format!("{name}.npy"));
        assert_eq!(read_all(&path, &io).unwrap(), numbers(size), "{name}");
    }
    let floats: Vec<u8> = (0..12).flat_map(|value| f64::from(value).to_le_bytes()).collect();
    assert_eq!(read_all(&fixtures().join("float64.npy"), &io).unwrap(), floats);
    let bools: Vec<u8> = (0..12).map(|value| (value % 3 == 0) as u8).collect();
    assert_eq!(read_all(&fixtures().join("bool.npy"), &io).unwrap(), bools);
    assert_eq!(
        read_all(&fixtures().join("scalar.npy"), &io).unwrap(),
        2.5f64.to_le_bytes()
    );
    assert_eq!(read_all(&fixtures().join("empty.npy"), &io).unwrap().len(), 0);
}

#[test]
fn fortran_files_are_transposed_sources() {
    let io = Io::direct();
    let opened = open(&fixtures().join("fortran.npy"), &io).unwrap();
    assert!(opened.transposed);
    assert_eq!(opened.source.shape(), [4, 3]);
    let column = read(&*opened.source, &Region::new(vec![1, 0], vec![1, 3]), &io).unwrap();
    assert_eq!(column, [1i32, 5, 9].map(i32::to_le_bytes).concat());
}

#[test]
fn what_is_not_supported_is_named() {
    let refused = |name: &str| open(&fixtures().join(name), &Io::direct()).err().unwrap().to_string();
    assert!(refused("struct.npy").ends_with("struct.npy: structured element types are not supported"));
    assert!(refused("object.npy").ends_with("object.npy: arrays of Python objects are not supported"));
    assert!(refused("int32.zarr-not-there").contains("no such file"));
    assert!(open(&fixtures(), &Io::direct())
        .err()
        .unwrap()
        .to_string()
        .ends_with("not a Zarr array or group: no zarr.json"));
}

proptest! {
    #[test]
    fn any_region_of_any_array_is_that_part_of_the_whole(which in 0usize..40, corners in [any::<(u8, u8)>(); 3]) {
        let path = &zarr_arrays()[which];
        let io = Io::direct();
        let source = open(path, &io).unwrap().source;
        let shape = source.shape().to_vec();
        let mut region = Region::full(&shape);
        for axis in 0..shape.len() {
            region.start[axis] = u64::from(corners[axis].0) % (shape[axis] + 1);
            region.shape[axis] = u64::from(corners[axis].1) % (shape[axis] - region.start[axis] + 1);
        }
        let whole = std::fs::read(path.join("expected.bin")).unwrap();
        let item = source.dtype().size();
        let expected: Vec<u8> = region
            .runs(&shape)
            .flat_map(|run| whole[run.start as usize * item..run.end() as usize * item].to_vec())
            .collect();
        prop_assert_eq!(read(&*source, &region, &io).unwrap(), expected, "{} {:?}", path.display(), region);
    }
}

#[test]
fn every_netcdf3_file_reads_as_netcdf_reads_it() {
    let floats: Vec<u8> = (0..12).flat_map(|value| f64::from(value).to_le_bytes()).collect();
    for name in ["classic", "offset64", "data64"] {
        let path = fixtures().join(format!("{name}.nc"));
        for io in [Io::direct(), Io::buffered()] {
            assert_eq!(read_all(&path.join("fixed"), &io).unwrap(), numbers(4)[..16]);
            assert_eq!(read_all(&path.join("short"), &io).unwrap(), numbers(2)[..6]);
            assert_eq!(read_all(&path.join("rows"), &io).unwrap(), floats);
        }
        let opened = open(&path.join("rows"), &Io::direct()).unwrap();
        assert_eq!(opened.annotations.dims, [Some("time".into()), Some("x".into())]);
        assert_eq!(opened.annotations.attributes.len(), 2);
        let refused = |member: &str| open(&path.join(member), &Io::direct()).unwrap_err().to_string();
        assert!(refused("letters").contains("characters"), "{}", refused("letters"));
        assert!(refused("none").contains("fixed, short, rows"), "{}", refused("none"));
        assert!(open(&path, &Io::direct()).unwrap_err().to_string().contains("a group"));
    }
}

proptest! {
    /// A file cut off anywhere, with a word of its header changed, is read or refused in one line.
    #[test]
    fn damaged_netcdf3_files_are_read_or_refused(
        name in prop::sample::select(vec!["classic", "offset64", "data64"]),
        at in 1usize..100,
        word in prop::sample::select(vec![0u32, 1, 4, 0x7fff_ffff, u32::MAX]),
        cut in 0usize..700,
    ) {
        let mut bytes = std::fs::read(fixtures().join(format!("{name}.nc"))).unwrap();
        let at = at * 4 % (bytes.len() - 4);
        bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        bytes.truncate(cut.max(4));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.nc");
        std::fs::write(&path, bytes).unwrap();
        for member in ["fixed", "short", "rows", "letters"] {
            if let Err(error) = read_all(&path.join(member), &Io::buffered()) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
