//! What goes out of vertices: their edges, or the weights of those.

use std::borrow::Cow;

use outcore_coding::lists::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use crate::graph::read::batch::{VertexSet, WeightIndex};
use crate::graph::read::heading::Heading;
use crate::graph::read::selection::{ListScratch, ListSelection};
use crate::graph::read::sums::Sums;
use crate::graph::read::sweep::Sweep;
use crate::live::{Resources, Watch};
use crate::EngineError;

/// Vertices that one thread looks at in one go. Sums over all are sums of theirs, in order.
pub(crate) const SHARED: usize = 1 << 16;

/// How much goes out of each vertex.
pub enum Strength<'a> {
    /// Its edges.
    Degrees(&'a ListIndex),
    /// The sum of their weights.
    Weights(Vec<f64>),
    /// The same where products of ranks and weights, or quotients by sums, might not be numbers of their size. A sum that is
    /// too large for a number is kept as minus its part of `PART`.
    Wide(Vec<f64>),
}

/// Sums of weights between which a rank may be divided by a sum and multiplied by a weight.
const USUAL: std::ops::RangeInclusive<f64> = 1e-150..=1e150;
/// 2^64: with that part of each weight, a sum of 2^32 weights is finite.
const PART: f64 = 18_446_744_073_709_551_616.0;
const PART_EXPONENT: i32 = 64;

/// Bytes of memory for each vertex whose weights are added up.
pub(crate) const STRENGTH_BYTES: u64 = 8;

impl<'a> Strength<'a> {
    /// Adds up the weights of each vertex, in the order of its list. I/O: one read of lists and weights.
    ///
    /// # Errors
    /// A weight that is negative, infinite or not a number; the file cannot be read, or is not what it says; what `watch`
    /// says.
    pub fn of_weights(
        file: &GraphFile,
        degrees: &ListIndex,
        resources: &Resources<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Strength<'a>, EngineError> {
        let vertices = degrees.len();
        let sums = Sums::new(file.path(), vertices)?;
        let selection = ListSelection {
            file,
            direction: Direction::Out,
            chosen: VertexSet::All,
            weights: WeightIndex::new(file, Some(degrees)),
        };
        resources.iteration(vertices as u64);
        // The first of each batch: batches are handed over in order, so that the first of all is named.
        let first_wrong = |wrong: Option<(Vertex, Vertex, f64)>| match wrong {
            None => Ok(()),
            Some((from, to, weight)) => Err(EngineError::Argument(format!(
                "graph: the edge from {from} to {to} weighs {weight}; shares of ranks go by weights from 0 on"
            ))),
        };
        Sweep::in_parts(selection, resources).whole(Heading::Ascending).run(
            resources,
            ListScratch::default,
            |scratch, lists| {
                let mut wrong = None;
                lists.each(scratch, |list| {
                    let mut edges = list.neighbours.iter().zip(list.weights);
                    if wrong.is_none() {
                        let is_wrong = |weight: f64| !(weight >= 0.0 && weight.is_finite());
                        let found = edges.find(|(_, weight)| is_wrong(**weight));
                        wrong = found.map(|(to, weight)| (list.vertex, *to, *weight));
                    }
                    sums.set(list.vertex, added(sums.of(list.vertex), list.weights));
                })?;
                Ok(wrong)
            },
            first_wrong,
            watch,
        )?;
        let sums = sums.into_values();
        let is_usual = |sum: &f64| *sum == 0.0 || USUAL.contains(sum);
        Ok(match sums.iter().all(is_usual) {
            true => Strength::Weights(sums),
            false => Strength::Wide(sums),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Strength::Degrees(degrees) => degrees.len(),
            Strength::Weights(sums) | Strength::Wide(sums) => sums.len(),
        }
    }

    /// The strength by which a rank is divided: of wide ones the part from 1 to 2, the power of two is in `scaled`.
    pub(crate) fn of(&self, vertex: Vertex) -> f64 {
        match self {
            Strength::Degrees(degrees) => degrees.bytes_of(vertex) as f64,
            Strength::Weights(sums) => sums[vertex as usize],
            Strength::Wide(sums) => split(sums[vertex as usize]).0,
        }
    }

    /// The weight of an edge out of a vertex, by which its share of the rank is multiplied: w / s = (w 2^-e) / (s 2^-e), and
    /// all of these are numbers of usual size. Powers of two change no bits.
    pub(crate) fn scaled(&self, vertex: Vertex, weight: f64) -> f64 {
        match self {
            Strength::Degrees(_) | Strength::Weights(_) => weight,
            Strength::Wide(sums) => times_power(weight, -split(sums[vertex as usize]).1),
        }
    }

    /// Those of the part of `SHARED` vertices with this number.
    pub(crate) fn some(&self, part: usize) -> Cow<'_, [f64]> {
        let begin = part * SHARED;
        match self {
            Strength::Degrees(degrees) => {
                let end = (begin as Vertex).saturating_add(SHARED as Vertex);
                degrees
                    .spans(begin as Vertex..end)
                    .map(|(_, span)| span.bytes as f64)
                    .collect()
            }
            Strength::Weights(sums) => Cow::Borrowed(&sums[begin..sums.len().min(begin + SHARED)]),
            Strength::Wide(sums) => {
                let some = &sums[begin..sums.len().min(begin + SHARED)];
                some.iter().map(|sum| split(*sum).0).collect()
            }
        }
    }
}

/// A sum with more weights: negative, and a part of `PART`, where it would be too large for a number.
fn added(sum: f64, weights: &[f64]) -> f64 {
    let all = sum + weights.iter().sum::<f64>();
    if sum >= 0.0 && all.is_finite() {
        return all;
    }
    let before = if sum < 0.0 { sum } else { -sum / PART };
    before - weights.iter().map(|weight| weight / PART).sum::<f64>()
}

/// A sum as a number from 1 to 2, or 0, and the exponent of a power of two.
fn split(sum: f64) -> (f64, i32) {
    const FRACTION: u64 = (1 << 52) - 1;
    let (sum, exponent) = match sum {
        0.0 => return (0.0, 0),
        _ if sum < 0.0 => (-sum, PART_EXPONENT),
        _ if sum < f64::MIN_POSITIVE => (sum * PART, -PART_EXPONENT),
        _ => (sum, 0),
    };
    let (bits, one) = (sum.to_bits(), 1_f64.to_bits());
    let power = (bits >> 52) as i32 - (one >> 52) as i32;
    (f64::from_bits(one | bits & FRACTION), power + exponent)
}

/// A number times a power of two, by two of its factors: it may itself be none.
pub(crate) fn times_power(number: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    number * 2_f64.powi(half) * 2_f64.powi(exponent - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_is_too_large_is_kept_by_its_part() {
        let sum = added(added(0.0, &[f64::MAX, 1.0]), &[f64::MAX, f64::MAX]);
        assert_eq!(split(sum), (f64::MAX / 2_f64.powi(1023) * 0.75, 1025));
        assert_eq!(split(added(1e300, &[1e300])), split(2e300));
        assert_eq!(added(0.0, &[]), 0.0);
    }

    #[test]
    fn a_sum_is_its_two_parts() {
        for sum in [
            5e-324,
            1.5e-323,
            1e-310,
            f64::MIN_POSITIVE,
            0.7,
            1.0,
            3.0,
            1e300,
            f64::MAX,
        ] {
            let (part, exponent) = split(sum);
            assert!((1.0..2.0).contains(&part), "{sum}");
            assert_eq!(times_power(part, exponent), sum);
            assert_eq!(times_power(sum, -exponent), part);
        }
        assert_eq!(split(0.0), (0.0, 0));
    }
}
