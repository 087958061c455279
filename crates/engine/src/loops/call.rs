//! Functions of the user that a program calls with whole slices.

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;

use super::affine::{Affine, DEPTH_MAX};
use crate::expr::Block;
use crate::FunctionError;

/// A function of the user's that takes whole slices.
pub trait SliceFunction: Debug + Send + Sync {
    fn name(&self) -> String;

    /// Fills `output`, contiguous elements of a type and a shape, from slices and numbers in the order of the program.
    ///
    /// # Errors
    /// The exception of the function, or a result that does not go into the shape.
    fn call(&self, slices: &[Block<'_>], output: &mut [u8], dtype: DType, shape: &[usize])
        -> Result<(), FunctionError>;
}

/// A call of a function in each iteration of the loops around those along its slices.
#[derive(Clone, Debug)]
pub(super) struct SliceCall {
    pub function: Arc<dyn SliceFunction>,
    /// The depth of the first loop along slices.
    pub first: usize,
}

impl SliceCall {
    /// Whether none of these numbers follows loops along slices.
    pub fn is_rectangular(&self, mut numbers: impl Iterator<Item = Affine>) -> bool {
        numbers.all(|number| number.coefficients[self.first..].iter().all(|&by| by == 0))
    }

    /// Whether each subscript follows one loop along slices at most, each another.
    pub fn is_slice(&self, subscripts: &[Affine]) -> bool {
        let mut known = [false; DEPTH_MAX];
        subscripts.iter().all(|subscript| {
            let depths = self.depths_of(subscript);
            depths.len() <= 1 && depths.iter().all(|&depth| !std::mem::replace(&mut known[depth], true))
        })
    }

    fn depths_of(&self, subscript: &Affine) -> Vec<usize> {
        let depths = self.first..DEPTH_MAX;
        depths.filter(|&depth| subscript.coefficients[depth] != 0).collect()
    }

    /// The loops along the axes of a slice, in the order of the axes.
    pub fn axes(&self, subscripts: &[Affine]) -> Vec<usize> {
        subscripts
            .iter()
            .flat_map(|subscript| self.depths_of(subscript))
            .collect()
    }
}
