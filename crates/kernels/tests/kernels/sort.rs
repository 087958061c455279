//! Every kernel against the standard library's stable sort by the compared values, on every type and pattern.

use outcore_dtype::{f16, DType};
use outcore_kernels::cast_kernel;
use outcore_kernels::sort::internals::sort_keys_through;
use outcore_kernels::sort::{
    compare, count_less, count_less_equal, gather_items, is_sorted, merge_index, merge_index_workspace_bytes,
    merge_segments, merge_workspace_bytes, scatter_items, searchsorted, sort_index, sort_index_workspace_bytes,
    sort_keys, sort_keys_from, sort_keys_from_workspace_bytes, sort_workspace_bytes, spread_index, spread_keys,
    spread_workspace_bytes, KeyOrder, Side, Splitters, SPLITTERS_MAX,
};
use std::cmp::Ordering;

/// Bytes aligned as an engine's frames are, at least for every element.
struct Frame {
    storage: Vec<u128>,
    bytes: usize,
}

impl Frame {
    fn new(bytes: usize) -> Frame {
        Frame {
            storage: vec![0x5a; bytes.div_ceil(16)],
            bytes,
        }
    }

    fn of(content: &[u8]) -> Frame {
        let mut frame = Frame::new(content.len());
        frame.get_mut().copy_from_slice(content);
        frame
    }

    fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.storage)[..self.bytes]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.storage)[..self.bytes]
    }
}

fn random(i: usize) -> u64 {
    let z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// Random bits: floats of all exponents, NaN of all payloads.
    Bits,
    Uniform,
    Presorted,
    Reversed,
    NearlySorted,
    AllEqual,
    /// Nine tenths the same.
    Duplicates,
    Zipf,
    /// Zeros of both signs, infinities and NaN among numbers.
    Special,
    /// Narrow clusters far apart: many words agree in their leading digits.
    Clusters,
}

use Pattern::*;

const PATTERNS: [Pattern; 10] = [
    Bits,
    Uniform,
    Presorted,
    Reversed,
    NearlySorted,
    AllEqual,
    Duplicates,
    Zipf,
    Special,
    Clusters,
];

const LENGTHS: [usize; 8] = [0, 1, 2, 25, 49, 333, 5001, 100_000];

fn value(pattern: Pattern, i: usize, length: usize) -> f64 {
    let r = random(i);
    let unit = (r >> 11) as f64 / (1u64 << 53) as f64;
    match pattern {
        Bits | Uniform => unit * 200.0 - 100.0,
        Presorted => i as f64 - length as f64 / 2.0,
        Reversed => length as f64 / 2.0 - i as f64,
        NearlySorted if r.is_multiple_of(50) => unit * length as f64,
        NearlySorted => i as f64,
        AllEqual => 7.0,
        Duplicates if r.is_multiple_of(10) => unit * 100.0,
        Duplicates => 42.0,
        Zipf => 100f64.powf(unit).floor(),
        Special => match r % 9 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::NAN,
            5 => -f64::NAN,
            _ => unit * 20.0 - 10.0,
        },
        Clusters => ((r % 3) as f64 - 1.0) * 1e9 + (r >> 40) as f64 / 1e6,
    }
}

fn data(dtype: DType, pattern: Pattern, length: usize) -> Frame {
    let mut frame = Frame::new(length * dtype.size());
    if pattern == Bits && dtype != DType::Bool {
        for (i, item) in frame.get_mut().chunks_exact_mut(dtype.size()).enumerate() {
            item.copy_from_slice(&random(i).to_ne_bytes()[..dtype.size()]);
        }
        return frame;
    }
    let values: Vec<f64> = (0..length)
        .map(|i| value(pattern, i, length))
        .map(|value| {
            if dtype == DType::Bool {
                f64::from(u8::from(value > 10.0))
            } else {
                value
            }
        })
        .collect();
    cast_kernel(DType::F64, dtype)(bytemuck::cast_slice(&values), frame.get_mut());
    if pattern == Special && dtype == DType::F64 {
        // NaN keep their payloads: each has its own.
        for (i, item) in frame.get_mut().chunks_exact_mut(8).enumerate() {
            let x = f64::from_ne_bytes(item.try_into().unwrap());
            if x.is_nan() {
                item.copy_from_slice(&(x.to_bits() | i as u64).to_ne_bytes());
            }
        }
    }
    frame
}

