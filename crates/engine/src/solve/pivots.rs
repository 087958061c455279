//! The logarithm of a factor's diagonal, summed: half that of the determinant.

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_kernels::Generator;

use super::analysis::Analysis;
use super::fronts::FrontNode;
use crate::expr::Expr;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::{ops, EngineError};

/// The sum of the logarithms of the diagonal of a factor with elements of a type, as one number.
///
/// # Errors
/// Tiles that are no factor's.
pub fn log_pivots(analysis: &Arc<Analysis>, factor: &Expr, dtype: DType) -> Result<Expr, EngineError> {
    if analysis.rows() == 0 {
        let none = Generator::Full(Scalar::Int(0).rounded(DType::F64));
        return ops::generate(none, vec![1], DType::F64);
    }
    let sum = LogPivots {
        analysis: analysis.clone(),
        item: dtype.size(),
        tiles: tiles_of(analysis).into(),
        grids: [Grid {
            shape: vec![1],
            tile: vec![1],
            dtype: DType::F64,
        }],
    };
    Ok(ops::algorithm(Arc::new(sum), std::slice::from_ref(factor))?.swap_remove(0))
}

/// A tile that has pivots: of a node, on its diagonal.
#[derive(Clone, Copy, Debug)]
struct PivotTile {
    node: u32,
    block: u32,
}

#[derive(Clone, Debug)]
struct LogPivots {
    analysis: Arc<Analysis>,
    item: usize,
    tiles: Arc<[PivotTile]>,
    grids: [Grid; 1],
}

fn tiles_of(analysis: &Analysis) -> Vec<PivotTile> {
    let nodes = analysis.fronts.nodes.iter().enumerate();
    let of = |(number, node): (usize, &FrontNode)| {
        let blocks = node.blocks().map_or(1, |blocks| blocks.pivots);
        let node = number as u32;
        (0..blocks).map(move |block| PivotTile { node, block })
    };
    nodes.flat_map(of).collect()
}

impl Alone for LogPivots {
    fn key(&self) -> Vec<u8> {
        self.analysis.digest.to_string().into_bytes()
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for LogPivots {
    fn label(&self) -> String {
        "log of pivots".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles.len() as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let PivotTile { node, block } = self.tiles[task as usize];
        let node = &self.analysis.fronts.nodes[node as usize];
        let tile = node.blocks().map_or(0, |blocks| blocks.tile(block, block));
        each(0, u64::from(node.factor + tile), Access::Read);
        each(1, 0, if task == 0 { Access::Create } else { Access::Update });
    }
    fn operations(&self) -> f64 {
        self.analysis.rows() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let PivotTile { node, .. } = self.tiles[task as usize];
        let node = &self.analysis.fronts.nodes[node as usize];
        let tile = bound.reads[0];
        let pivot = |at: usize| {
            let bytes = tile[at * self.item..].first_chunk();
            bytes.map_or(0.0, |bytes| f64::from_ne_bytes(*bytes)).ln()
        };
        let mut sum = 0.0;
        if node.blocks().is_some() {
            // The ends of the rows of a lower triangle.
            let (mut at, mut row) = (0, 0);
            while at * self.item < tile.len() {
                sum += pivot(at);
                row += 1;
                at += row + 1;
            }
        } else {
            let mut begin = 0;
            for one in &self.analysis.supernodes[node.supernodes.start as usize..node.supernodes.end as usize] {
                for column in 0..one.pivots as usize {
                    sum += pivot(begin);
                    begin += one.front as usize - column;
                }
            }
        }
        let out: &mut [f64] = bytemuck::cast_slice_mut(bound.writes[0]);
        out[0] = sum + if task == 0 { 0.0 } else { out[0] };
        Ok(())
    }
}
