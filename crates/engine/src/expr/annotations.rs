//! Names of axes and attributes of nodes: given with a file or by the caller, and carried from inputs to results.
//!
//! They say nothing of values: digests and plans are the same without them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use outcore_store::{Annotation, Annotations};

use super::{Expr, Node, Op};

/// Shared by all nodes that have the same.
pub(super) type Carried = Option<Arc<Annotations>>;

/// A number for what tells nodes of one digest apart; 0 for nothing.
pub(super) fn key(carried: &Carried) -> u64 {
    let Some(annotations) = carried else { return 0 };
    let mut hasher = DefaultHasher::new();
    annotations.hash(&mut hasher);
    hasher.finish() | 1
}

impl Node {
    /// The name, names of axes and attributes of the array; nothing where there are none.
    pub fn annotations(&self) -> Option<&Arc<Annotations>> {
        self.annotations.as_ref()
    }
}

/// The same node with these annotations, which have a name or nothing for each axis.
pub fn annotated(node: &Expr, annotations: Annotations) -> Expr {
    debug_assert_eq!(annotations.dims.len(), node.ndim());
    let carried = Some(annotations).filter(|own| !own.is_empty()).map(Arc::new);
    with(node, carried)
}

fn with(node: &Expr, carried: Carried) -> Expr {
    if node.annotations == carried {
        return node.clone();
    }
    let (op, inputs) = (node.op.clone(), node.inputs.clone());
    let annotated = Node::intern_with(op, inputs, node.shape.clone(), node.dtype, node.tile.clone(), carried);
    annotated.call_as(node.called());
    annotated
}

/// A result with the annotations that `op` carries from `x`: for operators that are computed in another way than by a node of `op`.
pub fn as_result_of(op: &Op, x: &Expr, result: Expr) -> Expr {
    match x.annotations {
        Some(_) => with(&result, carried(op, std::slice::from_ref(x), &result.shape)),
        None => result,
    }
}

/// The annotations that a result has of its inputs.
///
/// Axes keep their names as long as they are the axes of an input; where inputs are worked on element by element, an axis has the name
/// that they agree on, and attributes are those on which they agree. A product of matrices has the rows of the left and the columns of the
/// right, and of stacks the axes that both agree on. Scans and sorts keep the names of their only input; other algorithms and stages carry nothing.
pub(super) fn carried(op: &Op, inputs: &[Expr], shape: &[u64]) -> Carried {
    if inputs.iter().all(|input| input.annotations.is_none()) {
        return None;
    }
    let first = inputs.first()?.annotations.as_deref();
    let moved = |dims: Vec<Option<String>>| {
        let own = first?;
        let annotations = Annotations {
            dims,
            name: own.name.clone(),
            attributes: own.attributes.clone(),
        };
        Some(annotations).filter(|own| !own.is_empty()).map(Arc::new)
    };
    let dims = || first.map_or(&[][..], |own| &own.dims);
    match op {
        Op::Unary(_) | Op::Cast | Op::Check(_) | Op::Slice(_) => inputs[0].annotations.clone(),
        Op::Binary(_) | Op::Select | Op::MapBlocks(_) | Op::Concat(_) => agreed(inputs, shape),
        Op::Broadcast => {
            let new = shape.len() - dims().len();
            moved([vec![None; new].as_slice(), dims()].concat())
        }
        Op::Permute(axes) => moved(axes.iter().map(|&axis| dims().get(axis)?.clone()).collect()),
        Op::Expand(places) => {
            let mut rest = dims().iter();
            moved(
                (0..shape.len())
                    .map(|axis| {
                        if places.contains(&axis) {
                            None
                        } else {
                            rest.next()?.clone()
                        }
                    })
                    .collect(),
            )
        }
        Op::Squeeze(gone) | Op::Reduce { axes: gone, .. } => moved(
            (0..dims().len())
                .filter(|axis| !gone.contains(axis))
                .map(|axis| dims()[axis].clone())
                .collect(),
        ),
        Op::Reshape => moved(reshaped(&inputs[0], shape)),
        Op::Matmul => {
            let annotations = Annotations {
                dims: multiplied(&inputs[0], &inputs[1], shape.len()),
                ..Annotations::default()
            };
            Some(annotations).filter(|own| !own.is_empty()).map(Arc::new)
        }
        Op::Algorithm(..) | Op::Staged(..) if keeps_axes(op) && inputs[0].shape == shape => {
            inputs[0].annotations.clone()
        }
        Op::Source(_) | Op::Generate(_) | Op::Algorithm(..) | Op::Staged(..) => None,
    }
}