fn orders() -> impl Iterator<Item = KeyOrder> {
    DType::ALL
        .into_iter()
        .flat_map(|dtype| [false, true].map(|descending| KeyOrder::new(dtype, descending)))
        .flatten()
}

/// What the documentation says, in other words than the kernels'.
fn expected_order(order: KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    let directed = |ordering: Ordering| {
        if order.descending() {
            ordering.reverse()
        } else {
            ordering
        }
    };
    macro_rules! as_type {
        ($T:ty) => {{
            let (a, b): (&$T, &$T) = (&bytemuck::pod_read_unaligned(a), &bytemuck::pod_read_unaligned(b));
            match a.partial_cmp(b) {
                Some(ordering) => directed(ordering),
                #[allow(clippy::eq_op)] // only NaN differs from itself
                None => (a != a).cmp(&(b != b)),
            }
        }};
    }
    match order.dtype() {
        DType::Bool | DType::U8 => as_type!(u8),
        DType::I8 => as_type!(i8),
        DType::I16 => as_type!(i16),
        DType::I32 => as_type!(i32),
        DType::I64 => as_type!(i64),
        DType::U16 => as_type!(u16),
        DType::U32 => as_type!(u32),
        DType::U64 => as_type!(u64),
        DType::F16 => as_type!(f16),
        DType::F32 => as_type!(f32),
        DType::F64 => as_type!(f64),
        DType::C64 | DType::C128 => unreachable!("complex"),
    }
}

/// The positions of the elements in their order.
fn expected_index(order: KeyOrder, data: &[u8]) -> Vec<u32> {
    let size = order.dtype().size();
    let item = |i: u32| &data[i as usize * size..(i as usize + 1) * size];
    let mut index: Vec<u32> = (0..(data.len() / size) as u32).collect();
    index.sort_by(|a, b| expected_order(order, item(*a), item(*b)));
    index
}

fn picked(size: usize, data: &[u8], index: &[u32]) -> Vec<u8> {
    index
        .iter()
        .flat_map(|i| data[*i as usize * size..(*i as usize + 1) * size].to_vec())
        .collect()
}

/// Runs `check` on every order, pattern and length, with the data and the expected permutation.
fn everywhere(mut check: impl FnMut(KeyOrder, &str, &[u8], &[u32])) {
    for order in orders() {
        for pattern in PATTERNS {
            for length in LENGTHS {
                let data = data(order.dtype(), pattern, length);
                let index = expected_index(order, data.get());
                check(order, &format!("{order:?} {pattern:?} {length}"), data.get(), &index);
            }
        }
    }
}

#[test]
fn sort_keys_is_the_stable_sort() {
    everywhere(|order, what, data, index| {
        let mut sorted = Frame::of(data);
        let mut workspace = Frame::new(sort_workspace_bytes(order, index.len()));
        sort_keys(order, sorted.get_mut(), workspace.get_mut());
        assert!(sorted.get() == picked(order.dtype().size(), data, index), "{what}");
        assert!(is_sorted(order, sorted.get()), "{what}");
        let in_order = index.iter().enumerate().all(|(place, from)| place as u32 == *from);
        assert_eq!(is_sorted(order, data), in_order, "{what}");
    });
}

fn sort_from(order: KeyOrder, parts: &[&[u8]], places: &mut [&mut [u8]], count: usize) {
    let bytes = sort_keys_from_workspace_bytes(order, count, places.len() <= 1);
    sort_keys_from(order, parts, places, Frame::new(bytes).get_mut());
}

