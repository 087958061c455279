//! Outputs: nothing that was disturbed is published, several are published together, and writers leave each other alone.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{clean, clean_partials, create, discard_replaced, Faults, Io, Scratch, Sink, StoreError};

use crate::support::{pattern_of, pool, read_all, tiles, write};

const SHAPE: [u64; 2] = [40, 1024];
const TILE: [u64; 2] = [8, 1024];

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Where the only output in `dir` is being written.
fn partial(dir: &Path) -> PathBuf {
    let name = names(dir)
        .into_iter()
        .find(|name| name.starts_with(".outcore-partial-"));
    dir.join(name.unwrap()).join("new")
}

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(bytes)
        .unwrap();
}

/// Writes all tiles, with `disturb` called after `at` of them, and seals and publishes.
fn store(path: &Path, overwrite: bool, at: usize, disturb: impl FnOnce(&Path)) -> Result<(), StoreError> {
    let (io, pool) = (Io::direct(), pool());
    let sink = create(path, &SHAPE, DType::F64, &TILE, overwrite, &io)?;
    let mut disturb = Some(disturb);
    let regions = tiles(&SHAPE, &TILE);
    for (count, region) in regions.iter().enumerate() {
        if count == at {
            disturb.take().unwrap()(path.parent().unwrap());
        }
        let data = pattern_of(region, &SHAPE, DType::F64);
        let mut frame = pool.allocate(data.len(), "tile")?;
        frame.copy_from_slice(&data);
        sink.write(region, frame.padded(), &io)?;
    }
    if at == regions.len() {
        disturb.take().unwrap()(path.parent().unwrap());
    }
    sink.finish(&io)
}

/// What other processes do, the output it is done to, and what the error names.
type Disturbance = (&'static str, &'static str, fn(&Path));

const DISTURBANCES: [Disturbance; 12] = [
    ("a.zarr", "out", |dir| {
        fs::rename(dir, dir.with_file_name("moved")).unwrap()
    }),
    ("a.npy", "out", |dir| {
        fs::rename(dir, dir.with_file_name("moved")).unwrap()
    }),
    ("a.zarr", "partial-", |dir| {
        fs::remove_dir_all(partial(dir).parent().unwrap()).unwrap()
    }),
    ("a.npy", "partial-", |dir| {
        fs::remove_dir_all(partial(dir).parent().unwrap()).unwrap()
    }),
    ("a.zarr", "new", |dir| {
        fs::rename(partial(dir), dir.join("taken")).unwrap()
    }),
    ("a.npy", "new", |dir| fs::remove_file(partial(dir)).unwrap()),
    ("a.zarr", "c", |dir| fs::remove_dir_all(partial(dir).join("c")).unwrap()),
    ("a.zarr", "c/0", |dir| {
        fs::rename(partial(dir).join("c/0"), dir.join("taken")).unwrap()
    }),
    ("a.zarr", "c/0/0", |dir| cut(&partial(dir).join("c/0/0"), 100)),
    ("a.zarr", "zarr.json", |dir| {
        fs::remove_file(partial(dir).join("zarr.json")).unwrap()
    }),
    ("a.zarr", "zarr.json", |dir| {
        fs::write(partial(dir).join("zarr.json"), "{}").unwrap()
    }),
    ("a.npy", "new", |dir| cut(&partial(dir), 5000)),
];

#[test]
fn what_is_disturbed_while_it_is_written_is_never_published() {
    for (number, (name, named, disturb)) in DISTURBANCES.into_iter().enumerate() {
        for at in [2, 5] {
            for overwrite in [false, true] {
                let root = tempfile::tempdir().unwrap();
                let dir = root.path().join("out");
                fs::create_dir(&dir).unwrap();
                let old = overwrite.then(|| write(&dir.join(name), &SHAPE, DType::I8, &TILE, &Io::direct()).unwrap());
                let what = format!("disturbance {number} after {at} tiles, overwriting: {overwrite}");
                let error = store(&dir.join(name), overwrite, at, disturb).expect_err(&what);
                let told = error.to_string();
                assert!(
                    told.contains(named) && told.contains(&format!("/out/{name} was written")),
                    "{what}: {error}"
                );
                assert_eq!((error.code(), error.to_string().lines().count()), ("io", 1), "{what}");
                let dir = if dir.exists() { dir } else { root.path().join("moved") };
                let mut left = names(&dir);
                left.retain(|left| left != "taken");
                assert_eq!(left, old.map_or(vec![], |()| vec![name.to_string()]), "{what}");
                if overwrite {
                    let whole = pattern_of(&outcore_store::Region::full(&SHAPE), &SHAPE, DType::I8);
                    assert_eq!(read_all(&dir.join(name), &Io::direct()).unwrap(), whole, "{what}");
                }
            }
        }
    }
}

/// Sealed outputs of 100 bytes of `value`, and the names they shall get.
fn sealed(dir: &Path, outputs: &[&str], value: u8, overwrite: bool, io: &Io) -> Vec<Arc<dyn Sink>> {
    let seal = |name: &&str| {
        let sink = create(&dir.join(name), &[100], DType::U8, &[100], overwrite, io).unwrap();
        let mut frame = pool().allocate(100, "tile").unwrap();
        frame.fill(value);
        sink.write(&tiles(&[100], &[100])[0], frame.padded(), io).unwrap();
        sink.seal(io).unwrap();
        sink
    };
    outputs.iter().map(seal).collect()
}

