//! One contiguous row of a generator's array.

use super::philox::{pairs, LANES};
use super::Generator;
use crate::elementwise::cast_kernel;
use crate::{half, UnaryKernel};
use outcore_dtype::{f16, Complex, DType, Kind, Scalar};

/// A generator with everything that does not depend on the place computed once.
pub struct FillStrip {
    rule: Rule,
    dtype: DType,
    /// From the type the rule computes in.
    cast: UnaryKernel,
}

enum Rule {
    /// Native bytes of the one value, or of the two that `Eye` writes.
    Constant(Vec<u8>),
    Diagonal {
        k: i64,
        one: Vec<u8>,
    },
    /// Wrapping 64-bit steps: right for every integer type, since casts to fewer bits wrap too.
    IntegerSteps {
        start: u64,
        step: u64,
    },
    Steps {
        start: f64,
        step: f64,
    },
    ComplexSteps {
        start: Complex<f64>,
        step: Complex<f64>,
    },
    Linspace {
        start: f64,
        stop: f64,
        count: u64,
        endpoint: bool,
        floor: bool,
    },
    Uniform {
        seed: u64,
        low: f64,
        high: f64,
        /// The largest value that may come out: a draw that would round to `high` stays below it.
        last: f64,
    },
    Normal {
        seed: u64,
        mean: f64,
        deviation: f64,
    },
    Integers {
        seed: u64,
        low: i64,
        span: u64,
    },
}

fn complex(value: Scalar) -> Complex<f64> {
    match value {
        Scalar::Bool(value) => Complex::new(f64::from(u8::from(value)), 0.0),
        Scalar::Int(value) => Complex::new(value as f64, 0.0),
        Scalar::UInt(value) => Complex::new(value as f64, 0.0),
        Scalar::Float(value) => Complex::new(value, 0.0),
        Scalar::Complex(re, im) => Complex::new(re, im),
    }
}

fn integer(value: Scalar) -> u64 {
    match value {
        Scalar::Bool(value) => u64::from(value),
        Scalar::Int(value) => value as u64,
        Scalar::UInt(value) => value,
        Scalar::Float(value) | Scalar::Complex(value, _) => value as i64 as u64,
    }
}

/// The value's bytes, cast as `astype` would where the type cannot hold it.
fn bytes(value: Scalar, dtype: DType) -> Vec<u8> {
    value.to_bytes(dtype).unwrap_or_else(|_| {
        let mut bytes = vec![0; dtype.size()];
        match value.kind() {
            Kind::Float | Kind::Complex => {
                cast_kernel(DType::C128, dtype)(bytemuck::bytes_of(&complex(value)), &mut bytes)
            }
            _ => cast_kernel(DType::U64, dtype)(bytemuck::bytes_of(&integer(value)), &mut bytes),
        }
        bytes
    })
}

impl FillStrip {
    pub fn new(generator: &Generator, dtype: DType, rank: usize) -> FillStrip {
        let integral = matches!(dtype.kind(), Kind::Bool | Kind::Unsigned | Kind::Signed);
        let (rule, from) = match *generator {
            Generator::Full(value) => (Rule::Constant(bytes(value, dtype)), dtype),
            Generator::Eye { k } => {
                assert!(rank >= 2, "generate: an identity has two axes, not {rank}");
                (
                    Rule::Diagonal {
                        k,
                        one: bytes(Scalar::Int(1), dtype),
                    },
                    dtype,
                )
            }
            Generator::Arange { start, step } => arange(start, step, dtype, integral),
            Generator::Linspace {
                start,
                stop,
                count,
                endpoint,
            } => (
                Rule::Linspace {
                    start,
                    stop,
                    count,
                    endpoint,
                    floor: integral,
                },
                DType::F64,
            ),
            Generator::Uniform { seed, low, high } => (
                Rule::Uniform {
                    seed,
                    low,
                    high,
                    last: if low < high { below(high, dtype).max(low) } else { low },
                },
                DType::F64,
            ),
            Generator::Normal { seed, mean, deviation } => (Rule::Normal { seed, mean, deviation }, DType::F64),
            Generator::Integers { seed, low, high } => {
                assert!(low < high, "generate: no integer in [{low}, {high})");
                (
                    Rule::Integers {
                        seed,
                        low,
                        span: high.wrapping_sub(low) as u64,
                    },
                    DType::I64,
                )
            }
        };
        FillStrip {
            rule,
            dtype,
            cast: cast_kernel(from, dtype),
        }
    }