#[test]
fn sort_keys_from_parts_is_the_sort_of_their_concatenation() {
    everywhere(|order, what, data, index| {
        let size = order.dtype().size();
        let [a, b] = [index.len() / 3, index.len() * 2 / 3].map(|cut| cut * size);
        let parts = [&data[..a], &data[a..a], &data[a..b], &data[b..]].map(Frame::of);
        let parts: Vec<&[u8]> = parts.iter().map(Frame::get).collect();
        for cuts in [vec![], vec![0, index.len() / 5, index.len() / 5]] {
            let mut sorted = Frame::new(data.len());
            let mut places = vec![];
            let (mut rest, mut before) = (sorted.get_mut(), 0);
            for cut in cuts {
                let place;
                (place, rest) = rest.split_at_mut((cut - before) * size);
                places.push(place);
                before = cut;
            }
            places.push(rest);
            sort_from(order, &parts, &mut places, index.len());
            assert!(sorted.get() == picked(size, data, index), "{what}");
            // As on processors without vectors.
            let mut workspace = Frame::new(index.len() * 2 * size.next_multiple_of(8));
            let mut through = Frame::new(data.len());
            let middle = index.len() / 2 * size;
            let (first, second) = through.get_mut().split_at_mut(middle);
            sort_keys_through(order, &parts, &mut [first, second], workspace.get_mut());
            assert!(through.get() == sorted.get(), "{what}");
        }
    });
}

#[test]
fn sort_index_gives_the_stable_permutation_and_gather_follows_it() {
    everywhere(|order, what, data, expected| {
        let mut keys = Frame::of(data);
        let mut index = vec![0u32; expected.len()];
        let mut workspace = Frame::new(sort_index_workspace_bytes(order, expected.len()));
        sort_index(
            order,
            keys.get_mut(),
            bytemuck::cast_slice_mut(&mut index),
            workspace.get_mut(),
        );
        assert!(index == expected, "{what}");
        let size = order.dtype().size();
        let mut gathered = Frame::new(data.len());
        gather_items(size, bytemuck::cast_slice(&index), data, gathered.get_mut());
        assert!(keys.get() == gathered.get(), "{what}");
        let mut back = Frame::new(data.len());
        scatter_items(size, bytemuck::cast_slice(&index), gathered.get(), back.get_mut());
        assert!(back.get() == data, "{what}");
    });
}

/// Sorts each segment of `data` by itself.
fn segments(order: KeyOrder, data: &[u8], ends: &[usize]) -> Frame {
    let mut frame = Frame::of(data);
    let size = order.dtype().size();
    let mut from = 0;
    for end in ends {
        let segment = &mut frame.get_mut()[from * size..end * size];
        let index = expected_index(order, segment);
        let sorted = picked(size, segment, &index);
        segment.copy_from_slice(&sorted);
        from = *end;
    }
    frame
}

/// Even and uneven cuts of `length` into `count` segments, some of them empty.
fn cuts(length: usize, count: usize) -> [Vec<usize>; 2] {
    let even = (1..=count).map(|i| length * i / count).collect();
    let uneven = (1..=count)
        .map(|i| length * (i / 2 * 2 + count % 2) * i / (count * count))
        .collect::<Vec<_>>();
    let mut uneven: Vec<usize> = uneven.into_iter().map(|end| end.min(length)).collect();
    uneven.sort_unstable();
    if let Some(last) = uneven.last_mut() {
        *last = length;
    }
    [even, uneven]
}

#[test]
fn merges_are_the_stable_sort_of_their_segments() {
    for order in orders() {
        for pattern in PATTERNS {
            for (length, count) in [
                (0, 0),
                (0, 3),
                (1, 1),
                (40, 2),
                (5001, 3),
                (5001, 40),
                (100_000, 8),
                (100_000, 100),
            ] {
                let data = data(order.dtype(), pattern, length);
                for ends in cuts(length, count) {
                    check_merge(
                        order,
                        &segments(order, data.get(), &ends),
                        &ends,
                        &format!("{order:?} {pattern:?} {length} in {count}"),
                    );
                }
            }
        }
    }
}

