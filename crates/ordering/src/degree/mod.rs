//! Approximate minimum degree.

mod lists;
mod postorder;
mod quotient;

pub(crate) use quotient::Quotient;

use crate::graph::SymmetricGraph;
use crate::reduction::GraphReduction;
use crate::watch::{OrderingWatch, Patience, Stopped};

/// Orders a graph by approximate minimum degree (Amestoy, Davis, Duff 1996), on one thread.
///
/// Returns the vertices in the order of elimination, a postorder of the assembly tree, those of more than
/// `max(16, 10 sqrt(n))` neighbours last. Time is about 4 us a vertex in three dimensions, below 1 us in two.
///
/// # Errors
/// [`Stopped`] as soon as `watch.stop` says so.
///
/// # Panics
/// If the graph has 2^31 vertices or more.
pub fn min_degree(graph: SymmetricGraph<'_>, watch: &OrderingWatch<'_>) -> Result<Vec<u32>, Stopped> {
    let patience = Patience::new(watch.stop);
    let reduction = GraphReduction::of(graph, &patience)?;
    let mut quotient = Quotient::new();
    let Some(reduction) = reduction else {
        quotient.begin(graph.vertices(), graph.neighbours.len(), graph.vertices());
        for vertex in 0..graph.vertices() {
            patience.work(graph.neighbours_of(vertex).len() + 4)?;
            quotient.add(1, graph.neighbours_of(vertex).iter().copied());
        }
        quotient.eliminate(&patience)?;
        let mut order = Vec::with_capacity(graph.vertices());
        quotient.postorder(|vertex| order.push(vertex));
        return Ok(order);
    };
    quotient.begin(reduction.vertices(), reduction.directed, reduction.vertices());
    for (vertex, &weight) in reduction.kept().zip(&reduction.weights) {
        patience.work(graph.neighbours_of(vertex).len() + 4)?;
        quotient.add(weight, reduction.neighbours_of(graph, vertex));
    }
    quotient.eliminate(&patience)?;
    let mut order = Vec::with_capacity(reduction.vertices());
    quotient.postorder(|vertex| order.push(vertex));
    drop(quotient);
    Ok(reduction.expand(&order))
}
