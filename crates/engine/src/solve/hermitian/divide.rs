//! Divide and conquer without the vectors: of each part of the tridiagonal matrix its values, the first and last rows of its vectors,
//! and the record by which they are those of its halves.

use std::sync::Arc;

use outcore_kernels::MergeSizes;

use super::chases::Tridiagonal;
use super::cut::{EigenSet, HermitianCut, TridiagonalPart, VALUES};
use crate::task::{Access, Bound, Work};
use crate::EngineError;

/// A task for each part, and one for the values.
#[derive(Debug)]
pub(super) struct Divide {
    cut: Arc<HermitianCut>,
}

impl Divide {
    pub fn new(cut: Arc<HermitianCut>) -> Divide {
        Divide { cut }
    }

    fn part(&self, task: u64) -> Option<&TridiagonalPart> {
        self.cut.parts().get(task as usize)
    }

    /// Vectors of a part of one tile, which has lost what joins it to those beside.
    fn leaf(&self, part: &TridiagonalPart, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let cut = &self.cut;
        let matrix = Tridiagonal::new(cut, bound.reads[0]);
        let rows = cut.rows_of_tiles(&part.tiles);
        let mut diagonal = matrix.diagonal[rows.clone()].to_vec();
        if rows.start > 0 {
            diagonal[0] -= matrix.below[rows.start - 1];
        }
        if rows.end < cut.rows() {
            diagonal[rows.len() - 1] -= matrix.below[rows.end - 1];
        }
        let below = &matrix.below[rows];
        let [node, vectors] = &mut bound.writes[..] else {
            return Ok(());
        };
        MergeSizes::leaf([&diagonal, below], vectors, node, workspace)
            .map_err(|failure| EngineError::LinAlg(format!("{}: {failure}", cut.name())))
    }
}

impl Work for Divide {
    fn label(&self) -> String {
        "divide and conquer".into()
    }
    fn tasks(&self) -> u64 {
        self.cut.parts().len() as u64 + 1
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let cut = &self.cut;
        let nodes = cut.set(EigenSet::Nodes);
        each(cut.set(EigenSet::Tridiagonal), 0, Access::Read);
        let Some(part) = self.part(task) else {
            each(nodes, task - 1, Access::Read);
            return each(VALUES, 0, Access::Create);
        };
        match part.halves {
            Some(halves) => {
                halves.iter().for_each(|&half| each(nodes, half.into(), Access::Read));
                each(nodes, task, Access::Create);
                each(cut.set(EigenSet::Records), part.record.into(), Access::Create);
            }
            None => {
                each(nodes, task, Access::Create);
                each(cut.set(EigenSet::Parts), part.first, Access::Create);
            }
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let bytes = self.part(task).map(|part| match self.cut.merge(part) {
            Some(sizes) => sizes.merge_bytes(),
            None => MergeSizes::leaf_bytes(self.cut.rows_of_tiles(&part.tiles).len()),
        });
        bytes.unwrap_or(0) as u64
    }
    fn operations(&self) -> f64 {
        // Each root by some steps, then z and both rows.
        40.0 * (self.cut.rows() as f64).powi(2)
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let cut = &self.cut;
        let Some(part) = self.part(task) else {
            let scale = Tridiagonal::new(cut, bound.reads[0]).scale;
            let values: &[f64] = bytemuck::cast_slice(&bound.reads[1][..8 * cut.rows()]);
            let out: &mut [f64] = bytemuck::cast_slice_mut(bound.writes[0]);
            out.iter_mut().zip(values).for_each(|(out, value)| *out = value * scale);
            return Ok(());
        };
        let Some(sizes) = cut.merge(part) else {
            return self.leaf(part, bound, workspace);
        };
        let joint = cut.rows_of_tiles(&part.tiles).start + sizes.halves[0] - 1;
        let joint = Tridiagonal::new(cut, bound.reads[0]).below[joint];
        if let [node, record] = &mut bound.writes[..] {
            sizes.merge([bound.reads[1], bound.reads[2]], joint, record, node, workspace);
        }
        Ok(())
    }
}
