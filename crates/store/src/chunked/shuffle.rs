//! Bytes and bits of elements that were sorted by their place in the element.

/// Elements that are put together in memory that the processor keeps near.
const BLOCK: usize = 256;
/// The largest element of `unshuffle_by`.
const ITEM_MAX: usize = 16;

/// Bytes of elements of `item`, all first ones first, as they were; bytes beyond whole elements come last.
pub(super) fn unshuffle(bytes: &[u8], item: usize, out: &mut [u8]) {
    match item {
        2 => unshuffle_by::<2>(bytes, out),
        4 => unshuffle_by::<4>(bytes, out),
        8 => unshuffle_by::<8>(bytes, out),
        16 => unshuffle_by::<ITEM_MAX>(bytes, out),
        0 | 1 => out.copy_from_slice(bytes),
        item => {
            let count = bytes.len() / item;
            for (byte, plane) in bytes[..count * item].chunks_exact(count.max(1)).enumerate() {
                for (element, value) in out.chunks_exact_mut(item).zip(plane) {
                    element[byte] = *value;
                }
            }
            out[count * item..].copy_from_slice(&bytes[count * item..]);
        }
    }
}

/// What `unshuffle` undoes.
pub(super) fn shuffle(bytes: &[u8], item: usize, out: &mut [u8]) {
    match item {
        2 => shuffle_by::<2>(bytes, out),
        4 => shuffle_by::<4>(bytes, out),
        8 => shuffle_by::<8>(bytes, out),
        16 => shuffle_by::<ITEM_MAX>(bytes, out),
        0 | 1 => out.copy_from_slice(bytes),
        item => {
            let count = bytes.len() / item;
            for (byte, plane) in out[..count * item].chunks_exact_mut(count.max(1)).enumerate() {
                for (place, element) in plane.iter_mut().zip(bytes.chunks_exact(item)) {
                    *place = element[byte];
                }
            }
            out[count * item..].copy_from_slice(&bytes[count * item..]);
        }
    }
}

fn shuffle_by<const ITEM: usize>(bytes: &[u8], out: &mut [u8]) {
    let (elements, rest) = bytes.as_chunks::<ITEM>();
    let count = elements.len();
    let (planes, behind) = out.split_at_mut(count * ITEM);
    for (at, block) in elements.chunks(BLOCK).enumerate() {
        for byte in 0..ITEM {
            let plane = &mut planes[byte * count + at * BLOCK..][..block.len()];
            for (place, element) in plane.iter_mut().zip(block) {
                *place = element[byte];
            }
        }
    }
    behind.copy_from_slice(rest);
}

/// `unshuffle` for powers of two. In a block of planes the place of a byte is (plane, element), and is to be (element, plane):
/// putting the second half between the first moves the upper bit of the place to its lower end, one bit of the plane at a
/// time. That is one loop of vectors whatever the size.
fn unshuffle_by<const ITEM: usize>(bytes: &[u8], out: &mut [u8]) {
    let (count, half) = (bytes.len() / ITEM, ITEM / 2);
    let steps = ITEM.ilog2();
    let [mut space, mut other] = [[0; BLOCK * ITEM_MAX]; 2];
    let (mut current, mut next) = (&mut space, &mut other);
    for from in (0..count).step_by(BLOCK) {
        let block = BLOCK.min(count - from);
        let (bytes_in_half, to) = (block * half, &mut out[from * ITEM..][..block * ITEM]);
        let plane = |at: usize| &bytes[at * count + from..][..block];
        let first = if steps == 1 { &mut *to } else { &mut current[..] };
        for (at, pairs) in first.chunks_exact_mut(2 * block).take(half).enumerate() {
            interleave(plane(at), plane(at + half), pairs);
        }
        for step in 1..steps {
            let (lower, upper) = current[..2 * bytes_in_half].split_at(bytes_in_half);
            match step + 1 == steps {
                true => interleave(lower, upper, to),
                false => interleave(lower, upper, &mut next[..2 * bytes_in_half]),
            }
            std::mem::swap(&mut current, &mut next);
        }
    }
    out[count * ITEM..].copy_from_slice(&bytes[count * ITEM..]);
}

fn interleave(first: &[u8], second: &[u8], out: &mut [u8]) {
    for ((pair, first), second) in out.as_chunks_mut::<2>().0.iter_mut().zip(first).zip(second) {
        *pair = [*first, *second];
    }
}

/// Bits of elements of `item` bytes, all first ones first, as they were (bitshuffle, `bshuf_untrans_bit_elem`). Of the bits
/// of a byte the lowest is first; `bytes` are whole groups of eight elements.
pub(super) fn unshuffle_bits(bytes: &[u8], item: usize, out: &mut [u8]) {
    /// Bytes of planes at a time.
    const PLANES: usize = 8 << 10;
    let groups = bytes.len() / (8 * item).max(1);
    let step = (PLANES / (8 * item).max(1)).max(1);
    let mut planes = vec![0; 8 * step.min(groups) * item];
    for from in (0..groups).step_by(step) {
        let step = step.min(groups - from);
        let planes = &mut planes[..8 * step * item];
        for (byte, plane) in planes.chunks_exact_mut(8 * step).enumerate() {
            let rows: [&[u8]; 8] = std::array::from_fn(|bit| &bytes[(8 * byte + bit) * groups + from..][..step]);
            for (at, elements) in plane.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *elements = turned(u64::from_le_bytes(rows.map(|row| row[at]))).to_le_bytes();
            }
        }
        unshuffle(planes, item, &mut out[8 * from * item..][..8 * step * item]);
    }
}

/// A square of eight times eight bits on its other side (Warren, "Hacker's Delight", 2nd edition, section 7-3).
fn turned(mut square: u64) -> u64 {
    for (mask, by) in [
        (0x00aa_00aa_00aa_00aa, 7),
        (0x0000_cccc_0000_cccc, 14),
        (0xf0f0_f0f0, 28),
    ] {
        let moved = (square ^ square >> by) & mask;
        square ^= moved ^ moved << by;
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_bytes_come_back_for_every_size() {
        for item in [1, 2, 3, 4, 7, 8, 12, 16] {
            for count in [0, 1, 37, BLOCK, 2 * BLOCK + 5] {
                let bytes: Vec<u8> = (0..item * count + 1).map(|at| (at * 7 / 3) as u8).collect();
                let whole = count * item;
                let planes = (0..item).flat_map(|byte| bytes[..whole].iter().skip(byte).step_by(item).copied());
                let shuffled: Vec<u8> = planes.chain(bytes[whole..].iter().copied()).collect();
                let mut out = vec![0; bytes.len()];
                shuffle(&bytes, item, &mut out);
                assert_eq!(out, shuffled, "{item}");
                unshuffle(&shuffled, item, &mut out);
                assert_eq!(out[..whole], bytes[..whole], "{item}");
            }
        }
    }

    #[test]
    fn shuffled_bits_come_back_for_every_size() {
        for (item, count) in [(1, 8), (2, 64), (3, 40), (4, 2048), (8, 1000), (16, 640), (9000, 16)] {
            let bytes: Vec<u8> = (0..item * count).map(|at| (at * at / 3) as u8).collect();
            let mut shuffled = vec![0u8; bytes.len()];
            for (place, byte) in bytes.iter().enumerate() {
                let (element, at) = (place / item, place % item);
                for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                    shuffled[(8 * at + bit) * (count / 8) + element / 8] |= 1 << (element % 8);
                }
            }
            let mut out = vec![0; bytes.len()];
            unshuffle_bits(&shuffled, item, &mut out);
            assert!(out == bytes, "{item}");
        }
    }
}
