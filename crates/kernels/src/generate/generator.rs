//! The rules that arrays are made by.

use outcore_dtype::Scalar;
use std::hash::{Hash, Hasher};

/// A rule for the value at each flat index (C order over the whole array).
///
/// Equality and hashing look at the bits of floats, so that equal rules are one node of an expression.
#[derive(Clone, Debug)]
pub enum Generator {
    /// `start + i step`, as `numpy.arange` rounds it: the step is the difference of the first two values.
    Arange { start: Scalar, step: Scalar },
    /// `count` values from `start` to `stop`, as `numpy.linspace` rounds them.
    Linspace {
        start: f64,
        stop: f64,
        count: u64,
        endpoint: bool,
    },
    /// 1 where the last axis's index is the one before plus `k`, else 0.
    Eye { k: i64 },
    /// `low + (high - low) u`, `u` one of the 2^53 multiples of 2^-53 in `[0, 1)`; what would round to `high` is the
    /// value before it.
    Uniform { seed: u64, low: f64, high: f64 },
    /// Normal deviates by Box and Muller (1958), two from each random block.
    Normal { seed: u64, mean: f64, deviation: f64 },
    /// Integers of `[low, high)` by multiply-high; no value's probability is off by more than 2^-64.
    Integers { seed: u64, low: i64, high: i64 },
    /// One value everywhere.
    Full(Scalar),
}

/// What makes two generators equal.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Scalars(u8, [Option<Scalar>; 2]),
    Words(u8, [u64; 4]),
}

impl Generator {
    fn key(&self) -> Key {
        match *self {
            Generator::Arange { start, step } => Key::Scalars(0, [Some(start), Some(step)]),
            Generator::Linspace {
                start,
                stop,
                count,
                endpoint,
            } => Key::Words(1, [start.to_bits(), stop.to_bits(), count, u64::from(endpoint)]),
            Generator::Eye { k } => Key::Words(2, [k as u64, 0, 0, 0]),
            Generator::Uniform { seed, low, high } => Key::Words(3, [seed, low.to_bits(), high.to_bits(), 0]),
            Generator::Normal { seed, mean, deviation } => {
                Key::Words(4, [seed, mean.to_bits(), deviation.to_bits(), 0])
            }
            Generator::Integers { seed, low, high } => Key::Words(5, [seed, low as u64, high as u64, 0]),
            Generator::Full(value) => Key::Scalars(6, [Some(value), None]),
        }
    }
}

impl PartialEq for Generator {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Generator {}

impl Hash for Generator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
