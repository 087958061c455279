//! Scans against a loop over one column at a time, whole and in blocks.

use outcore_dtype::{f16, with_dtype, DType};
use outcore_kernels::{binary_kernel, cast_kernel, scan, Binary, Scan};

const SHAPES: [[usize; 3]; 6] = [[1, 1, 1], [1, 1000, 1], [3, 17, 1], [2, 13, 5], [1, 9, 64], [4, 1, 7]];

/// Storage for `count` elements of `dtype`, aligned for all types.
fn storage(dtype: DType, count: usize) -> Vec<u128> {
    vec![0; (count * dtype.size()).div_ceil(16)]
}

fn values(dtype: DType, count: usize) -> Vec<u8> {
    let source: Vec<f64> = (0..count)
        .map(|i| match i % 61 {
            7 if i > 200 && dtype.is_inexact() => f64::NAN,
            9 => -0.0,
            10 => 0.0,
            _ => ((i * 37 % 101) as f64 - 50.0) * 0.25,
        })
        .collect();
    let mut target = storage(dtype, count);
    let target = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut target)[..count * dtype.size()];
    cast_kernel(DType::F64, dtype)(bytemuck::cast_slice(&source), target);
    target.to_vec()
}

/// The blocks of `length` rows cut at `cuts`, scanned one after the other.
fn scanned(op: Scan, dtype: DType, data: &[u8], [outer, length, inner]: [usize; 3], cuts: &[usize]) -> Vec<u8> {
    let item = dtype.size();
    let mut result = vec![0; data.len()];
    let mut carry = storage(dtype, outer * inner);
    let carry = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut carry)[..outer * inner * item];
    let mut from = 0;
    for &to in cuts.iter().chain([&length]) {
        let bytes = outer * (to - from) * inner * item;
        let (mut block, mut out) = (storage(dtype, bytes), storage(dtype, bytes));
        let block = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut block)[..bytes];
        let out = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut out)[..bytes];
        let row = inner * item;
        let rows = |part: usize| part * length * row + from * row..part * length * row + to * row;
        for part in 0..outer {
            block[part * (to - from) * row..][..(to - from) * row].copy_from_slice(&data[rows(part)]);
        }
        scan(
            op,
            dtype,
            block,
            [outer, to - from, inner],
            (carry, from > 0),
            None,
            out,
        );
        for part in 0..outer {
            result[rows(part)].copy_from_slice(&out[part * (to - from) * row..][..(to - from) * row]);
        }
        from = to;
    }
    result
}

/// One step as NumPy takes it, with arithmetic from the element-wise kernels.
fn naive(op: Scan, dtype: DType, data: &[u8], [outer, length, inner]: [usize; 3]) -> Vec<u8> {
    let op = match op {
        Scan::Sum => Binary::Add,
        Scan::Prod => Binary::Multiply,
        Scan::Max => Binary::Maximum,
        Scan::Min => Binary::Minimum,
    };
    let kernel = binary_kernel(op, dtype).unwrap();
    let item = dtype.size();
    let mut result = data.to_vec();
    for part in 0..outer {
        for row in 1..length {
            for column in 0..inner {
                let at = ((part * length + row) * inner + column) * item;
                let mut three = [[0u128; 1]; 3];
                let [left, right, out] = &mut three;
                let left = &mut bytemuck::cast_slice_mut::<u128, u8>(left)[..item];
                let right = &mut bytemuck::cast_slice_mut::<u128, u8>(right)[..item];
                let out = &mut bytemuck::cast_slice_mut::<u128, u8>(out)[..item];
                left.copy_from_slice(&result[at - inner * item..][..item]);
                right.copy_from_slice(&data[at..at + item]);
                kernel(left, right, out);
                result[at..at + item].copy_from_slice(out);
            }
        }
    }
    result
}

