//! Time and memory of the index of a dataset: `cargo run --release -p outcore-hdf5 --example hdf5_chunks -- FILE PATH`.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use outcore_hdf5::{chunks, FileBytes, Hdf5Error, Hdf5File, Hdf5Object};

/// A file on disk that counts reads and the memory that is asked for.
struct DiskFile {
    file: File,
    length: u64,
    kept: Cell<usize>,
    reads: Cell<u64>,
    read: Cell<u64>,
}

impl FileBytes for DiskFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Hdf5Error> {
        self.reads.set(self.reads.get() + 1);
        self.read.set(self.read.get() + into.len() as u64);
        Ok(self.file.read_exact_at(into, offset)?)
    }

    fn keep(&self, bytes: usize) -> Result<(), Hdf5Error> {
        self.kept.set(self.kept.get() + bytes);
        Ok(())
    }
}

fn main() -> Result<(), Hdf5Error> {
    let mut words = std::env::args().skip(1);
    let (path, name) = (words.next().expect("a file"), words.next().expect("a path in the file"));
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let file = DiskFile {
        file,
        length,
        kept: Cell::new(0),
        reads: Cell::new(0),
        read: Cell::new(0),
    };
    let start = Instant::now();
    let Hdf5Object::Dataset(facts) = Hdf5File::open(&file)?.object(&name)? else {
        return Err(Hdf5Error::NotFound(name));
    };
    let opened = start.elapsed();
    let (mut count, mut bytes) = (0u64, 0u64);
    chunks(&facts, &file, &mut |place| {
        count += 1;
        bytes += place.bytes;
        Ok(())
    })?;
    println!(
        "{count} chunks of {bytes} bytes; opened in {opened:?}, listed in {:?}",
        start.elapsed()
    );
    println!(
        "{} reads of {} bytes, {} bytes kept",
        file.reads.get(),
        file.read.get(),
        file.kept.get()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or_default()
    );
    Ok(())
}
