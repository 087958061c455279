//! Arrays made from nothing: every value is a function of its place in the whole array, never of the tiling.

mod fill;
mod generator;
mod philox;

pub use generator::Generator;

use outcore_dtype::DType;

/// Fills the region `[start, start + shape)`, C-contiguous in `output`, of an array of `array_shape`.
///
/// # Panics
/// When the region leaves the array, `output` has another size, or `Eye` is asked of fewer than two axes.
pub fn generate(
    generator: &Generator,
    dtype: DType,
    array_shape: &[u64],
    start: &[u64],
    shape: &[usize],
    output: &mut [u8],
) {
    let rank = array_shape.len();
    assert!(
        start.len() == rank && shape.len() == rank,
        "generate: ranks of {array_shape:?}, {start:?}, {shape:?}"
    );
    for axis in 0..rank {
        let end = start[axis].checked_add(shape[axis] as u64);
        assert!(
            end.is_some_and(|end| end <= array_shape[axis]),
            "generate: region {start:?} + {shape:?} leaves the array of {array_shape:?}"
        );
    }
    let elements: usize = shape.iter().product();
    assert_eq!(
        output.len(),
        elements * dtype.size(),
        "generate: output bytes for {shape:?} of {dtype}"
    );
    if elements == 0 {
        return;
    }
    let run = shape.last().copied().unwrap_or(1);
    let fill = fill::FillStrip::new(generator, dtype, rank);
    // The flat index wraps beyond 2^64 elements, which no array has.
    let mut index = start.to_vec();
    for row in output.chunks_exact_mut(run * dtype.size()) {
        let flat = index
            .iter()
            .zip(array_shape)
            .fold(0u64, |flat, (at, extent)| flat * extent + at);
        let diagonal = if rank >= 2 {
            (index[rank - 2], index[rank - 1])
        } else {
            (0, 0)
        };
        fill.row(flat, diagonal, row);
        for axis in (0..rank.saturating_sub(1)).rev() {
            index[axis] += 1;
            if index[axis] < start[axis] + shape[axis] as u64 {
                break;
            }
            index[axis] = start[axis];
        }
    }
}
