//! Reshapes whose runs of elements cross many tiles, by way of a file in C order.
//!
//! A run of a transposed matrix takes a tile from every row of tiles. Where those do not fit the memory together, the
//! value is written as it is, each tile where it belongs, and the file is read in the other shape: one write and one read
//! more, in the memory that storing the value takes.

use std::collections::HashMap;
use std::sync::Arc;

use outcore_store::{Io, Source};

use super::segments::Assumed;
use crate::cancel;
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::{grid, topological, Expr, Node, Op, SourceKey};
use crate::ops;
use crate::task::Grid;
use crate::EngineError;

/// Reshapes of which a tile is made of no more bytes of tiles stay as they are.
const CROSSED_BYTES: u64 = 2 * grid::SQUARE_BYTES;

/// The same values with such reshapes in stages; nothing where there are none.
///
/// # Errors
/// None that the reshapes had not.
pub fn restacked(roots: &[Expr]) -> Result<Option<Vec<Expr>>, EngineError> {
    let mut rewritten: HashMap<u64, Expr> = HashMap::new();
    let mut is_any = false;
    for node in topological(roots) {
        cancel::check();
        let inputs: Vec<Expr> = node.inputs.iter().map(|input| rewritten[&input.id].clone()).collect();
        let is_crossed = matches!(node.op, Op::Reshape) && crossed_bytes(&node) > CROSSED_BYTES;
        is_any |= is_crossed;
        let new = match is_crossed {
            true => ops::staged(Arc::new(Restack { result: [node.grid()] }), &inputs)?.swap_remove(0),
            false => ops::with_inputs(&node, inputs),
        };
        new.call_as(node.called());
        rewritten.insert(node.id, new);
    }
    Ok(is_any.then(|| roots.iter().map(|root| rewritten[&root.id].clone()).collect()))
}

/// Bytes of the tiles that a tile of a reshape is made of.
fn crossed_bytes(reshaped: &Node) -> u64 {
    let x = &reshaped.inputs[0];
    if ops::is_row_major(x) || x.shape.contains(&0) {
        return 0;
    }
    let (counts, run) = (x.grid().counts(), reshaped.tile.iter().product::<u64>());
    // Axes behind the one that the run is a part of are crossed whole.
    let mut tiles = 1u64;
    let mut within = 1u64;
    for axis in (0..x.ndim()).rev() {
        let reach = run.div_ceil(within).saturating_add(1).div_ceil(x.tile[axis]) + 1;
        tiles = tiles.saturating_mul(counts[axis].min(reach));
        within = within.saturating_mul(x.shape[axis]);
        if within >= run {
            break;
        }
    }
    tiles.saturating_mul(x.tile.iter().product::<u64>() * x.dtype.size() as u64)
}

#[derive(Debug)]
struct Restack {
    result: [Grid; 1],
}

impl Staged for Restack {
    fn name(&self) -> String {
        "reshape".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![]
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], _room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Restacking {
            x: inputs[0].clone(),
            result: self.result[0].clone(),
        }))
    }
}

struct Restacking {
    x: Expr,
    result: Grid,
}

impl Restacking {
    fn stored(&self, source: Arc<dyn Source>, shape: &[u64], tile: Vec<u64>) -> Expr {
        Node::intern(
            Op::Source(SourceKey(source)),
            vec![],
            shape.to_vec(),
            self.x.dtype,
            tile,
        )
    }
}

impl Stages for Restacking {
    fn next(&mut self, results: &[StageResult], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        let [StageResult::Stored(source)] = results else {
            return Ok(Next::Stage {
                label: "put the elements in C order".into(),
                awaits: "the elements in C order".into(),
                outputs: vec![(self.x.clone(), Keep::Stored)],
            });
        };
        let tile = grid::source_tile(&self.x.shape, self.x.dtype, &source.layout());
        let stored = self.stored(source.clone(), &self.x.shape, tile);
        Ok(Next::Done(vec![ops::reshape(&stored, &self.result.shape)?]))
    }

    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        let source = Assumed {
            shape: self.result.shape.clone(),
            dtype: self.x.dtype,
            tile: self.result.tile.clone(),
            filled: None,
            runs: 1,
            identity: format!("elements in C order to come: {}", self.x.id),
        };
        let (shape, tile) = (self.result.shape.clone(), self.result.tile.clone());
        Ok(Next::Done(vec![self.stored(Arc::new(source), &shape, tile)]))
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