fn check_merge(order: KeyOrder, data: &Frame, ends: &[usize], what: &str) {
    let size = order.dtype().size();
    let expected = expected_index(order, data.get());
    let sorted = picked(size, data.get(), &expected);
    let mut out = Frame::new(sorted.len());
    let mut workspace = Frame::new(merge_workspace_bytes(order, expected.len()));
    merge_segments(order, data.get(), ends, out.get_mut(), workspace.get_mut());
    assert!(out.get() == sorted, "{what}");
    let mut out = Frame::new(sorted.len());
    let mut index = vec![0u32; expected.len()];
    let mut workspace = Frame::new(merge_index_workspace_bytes(order, expected.len()));
    merge_index(
        order,
        data.get(),
        ends,
        out.get_mut(),
        bytemuck::cast_slice_mut(&mut index),
        workspace.get_mut(),
    );
    assert!(out.get() == sorted, "{what} with index");
    assert!(index == expected, "{what} with index");
}

#[test]
fn large_merges_are_cut_into_pieces() {
    for (pattern, count) in [
        (Uniform, 5),
        (Uniform, 4096),
        (Presorted, 64),
        (AllEqual, 64),
        (Duplicates, 9),
        (Zipf, 300),
    ] {
        let order = KeyOrder::new(DType::I64, false).unwrap();
        let length = 600_000;
        let data = data(DType::I64, pattern, length);
        for ends in cuts(length, count) {
            check_merge(
                order,
                &segments(order, data.get(), &ends),
                &ends,
                &format!("{pattern:?} in {count}"),
            );
        }
    }
}

#[test]
fn large_sorts_distribute_first() {
    for dtype in [DType::I64, DType::F64, DType::F32, DType::U16] {
        for pattern in PATTERNS {
            let order = KeyOrder::new(dtype, false).unwrap();
            let data = data(dtype, pattern, 700_001);
            let expected = expected_index(order, data.get());
            let mut keys = Frame::of(data.get());
            let mut workspace = Frame::new(sort_workspace_bytes(order, expected.len()));
            sort_keys(order, keys.get_mut(), workspace.get_mut());
            assert!(
                keys.get() == picked(dtype.size(), data.get(), &expected),
                "{dtype} {pattern:?}"
            );
            let mut keys = Frame::of(data.get());
            let mut index = vec![0u32; expected.len()];
            let mut workspace = Frame::new(sort_index_workspace_bytes(order, expected.len()));
            sort_index(
                order,
                keys.get_mut(),
                bytemuck::cast_slice_mut(&mut index),
                workspace.get_mut(),
            );
            assert!(index == expected, "{dtype} {pattern:?}");
            let picked = picked(dtype.size(), data.get(), &expected);
            for every in [700_001, 300_000, 65_537, 9_001] {
                let mut sorted = Frame::new(data.get().len());
                let mut places: Vec<&mut [u8]> = sorted.get_mut().chunks_mut(every * dtype.size()).collect();
                let parts: Vec<&[u8]> = data.get().chunks(77_777 * dtype.size()).collect();
                sort_from(order, &parts, &mut places, expected.len());
                assert!(sorted.get() == picked, "{dtype} {pattern:?} to places of {every}");
            }
        }
    }
}

