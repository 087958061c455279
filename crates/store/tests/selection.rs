//! Parts and other shapes of stored arrays: the same elements, and no more bytes than forecast.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{open, Io, Picked, Positions, Region, Selection, Source};

use crate::support::{pattern, read, write};

const SHAPE: [u64; 3] = [40, 9, 50];

fn stored(dir: &Path, name: &str, io: &Io) -> Arc<dyn Source> {
    let path = dir.join(name);
    write(&path, &SHAPE, DType::F64, &[7, 9, 20], io).unwrap();
    open(&path, io).unwrap().source
}

fn at(start: u64, step: u64, count: u64) -> Positions {
    Positions { start, step, count }
}

/// The elements of a selection's region, by definition.
fn expected(positions: &[Positions], region: &Region) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..region.shape[0] {
        for j in 0..region.shape[1] {
            for k in 0..region.shape[2] {
                let index = [i, j, k].iter().enumerate().fold(0, |flat, (axis, &at)| {
                    let Positions { start, step, .. } = positions[axis];
                    flat * SHAPE[axis] + start + step * (region.start[axis] + at)
                });
                bytes.extend(pattern(index, DType::F64));
            }
        }
    }
    bytes
}

#[test]
fn a_selection_holds_the_elements_at_its_positions() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    for name in ["x.npy", "x.zarr"] {
        let source = stored(dir.path(), name, &io);
        for positions in [
            vec![at(3, 1, 1), at(0, 1, 9), at(0, 1, 50)],
            vec![at(1, 13, 3), at(2, 1, 4), at(0, 1, 50)],
            vec![at(0, 39, 2), at(0, 8, 2), at(5, 11, 4)],
            vec![at(0, 1, 40), at(4, 1, 1), at(7, 1, 1)],
        ] {
            let selection = Selection::new(source.clone(), positions.clone()).unwrap();
            let whole = Region::full(selection.shape());
            assert_eq!(
                read(&selection, &whole, &io).unwrap(),
                expected(&positions, &whole),
                "{selection:?}"
            );
            let mut part = whole.clone();
            part.start[0] = part.shape[0] / 2;
            part.shape[0] -= part.start[0];
            assert_eq!(
                read(&selection, &part, &io).unwrap(),
                expected(&positions, &part),
                "{selection:?}"
            );
        }
    }
}

#[test]
fn a_selection_of_one_row_reads_its_pages() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    let source = stored(dir.path(), "x.npy", &io);
    let row = Selection::new(source.clone(), vec![at(20, 1, 1), at(0, 1, 9), at(0, 1, 50)]).unwrap();
    assert!(row.cost(&Region::full(row.shape()), &io).unwrap().read_bytes <= 2 * 4096);
    assert_eq!(
        (row.origin(), row.identity() == source.identity()),
        (source.identity(), false)
    );
    assert!(row.identity().ends_with("[20, 0:9, 0:50]"), "{}", row.identity());
    assert_eq!(row.name(), source.name());
}

#[test]
fn positions_outside_of_the_array_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    let source = stored(dir.path(), "x.npy", &io);
    for bad in [vec![at(0, 13, 5), at(0, 1, 9), at(0, 1, 50)], vec![at(0, 1, 1)]] {
        assert_eq!(Selection::new(source.clone(), bad).unwrap_err().code(), "invalid");
    }
}

#[test]
fn a_file_in_c_order_is_read_in_any_shape() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    let source = stored(dir.path(), "x.npy", &io);
    let seen = source.reshaped(450, &[13, 1350]).unwrap();
    assert_eq!((seen.shape(), seen.origin()), (&[13, 1350][..], source.identity()));
    let region = Region::new(vec![2, 100], vec![3, 40]);
    let bytes: Vec<u8> = (2..5)
        .flat_map(|row| (100..140).flat_map(move |column| pattern(450 + row * 1350 + column, DType::F64)))
        .collect();
    assert_eq!(read(&*seen, &region, &io).unwrap(), bytes);
    assert!(source.reshaped(450, &[39, 450]).is_some() && source.reshaped(451, &[39, 450]).is_none());
    assert!(stored(dir.path(), "x.zarr", &io).reshaped(0, &[18_000]).is_none());
}

/// Positions that look random, some of them several times.
fn scattered(count: u64) -> Vec<u64> {
    let elements: u64 = SHAPE.iter().product();
    (0..count).map(|at| at * at * 2_654_435_761 % elements).collect()
}

#[test]
fn picked_elements_come_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    for name in ["x.npy", "x.zarr"] {
        let source = stored(dir.path(), name, &io);
        for positions in [scattered(300), vec![17_999, 0, 17_999, 1, 449, 450], vec![]] {
            let picked = Picked::new(source.clone(), positions.clone(), "some").unwrap();
            let (from, to) = (positions.len() / 3, positions.len());
            for (from, to) in [(0, to), (from, to)] {
                let region = Region::new(vec![from as u64], vec![(to - from) as u64]);
                let wanted: Vec<u8> = positions[from..to]
                    .iter()
                    .flat_map(|at| pattern(*at, DType::F64))
                    .collect();
                assert_eq!(read(&picked, &region, &io).unwrap(), wanted, "{name}");
            }
        }
        let outside = Picked::new(source, vec![3, 18_000], "some").unwrap_err();
        assert!(outside.to_string().contains("position 18000 leaves shape"), "{outside}");
    }
}

#[test]
fn picked_elements_read_each_page_or_chunk_once() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    let positions = scattered(300);
    let npy = stored(dir.path(), "x.npy", &io);
    let picked = Picked::new(npy, positions.clone(), "some").unwrap();
    // The data begins 128 bytes behind the first page's start.
    let pages: std::collections::BTreeSet<u64> = positions.iter().map(|at| (at * 8 + 128) / 4096).collect();
    let whole = Region::full(picked.shape());
    let cost = picked.cost(&whole, &io).unwrap();
    assert_eq!(cost.read_bytes.div_ceil(4096), pages.len() as u64);
    let before = io.counters();
    read(&picked, &whole, &io).unwrap();
    assert_eq!(io.counters().since(&before).bytes_read, cost.read_bytes);
    let zarr = stored(dir.path(), "x.zarr", &io);
    let all = zarr.cost(&Region::full(&SHAPE), &io).unwrap().read_bytes;
    let picked = Picked::new(zarr, positions, "some").unwrap();
    assert!(picked.cost(&whole, &io).unwrap().read_bytes <= all);
}