/// Names of the axes of a product of matrices or stacks of those: stacks lie side by side element by element.
fn multiplied(x: &Expr, y: &Expr, axes: usize) -> Vec<Option<String>> {
    let name = |input: &Expr, from_last: usize| {
        let dims = &input.annotations.as_ref()?.dims;
        dims.get(dims.len().checked_sub(from_last)?)?.clone()
    };
    let batch = (3..=axes)
        .rev()
        .map(|from_last| match (name(x, from_last), name(y, from_last)) {
            (Some(left), Some(right)) if left != right => None,
            (left, right) => left.or(right),
        });
    batch.chain([name(x, 2), name(y, 1)]).collect()
}

/// Whether an algorithm's results have the axes of its input.
fn keeps_axes(op: &Op) -> bool {
    const KEEPING: [&str; 3] = ["scan", "cumulative", "sort"];
    let name = match op {
        Op::Algorithm(key, _) => key.0.name(),
        Op::Staged(key, _) => key.0.name(),
        _ => return false,
    };
    KEEPING.iter().any(|own| name.contains(own))
}

/// Names of axes that a reshape leaves alone: those of leading and trailing axes with the same lengths.
fn reshaped(x: &Expr, shape: &[u64]) -> Vec<Option<String>> {
    let mut dims = vec![None; shape.len()];
    let Some(own) = x.annotations.as_ref() else { return dims };
    let most = shape.len().min(x.ndim());
    let leading = (0..most).take_while(|&axis| shape[axis] == x.shape[axis]).count();
    let from_last = |of: &[u64], axis: usize| of[of.len() - 1 - axis];
    let trailing = (0..most - leading)
        .take_while(|&axis| from_last(shape, axis) == from_last(&x.shape, axis))
        .count();
    dims[..leading].clone_from_slice(&own.dims[..leading]);
    let (new, old) = (shape.len() - trailing, x.ndim() - trailing);
    dims[new..].clone_from_slice(&own.dims[old..]);
    dims
}

