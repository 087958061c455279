//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011): a block of 128 random bits is a function of its counter and the key alone.

/// RandomBlocks computed side by side.
pub const LANES: usize = 16;

const MULTIPLIER: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Words of `LANES` blocks: `words[w][lane]`.
pub type RandomBlocks = [[u32; LANES]; 4];

/// The ten rounds, on every lane.
#[inline(always)]
pub fn philox(mut counter: RandomBlocks, mut key: [u32; 2]) -> RandomBlocks {
    for _ in 0..10 {
        let mut next = [[0; LANES]; 4];
        for lane in 0..LANES {
            let first = u64::from(MULTIPLIER[0]) * u64::from(counter[0][lane]);
            let second = u64::from(MULTIPLIER[1]) * u64::from(counter[2][lane]);
            next[0][lane] = (second >> 32) as u32 ^ counter[1][lane] ^ key[0];
            next[1][lane] = second as u32;
            next[2][lane] = (first >> 32) as u32 ^ counter[3][lane] ^ key[1];
            next[3][lane] = first as u32;
        }
        counter = next;
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The 2 x 64 bits of the blocks `first..first + LANES` of `seed`.
#[inline(always)]
pub fn pairs(seed: u64, first: u64) -> [[u64; 2]; LANES] {
    let mut counter = [[0; LANES]; 4];
    for lane in 0..LANES {
        let block = first.wrapping_add(lane as u64);
        counter[0][lane] = block as u32;
        counter[1][lane] = (block >> 32) as u32;
    }
    let words = philox(counter, [seed as u32, (seed >> 32) as u32]);
    let mut pairs = [[0; 2]; LANES];
    for (lane, pair) in pairs.iter_mut().enumerate() {
        for (half, value) in pair.iter_mut().enumerate() {
            *value = u64::from(words[2 * half + 1][lane]) << 32 | u64::from(words[2 * half][lane]);
        }
    }
    pairs
}
