//! A C-ordered array at some byte of a file: which bytes a region costs, and how it comes into a frame.

use crate::base::interval::Interval;
use crate::base::page::PAGE;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Frame, Io, Region, StoreError};

/// Runs this close together are read in one go: skipping costs more than reading on.
pub(crate) const GAP_BYTES: u64 = 16 << 10;
/// Runs are joined up to this window, which bounds the frame's slack.
pub(crate) const WINDOW_BYTES: u64 = 1 << 20;
/// The same for windows that plain bytes are copied from: fewer and larger requests, for few threads wait for them.
pub(crate) const STAGED_BYTES: u64 = 2 << 20;
/// Memory that reading neighbours together takes while it runs.
pub const GROUP_STAGING_BYTES: usize = 4 << 20;
/// Where data is moved to when it would not be aligned for its type.
const ALIGN: usize = 64;

/// `shape` elements of `item` bytes at byte `base` of a file of `file_bytes`.
///
/// Invariants, kept by whoever makes one: the array lies within the file, and no product overflows.
#[derive(Clone, Debug)]
pub(crate) struct RowMajor {
    pub base: u64,
    pub shape: Vec<u64>,
    pub item: usize,
    pub file_bytes: u64,
}

/// Whole pages that hold some runs: `[start, end)`, of which the file has `present` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadWindow {
    pub start: u64,
    pub end: u64,
    pub present: u64,
}