#[test]
fn searches_count_what_comes_before() {
    for order in orders() {
        for pattern in [Special, Zipf, Bits, AllEqual] {
            let size = order.dtype().size();
            let sorted = segments(order, data(order.dtype(), pattern, 333).get(), &[333]);
            for (values, name) in [
                (data(order.dtype(), Special, 700), "values in no order"),
                (
                    segments(order, data(order.dtype(), pattern, 700).get(), &[700]),
                    "values in order",
                ),
            ] {
                let expected = |value: &[u8], equal: bool| {
                    let comes_before = |element: &&[u8]| match expected_order(order, element, value) {
                        Ordering::Less => true,
                        Ordering::Equal => equal,
                        Ordering::Greater => false,
                    };
                    sorted.get().chunks_exact(size).filter(comes_before).count()
                };
                for (side, equal) in [(Side::Left, false), (Side::Right, true)] {
                    let mut out = vec![0i64; 700];
                    searchsorted(
                        order,
                        sorted.get(),
                        values.get(),
                        side,
                        5,
                        bytemuck::cast_slice_mut(&mut out),
                    );
                    for (value, place) in values.get().chunks_exact(size).zip(out) {
                        let count = expected(value, equal);
                        assert_eq!(place, 5 + count as i64, "{order:?} {pattern:?} {side:?}, {name}");
                        let search = if equal { count_less_equal } else { count_less };
                        assert_eq!(search(order, sorted.get(), value), count, "{order:?} {pattern:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_is_found_in_nothing() {
    let order = KeyOrder::new(DType::F64, false).unwrap();
    let mut out = [9i64; 10];
    let values = [1.0f64; 10];
    searchsorted(
        order,
        &[],
        bytemuck::cast_slice(&values),
        Side::Right,
        0,
        bytemuck::cast_slice_mut(&mut out),
    );
    assert_eq!(out, [0; 10]);
    assert_eq!(count_less(order, &[], bytemuck::bytes_of(&1.0f64)), 0);
}

#[test]
fn comparisons_are_those_of_the_order() {
    for order in orders() {
        let size = order.dtype().size();
        let data = data(order.dtype(), Special, 60);
        for a in data.get().chunks_exact(size) {
            for b in data.get().chunks_exact(size) {
                assert_eq!(
                    compare(order, a, b),
                    expected_order(order, a, b),
                    "{order:?} {a:?} {b:?}"
                );
            }
        }
    }
}

#[test]
fn rows_of_any_size_are_gathered_and_scattered() {
    for item in [1, 2, 3, 4, 8, 16, 24, 100] {
        let source: Vec<u8> = (0..50 * item).map(|i| (i * 7 % 253) as u8).collect();
        let index: Vec<u32> = (0..50).map(|i| i * 7 % 50).collect();
        let mut gathered = vec![0; source.len()];
        gather_items(item, bytemuck::cast_slice(&index), &source, &mut gathered);
        assert_eq!(gathered, picked(item, &source, &index), "items of {item}");
        let mut back = vec![0; source.len()];
        scatter_items(item, bytemuck::cast_slice(&index), &gathered, &mut back);
        assert_eq!(back, source, "items of {item}");
    }
}

#[test]
fn complex_keys_have_no_order() {
    assert_eq!(KeyOrder::new(DType::C64, false), None);
    assert_eq!(KeyOrder::new(DType::C128, true), None);
}

#[test]
fn buckets_hold_what_the_sort_puts_there_in_the_order_in_which_it_was() {
    everywhere(|order, what, data, index| {
        let (size, count) = (order.dtype().size(), index.len());
        for wanted in [0, 1, 6, SPLITTERS_MAX] {
            let what = format!("{what} by {wanted}");
            let splitters = Splitters::of_sample(order, &data[..count / 2 * size], wanted);
            let cut = count / 3 * size;
            let parts = [&data[..cut], &data[cut..cut], &data[cut..]].map(Frame::of);
            let parts: Vec<&[u8]> = parts.iter().map(Frame::get).collect();
            let (mut keys, mut positions) = (Frame::new(data.len()), vec![0u32; count]);
            let mut counts = vec![0i64; Splitters::buckets(wanted)];
            let mut workspace = Frame::new(spread_workspace_bytes(count));
            let (places, counted) = (
                bytemuck::cast_slice_mut(&mut positions),
                bytemuck::cast_slice_mut(&mut counts),
            );
            spread_index(&splitters, &parts, keys.get_mut(), places, counted, workspace.get_mut());
            let mut alone = Frame::new(data.len());
            let mut same = vec![0i64; counts.len()];
            let counted = bytemuck::cast_slice_mut(&mut same);
            spread_keys(&splitters, &parts, alone.get_mut(), counted, workspace.get_mut());
            assert!(alone.get() == keys.get() && same == counts, "{what}");
            assert!(keys.get() == picked(size, data, &positions), "{what}");
            let mut from = 0;
            for (bucket, length) in counts.into_iter().enumerate() {
                let to = from + length as usize;
                let mut sorted = index[from..to].to_vec();
                assert!(
                    bucket % 2 == 0 || sorted.is_sorted(),
                    "{what}: bucket {bucket} is of equal elements"
                );
                sorted.sort_unstable();
                assert!(positions[from..to] == sorted, "{what}: bucket {bucket}");
                from = to;
            }
            assert_eq!(from, count, "{what}");
        }
    });
}
