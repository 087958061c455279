//! RowsInBlocks that positions name, out of blocks of rows.

/// Blocks of rows that follow each other, all of one length but the last.
pub struct RowsInBlocks<'a> {
    pub row_bytes: usize,
    /// RowsInBlocks of a block.
    pub per_block: u64,
    /// The first row that is there.
    pub first: u64,
    pub blocks: &'a [&'a [u8]],
}

impl RowsInBlocks<'_> {
    /// The row after the last.
    fn end(&self) -> u64 {
        let bytes: usize = self.blocks.iter().map(|block| block.len()).sum();
        self.first + (bytes / self.row_bytes.max(1)) as u64
    }
}

/// `target[i] = rows[positions[i]]` for the positions (`int64`) that are among the rows; the others are left as they are.
///
/// # Panics
/// When `target` has not one row for each position.
pub fn gather_rows(rows: &RowsInBlocks<'_>, positions: &[u8], target: &mut [u8]) {
    let positions: &[i64] = bytemuck::cast_slice(positions);
    assert_eq!(
        target.len(),
        positions.len() * rows.row_bytes,
        "gather_rows: {} rows of {} bytes",
        positions.len(),
        rows.row_bytes
    );
    match rows.row_bytes {
        0 => {}
        1 => items::<1>(rows, positions, target),
        2 => items::<2>(rows, positions, target),
        4 => items::<4>(rows, positions, target),
        8 => items::<8>(rows, positions, target),
        16 => items::<16>(rows, positions, target),
        _ => long(rows, positions, target),
    }
}

fn items<const N: usize>(rows: &RowsInBlocks<'_>, positions: &[i64], target: &mut [u8]) {
    let (target, _) = target.as_chunks_mut::<N>();
    let (first, count) = (rows.first, rows.end() - rows.first);
    if let [block] = rows.blocks {
        let (block, _) = block.as_chunks::<N>();
        for (place, position) in target.iter_mut().zip(positions) {
            if let Some(item) = block.get((*position as u64).wrapping_sub(first) as usize) {
                *place = *item;
            }
        }
        return;
    }
    for (place, position) in target.iter_mut().zip(positions) {
        let at = (*position as u64).wrapping_sub(first);
        if at < count {
            let (block, _) = rows.blocks[(at / rows.per_block) as usize].as_chunks::<N>();
            *place = block[(at % rows.per_block) as usize];
        }
    }
}

fn long(rows: &RowsInBlocks<'_>, positions: &[i64], target: &mut [u8]) {
    let (first, count) = (rows.first, rows.end() - rows.first);
    for (place, position) in target.chunks_exact_mut(rows.row_bytes).zip(positions) {
        let at = (*position as u64).wrapping_sub(first);
        if at < count {
            let from = (at % rows.per_block) as usize * rows.row_bytes;
            let block = rows.blocks[(at / rows.per_block) as usize];
            place.copy_from_slice(&block[from..from + rows.row_bytes]);
        }
    }
}

/// The first of `positions` (`int64`) that is not one of `length` rows.
pub fn find_outside(length: u64, positions: &[u8]) -> Option<i64> {
    let positions: &[i64] = bytemuck::cast_slice(positions);
    positions.iter().copied().find(|position| *position as u64 >= length)
}

/// The range of ascending `positions` (`int64`) that are at least `from` and less than `to`.
pub fn positions_between(positions: &[u8], from: u64, to: u64) -> std::ops::Range<usize> {
    let positions: &[i64] = bytemuck::cast_slice(positions);
    let below = |limit: u64| positions.partition_point(|position| (*position as u64) < limit);
    below(from)..below(to)
}
