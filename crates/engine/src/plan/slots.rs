//! The memory that a block's values take: slots, shared by values that are not alive together.

use super::compile::{Accumulation, Compiler, PassRoot, Step, StepKind};
use super::gather::{Base, Gather};
use super::span::Span;
use super::ArrayKind;
use crate::cancel;
use outcore_store::Interval;

impl Compiler<'_> {
    /// The block that every later one is at most as large as.
    fn full_block(&self) -> Vec<Interval> {
        (0..self.domain.shape.len())
            .map(|dim| match self.block {
                Some((cut, length)) if cut == dim => Interval::new(0, length),
                _ => Interval::new(0, self.domain.tile[dim]),
            })
            .collect()
    }

    fn block_bytes(&self, step: &Step) -> usize {
        let block = self.full_block();
        let elements: u64 = step.spans.iter().map(|span| span.resolve(&block).length).product();
        elements as usize * step.node.dtype.size()
    }

    /// Whether the gather is a plain view of one resident tile in every block.
    fn is_borrowed(&self, gather: &Gather, spans: &[Span]) -> bool {
        let Base::Array(array) = gather.base else { return false };
        let info = &self.table.arrays[array as usize];
        if matches!(info.kind, ArrayKind::Memory(_)) {
            return true;
        }
        gather.axes.iter().enumerate().all(|(axis, base)| {
            if info.counts[axis] <= 1 {
                return true;
            }
            let (Some(output), 0, 1) = (base.output, base.start, base.step) else {
                return false;
            };
            let span = spans[output];
            span.dim.is_some_and(|dim| {
                span == Span::along(dim as usize) && info.node.tile[axis].is_multiple_of(self.domain.tile[dim as usize])
            })
        })
    }

    /// The last step at which each step's value is used: by a later step, by a view of it, or by a root it completes.
    fn last_uses(&self, roots: &[PassRoot]) -> Vec<usize> {
        let mut last_use: Vec<usize> = (0..self.steps.len()).collect();
        for (position, step) in self.steps.iter().enumerate() {
            let completed = step.completes.iter().flat_map(|&root| &roots[root].operands);
            for &value in step.inputs.iter().chain(completed) {
                last_use[value] = last_use[value].max(position);
            }
        }
        // A view keeps what it looks at alive.
        for position in (0..self.steps.len()).rev() {
            if matches!(self.steps[position].kind, StepKind::View) {
                let base = self.steps[position].inputs[0];
                last_use[base] = last_use[base].max(last_use[position]);
            }
        }
        last_use
    }

    /// Bytes of the copies that a step makes of its operands, and of what it sums up in.
    fn scratch_bytes(&self, step: &Step) -> Vec<usize> {
        let bytes_of = |input: &usize| self.block_bytes(&self.steps[*input]);
        match &step.kind {
            StepKind::Function(_) => step.inputs.iter().map(bytes_of).collect(),
            StepKind::Reduce { reducer, .. } => {
                let elements = self.block_bytes(step) / step.node.dtype.size();
                let accumulators = elements * reducer.op.accumulator_size(reducer.input);
                vec![bytes_of(&step.inputs[0]), accumulators]
            }
            _ => vec![],
        }
    }

    fn needs_slot(&self, step: &Step) -> bool {
        match &step.kind {
            StepKind::View => false,
            StepKind::Gather(gather) => !self.is_borrowed(gather, &step.spans),
            _ => step.emit.is_none(),
        }
    }

    /// Gives every value that needs memory a slot, and says how large the slots are.
    pub fn assign_slots(&mut self, roots: &mut [PassRoot]) -> Vec<usize> {
        let count = self.steps.len();
        let mut ending: Vec<Vec<usize>> = vec![vec![]; count];
        for (position, last) in self.last_uses(roots).into_iter().enumerate() {
            ending[last].push(position);
        }
        let mut slots = SlotTable::default();
        for (position, ended) in ending.iter().enumerate() {
            cancel::check();
            let step = &self.steps[position];
            let slot = self.needs_slot(step).then(|| slots.take(self.block_bytes(step)));
            let scratch: Vec<usize> = self
                .scratch_bytes(step)
                .iter()
                .map(|&bytes| slots.take(bytes))
                .collect();
            scratch.iter().for_each(|&slot| slots.release(slot));
            for &index in &step.completes {
                let root = &mut roots[index];
                if matches!(root.accumulation, Some(Accumulation::Reduce { .. })) {
                    let slot = slots.take(self.block_bytes(&self.steps[root.operands[0]]));
                    slots.release(slot);
                    root.scratch = Some(slot);
                }
            }
            self.steps[position].slot = slot;
            self.steps[position].scratch = scratch;
            let ended = ended.iter().filter_map(|&earlier| self.steps[earlier].slot);
            ended.for_each(|slot| slots.release(slot));
        }
        slots.sizes
    }
}

#[derive(Default)]
struct SlotTable {
    sizes: Vec<usize>,
    free: Vec<usize>,
}

impl SlotTable {
    /// The smallest free slot that is large enough, else the largest free one grown, else a new one.
    fn take(&mut self, bytes: usize) -> usize {
        // Slots serve values of any type: whole elements of the widest.
        let bytes = bytes.next_multiple_of(16);
        let fits = self
            .free
            .iter()
            .copied()
            .filter(|&slot| self.sizes[slot] >= bytes)
            .min_by_key(|&slot| self.sizes[slot]);
        let slot = fits
            .or_else(|| self.free.iter().copied().max_by_key(|&slot| self.sizes[slot]))
            .unwrap_or_else(|| {
                self.sizes.push(0);
                self.sizes.len() - 1
            });
        self.free.retain(|&free| free != slot);
        self.sizes[slot] = self.sizes[slot].max(bytes);
        slot
    }

    fn release(&mut self, slot: usize) {
        if !self.free.contains(&slot) {
            self.free.push(slot);
        }
    }
}