const TOGETHER: [&str; 4] = ["a.npy", "b.zarr", "c.npy", "d.zarr"];

/// Publishes outputs as a run does: what they replaced goes when all stand.
fn publish(sinks: &[Arc<dyn Sink>], io: &Io) -> Result<(), StoreError> {
    outcore_store::publish(sinks, io)?;
    discard_replaced(sinks);
    Ok(())
}

fn values(dir: &Path) -> Vec<Option<u8>> {
    let value = |name: &&str| read_all(&dir.join(name), &Io::direct()).ok().map(|bytes| bytes[50]);
    TOGETHER.iter().map(value).collect()
}

#[test]
fn outputs_are_published_together_or_not_at_all() {
    for fault in ["rename", "sync"] {
        for nth in 1.. {
            let dir = tempfile::tempdir().unwrap();
            // Two of the four replace something.
            publish(
                &sealed(dir.path(), &TOGETHER[..2], 1, false, &Io::direct()),
                &Io::direct(),
            )
            .unwrap();
            let io = Io::direct();
            let sinks = sealed(dir.path(), &TOGETHER, 2, true, &io);
            io.set_faults(Some(Faults::parse(&format!("{fault}:{nth}")).unwrap()));
            let outcome = publish(&sinks, &io);
            drop(sinks);
            if outcome.is_ok() {
                assert!(nth == 5, "every {fault} failed once");
                assert_eq!(values(dir.path()), [Some(2); 4]);
                assert_eq!(names(dir.path()), TOGETHER);
                break;
            }
            assert_eq!(outcome.unwrap_err().code(), "io");
            assert_eq!(values(dir.path()), [Some(1), Some(1), None, None], "{fault} {nth}");
            assert_eq!(names(dir.path()), TOGETHER[..2], "{fault} {nth}");
        }
    }
}

#[test]
fn an_output_that_cannot_be_taken_back_is_named_with_the_place_of_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    publish(
        &sealed(dir.path(), &TOGETHER[..2], 1, false, &Io::direct()),
        &Io::direct(),
    )
    .unwrap();
    let io = Io::direct();
    let sinks = sealed(dir.path(), &TOGETHER, 2, true, &io);
    io.set_faults(Some(Faults::parse("renames-from:4").unwrap()));
    let error = publish(&sinks, &io).unwrap_err();
    drop(sinks);
    clean_partials(dir.path()).unwrap();
    let StoreError::HalfPublished { standing, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(values(dir.path()), [Some(2), Some(2), Some(2), None]);
    let told: Vec<&Path> = standing.iter().map(|left| left.path.as_path()).collect();
    let expected: Vec<PathBuf> = TOGETHER[..3].iter().rev().map(|name| dir.path().join(name)).collect();
    assert_eq!(told, expected);
    assert_eq!(standing[0].old, None);
    for (left, is_array) in [(&standing[1], true), (&standing[2], false)] {
        let old = left.old.as_ref().unwrap();
        assert!(error.to_string().contains(&old.display().to_string()), "{error}");
        assert_eq!(
            (old.exists(), old.is_dir()),
            (true, is_array),
            "what was replaced is kept"
        );
    }
}

#[test]
fn an_output_that_another_has_replaced_since_is_not_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let io = Io::direct();
    let sinks = sealed(dir.path(), &["a.npy", "c.npy"], 2, false, &io);
    fs::write(dir.path().join("c.npy"), "another's").unwrap();
    let error = publish(&sinks, &io).unwrap_err();
    assert_eq!(error.code(), "exists");
    drop(sinks);
    assert_eq!(names(dir.path()), ["c.npy"]);
}

#[test]
fn many_writers_and_cleaners_share_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let worker = &|number: usize| {
        let io = Io::buffered();
        let own = format!("own{number}.npy");
        for _ in 0..100 {
            clean_partials(folder).unwrap();
            publish(&sealed(folder, &[&own], 3, true, &io), &io).unwrap();
            drop(Scratch::new(&[folder.to_path_buf()], None, &io).unwrap());
            clean(folder).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || worker(number));
        }
    });
    assert_eq!(
        names(folder),
        (0..6).map(|number| format!("own{number}.npy")).collect::<Vec<_>>()
    );
}

#[test]
fn what_fails_while_it_is_written_is_called_by_the_name_it_was_to_get() {
    for (name, known) in [("a.npy", "a.npy"), ("a.zarr", "a.zarr/c/0/0")] {
        let dir = tempfile::tempdir().unwrap();
        let io = Io::with_faults(Faults::parse("write:2").unwrap());
        let error = write(&dir.path().join(name), &SHAPE, DType::F64, &TILE, &io).unwrap_err();
        let told = dir.path().join(known).display().to_string();
        assert!(
            error.to_string().starts_with(&format!("{told}: cannot write at byte")),
            "{error}"
        );
    }
}
