//! Arrays in files that have no header, or somebody else's.

use std::fs;

use outcore_dtype::DType;
use outcore_store::{open, open_raw, Io, RawArray, Region, Source};

fn raw(start: u64, shape: &[u64], swapped: bool) -> RawArray {
    RawArray {
        start,
        shape: shape.to_vec(),
        dtype: DType::U16,
        swapped,
    }
}

fn values(source: &dyn Source, region: &Region) -> Vec<u16> {
    let mut frame = outcore_store::AlignedBuffer::new(source.cost(region, &Io::direct()).unwrap().frame_bytes).unwrap();
    let at = source.read(region, &mut frame, &Io::direct()).unwrap();
    let bytes = &frame[at..at + region.elements() as usize * 2];
    bytes
        .chunks(2)
        .map(|pair| u16::from_ne_bytes([pair[0], pair[1]]))
        .collect()
}

#[test]
fn a_part_of_a_file_is_read_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bin");
    let numbers: Vec<u8> = (0..10_000u16).flat_map(u16::to_ne_bytes).collect();
    fs::write(&path, &numbers).unwrap();
    let source = open_raw(&path, raw(2000, &[30, 100], false), &Io::direct()).unwrap();
    let region = Region::new(vec![3, 5], vec![2, 3]);
    assert_eq!(values(source.as_ref(), &region), [1305, 1306, 1307, 1405, 1406, 1407]);
    let swapped = open_raw(&path, raw(0, &[4], true), &Io::direct()).unwrap();
    assert_eq!(values(swapped.as_ref(), &Region::full(&[4])), [0, 256, 512, 768]);
    fs::write(&path, [0; 20_000]).unwrap();
    assert_eq!(source.check_unchanged().unwrap_err().code(), "changed");
}

#[test]
fn what_reaches_past_the_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bin");
    fs::write(&path, [0; 100]).unwrap();
    for (start, shape) in [
        (0, vec![51]),
        (2, vec![50]),
        (1 << 40, vec![1]),
        (2, vec![u64::MAX, 2]),
        (u64::MAX, vec![1]),
    ] {
        let error = open_raw(&path, raw(start, &shape, false), &Io::direct()).unwrap_err();
        assert_eq!(error.code(), "format");
    }
    assert!(open_raw(&path, raw(100, &[0, 7], false), &Io::direct()).is_ok());
    let missing = open_raw(&dir.path().join("none"), raw(0, &[1], false), &Io::direct()).unwrap_err();
    assert!(missing.to_string().contains("none"));
}

#[test]
fn the_data_of_a_npy_file_is_the_source_that_open_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npy");
    let mut file = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    file.extend(format!("{:<69}\n", "{'descr': '<u2', 'fortran_order': True, 'shape': (4, 3), }").bytes());
    let start = file.len() as u64;
    file.extend([0; 24]);
    fs::write(&path, file).unwrap();
    let identity = |raw| open_raw(&path, raw, &Io::direct()).unwrap().identity().to_string();
    let opened = open(&path, &Io::direct()).unwrap().source.identity().to_string();
    assert_eq!(identity(raw(start, &[3, 4], false)), opened);
    assert_ne!(identity(raw(start, &[4, 3], false)), opened);
    assert_ne!(identity(raw(start + 2, &[3], false)), opened);
}
