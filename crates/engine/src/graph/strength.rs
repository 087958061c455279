//! What goes out of vertices: their edges, or the weights of those.

use std::borrow::Cow;

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::{Chosen, WeightIndex};
use super::heading::Heading;
use super::means::{Means, Watch};
use super::sums::Sums;
use super::sweep::Sweep;
use super::wanted::{Scratch, Wanted};
use crate::EngineError;

/// Vertices that one thread looks at in one go. Sums over all are sums of theirs, in order.
pub(super) const SHARED: usize = 1 << 16;

/// How much goes out of each vertex.
pub enum Strength<'a> {
    /// Its edges.
    Degrees(&'a ListIndex),
    /// The sum of their weights.
    Weights(Vec<f64>),
}

/// Bytes of memory for each vertex whose weights are added up.
pub const STRENGTH_BYTES: u64 = 8;

impl<'a> Strength<'a> {
    /// Adds up the weights of each vertex, in the order of its list. I/O: one read of lists and weights.
    ///
    /// # Errors
    /// A weight that is negative, infinite or not a number; the file cannot be read, or is not what it says; what `watch`
    /// says.
    pub fn of_weights(
        file: &GraphFile,
        degrees: &ListIndex,
        means: &Means<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Strength<'a>, EngineError> {
        let vertices = degrees.len();
        let sums = Sums::new(file.path(), vertices)?;
        let wanted = Wanted {
            file,
            direction: Direction::Out,
            chosen: Chosen::All,
            weights: WeightIndex::new(file, Some(degrees)),
        };
        means.iteration(vertices as u64);
        // The first of each batch: batches are handed over in order, so that the first of all is named.
        let first_wrong = |wrong: Option<(Vertex, Vertex, f64)>| match wrong {
            None => Ok(()),
            Some((from, to, weight)) => Err(EngineError::Argument(format!(
                "graph: the edge from {from} to {to} weighs {weight}; shares of ranks go by weights from 0 on"
            ))),
        };
        Sweep::in_parts(wanted, means).whole(Heading::Ascending).run(
            means,
            Scratch::default,
            |scratch, lists| {
                let mut wrong = None;
                lists.each(scratch, |list| {
                    let mut edges = list.neighbours.iter().zip(list.weights);
                    if wrong.is_none() {
                        let is_wrong = |weight: f64| !(weight >= 0.0 && weight.is_finite());
                        let found = edges.find(|(_, weight)| is_wrong(**weight));
                        wrong = found.map(|(to, weight)| (list.vertex, *to, *weight));
                    }
                    sums.add(list.vertex, list.weights.iter().sum());
                })?;
                Ok(wrong)
            },
            first_wrong,
            watch,
        )?;
        Ok(Strength::Weights(sums.into_values()))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Strength::Degrees(degrees) => degrees.len(),
            Strength::Weights(sums) => sums.len(),
        }
    }

    pub(super) fn of(&self, vertex: Vertex) -> f64 {
        match self {
            Strength::Degrees(degrees) => degrees.bytes_of(vertex) as f64,
            Strength::Weights(sums) => sums[vertex as usize],
        }
    }

    /// Those of the part of `SHARED` vertices with this number.
    pub(super) fn some(&self, part: usize) -> Cow<'_, [f64]> {
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
        }
    }
}
