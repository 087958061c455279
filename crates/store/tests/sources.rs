//! Sources hold paths: what is read goes through the I/O given, and only from the file that was opened.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outcore_dtype::DType;
use outcore_store::io::{Backend, Blob, Buffered, Mode};
use outcore_store::{open, Io, Region};

use crate::support::{pattern_of, read, write};

const SHAPE: [u64; 2] = [64, 128];

/// Opens through the page cache and notes what it opens.
struct Noting(Arc<Mutex<Vec<PathBuf>>>);

impl Backend for Noting {
    fn open(&self, path: &Path, mode: Mode) -> std::io::Result<Arc<dyn Blob>> {
        self.0.lock().unwrap().push(path.to_path_buf());
        Buffered.open(path, mode)
    }
}

#[test]
fn a_source_reads_through_the_io_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    for suffix in ["npy", "zarr"] {
        let path = dir.path().join(format!("a.{suffix}"));
        write(&path, &SHAPE, DType::F64, &SHAPE, &Io::direct()).unwrap();
        let source = open(&path, &Io::direct()).unwrap().source;
        let noted = Arc::<Mutex<Vec<PathBuf>>>::default();
        let io = Io::new(Box::new(Noting(noted.clone())));
        let all = Region::full(&SHAPE);
        assert_eq!(read(&*source, &all, &io).unwrap(), pattern_of(&all, &SHAPE, DType::F64));
        let noted = noted.lock().unwrap();
        assert!(noted.len() == 1 && noted[0].starts_with(&path), "{noted:?}");
    }
}

#[test]
fn a_file_replaced_or_removed_since_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a.npy"), dir.path().join("b.npy"));
    let io = Io::direct();
    for path in [&path, &other] {
        write(path, &SHAPE, DType::F64, &SHAPE, &io).unwrap();
    }
    let source = open(&path, &io).unwrap().source;
    fs::rename(&other, &path).unwrap();
    for reason in ["replaced", "it is gone"] {
        let error = read(&*source, &Region::full(&SHAPE), &io).unwrap_err();
        assert_eq!(error.code(), "changed");
        assert!(error.to_string().contains(reason), "{error}");
        let _ = fs::remove_file(&path);
    }
}

#[test]
fn what_is_not_there_or_no_array_has_a_code_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let code = |path: &Path| open(path, &Io::direct()).err().unwrap().code();
    assert_eq!(code(&dir.path().join("none.npy")), "missing");
    assert_eq!(code(Path::new("/dev/null")), "format");
    assert_eq!(code(dir.path()), "format");
}
