//! Algorithm nodes become works over the plan's arrays.

use super::work::WorkStep;
use super::{ArrayId, ArrayTable, Producer};
use crate::expr::{AlgorithmKey, Expr, Node, Op};
use crate::task::Grid;

/// The works of the algorithm that `results` are of, one at least. Results that nobody asked for are temporaries.
pub fn lower(key: &AlgorithmKey, results: &[&Expr], table: &mut ArrayTable, producers: &mut Vec<Producer>) {
    let node = results[0];
    let grids: Vec<Grid> = node.inputs.iter().map(|input| input.grid()).collect();
    let is_source = |input: &Expr| matches!(input.op, Op::Source(_));
    let mut sets: Vec<ArrayId> = node
        .inputs
        .iter()
        .map(|input| table.id(input, !is_source(input)))
        .collect();
    for (index, grid) in key.0.results().iter().enumerate() {
        // A result that was annotated is another node than one without.
        let asked = results
            .iter()
            .find(|result| matches!(result.op, Op::Algorithm(_, at) if at == index));
        let result = asked.map_or_else(
            || {
                let op = Op::Algorithm(key.clone(), index);
                let (shape, tile) = (grid.shape.clone(), grid.tile.clone());
                Node::intern(op, node.inputs.clone(), shape, grid.dtype, tile)
            },
            |&result| result.clone(),
        );
        sets.push(table.id(&result, true));
    }
    producers.extend(key.0.works(&grids).into_iter().map(|work| {
        Producer::Work(WorkStep {
            label: work.label(),
            work,
            sets: sets.clone(),
        })
    }));
}
