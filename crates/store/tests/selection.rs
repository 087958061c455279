//! Parts and other shapes of stored arrays: the same elements, and no more bytes than forecast.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{open, Io, Positions, Region, Selection, Source};

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
