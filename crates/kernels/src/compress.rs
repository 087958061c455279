//! Masks: which rows are true, how many, and where.

/// How many bytes of a mask (0 or 1 each) are true.
pub fn count_true(mask: &[u8]) -> u64 {
    // Sums of up to 255 fit a byte, where the compiler adds a whole vector at once.
    let mut total = 0;
    for strip in mask.chunks(255 * 32) {
        let mut lanes = [0u8; 32];
        let (chunks, rest) = strip.as_chunks::<32>();
        for chunk in chunks {
            for lane in 0..32 {
                lanes[lane] += chunk[lane];
            }
        }
        total += lanes.iter().chain(rest).map(|count| u64::from(*count)).sum::<u64>();
    }
    total
}

/// Copies the items of `source` whose byte of `mask` is true to the front of `target`, and returns how many.
///
/// # Panics
/// When `source` is not one item of `item_bytes` per byte of `mask`, or `target` is too short for those that are true.
pub fn compress(item_bytes: usize, mask: &[u8], source: &[u8], target: &mut [u8]) -> usize {
    assert_eq!(
        source.len(),
        mask.len() * item_bytes,
        "compress: {} items of {item_bytes} bytes",
        mask.len()
    );
    match item_bytes {
        0 => count_true(mask) as usize,
        1 => compress_items::<1>(mask, source, target),
        2 => compress_items::<2>(mask, source, target),
        4 => compress_items::<4>(mask, source, target),
        8 => compress_items::<8>(mask, source, target),
        16 => compress_items::<16>(mask, source, target),
        _ => compress_rows(item_bytes, mask, source, target),
    }
}

/// Every item is written and the place advances with the mask, so that no branch has to be guessed.
fn compress_items<const N: usize>(mask: &[u8], source: &[u8], target: &mut [u8]) -> usize {
    let (source, _) = source.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    let mut count = 0;
    for (flags, items) in mask.chunks(8).zip(source.chunks(8)) {
        // Eight at once where none or all are true: long runs cost a copy.
        match <[u8; 8]>::try_from(flags).map(u64::from_ne_bytes) {
            Ok(0) => continue,
            Ok(ALL_TRUE) => {
                target[count..count + 8].copy_from_slice(items);
                count += 8;
                continue;
            }
            _ => {}
        }
        for (flag, item) in flags.iter().zip(items) {
            if let Some(place) = target.get_mut(count) {
                *place = *item;
            } else {
                assert_eq!(*flag, 0, "compress: a target of {} items is too short", target.len());
            }
            count += usize::from(*flag);
        }
    }
    count
}

const ALL_TRUE: u64 = 0x0101_0101_0101_0101;

/// Neighbours that are true are copied together.
fn compress_rows(item_bytes: usize, mask: &[u8], source: &[u8], target: &mut [u8]) -> usize {
    let mut count = 0;
    let mut from = 0;
    for run in mask.chunk_by(|a, b| a == b) {
        let to = from + run.len();
        if run[0] != 0 {
            target[count * item_bytes..(count + run.len()) * item_bytes]
                .copy_from_slice(&source[from * item_bytes..to * item_bytes]);
            count += run.len();
        }
        from = to;
    }
    count
}

/// Writes `base` plus the place of every true byte of `mask` to the front of `out` (`int64`), and returns how many.
///
/// # Panics
/// When `out` is too short for those that are true.
pub fn nonzero_positions(mask: &[u8], base: u64, out: &mut [u8]) -> usize {
    let out: &mut [i64] = bytemuck::cast_slice_mut(out);
    let mut count = 0;
    for (group, flags) in mask.chunks(8).enumerate() {
        if <[u8; 8]>::try_from(flags).is_ok_and(|flags| u64::from_ne_bytes(flags) == 0) {
            continue;
        }
        let first = base as i64 + 8 * group as i64;
        for (at, flag) in flags.iter().enumerate() {
            if let Some(place) = out.get_mut(count) {
                *place = first + at as i64;
            } else {
                assert_eq!(
                    *flag,
                    0,
                    "nonzero_positions: room for {} positions is too short",
                    out.len()
                );
            }
            count += usize::from(*flag);
        }
    }
    count
}