impl ReadWindow {
    /// The window of the bytes `[first, last)`.
    pub(crate) fn of(first: u64, last: u64, file_bytes: u64) -> ReadWindow {
        let page = PAGE as u64;
        let (start, end) = (first / page * page, last.div_ceil(page) * page);
        ReadWindow {
            start,
            end,
            present: end.min(file_bytes).saturating_sub(start),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Some bytes of a file of `file_bytes`.
pub(crate) fn bytes_within(file: &File, place: Interval, file_bytes: u64, io: &Io) -> Result<Vec<u8>, StoreError> {
    let array = RowMajor {
        base: place.start,
        shape: vec![place.length],
        item: 1,
        file_bytes,
    };
    let region = Region::full(&array.shape);
    let memory = AlignedBuffer::new(array.frame_bytes(&region).max(PAGE));
    let mut frame = memory.map_err(|cause| StoreError::io(file.path(), 0, "map memory", cause))?;
    let at = array.read(file, &region, &mut frame, io)?;
    Ok(frame[at..at + place.length as usize].to_vec())
}

fn page_up(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

impl RowMajor {
    /// Calls `visit` with each window and its runs of bytes, ascending.
    fn windows<F>(&self, region: &Region, visit: F) -> Result<(), StoreError>
    where
        F: FnMut(ReadWindow, &[Interval]) -> Result<(), StoreError>,
    {
        self.windows_of(WINDOW_BYTES, region, visit)
    }

    /// The same with runs joined up to windows of `most` bytes.
    fn windows_of<F>(&self, most: u64, region: &Region, mut visit: F) -> Result<(), StoreError>
    where
        F: FnMut(ReadWindow, &[Interval]) -> Result<(), StoreError>,
    {
        let mut group: Vec<Interval> = Vec::new();
        let (mut first, mut last) = (0, 0);
        for run in region.runs(&self.shape) {
            let start = self.base + run.start * self.item as u64;
            let end = start + run.length * self.item as u64;
            if !group.is_empty() && (start - last >= GAP_BYTES || end - first > most) {
                visit(ReadWindow::of(first, last, self.file_bytes), &group)?;
                group.clear();
            }
            if group.is_empty() {
                first = start;
            }
            last = end;
            group.push(Interval::between(start, end));
        }
        if group.is_empty() {
            return Ok(());
        }
        visit(ReadWindow::of(first, last, self.file_bytes), &group)
    }

    /// Calls `visit` with each window and its runs of bytes, ascending, for reads into memory that they are copied from: no
    /// window is longer than `STAGED_BYTES` and two pages. Long runs are cut between pages, into equal parts.
    pub(crate) fn staged_windows<F>(&self, region: &Region, mut visit: F) -> Result<(), StoreError>
    where
        F: FnMut(ReadWindow, &[Interval]) -> Result<(), StoreError>,
    {
        self.windows_of(STAGED_BYTES, region, |window, runs| {
            let [run] = runs else { return visit(window, runs) };
            let (mut start, end) = (run.start, run.start + run.length);
            let page = PAGE as u64;
            let parts = (window.end - window.start).div_ceil(STAGED_BYTES).max(1);
            let step = (window.end - window.start).div_ceil(parts).next_multiple_of(page);
            while start < end {
                let next = (start / page * page + step).min(end);
                visit(
                    ReadWindow::of(start, next, self.file_bytes),
                    &[Interval::between(start, next)],
                )?;
                start = next;
            }
            Ok(())
        })
    }

    pub(crate) fn read_bytes(&self, region: &Region) -> u64 {
        let mut total = 0;
        let _ = self.windows(region, |window, _| {
            total += window.present;
            Ok(())
        });
        total
    }

    fn data_bytes(&self, region: &Region) -> usize {
        region.elements() as usize * self.item
    }

    pub(crate) fn frame_bytes(&self, region: &Region) -> usize {
        let (mut count, mut largest, mut head) = (0, 0, 0);
        let _ = self.windows(region, |window, runs| {
            count += 1;
            largest = largest.max(window.bytes());
            head = (runs[0].start - window.start) as usize;
            count += runs.len() - 1;
            Ok(())
        });
        if count <= 1 {
            largest.max(page_up(self.aligned(head) + self.data_bytes(region)))
        } else {
            page_up(self.data_bytes(region)) + largest
        }
    }

    /// `head` when elements there are aligned, else the next place where they are.
    fn aligned(&self, head: usize) -> usize {
        if head.is_multiple_of(self.item) {
            head
        } else {
            head.next_multiple_of(ALIGN)
        }
    }

    /// Reads the region, C-contiguous, into the frame; returns where it starts.
    ///
    /// One run stays where its window puts it. Several runs are read window by window behind the place they are then
    /// moved to, so a frame needs the data and one window.
    pub(crate) fn read(&self, file: &File, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        let bytes = self.data_bytes(region);
        if region.is_contiguous_in(&self.shape) {
            let mut offset = 0;
            self.windows(region, |window, runs| {
                io.read(
                    file,
                    &mut frame[..window.bytes()],
                    window.start,
                    window.present as usize,
                )?;
                let head = (runs[0].start - window.start) as usize;
                offset = self.aligned(head);
                if offset != head {
                    frame.copy_within(head..head + bytes, offset);
                }
                Ok(())
            })?;
            return Ok(offset);
        }
        let mut packed = 0;
        self.windows(region, |window, runs| {
            let place = page_up(packed);
            io.read(
                file,
                &mut frame[place..place + window.bytes()],
                window.start,
                window.present as usize,
            )?;
            for &Interval { start, length } in runs {
                let at = place + (start - window.start) as usize;
                frame.copy_within(at..at + length as usize, packed);
                packed += length as usize;
            }
            Ok(())
        })?;
        Ok(0)
    }

    /// Calls `visit` with each window of the rows of neighbouring regions, and the rows' first bytes in it. False when
    /// a row is too long to be staged.
    fn group_windows<F>(&self, regions: &[Region], mut visit: F) -> Result<bool, StoreError>
    where
        F: FnMut(ReadWindow, &[u64]) -> Result<(), StoreError>,
    {
        let last = self.shape.len() - 1;
        let row = regions.iter().map(|region| region.shape[last]).sum::<u64>() * self.item as u64;
        let staged = (GROUP_STAGING_BYTES - 2 * PAGE) as u64;
        if row > staged {
            return Ok(false);
        }
        let mut heads = regions[0].clone();
        heads.shape[last] = heads.shape[last].min(1);
        let mut group: Vec<u64> = Vec::new();
        let window = |group: &[u64]| ReadWindow::of(group[0], group[group.len() - 1] + row, self.file_bytes);
        for Interval { start: element, .. } in heads.runs(&self.shape) {
            let start = self.base + element * self.item as u64;
            if let (Some(&first), Some(&before)) = (group.first(), group.last()) {
                if start - (before + row) >= GAP_BYTES || start + row - first > staged {
                    visit(window(&group), &group)?;
                    group.clear();
                }
            }
            group.push(start);
        }
        if !group.is_empty() {
            visit(window(&group), &group)?;
        }
        Ok(true)
    }

    pub(crate) fn group_bytes(&self, regions: &[Region]) -> Option<u64> {
        let mut total = 0;
        let staged = self.group_windows(regions, |window, _| {
            total += window.present;
            Ok(())
        });
        staged.ok().filter(|staged| *staged).map(|_| total)
    }

    /// Reads neighbouring regions through `staging`, each to the front of its frame.
    pub(crate) fn read_group(
        &self,
        file: &File,
        regions: &[Region],
        frames: &mut [Frame],
        staging: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let last = self.shape.len() - 1;
        let pieces: Vec<usize> = regions
            .iter()
            .map(|region| region.shape[last] as usize * self.item)
            .collect();
        let mut done = 0;
        self.group_windows(regions, |window, rows| {
            let stage = &mut staging[..window.bytes()];
            io.read(file, stage, window.start, window.present as usize)?;
            for &row in rows {
                let mut from = (row - window.start) as usize;
                for (frame, &piece) in frames.iter_mut().zip(&pieces) {
                    frame[done * piece..(done + 1) * piece].copy_from_slice(&stage[from..from + piece]);
                    from += piece;
                }
                done += 1;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Reverses the bytes of every element; complex numbers part by part.
pub(crate) fn swap_bytes(data: &mut [u8], dtype: outcore_dtype::DType) {
    // The unit is a constant in each arm, which lets the compiler use vector shuffles.
    fn reverse<const UNIT: usize>(data: &mut [u8]) {
        data.chunks_exact_mut(UNIT).for_each(<[u8]>::reverse);
    }
    match dtype.real().size() {
        2 => reverse::<2>(data),
        4 => reverse::<4>(data),
        8 => reverse::<8>(data),
        _ => {}
    }
}

/// Makes elements of a file those of this machine: its order of bytes, and truths that are 0 or 1.
pub(crate) fn make_native(data: &mut [u8], dtype: outcore_dtype::DType, swapped: bool) {
    if swapped {
        swap_bytes(data, dtype);
    }
    if dtype == outcore_dtype::DType::Bool {
        normalize_bools(data);
    }
}

/// Makes any non-zero byte a true one: files and functions may give what kernels must not see.
pub fn normalize_bools(data: &mut [u8]) {
    data.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_staged_in_equal_parts_that_share_no_page() {
        for (base, rows) in [(0, 1), (0, 511), (4095, 511), (2048, 1024), (17, 4096), (100, 9000)] {
            let array = RowMajor {
                base,
                shape: vec![rows, 1024],
                item: 8,
                file_bytes: base + rows * 8192 + 100,
            };
            let region = Region::full(&array.shape);
            let (mut at, mut pages, mut present) = (base, base / PAGE as u64 * PAGE as u64, 0);
            let staged = array.staged_windows(&region, |window, runs| {
                assert!(window.bytes() as u64 <= STAGED_BYTES + 2 * PAGE as u64);
                assert_eq!((window.start, runs.len(), runs[0].start), (pages, 1, at));
                (at, pages, present) = (at + runs[0].length, window.end, present + window.present);
                Ok(())
            });
            staged.unwrap();
            assert_eq!((at, present), (base + rows * 8192, array.read_bytes(&region)));
        }
    }
}
