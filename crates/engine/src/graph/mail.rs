//! Messages that are combined as they come: a value for each vertex, whatever is sent.

use outcore_graph::Vertex;
use outcore_store::large_vec;

use super::frontier::{are_vertices, Frontier};
use crate::EngineError;

/// What messages to one vertex become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Min,
    Max,
    Sum,
}

/// A number that messages may be.
pub trait Number: Copy + PartialOrd + Send {
    const LOWEST: Self;
    const HIGHEST: Self;
    const ZERO: Self;

    /// The sum; of whole numbers the low bits of it.
    fn plus(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! whole_numbers {
    ($($T:ty),*) => {$(
        impl Number for $T {
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
        impl Number for $T {
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

/// Messages of an iteration. They are combined in the order in which they are sent, so that sums have the same bits.
///
/// Invariant: a vertex that is not in `told` has the neutral value.
pub struct Mail<T> {
    values: Vec<T>,
    told: Frontier,
    combine: Combine,
}

impl<T: Number> Mail<T> {
    pub fn new(vertices: usize, combine: Combine) -> Mail<T> {
        let mut values = large_vec(vertices);
        values.resize(vertices, neutral(combine));
        Mail {
            values,
            told: Frontier::none(vertices),
            combine,
        }
    }

    /// Bytes that it takes.
    pub fn memory_bytes(vertices: u64) -> u64 {
        vertices * size_of::<T>() as u64 + vertices / 8
    }

    /// A value to each of some vertices.
    ///
    /// # Errors
    /// A vertex that is none: nobody is told then.
    pub fn send(&mut self, to: &[Vertex], values: &[T]) -> Result<(), EngineError> {
        are_vertices("send", to, self.values.len())?;
        self.put(to.chunks(1).zip(values.iter().copied()));
        Ok(())
    }

    /// A value to each neighbour of each of some lists, that of `begins[i]` to `begins[i + 1]` the i-th.
    ///
    /// # Errors
    /// A vertex that is none, or lists that are not among the neighbours: nobody is told then.
    pub fn multicast(&mut self, begins: &[i64], neighbours: &[Vertex], values: &[T]) -> Result<(), EngineError> {
        let list = |ends: &[i64]| neighbours.get(ends[0] as usize..ends[1] as usize);
        if let Some(ends) = begins.windows(2).find(|ends| list(ends).is_none()) {
            let text = format!("multicast: there are {} neighbours, not {ends:?}", neighbours.len());
            return Err(EngineError::Argument(text));
        }
        are_vertices("send", neighbours, self.values.len())?;
        self.put(begins.windows(2).filter_map(list).zip(values.iter().copied()));
        Ok(())
    }

    fn put<'a>(&mut self, lists: impl Iterator<Item = (&'a [Vertex], T)>) {
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
                    self.told.insert(*to);
                }
                fold(held, value);
            }
        }
    }

    /// How many vertices were told something.
    pub fn count(&self) -> u64 {
        self.told.count()
    }

    /// The vertices that were told something, ascending, and what; then there are no messages.
    pub fn take(&mut self) -> (Vec<Vertex>, Vec<T>) {
        let ids = self.told.take();
        let neutral = neutral(self.combine);
        let values = ids
            .iter()
            .map(|vertex| std::mem::replace(&mut self.values[*vertex as usize], neutral))
            .collect();
        (ids, values)
    }
}

fn neutral<T: Number>(combine: Combine) -> T {
    match combine {
        Combine::Min => T::HIGHEST,
        Combine::Max => T::LOWEST,
        Combine::Sum => T::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn combined<T: Number + std::fmt::Debug>(
        combine: Combine,
        of: impl Fn(u8) -> T,
        plain: impl Fn(T, T) -> T,
        sent: &[(u32, u8)],
    ) {
        let mut mail = Mail::new(100, combine);
        for _ in 0..2 {
            let mut wanted: BTreeMap<u32, T> = BTreeMap::new();
            for (to, value) in sent {
                let value = of(*value);
                wanted
                    .entry(*to)
                    .and_modify(|held| *held = plain(*held, value))
                    .or_insert(value);
            }
            let (to, values): (Vec<u32>, Vec<T>) = sent.iter().map(|(to, value)| (*to, of(*value))).unzip();
            let (front, back) = (to.len() / 2, to.len());
            mail.send(&to[..front], &values[..front]).unwrap();
            mail.send(&to[front..back], &values[front..]).unwrap();
            assert_eq!(mail.count(), wanted.len() as u64);
            let (ids, found) = mail.take();
            assert_eq!(ids, wanted.keys().copied().collect::<Vec<_>>());
            assert_eq!(
                format!("{found:?}"),
                format!("{:?}", wanted.values().collect::<Vec<_>>())
            );
            assert!(mail.take().0.is_empty());
        }
    }

    const ODD: [f64; 6] = [f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::NAN, 0.1, -1e300];

    fn least(a: f64, b: f64) -> f64 {
        if b < a || b.is_nan() {
            b
        } else {
            a
        }
    }

    proptest! {
        #[test]
        fn each_vertex_is_told_one_value(sent in prop::collection::vec((0u32..100, 0u8..255), 0..400)) {
            let of = |value: u8| value as i8;
            combined(Combine::Min, of, i8::min, &sent);
            combined(Combine::Max, of, i8::max, &sent);
            combined(Combine::Sum, of, i8::wrapping_add, &sent);
            combined(Combine::Max, |value| u16::from(value / 128), u16::max, &sent);
            let odd = |value: u8| ODD[value as usize % ODD.len()];
            combined(Combine::Min, odd, least, &sent);
            combined(Combine::Max, odd, |a, b| -least(-a, -b), &sent);
            combined(Combine::Sum, odd, |a, b| a + b, &sent);
        }
    }

    #[test]
    fn lists_are_told_as_their_neighbours_are() {
        let mut mail = Mail::<u32>::new(5, Combine::Sum);
        mail.multicast(&[0, 2, 2, 3], &[4, 1, 4], &[10, 7, 1]).unwrap();
        assert_eq!(mail.take(), (vec![1, 4], vec![10, 11]));
    }

    #[test]
    fn what_is_no_vertex_or_no_list_is_refused() {
        let mut mail = Mail::<u32>::new(5, Combine::Min);
        assert!(matches!(mail.send(&[4, 5], &[1, 1]), Err(EngineError::Index(_))));
        assert!(matches!(
            mail.multicast(&[0, 1], &[5], &[1]),
            Err(EngineError::Index(_))
        ));
        for begins in [[0, 2], [1, 0], [-1, 1]] {
            assert!(matches!(
                mail.multicast(&begins, &[1], &[1]),
                Err(EngineError::Argument(_))
            ));
        }
        assert_eq!(mail.count(), 0, "nobody is told what was refused");
    }
}
