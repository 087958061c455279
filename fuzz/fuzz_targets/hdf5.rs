//! Any bytes as an HDF5 file: objects, attributes and places of chunks, or an error, never a panic or a large
//! allocation.
#![no_main]

use std::cell::Cell;

use outcore_hdf5::{chunks, FileBytes, Hdf5Error, Hdf5File, Hdf5Object};

/// Bytes that may be looked at with so much memory.
struct BoundedBytes<'b> {
    bytes: &'b [u8],
    left: Cell<usize>,
}

impl FileBytes for BoundedBytes<'_> {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Hdf5Error> {
        let from = offset as usize;
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }

    fn keep(&self, bytes: usize) -> Result<(), Hdf5Error> {
        let left = self.left.get().checked_sub(bytes);
        self.left
            .set(left.ok_or_else(|| Hdf5Error::Interrupted("no memory is left".into()))?);
        Ok(())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let file = BoundedBytes {
        bytes,
        left: Cell::new(8 << 20),
    };
    let Ok(opened) = Hdf5File::open(&file) else {
        return;
    };
    let mut paths = vec![String::new()];
    // Damaged files have groups within themselves.
    for place in 0..256 {
        let Some(path) = paths.get(place).cloned() else {
            return;
        };
        match opened.object(&path) {
            Ok(Hdf5Object::Group(group)) => {
                let inner = group.members.iter().take(256);
                paths.extend(inner.map(|member| format!("{path}/{}", member.name)));
            }
            Ok(Hdf5Object::Dataset(facts)) => drop(chunks(&facts, &file, &mut |_| Ok(()))),
            Ok(Hdf5Object::NamedType { .. }) | Err(_) => {}
        }
    }
});
