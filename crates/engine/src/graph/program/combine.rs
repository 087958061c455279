//! Messages to one vertex become one value.

use outcore_coding::lists::Vertex;
use outcore_store::large_vec;

use crate::graph::read::frontier::Frontier;

/// The combination of the messages to one vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Min,
    Max,
    Sum,
}

/// A number that messages may be.
pub trait MessageNumber: Copy + Default + PartialOrd + Send + 'static {
    const LOWEST: Self;
    const HIGHEST: Self;
    const ZERO: Self;

    /// The sum; of whole numbers the low bits of it.
    fn plus(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! whole_numbers {
    ($($T:ty),*) => {$(
        impl MessageNumber for $T {
            const LOWEST: $T = <$T>::MIN;
            const HIGHEST: $T = <$T>::MAX;
            const ZERO: $T = 0;

            fn plus(self, other: $T) -> $T {
                self.wrapping_add(other)
            }

            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}

macro_rules! floats {
    ($($T:ty),*) => {$(
        impl MessageNumber for $T {
            const LOWEST: $T = <$T>::NEG_INFINITY;
            const HIGHEST: $T = <$T>::INFINITY;
            const ZERO: $T = 0.0;

            fn plus(self, other: $T) -> $T {
                self + other
            }

            fn is_nan(self) -> bool {
                <$T>::is_nan(self)
            }
        }
    )*};
}

whole_numbers!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f32, f64);

/// The messages to each vertex, combined in the order in which they were sent.
///
/// Invariant: a vertex that is not in `receivers` has the neutral value.
pub(crate) struct Combined<T> {
    values: Vec<T>,
    receivers: Frontier,
    combine: Combine,
}

impl<T: MessageNumber> Combined<T> {
    pub fn new(vertices: usize, combine: Combine) -> Combined<T> {
        let mut values = large_vec(vertices);
        values.resize(vertices, neutral(combine));
        Combined {
            values,
            receivers: Frontier::none(vertices),
            combine,
        }
    }

    /// A value to each vertex of each of some lists.
    pub fn put<'a>(&mut self, lists: impl Iterator<Item = (&'a [Vertex], T)>) {
        // NaN stays.
        match self.combine {
            Combine::Min => self.fold(lists, |held, value| {
                if value < *held || value.is_nan() {
                    *held = value;
                }
            }),
            Combine::Max => self.fold(lists, |held, value| {
                if value > *held || value.is_nan() {
                    *held = value;
                }
            }),
            Combine::Sum => self.fold(lists, |held, value| *held = held.plus(value)),
        }
    }

    fn fold<'a>(&mut self, lists: impl Iterator<Item = (&'a [Vertex], T)>, fold: impl Fn(&mut T, T)) {
        let neutral = neutral(self.combine);
        for (list, value) in lists {
            for to in list {
                let held = &mut self.values[*to as usize];
                // That of a vertex which was told may be neutral too.
                if *held == neutral {
                    self.receivers.insert(*to);
                }
                fold(held, value);
            }
        }
    }

    /// How many vertices were told something.
    pub fn count(&self) -> u64 {
        self.receivers.count()
    }

    /// Who was told something, ascending, and what; then nobody was.
    pub fn take(&mut self) -> (Vec<Vertex>, Vec<T>) {
        let ids = self.receivers.take();
        let neutral = neutral(self.combine);
        let values = ids
            .iter()
            .map(|vertex| std::mem::replace(&mut self.values[*vertex as usize], neutral))
            .collect();
        (ids, values)
    }
}

fn neutral<T: MessageNumber>(combine: Combine) -> T {
    match combine {
        Combine::Min => T::HIGHEST,
        Combine::Max => T::LOWEST,
        Combine::Sum => T::ZERO,
    }
}
