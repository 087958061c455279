//! Arrays whose values follow from their index.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::Generator;

use super::check_size;
use crate::expr::{grid, Expr, Node, Op};
use crate::EngineError;

/// An array of generated values. No I/O, ever: values are recomputed where they are needed.
///
/// # Errors
/// A constant outside the type's range; a shape too large to address.
pub fn generate(mut generator: Generator, shape: Vec<u64>, dtype: DType) -> Result<Expr, EngineError> {
    check_size("generate", &shape, dtype)?;
    if let Generator::Integers { low, high, .. } = generator {
        if low >= high {
            return Err(EngineError::Argument(format!(
                "random integers: {low} is not below {high}"
            )));
        }
    }
    if let Generator::Full(value) = &mut generator {
        value
            .to_bytes(dtype)
            .map_err(|error| EngineError::DType(error.to_string()))?;
        *value = value.rounded(dtype);
    }
    let tile = grid::default_tile(&shape, dtype);
    Ok(Node::intern(Op::Generate(generator), vec![], shape, dtype, tile))
}

/// What stands for an array that nobody computes: as large and in the same tiles, of zeros.
pub fn stand_in(node: &Expr) -> Expr {
    let zeros = Op::Generate(Generator::Full(Scalar::Int(0).rounded(node.dtype)));
    Node::intern(zeros, vec![], node.shape.clone(), node.dtype, node.tile.clone())
}

/// A 0-d constant.
///
/// # Errors
/// A value outside the type's range.
pub fn constant(value: Scalar, dtype: DType) -> Result<Expr, EngineError> {
    generate(Generator::Full(value), vec![], dtype)
}
