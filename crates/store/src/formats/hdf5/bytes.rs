//! The bytes of a file for the reader of its metadata, on behalf of whoever opens it.

use std::cell::RefCell;

use outcore_hdf5::{FileBytes, Hdf5Error};

use crate::array::rowmajor::ReadWindow;
use crate::array::source::Opening;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Reservation, StoreError};

/// A file that is being opened. What is granted for lists of metadata is given back with it.
pub(super) struct StoredBytes<'a> {
    file: &'a File,
    length: u64,
    io: &'a Io,
    state: RefCell<OpeningState<'a>>,
}

struct OpeningState<'a> {
    opening: &'a mut dyn Opening,
    granted: Vec<Reservation>,
    /// The error of ours that ended the reading, which the reader has no word for.
    error: Option<StoreError>,
}

impl<'a> StoredBytes<'a> {
    pub fn new(file: &'a File, length: u64, io: &'a Io, opening: &'a mut dyn Opening) -> StoredBytes<'a> {
        StoredBytes {
            file,
            length,
            io,
            state: RefCell::new(OpeningState {
                opening,
                granted: vec![],
                error: None,
            }),
        }
    }

    /// An error of the reader as one of ours.
    pub fn error(&self, error: Hdf5Error) -> StoreError {
        if let Some(own) = self.state.borrow_mut().error.take() {
            return own;
        }
        let path = self.file.path();
        match error {
            Hdf5Error::Unsupported(part) => StoreError::unsupported(path, format!("{part}, which is not supported")),
            Hdf5Error::Damaged { offset, reason } => StoreError::format(path, format!("byte {offset}: {reason}")),
            Hdf5Error::NotFound(reason) | Hdf5Error::Interrupted(reason) => StoreError::format(path, reason),
            Hdf5Error::Read(cause) => StoreError::io(path, 0, "read", cause),
        }
    }

    /// Asks for memory that the opened array keeps.
    pub fn keep_for_good(&self, bytes: usize) -> Result<Option<Reservation>, StoreError> {
        self.state.borrow_mut().opening.keep(bytes)
    }

    fn ended<T>(&self, result: Result<T, StoreError>) -> Result<T, Hdf5Error> {
        result.map_err(|error| {
            let reason = error.to_string();
            self.state.borrow_mut().error = Some(error);
            Hdf5Error::Interrupted(reason)
        })
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let window = ReadWindow::of(offset, offset + into.len() as u64, self.length);
        let mut pages = AlignedBuffer::new(window.bytes())
            .map_err(|cause| StoreError::io(self.file.path(), offset, "map memory", cause))?;
        let buffer = &mut pages[..window.bytes()];
        self.io
            .read_metadata(self.file, buffer, window.start, window.present as usize)?;
        let head = (offset - window.start) as usize;
        into.copy_from_slice(&pages[head..head + into.len()]);
        Ok(())
    }
}

impl FileBytes for StoredBytes<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Hdf5Error> {
        self.ended(self.read(offset, into))
    }

    fn keep(&self, bytes: usize) -> Result<(), Hdf5Error> {
        let result = {
            let mut state = self.state.borrow_mut();
            let looked = state.opening.look();
            looked.and_then(|()| match bytes {
                0 => Ok(()),
                bytes => {
                    let grant = state.opening.keep(bytes)?;
                    state.granted.extend(grant);
                    Ok(())
                }
            })
        };
        self.ended(result)
    }
}
