//! The checksum of metadata: Bob Jenkins, "lookup3.c", 2006, `hashlittle` with an initial value of 0.

/// The checksum of `bytes`.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    let mut left = bytes;
    // The last 1 to 12 bytes are mixed in another way, and no bytes not at all.
    while left.len() > 12 {
        add(&mut state, &left[..12]);
        mix(&mut state);
        left = &left[12..];
    }
    if !left.is_empty() {
        let mut last = [0; 12];
        last[..left.len()].copy_from_slice(left);
        add(&mut state, &last);
        finish(&mut state);
    }
    state[2]
}

fn add(state: &mut [u32; 3], bytes: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = word.wrapping_add(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |of: &mut u32, other: &mut u32, third: u32, turn: u32| {
        *of = of.wrapping_sub(*other) ^ other.rotate_left(turn);
        *other = other.wrapping_add(third);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |of: &mut u32, other: u32, turn: u32| *of = (*of ^ other).wrapping_sub(other.rotate_left(turn));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn checksums_are_those_of_the_published_function() {
        // The examples of `driver5` of lookup3.c.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
