//! Nanoseconds per element of the sorting kernels, beside the standard library's sorts.
//!
//! `cargo run --release -p outcore-kernels --example sorting [MiB [filter]]`
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

use bytemuck::Pod;
use outcore_dtype::DType;
use outcore_kernels::sort::{self, KeyOrder};

/// SplitMix64: cheap and even enough.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Time that this thread had a processor, so that neighbours count less; the kernel's clock ticks some 250 times a second.
fn processor_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with scheduler statistics");
    let field = text.split(' ').next().expect("a first field");
    field.parse().expect("nanoseconds")
}

/// The best of three runs of `work` on a fresh copy of `data`, in nanoseconds per element.
fn measure<T: Pod>(data: &[T], mut work: impl FnMut(&mut [T])) -> f64 {
    let mut copy = data.to_vec();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        copy.copy_from_slice(data);
        let start = processor_nanoseconds();
        work(&mut copy);
        best = best.min(processor_nanoseconds() - start);
    }
    best / data.len() as f64
}

struct Bench {
    bytes: usize,
    filter: String,
}

impl Bench {
    fn wanted(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    fn sort<T: Pod>(&self, name: &str, dtype: DType, standard: Option<fn(&mut [T])>, mut next: impl FnMut(usize) -> T) {
        if !self.wanted(name) {
            return;
        }
        let count = self.bytes / size_of::<T>();
        let data: Vec<T> = (0..count).map(&mut next).collect();
        let order = KeyOrder::new(dtype, false).unwrap();
        let mut workspace = vec![0u64; self.bytes / 8];
        let ours = measure(&data, |data| {
            sort::sort_keys(
                order,
                bytemuck::cast_slice_mut(data),
                bytemuck::cast_slice_mut(&mut workspace),
            );
        });
        let standard = standard.map_or(f64::NAN, |standard| measure(&data, standard));
        println!("sort {name:24} {ours:7.2} ns   sort_unstable {standard:7.2} ns");
    }

    fn index<T: Pod>(&self, name: &str, dtype: DType, mut next: impl FnMut(usize) -> T) {
        if !self.wanted(name) {
            return;
        }
        let count = self.bytes / size_of::<T>();
        let data: Vec<T> = (0..count).map(&mut next).collect();
        let order = KeyOrder::new(dtype, false).unwrap();
        let mut workspace = vec![0u64; sort::sort_index_workspace_bytes(order, count).div_ceil(8)];
        let mut index = vec![0u32; count];
        let ours = measure(&data, |data| {
            sort::sort_index(
                order,
                bytemuck::cast_slice_mut(data),
                bytemuck::cast_slice_mut(&mut index),
                bytemuck::cast_slice_mut(&mut workspace),
            );
        });
        println!("index {name:23} {ours:7.2} ns");
    }

    fn spread<T: Pod>(&self, name: &str, dtype: DType, mut next: impl FnMut(usize) -> T) {
        let name = &format!("spread {name}");
        if !self.wanted(name) {
            return;
        }
        let count = self.bytes / size_of::<T>();
        let data: Vec<T> = (0..count).map(&mut next).collect();
        let order = KeyOrder::new(dtype, false).unwrap();
        let sample = bytemuck::cast_slice(&data[..count / 16]);
        let splitters = sort::Splitters::of_sample(order, sample, sort::SPLITTERS_MAX);
        let mut workspace = vec![0u64; sort::spread_workspace_bytes(count).div_ceil(8)];
        let mut counts = vec![0i64; sort::Splitters::buckets(sort::SPLITTERS_MAX)];
        let ours = measure(&data, |out| {
            sort::spread_keys(
                &splitters,
                &[bytemuck::cast_slice(&data)],
                bytemuck::cast_slice_mut(out),
                bytemuck::cast_slice_mut(&mut counts),
                bytemuck::cast_slice_mut(&mut workspace),
            );
        });
        println!("{name:29} {ours:7.2} ns");
    }

    fn merge<T: Pod>(&self, name: &str, dtype: DType, segments: usize, mut next: impl FnMut(usize) -> T) {
        let name = &format!("merge {segments} {name}");
        if !self.wanted(name) {
            return;
        }
        let count = self.bytes / size_of::<T>();
        let mut data: Vec<T> = (0..count).map(&mut next).collect();
        let order = KeyOrder::new(dtype, false).unwrap();
        let mut workspace = vec![0u64; sort::merge_index_workspace_bytes(order, count).div_ceil(8)];
        let mut ends = Vec::new();
        for segment in 0..segments {
            let (from, to) = (count * segment / segments, count * (segment + 1) / segments);
            sort::sort_keys(
                order,
                bytemuck::cast_slice_mut(&mut data[from..to]),
                bytemuck::cast_slice_mut(&mut workspace),
            );
            ends.push(to);
        }
        let source = data.clone();
        let keys = measure(&data, |out| {
            sort::merge_segments(
                order,
                bytemuck::cast_slice(&source),
                &ends,
                bytemuck::cast_slice_mut(out),
                bytemuck::cast_slice_mut(&mut workspace),
            );
        });
        let mut index = vec![0u32; count];
        let indexed = measure(&data, |out| {
            sort::merge_index(
                order,
                bytemuck::cast_slice(&source),
                &ends,
                bytemuck::cast_slice_mut(out),
                bytemuck::cast_slice_mut(&mut index),
                bytemuck::cast_slice_mut(&mut workspace),
            );
        });
        println!("{name:29} {keys:7.2} ns   with index {indexed:7.2} ns");
    }
}

/// A value that is `k` with a probability like `1 / k`.
fn zipf(random: &mut Random) -> i64 {
    (1e9f64.powf(random.unit())) as i64
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mib: usize = arguments.get(1).map_or(64, |text| text.parse().expect("a size in MiB"));
    let bench = Bench {
        bytes: mib << 20,
        filter: arguments.get(2).cloned().unwrap_or_default(),
    };
    let r = &mut Random(1);
    let by_total = |data: &mut [f64]| data.sort_unstable_by(f64::total_cmp);
    bench.sort("i64 random", DType::I64, Some(<[i64]>::sort_unstable), |_| {
        r.next() as i64
    });
    bench.sort("f64 random", DType::F64, Some(by_total), |_| r.unit() * 2.0 - 1.0);
    bench.sort("f64 uniform", DType::F64, Some(by_total), |_| r.unit());
    bench.sort("f64 normal", DType::F64, Some(by_total), |_| {
        (-2.0 * r.unit().ln()).sqrt() * (std::f64::consts::TAU * r.unit()).cos()
    });
    bench.sort("f64 5 % NaN", DType::F64, Some(by_total), |_| {
        if r.next().is_multiple_of(20) {
            f64::NAN
        } else {
            r.unit() * 2.0 - 1.0
        }
    });
    bench.sort("f32 random", DType::F32, None, |_| r.unit() as f32 * 2.0 - 1.0);
    bench.sort("i32 random", DType::I32, Some(<[i32]>::sort_unstable), |_| {
        r.next() as i32
    });
    bench.sort("u32 random", DType::U32, Some(<[u32]>::sort_unstable), |_| {
        r.next() as u32
    });
    bench.sort("i16 random", DType::I16, Some(<[i16]>::sort_unstable), |_| {
        r.next() as i16
    });
    bench.sort("u8 random", DType::U8, Some(<[u8]>::sort_unstable), |_| r.next() as u8);
    let i64s = Some(<[i64]>::sort_unstable as fn(&mut [i64]));
    bench.sort("i64 presorted", DType::I64, i64s, |i| i as i64);
    bench.sort("i64 reversed", DType::I64, i64s, |i| -(i as i64));
    bench.sort("i64 nearly sorted", DType::I64, i64s, |i| {
        if r.next().is_multiple_of(100) {
            r.next() as i64 >> 40
        } else {
            i as i64
        }
    });
    bench.sort("i64 last out of order", DType::I64, i64s, |i| {
        if i + 1 == mib << 17 {
            -1
        } else {
            i as i64
        }
    });
    bench.sort("i64 all equal but one", DType::I64, i64s, |i| i64::from(i == 77));
    bench.sort("i64 16 values", DType::I64, i64s, |_| (r.next() % 16) as i64);
    bench.sort("i64 90 % duplicates", DType::I64, i64s, |_| {
        if !r.next().is_multiple_of(10) {
            42
        } else {
            r.next() as i64
        }
    });
    bench.sort("i64 Zipf", DType::I64, i64s, |_| zipf(r));
    indices(&bench, r);
    spreads(&bench, r);
    merges(&bench, r);
}

fn indices(bench: &Bench, r: &mut Random) {
    bench.index("i64 random", DType::I64, |_| r.next() as i64);
    bench.index("f64 random", DType::F64, |_| r.unit() * 2.0 - 1.0);
    bench.index("i32 random", DType::I32, |_| r.next() as i32);
    bench.index("u8 random", DType::U8, |_| r.next() as u8);
    bench.index("i64 16 values", DType::I64, |_| (r.next() % 16) as i64);
    bench.index("i64 Zipf", DType::I64, |_| zipf(r));
}

fn spreads(bench: &Bench, r: &mut Random) {
    bench.spread("i64 random", DType::I64, |_| r.next() as i64);
    bench.spread("f64 5 % NaN", DType::F64, |_| {
        if r.next().is_multiple_of(20) {
            f64::NAN
        } else {
            r.unit() * 2.0 - 1.0
        }
    });
    bench.spread("i32 random", DType::I32, |_| r.next() as i32);
    bench.spread("i64 Zipf", DType::I64, |_| zipf(r));
    bench.spread("i64 presorted", DType::I64, |i| i as i64);
}

fn merges(bench: &Bench, r: &mut Random) {
    for segments in [2, 4, 8, 16, 32, 64, 256] {
        bench.merge("i64 random", DType::I64, segments, |_| r.next() as i64);
    }
    for segments in [8, 64] {
        bench.merge("i32 random", DType::I32, segments, |_| r.next() as i32);
        bench.merge("f64 random", DType::F64, segments, |_| r.unit() * 2.0 - 1.0);
        bench.merge("i64 disjoint", DType::I64, segments, |i| i as i64);
        bench.merge("i64 16 values", DType::I64, segments, |_| (r.next() % 16) as i64);
    }
}
