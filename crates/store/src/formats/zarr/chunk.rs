//! Chunks without codecs, written from tiles past the page cache: a tile is its chunk, or the part of one that the array has.

use crate::array::region::{copy_lattice, Lattice};
use crate::base::page::PAGE;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, Region, StoreError};

/// Memory in which a chunk that is wider than its tile is put together, about.
const STRIP_BYTES: usize = 512 << 10;

/// The shape of a chunk, the bytes of an element, and one element of what the array does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainChunk<'a> {
    pub shape: &'a [u64],
    pub item: usize,
    /// Nothing is zero.
    pub fill: &'a [u8],
}

impl PlainChunk<'_> {
    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product::<u64>() as usize * self.item
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.item
    }

    /// Whether the tile is the front of its chunk, and zeros behind it are right: the tile is written as it is then, and the
    /// remainder is a hole.
    fn is_front(&self, region: &Region) -> bool {
        let zeros = self.fill.iter().all(|&byte| byte == 0);
        self.shape.is_empty() || (region.shape[1..] == self.shape[1..] && (zeros || region.shape[0] == self.shape[0]))
    }

    /// Bytes of one index of the chunk's first axis.
    fn row_bytes(&self) -> usize {
        self.shape[1..].iter().product::<u64>() as usize * self.item
    }

    /// Rows of a chunk that are put together and written at a time: whole pages, or all rows.
    fn strip_rows(&self) -> usize {
        let rows = self.shape[0] as usize;
        let row = self.row_bytes();
        // The fewest rows that are whole pages: a power of two, as pages are.
        let whole = PAGE >> row.trailing_zeros().min(PAGE.trailing_zeros());
        let strip = (STRIP_BYTES / row.max(1)).max(1).next_multiple_of(whole);
        strip.min(rows)
    }

    /// The bytes that writing a tile transfers.
    pub(super) fn write_bytes(&self, region: &Region) -> u64 {
        if region.is_empty() {
            return 0;
        }
        let bytes = if self.is_front(region) {
            self.data_bytes(region)
        } else {
            self.bytes()
        };
        bytes.next_multiple_of(PAGE) as u64
    }

    /// Memory that writing a tile uses.
    pub(super) fn workspace_bytes(&self, region: &Region) -> usize {
        if self.is_front(region) {
            0
        } else {
            (self.strip_rows() * self.row_bytes()).next_multiple_of(PAGE)
        }
    }

    /// Writes the chunk of a tile to its new file.
    pub(super) fn write(&self, file: &File, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        let (bytes, padded) = (self.data_bytes(region), self.write_bytes(region) as usize);
        let short = || {
            let path = file.path().display();
            StoreError::Invalid(format!("{path}: a tile of {} bytes is too short", data.len()))
        };
        if self.is_front(region) {
            io.write(file, data.get(..padded).ok_or_else(short)?, 0)?;
            // Cutting before growing turns what lay behind the data into zeros.
            if bytes < padded {
                file.set_len(bytes as u64)?;
            }
            if bytes < self.bytes() {
                file.set_len(self.bytes() as u64)?;
            }
            return Ok(());
        }
        self.write_strips(file, region, data.get(..bytes).ok_or_else(short)?, io)
    }

    /// The chunk of a narrower tile, some rows at a time.
    fn write_strips(&self, file: &File, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError> {
        let map = |cause| StoreError::io(file.path(), 0, "map memory", cause);
        let mut strip = AlignedBuffer::new(self.workspace_bytes(region)).map_err(map)?;
        let (rows, row_bytes) = (self.strip_rows() as u64, self.row_bytes());
        let origin = vec![0; self.shape.len()];
        let tile_row_bytes = data.len() / region.shape[0] as usize;
        for first in (0..self.shape[0]).step_by(rows as usize) {
            let height = rows.min(self.shape[0] - first);
            let filled = height.min(region.shape[0].saturating_sub(first));
            let shape = |of: &[u64], height: u64| [&[height], &of[1..]].concat();
            let (tile, chunk) = (shape(&region.shape, filled), shape(self.shape, height));
            let strip = &mut strip[..(height as usize * row_bytes).next_multiple_of(PAGE)];
            self.clear(strip);
            if filled > 0 {
                let (from, to) = (Lattice::of_box(&tile, &origin), Lattice::of_box(&chunk, &origin));
                let begin = first as usize * tile_row_bytes;
                copy_lattice(&data[begin..], &from, strip, &to, &tile, self.item);
            }
            io.write(file, strip, first * row_bytes as u64)?;
        }
        file.set_len(self.bytes() as u64)
    }

    /// Fills memory with what the array does not have.
    pub(super) fn clear(&self, strip: &mut [u8]) {
        if self.fill.iter().all(|&byte| byte == 0) {
            return strip.fill(0);
        }
        for item in strip.chunks_mut(self.item) {
            let length = item.len();
            item.copy_from_slice(&self.fill[..length]);
        }
    }
}
