//! Lanes along the last axis, sorted whole within a pass.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::{sort_index, sort_index_workspace_bytes, sort_keys, sort_workspace_bytes, KeyOrder};

use super::map_blocks;
use crate::expr::{Block, BlockFunction, Expr};
use crate::task::Recipe;
use crate::{EngineError, FunctionError};

/// The lanes along the last axis sorted, or (`positions`) where their elements were, int64. Stable; NaN comes last.
///
/// # Errors
/// A type without an order, a number, or lanes of more than 2³² elements.
pub fn sort_lanes(x: &Expr, descending: bool, positions: bool) -> Result<Expr, EngineError> {
    let order = KeyOrder::new(x.dtype, descending)
        .ok_or_else(|| EngineError::DType(format!("sort: {} has no order", x.dtype)))?;
    let Some(&length) = x.shape.last() else {
        return Err(EngineError::Shape("sort: a number has no axis to sort along".into()));
    };
    if length > 1 << 32 {
        return Err(EngineError::Shape(format!(
            "sort: a lane of {length} elements is too long for one task"
        )));
    }
    let dtype = if positions { DType::I64 } else { x.dtype };
    let call = map_blocks(std::slice::from_ref(x), dtype, &[x.ndim() - 1])?;
    let sorting = SortLanes {
        order,
        positions,
        length: length as usize,
    };
    Ok(call.node(Arc::new(sorting)))
}

struct SortLanes {
    order: KeyOrder,
    positions: bool,
    length: usize,
}

impl SortLanes {
    fn spare_bytes(&self) -> usize {
        match self.positions {
            true => sort_index_workspace_bytes(self.order, self.length),
            false => sort_workspace_bytes(self.order, self.length),
        }
    }
}

/// Memory aligned for every element.
fn words(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(size_of::<u64>())]
}

impl BlockFunction for SortLanes {
    fn name(&self) -> String {
        if self.positions { "argsort" } else { "sort" }.into()
    }

    fn key(&self) -> Option<Vec<u8>> {
        Some(vec![u8::from(self.order.descending())])
    }

    fn recipe(&self) -> Option<Recipe> {
        Some(
            Recipe::new("sort lanes")
                .flag(self.order.descending())
                .flag(self.positions),
        )
    }

    fn workspace_bytes(&self) -> usize {
        let lane = self.length * (self.order.dtype().size() + size_of::<u32>());
        self.spare_bytes() + if self.positions { lane } else { 0 } + 64
    }

    fn call(&self, inputs: &[Block<'_>], output: &mut [u8], _dtype: DType) -> Result<(), FunctionError> {
        let lane = self.length * self.order.dtype().size();
        if lane == 0 {
            return Ok(());
        }
        let mut spare = words(self.spare_bytes());
        let spare: &mut [u8] = bytemuck::cast_slice_mut(&mut spare);
        if !self.positions {
            output.copy_from_slice(inputs[0].data);
            output
                .chunks_exact_mut(lane)
                .for_each(|lane| sort_keys(self.order, lane, spare));
            return Ok(());
        }
        let (mut keys, mut index) = (words(lane), words(self.length * size_of::<u32>()));
        let keys = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut keys)[..lane];
        let index = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut index)[..self.length * size_of::<u32>()];
        let lanes = inputs[0].data.chunks_exact(lane);
        for (places, data) in output.chunks_exact_mut(self.length * size_of::<i64>()).zip(lanes) {
            keys.copy_from_slice(data);
            sort_index(self.order, keys, index, spare);
            let (narrow, _) = index.as_chunks::<4>();
            for (place, at) in places.chunks_exact_mut(size_of::<i64>()).zip(narrow) {
                place.copy_from_slice(&i64::from(u32::from_ne_bytes(*at)).to_ne_bytes());
            }
        }
        Ok(())
    }
}
