//! Counting numbers.

use outcore_dtype::DType;

/// Adds to `counter[number]` one for each of `numbers` (`int64`), or its weight (`float64`). Numbers without a counter
/// are left out. Counters are `int64`, with weights `float64`.
///
/// # Panics
/// When there is not one weight for each number.
pub fn tally(numbers: &[u8], weights: Option<&[u8]>, counter: &mut [u8]) {
    let numbers: &[i64] = bytemuck::cast_slice(numbers);
    let Some(weights) = weights else {
        let counter: &mut [i64] = bytemuck::cast_slice_mut(counter);
        for number in numbers {
            if let Some(count) = usize::try_from(*number).ok().and_then(|at| counter.get_mut(at)) {
                *count += 1;
            }
        }
        return;
    };
    let weights: &[f64] = bytemuck::cast_slice(weights);
    let counter: &mut [f64] = bytemuck::cast_slice_mut(counter);
    assert_eq!(numbers.len(), weights.len(), "tally: numbers and weights");
    for (number, weight) in numbers.iter().zip(weights) {
        if let Some(sum) = usize::try_from(*number).ok().and_then(|at| counter.get_mut(at)) {
            *sum += weight;
        }
    }
}

/// `total += counter`, element by element, of `int64` or `float64`.
///
/// # Panics
/// For another type, or when they differ in length.
pub fn add_tallies(dtype: DType, counter: &[u8], total: &mut [u8]) {
    assert_eq!(counter.len(), total.len(), "add_tallies: lengths");
    match dtype {
        DType::I64 => add::<i64>(bytemuck::cast_slice(counter), bytemuck::cast_slice_mut(total)),
        DType::F64 => add::<f64>(bytemuck::cast_slice(counter), bytemuck::cast_slice_mut(total)),
        _ => panic!("add_tallies: counters of {dtype}"),
    }
}

fn add<T: Copy + std::ops::AddAssign>(counter: &[T], total: &mut [T]) {
    for (total, count) in total.iter_mut().zip(counter) {
        *total += *count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_counter_are_left_out() {
        let numbers: [i64; 6] = [0, 2, 2, -1, 3, i64::MAX];
        let mut counts = [0i64; 3];
        tally(
            bytemuck::cast_slice(&numbers),
            None,
            bytemuck::cast_slice_mut(&mut counts),
        );
        assert_eq!(counts, [1, 0, 2]);
        let weights = [0.5, 1.0, 2.0, 9.0, 9.0, 9.0];
        let mut sums = [0.0f64; 3];
        let (numbers, weights) = (bytemuck::cast_slice(&numbers), bytemuck::cast_slice(&weights));
        tally(numbers, Some(weights), bytemuck::cast_slice_mut(&mut sums));
        assert_eq!(sums, [0.5, 0.0, 3.0]);
        let copy = sums;
        add_tallies(
            DType::F64,
            bytemuck::cast_slice(&copy),
            bytemuck::cast_slice_mut(&mut sums),
        );
        assert_eq!(sums, [1.0, 0.0, 6.0]);
    }
}
