//! The bytes of a file, held against its length and read through a few pages.

use std::cell::RefCell;
use std::collections::HashSet;

use super::error::Hdf5Error;
use super::fields::{ByteBlock, FieldSizes};

const PAGE_BYTES: u64 = 16 << 10;
const PAGES: usize = 16;
/// Blocks up to this size are not asked for: few are in memory at a time.
const SMALL_BYTES: u64 = 64 << 10;

/// The bytes of a file, and the permission to keep memory and to go on.
pub trait FileBytes {
    /// Bytes of the file.
    fn length(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on; the caller asks only for bytes before [`FileBytes::length`].
    ///
    /// # Errors
    /// Reads that fail.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Hdf5Error>;

    /// Asked before a list grows by `bytes`, which are not given back before the call of this crate returns, and with 0
    /// before each block is read.
    ///
    /// # Errors
    /// [`Hdf5Error::Interrupted`] where there is no such memory, or a user wants the work to end.
    fn keep(&self, bytes: usize) -> Result<(), Hdf5Error>;
}

struct HeldPage {
    number: u64,
    bytes: Vec<u8>,
}

/// A file with its last pages in memory.
///
/// **Invariant.** No byte at or behind the length of the file is asked for, and no block is longer than the file.
pub(crate) struct FileView<'a> {
    file: &'a dyn FileBytes,
    length: u64,
    pub sizes: FieldSizes,
    /// The page used last stands last.
    pages: RefCell<Vec<HeldPage>>,
}

impl<'a> FileView<'a> {
    pub fn new(file: &'a dyn FileBytes, sizes: FieldSizes) -> FileView<'a> {
        FileView {
            file,
            length: file.length(),
            sizes,
            pages: RefCell::default(),
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn keep(&self, bytes: usize) -> Result<(), Hdf5Error> {
        self.file.keep(bytes)
    }

    /// Holds a range against the length of the file.
    pub fn check(&self, at: u64, bytes: u64) -> Result<(), Hdf5Error> {
        if at.checked_add(bytes).is_none_or(|end| end > self.length) {
            let reason = format!("{bytes} bytes would leave the file of {} bytes", self.length);
            return Err(Hdf5Error::damaged(at, reason));
        }
        Ok(())
    }

    /// The `bytes` bytes from `at` on.
    pub fn block(&self, at: u64, bytes: u64) -> Result<ByteBlock, Hdf5Error> {
        self.check(at, bytes)?;
        let is_short = bytes <= PAGE_BYTES;
        let count = usize::try_from(bytes).map_err(|_| Hdf5Error::damaged(at, format!("a block of {bytes} bytes")))?;
        self.keep(if bytes <= SMALL_BYTES { 0 } else { count })?;
        let mut block = vec![0; count];
        if is_short {
            self.read_by_pages(at, &mut block)?;
        } else {
            self.file.read_at(at, &mut block)?;
        }
        Ok(ByteBlock {
            at,
            bytes: block,
            sizes: self.sizes,
        })
    }

    fn read_by_pages(&self, at: u64, mut into: &mut [u8]) -> Result<(), Hdf5Error> {
        let mut at = at;
        while !into.is_empty() {
            let mut pages = self.pages.borrow_mut();
            let page = self.page(&mut pages, at / PAGE_BYTES)?;
            let from = (at % PAGE_BYTES) as usize;
            let count = into.len().min(page.len() - from);
            let (filled, rest) = into.split_at_mut(count);
            filled.copy_from_slice(&page[from..from + count]);
            into = rest;
            at += count as u64;
        }
        Ok(())
    }

    fn page<'p>(&self, pages: &'p mut Vec<HeldPage>, number: u64) -> Result<&'p [u8], Hdf5Error> {
        let page = match pages.iter().rposition(|page| page.number == number) {
            Some(place) => pages.remove(place),
            None => {
                let mut bytes = if pages.len() == PAGES {
                    pages.remove(0).bytes
                } else {
                    self.keep(PAGE_BYTES as usize)?;
                    Vec::new()
                };
                let start = number * PAGE_BYTES;
                bytes.resize(PAGE_BYTES.min(self.length - start) as usize, 0);
                self.file.read_at(start, &mut bytes)?;
                HeldPage { number, bytes }
            }
        };
        pages.push(page);
        Ok(&pages[pages.len() - 1].bytes)
    }
}

/// The blocks that a walk has been at: each at most once, all together no more bytes than the file.
#[derive(Default)]
pub(crate) struct Visits {
    seen: HashSet<u64>,
    bytes: u64,
}

impl Visits {
    /// Enters the block at `at`.
    pub fn enter(&mut self, view: &FileView<'_>, at: u64, bytes: u64) -> Result<(), Hdf5Error> {
        if self.seen.len() == self.seen.capacity() {
            view.keep(2 * 24 * self.seen.len().max(8))?;
        }
        if !self.seen.insert(at) {
            return Err(Hdf5Error::damaged(
                at,
                "a block that is part of itself, or of two others",
            ));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > view.length() {
            return Err(Hdf5Error::damaged(at, "blocks that lie over each other"));
        }
        Ok(())
    }
}
