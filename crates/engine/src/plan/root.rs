//! How one value that is held as tiles is computed: the domain that is walked, and what is evaluated in each block.

use super::span::Span;
use crate::expr::grid::{is_cut, is_swept};
use crate::expr::{Expr, Node, Op};
use crate::ops::{product_kind, Product};

/// A tile is worked through in this many blocks along the walked dimension, so that a block stays in the CPU's cache.
/// A constant: the blocks decide the order of additions, and so must not depend on the machine.
pub const BLOCKS_PER_TILE: u64 = 16;

/// The dimensions that a pass walks: those cut into more than one tile, and one for the blocks of a large single tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Domain {
    pub shape: Vec<u64>,
    pub tile: Vec<u64>,
}

impl Domain {
    fn push(&mut self, length: u64, tile: u64) -> usize {
        self.shape.push(length);
        self.tile.push(tile);
        self.shape.len() - 1
    }

    pub fn counts(&self) -> Vec<u64> {
        crate::expr::grid::counts(&self.shape, &self.tile)
    }

    pub fn cells(&self) -> u64 {
        self.counts()
            .iter()
            .fold(1, |cells, &count| cells.saturating_mul(count))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootKind {
    /// Each cell of the domain gives one tile of the node.
    Map,
    /// The input is reduced along some dimensions of the domain; partial results are combined in a tree.
    Reduce,
    /// A product whose inner dimension is a dimension of the domain, summed in a tree of partial results.
    Contraction,
    /// A product whose result tiles are accumulators in memory while the inner dimension streams past.
    Blocked,
    /// Tiles that an algorithm makes of whole tiles: no walk of ours.
    Algorithm,
}

/// How one materialized node is computed.
#[derive(Clone, Debug)]
pub struct Root {
    pub node: Expr,
    pub kind: RootKind,
    pub domain: Domain,
    /// The node's own spans over the domain.
    pub spans: Vec<Span>,
    /// What is evaluated in each block: the node itself for `Map`, else its inputs.
    pub operands: Vec<(Expr, Vec<Span>)>,
    pub level: usize,
}

/// Spans of `node` over its own tile grid, adding the cut axes to `domain`.
fn own_spans(node: &Node, domain: &mut Domain) -> Vec<Span> {
    spans_of(&node.shape, &node.tile, domain)
}

fn spans_of(shape: &[u64], tile: &[u64], domain: &mut Domain) -> Vec<Span> {
    let axes = shape.iter().zip(tile);
    axes.map(|(&length, &tile)| {
        // An empty axis makes an empty domain: no task runs.
        if tile < length || length == 0 {
            Span::along(domain.push(length, tile))
        } else {
            Span::whole(length)
        }
    })
    .collect()
}

/// The longest axis of a single tile among some, if it is long enough for blocks.
fn block_axis(node: &Node, axes: impl Iterator<Item = usize>) -> Option<usize> {
    axes.filter(|&axis| node.shape[axis] >= BLOCKS_PER_TILE)
        .max_by_key(|&axis| node.shape[axis])
}

/// A reduction over several tiles, or over one in blocks.
fn reduce_root(node: &Node, axes: &[usize], domain: &mut Domain) -> RootParts {
    let input = &node.inputs[0];
    let kept: Vec<usize> = (0..input.ndim())
        .filter(|axis| axes.binary_search(axis).is_err())
        .collect();
    // Kept axes are cut as the result is, which may be finer; reduced ones as the input.
    let mut tile = input.tile.clone();
    kept.iter()
        .zip(&node.tile)
        .for_each(|(&axis, &length)| tile[axis] = length);
    let block = block_axis(input, axes.iter().copied());
    if !is_cut(input, axes) && block.is_none() {
        return kept_root(node, domain);
    }
    let mut demanded = spans_of(&input.shape, &tile, domain);
    if let (false, Some(axis)) = (is_cut(input, axes), block) {
        demanded[axis] = Span::along(domain.push(input.shape[axis], tile[axis]));
    }
    let spans = kept.iter().map(|&axis| demanded[axis]).collect();
    (RootKind::Reduce, spans, vec![(input.clone(), demanded)])
}

/// A reduction along short axes of one tile: each block gives its part of the result.
fn kept_root(node: &Node, domain: &mut Domain) -> RootParts {
    let mut spans = own_spans(node, domain);
    if domain.shape.is_empty() {
        if let Some(axis) = block_axis(node, 0..node.ndim()) {
            spans[axis] = Span::along(domain.push(node.shape[axis], node.tile[axis]));
        }
    }
    (RootKind::Map, spans, vec![])
}

/// The root that computes the node by a walk over its own tiles.
pub fn natural_root(node: &Expr) -> Root {
    let mut domain = Domain::default();
    let (kind, spans, operands) = match &node.op {
        Op::Reduce { axes, .. } if is_swept(&node.inputs[0], axes) => reduce_root(node, axes, &mut domain),
        Op::Matmul => match product_kind(node) {
            Product::Aligned => (RootKind::Map, own_spans(node, &mut domain), vec![]),
            Product::Contraction { inner_tile } => product_root(node, inner_tile, RootKind::Contraction, &mut domain),
            Product::Blocked { inner_tile } => product_root(node, inner_tile, RootKind::Blocked, &mut domain),
        },
        Op::Algorithm(..) => (RootKind::Algorithm, own_spans(node, &mut domain), vec![]),
        _ => (RootKind::Map, own_spans(node, &mut domain), vec![]),
    };
    let operands = if kind == RootKind::Map {
        vec![(node.clone(), spans.clone())]
    } else {
        operands
    };
    Root {
        node: node.clone(),
        kind,
        domain,
        spans,
        operands,
        level: 0,
    }
}

/// Kind, own spans and operands of a root.
type RootParts = (RootKind, Vec<Span>, Vec<(Expr, Vec<Span>)>);

fn product_root(node: &Expr, inner_tile: u64, kind: RootKind, domain: &mut Domain) -> RootParts {
    let spans = own_spans(node, domain);
    let ndim = node.ndim();
    let inner = Span::along(domain.push(node.inputs[0].shape[ndim - 1], inner_tile));
    let operands = (0..2)
        .map(|index| {
            let mut demanded = spans.clone();
            demanded[ndim - 1 - index] = inner;
            (node.inputs[index].clone(), demanded)
        })
        .collect();
    (kind, spans, operands)
}

/// Nodes that move no data.
pub fn is_view(op: &Op) -> bool {
    matches!(
        op,
        Op::Permute(_) | Op::Slice(_) | Op::Expand(_) | Op::Squeeze(_) | Op::Broadcast
    )
}

/// Nodes whose value is gathered from other arrays, piece by piece.
pub fn is_assembly(op: &Op) -> bool {
    matches!(op, Op::Concat(_) | Op::Reshape)
}