/// The annotations that inputs agree on. Numbers and others without annotations have no say.
fn agreed(inputs: &[Expr], shape: &[u64]) -> Carried {
    let mut said = inputs.iter().filter_map(|input| input.annotations.as_ref());
    let first = said.next()?;
    if said.clone().next().is_none() && first.dims.len() == shape.len() {
        return Some(first.clone());
    }
    let mut all = first.as_ref().clone();
    let missing = shape.len().saturating_sub(all.dims.len());
    all.dims.splice(..0, vec![None; missing]);
    let mut is_disputed = vec![false; all.dims.len()];
    for other in said {
        let offset = shape.len() - other.dims.len();
        for (axis, dim) in other.dims.iter().enumerate() {
            let own = &mut all.dims[offset + axis];
            match (&own, dim) {
                (_, None) => {}
                (None, Some(_)) if !is_disputed[offset + axis] => own.clone_from(dim),
                (Some(left), Some(right)) if left == right => {}
                _ => {
                    *own = None;
                    is_disputed[offset + axis] = true;
                }
            }
        }
        if all.name != other.name {
            all.name = None;
        }
        let is_shared = |own: &Annotation| other.attributes.contains(own);
        all.attributes.retain(is_shared);
    }
    Some(all).filter(|all| !all.is_empty()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use outcore_dtype::{DType, Scalar};
    use outcore_kernels::{Finish, Generator, Reduce, Unary};
    use outcore_store::AnnotationValue;

    use super::*;
    use crate::ops;

    fn array(value: f64, shape: &[u64], dims: &[&str]) -> Expr {
        let full = ops::generate(Generator::Full(Scalar::Float(value)), shape.to_vec(), DType::F64).unwrap();
        let name = |dim: &&str| Some(dim.to_string()).filter(|dim| !dim.is_empty());
        let units = Annotation {
            name: "units".into(),
            value: AnnotationValue::Text("K".into()),
        };
        annotated(
            &full,
            Annotations {
                name: Some("t".into()),
                dims: dims.iter().map(name).collect(),
                attributes: vec![units],
            },
        )
    }

    fn dims(node: &Expr) -> Vec<&str> {
        let own = node.annotations();
        own.map_or(vec![], |own| {
            own.dims.iter().map(|dim| dim.as_deref().unwrap_or("")).collect()
        })
    }

    #[test]
    fn axes_keep_their_names_and_digests_do_not_know_of_them() {
        let x = array(0.25, &[4, 3, 2], &["time", "lat", "lon"]);
        let bare = with(&x, None);
        assert_eq!((x.digest(), x.id == bare.id), (bare.digest(), false));
        assert!(Arc::ptr_eq(&x, &array(0.25, &[4, 3, 2], &["time", "lat", "lon"])));
        let turned = ops::permute(&x, &[2, 0, 1]).unwrap();
        assert_eq!(dims(&turned), ["lon", "time", "lat"]);
        assert_eq!(
            dims(&ops::permute(&turned, &[1, 2, 0]).unwrap()),
            ["time", "lat", "lon"]
        );
        let mean = ops::reduce(Reduce::Sum, Finish::Mean, &x, &[0]).unwrap();
        assert_eq!(dims(&mean), ["lat", "lon"]);
        assert_eq!(mean.annotations().unwrap().attributes.len(), 1);
        assert_eq!(dims(&ops::unary(Unary::Negative, &x).unwrap()), ["time", "lat", "lon"]);
    }

    #[test]
    fn what_inputs_disagree_on_is_dropped() {
        let x = array(0.25, &[4, 3], &["time", "lat"]);
        let y = array(0.75, &[4, 3], &["time", "lon"]);
        let sum = ops::binary(outcore_kernels::Binary::Add, &x, &y).unwrap();
        assert_eq!(dims(&sum), ["time", ""]);
        let row = array(0.5, &[3], &["lat"]);
        let sum = ops::binary(outcore_kernels::Binary::Add, &x, &row).unwrap();
        assert_eq!(dims(&sum), ["time", "lat"]);
        let third = array(0.5, &[4, 3], &["time", "lat"]);
        let chosen = agreed(&[x.clone(), y.clone(), third], &[4, 3]).unwrap();
        assert_eq!(chosen.dims, [Some("time".to_string()), None]);
        let product = ops::matmul(&x, &ops::permute(&y, &[1, 0]).unwrap()).unwrap();
        assert_eq!(dims(&product), ["time", "time"]);
        assert_eq!(product.annotations().unwrap().name, None);
        let left = array(0.5, &[2, 5, 4, 3], &["step", "run", "row", "inner"]);
        let right = array(0.25, &[5, 3, 6], &["run", "inner", "column"]);
        let product = ops::matmul(&left, &right).unwrap();
        assert_eq!(dims(&product), ["step", "run", "row", "column"]);
        let right = array(0.25, &[5, 3, 6], &["other", "inner", ""]);
        assert_eq!(dims(&ops::matmul(&left, &right).unwrap()), ["step", "", "row", ""]);
        let bare = ops::matmul(&with(&left, None), &right).unwrap();
        assert_eq!(dims(&bare), ["", "other", "", ""]);
    }
}