    /// Writes the row that begins at flat index `flat`, and at row and column `diagonal` of its last two axes.
    pub fn row(&self, flat: u64, diagonal: (u64, u64), row: &mut [u8]) {
        let size = self.dtype.size();
        match self.rule {
            Rule::Constant(ref value) => row
                .chunks_exact_mut(size)
                .for_each(|place| place.copy_from_slice(value)),
            Rule::Diagonal { k, ref one } => {
                row.fill(0);
                let column = i128::from(diagonal.0) + i128::from(k) - i128::from(diagonal.1);
                if let Some(place) = usize::try_from(column)
                    .ok()
                    .and_then(|at| row.chunks_exact_mut(size).nth(at))
                {
                    place.copy_from_slice(one);
                }
            }
            Rule::IntegerSteps { start, step } => {
                self.each(flat, row, |index| start.wrapping_add(index.wrapping_mul(step)));
            }
            Rule::Steps { start, step } => self.each(flat, row, |index| start + index as f64 * step),
            Rule::ComplexSteps { start, step } => self.each(flat, row, |index| {
                let index = index as f64;
                Complex::new(start.re + index * step.re, start.im + index * step.im)
            }),
            Rule::Linspace {
                start,
                stop,
                count,
                endpoint,
                floor,
            } => self.each(flat, row, |index| {
                let value = linspace(start, stop, count, endpoint, index);
                if floor {
                    value.floor()
                } else {
                    value
                }
            }),
            Rule::Uniform { seed, low, high, last } => {
                self.random(seed, flat, row, |pair| {
                    pair.map(|bits| (low + (high - low) * unit(bits)).min(last))
                });
            }
            Rule::Normal { seed, mean, deviation } => self.random(seed, flat, row, |[first, second]| {
                // 1 - u lies in (0, 1], where the logarithm is finite.
                let radius = (-2.0 * (1.0 - unit(first)).ln()).sqrt();
                let (sin, cos) = (std::f64::consts::TAU * unit(second)).sin_cos();
                [mean + deviation * (radius * cos), mean + deviation * (radius * sin)]
            }),
            Rule::Integers { seed, low, span } => self.random(seed, flat, row, |pair| {
                pair.map(|bits| low.wrapping_add(((u128::from(bits) * u128::from(span)) >> 64) as i64))
            }),
        }
    }

    /// A strip at a time: computed in the rule's type, then cast.
    fn each<T: bytemuck::Pod>(&self, flat: u64, row: &mut [u8], value: impl Fn(u64) -> T) {
        const STRIP: usize = 256;
        let mut strip = [T::zeroed(); STRIP];
        let mut index = flat;
        for output in row.chunks_mut(STRIP * self.dtype.size()) {
            let strip = &mut strip[..output.len() / self.dtype.size()];
            for (offset, place) in strip.iter_mut().enumerate() {
                *place = value(index.wrapping_add(offset as u64));
            }
            (self.cast)(bytemuck::cast_slice(strip), output);
            index = index.wrapping_add(strip.len() as u64);
        }
    }

    /// Elements `2 b` and `2 b + 1` come from block `b`; a row may begin or end in the middle of one.
    fn random<T: bytemuck::Pod>(&self, seed: u64, flat: u64, row: &mut [u8], draw: impl Fn([u64; 2]) -> [T; 2]) {
        let size = self.dtype.size();
        let mut strip = [T::zeroed(); 2 * LANES];
        let mut rest = row;
        let mut block = flat / 2;
        let mut skip = (flat % 2) as usize;
        while !rest.is_empty() {
            for (places, bits) in strip.chunks_exact_mut(2).zip(pairs(seed, block)) {
                places.copy_from_slice(&draw(bits));
            }
            let count = (2 * LANES - skip).min(rest.len() / size);
            let (output, later) = rest.split_at_mut(count * size);
            (self.cast)(bytemuck::cast_slice(&strip[skip..skip + count]), output);
            (rest, skip) = (later, 0);
            block = block.wrapping_add(LANES as u64);
        }
    }
}

fn arange(start: Scalar, step: Scalar, dtype: DType, integral: bool) -> (Rule, DType) {
    let exact = |value: Scalar| !matches!(value.kind(), Kind::Float | Kind::Complex);
    if integral {
        // A fractional step of an integer range is cut, as NumPy cuts the first two values.
        let first = integer(start);
        let second = if exact(start) && exact(step) {
            first.wrapping_add(integer(step))
        } else {
            (complex(start) + complex(step)).re as i64 as u64
        };
        return (
            Rule::IntegerSteps {
                start: first,
                step: second.wrapping_sub(first),
            },
            DType::U64,
        );
    }
    let (start, step) = (complex(start), complex(step));
    let step = (start + step) - start;
    if dtype.is_complex() {
        (Rule::ComplexSteps { start, step }, DType::C128)
    } else {
        (
            Rule::Steps {
                start: start.re,
                step: step.re,
            },
            DType::F64,
        )
    }
}

/// `numpy.linspace`: `i step + start`, or `i / div * delta + start` where the step underflows; the last value is `stop`.
fn linspace(start: f64, stop: f64, count: u64, endpoint: bool, index: u64) -> f64 {
    let intervals = if endpoint { count.saturating_sub(1) } else { count };
    if endpoint && intervals > 0 && index == intervals {
        return stop;
    }
    let delta = stop - start;
    if intervals == 0 {
        return index as f64 * delta + start;
    }
    let step = delta / intervals as f64;
    if step == 0.0 {
        index as f64 / intervals as f64 * delta + start
    } else {
        index as f64 * step + start
    }
}

/// The largest value of the type (of a complex one's parts, of double precision for integers) that is less than `high`.
fn below(high: f64, dtype: DType) -> f64 {
    // Rounding gives one of the two neighbours of `high`, or `high` itself.
    let (nearest, previous) = match dtype.real() {
        DType::F16 => {
            let nearest = half::narrow_double(high);
            (
                half::widen(nearest).into(),
                half::widen(half::next_after(nearest, f16::NEG_INFINITY)).into(),
            )
        }
        DType::F32 => {
            let nearest = high as f32;
            (f64::from(nearest), f64::from(nearest.next_down()))
        }
        _ => (high, high.next_down()),
    };
    if nearest < high {
        nearest
    } else {
        previous
    }
}

/// The upper 53 bits as a fraction of `[0, 1)`.
#[inline(always)]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}