/// The same values; NaN of any bits are the same value.
fn assert_same(dtype: DType, left: &[u8], right: &[u8], what: &str) {
    with_dtype!(dtype, T => {
        for (at, (a, b)) in left.chunks_exact(size_of::<T>()).zip(right.chunks_exact(size_of::<T>())).enumerate() {
            let (x, y): (T, T) = (bytemuck::pod_read_unaligned(a), bytemuck::pod_read_unaligned(b));
            #[allow(clippy::eq_op)]
            let both_nan = x != x && y != y;
            assert!(a == b || both_nan, "{what} at {at}: {x:?} and {y:?}");
        }
    });
}

#[test]
fn every_scan_equals_its_elementwise_operation_applied_in_turn() {
    for dtype in DType::ALL {
        for op in Scan::ALL.into_iter().filter(|op| op.supports(dtype)) {
            for shape in SHAPES {
                let data = values(dtype, shape.iter().product());
                let expected = naive(op, dtype, &data, shape);
                let whole = scanned(op, dtype, &data, shape, &[]);
                assert_same(dtype, &whole, &expected, &format!("{op:?} {dtype} {shape:?}"));
            }
        }
    }
}

#[test]
fn cuts_do_not_change_a_bit() {
    for dtype in DType::ALL {
        for op in Scan::ALL.into_iter().filter(|op| op.supports(dtype)) {
            for shape in [[1, 1000, 1], [3, 17, 1], [2, 13, 5]] {
                let data = values(dtype, shape.iter().product());
                let whole = scanned(op, dtype, &data, shape, &[]);
                for cuts in [&[1][..], &[5, 6], &[3, 3, 12]] {
                    assert_eq!(
                        whole,
                        scanned(op, dtype, &data, shape, cuts),
                        "{op:?} {dtype} {shape:?} {cuts:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn half_precision_rounds_at_every_step() {
    let ones = vec![f16::from_f32(1.0); 4096];
    let mut out = vec![f16::from_f32(0.0); 4096];
    let mut carry = [f16::from_f32(0.0)];
    let (carry, target) = (bytemuck::cast_slice_mut(&mut carry), bytemuck::cast_slice_mut(&mut out));
    scan(
        Scan::Sum,
        DType::F16,
        bytemuck::cast_slice(&ones),
        [1, 4096, 1],
        (carry, false),
        None,
        target,
    );
    assert_eq!(out[2047].to_f32(), 2048.0);
    assert_eq!(out[4095].to_f32(), 2048.0, "2048 + 1 rounds back to 2048");
}

#[test]
fn integers_wrap() {
    let data = [i8::MAX, 1, 1];
    let (mut out, mut carry) = ([0i8; 3], [0i8]);
    let (carry, target) = (bytemuck::cast_slice_mut(&mut carry), bytemuck::cast_slice_mut(&mut out));
    scan(
        Scan::Sum,
        DType::I8,
        bytemuck::cast_slice(&data),
        [1, 3, 1],
        (carry, false),
        None,
        target,
    );
    assert_eq!(out, [127, -128, -127]);
}

#[test]
fn marked_places_begin_anew_however_blocks_are_cut() {
    let data: Vec<f64> = (0..60).map(f64::from).collect();
    let marks: Vec<u8> = (0..20).map(|place| u8::from(place % 7 == 3)).collect();
    for cut in [0, 3, 4, 11] {
        let (mut out, mut carry) = (vec![0f64; 60], [0f64; 3]);
        for (from, to) in [(0, cut), (cut, 20)] {
            let carry = bytemuck::cast_slice_mut(&mut carry);
            let block = bytemuck::cast_slice(&data[from * 3..to * 3]);
            let target = bytemuck::cast_slice_mut(&mut out[from * 3..to * 3]);
            let starts = Some(&marks[from..to]);
            scan(
                Scan::Sum,
                DType::F64,
                block,
                [1, to - from, 3],
                (carry, from > 0),
                starts,
                target,
            );
        }
        let mut totals = [0f64; 3];
        for place in 0..20 {
            for column in 0..3 {
                let value = data[place * 3 + column];
                totals[column] = if marks[place] != 0 {
                    value
                } else {
                    totals[column] + value
                };
                assert_eq!(out[place * 3 + column], totals[column], "cut at {cut}, place {place}");
            }
        }
    }
}
