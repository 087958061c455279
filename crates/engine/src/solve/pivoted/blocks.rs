//! Records of the pivots of a block: behind the elements of its tile on the diagonal, or before the columns of a supernode.

use bytemuck::{Pod, Zeroable};
use outcore_kernels::{PivotForm, PivotRecord};

/// Counts of the candidates of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PivotCounts {
    pub pivots: u32,
    /// Slots of the front in use before, and behind it.
    pub before: u32,
    pub after: u32,
    pub candidates: u32,
}

/// Bytes of the records of so many candidates.
pub(super) const fn record_bytes(candidates: usize) -> usize {
    (size_of::<PivotCounts>() + candidates * size_of::<PivotRecord>()).next_multiple_of(16)
}

/// Words of the counts and records of so many candidates.
pub(super) fn header_words(candidates: u64) -> u64 {
    record_bytes(candidates as usize) as u64 / 8
}

/// The elements of a tile on the diagonal, and its records.
pub(super) fn split(tile: &[u8], candidates: usize) -> (&[u8], PivotCounts, &[PivotRecord]) {
    let (elements, records) = tile.split_at(tile.len() - record_bytes(candidates));
    let (counts, records) = read(records, candidates);
    (elements, counts, records)
}

/// Counts and records that begin some bytes.
pub(super) fn read(bytes: &[u8], candidates: usize) -> (PivotCounts, &[PivotRecord]) {
    let (counts, records) = bytes.split_at(size_of::<PivotCounts>());
    let records = &records[..candidates * size_of::<PivotRecord>()];
    (bytemuck::pod_read_unaligned(counts), bytemuck::cast_slice(records))
}

pub(super) fn write(counts: PivotCounts, records: &[PivotRecord], bytes: &mut [u8]) {
    let (front, rest) = bytes.split_at_mut(size_of::<PivotCounts>());
    front.copy_from_slice(bytemuck::bytes_of(&counts));
    let records: &[u8] = bytemuck::cast_slice(records);
    let (front, rest) = rest.split_at_mut(records.len());
    front.copy_from_slice(records);
    rest.fill(0);
}

/// The form of a candidate that is handed on in a slot.
pub(super) fn in_slot(slot: u32) -> PivotForm {
    PivotForm(PivotForm::LEFT.0 + slot)
}

/// The slot of a candidate that is handed on.
pub(super) fn slot_of(form: PivotForm) -> Option<u32> {
    form.0.checked_sub(PivotForm::LEFT.0)
}
