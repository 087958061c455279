//! One task: every block of one cell of a pass, through the compiled steps.

use outcore_kernels::{copy_strided, Reducer, StridedBytes, StridedBytesMut};
use outcore_store::{Frame, Interval};

use crate::expr::{Block, FunctionKey};

use crate::plan::span::resolve_all;
use crate::plan::{Accumulation, ArrayKind, Gather, Pass, PassRoot, Plan, RootKind, Step, StepKind};
use crate::run::compute::gather::Reader;
use crate::run::compute::product::multiply;
use crate::run::compute::value::{contiguous, is_contiguous, Inputs, Place, Strided, TileMemory};
use crate::run::compute::views::{broadcast_strides, view_of};
use crate::run::compute::workspace::Workspace;
use crate::schedule::tasks::cell_extent;
use crate::schedule::TileTable;
use crate::strips::{self, Buffers, Fused, FusedInput};
use crate::EngineError;

/// What a task writes: the tile of a `Map` root, the accumulator of a product, or a partial result.
pub struct TaskBuffer {
    pub memory: TileMemory,
    /// The buffer holds earlier contributions.
    pub started: bool,
}

/// A task at work.
pub struct Task<'a> {
    pub plan: &'a Plan,
    pub tiles: &'a TileTable,
    pub pass: &'a Pass,
    pub cell: &'a [u64],
    pub inputs: &'a Inputs,
}

/// The memory that a task computes in.
struct TaskMemory<'a> {
    slots: &'a mut Buffers<Frame>,
    registers: &'a mut Buffers<Frame>,
    /// One per root of the pass.
    outputs: &'a mut Buffers<TaskBuffer>,
}

/// A reduction of a value into accumulators that are laid out like its kept axes.
struct Reduction<'a> {
    reducer: &'a Reducer,
    axes: &'a [usize],
    value: &'a Strided,
    shape: &'a [usize],
    /// Where the value begins along each axis.
    start: &'a [u64],
    /// The slot for a copy whose reduced axes are last.
    copy: usize,
}

/// A block and what has been computed in it.
struct BlockValues<'a> {
    block: &'a [Interval],
    values: Vec<Strided>,
    shapes: Vec<Vec<usize>>,
}

impl Task<'_> {
    /// Runs all blocks, which fills `outputs`, a buffer per root of the pass.
    ///
    /// # Errors
    /// What a function of the user raised.
    pub fn run(&self, outputs: &mut Buffers<TaskBuffer>, workspace: &mut Workspace) -> Result<(), EngineError> {
        let extent = cell_extent(self.pass, self.cell);
        for (root, buffer) in self.pass.roots.iter().zip(outputs.iter_mut()) {
            if let (Some(Accumulation::Reduce { reducer, .. }), Some(buffer)) = (&root.accumulation, buffer) {
                if !buffer.started {
                    let bytes = buffer_bytes(root, reducer, &extent);
                    reducer.init(&mut buffer.memory.bytes_mut()[..bytes]);
                    buffer.started = true;
                }
            }
        }
        let Workspace { slots, registers } = workspace;
        let mut memory = TaskMemory {
            slots,
            registers,
            outputs,
        };
        let Some((dim, length)) = self.pass.block else {
            return self.run_block(&extent, &extent, &mut memory);
        };
        let Interval { start, length: total } = extent[dim];
        let mut block = extent.clone();
        let mut done = 0;
        while done < total {
            block[dim] = Interval::new(start + done, length.min(total - done));
            self.run_block(&block, &extent, &mut memory)?;
            done += length;
        }
        Ok(())
    }

    fn run_block(
        &self,
        block: &[Interval],
        extent: &[Interval],
        memory: &mut TaskMemory<'_>,
    ) -> Result<(), EngineError> {
        let mut computed = BlockValues {
            block,
            values: Vec::with_capacity(self.pass.steps.len()),
            shapes: Vec::with_capacity(self.pass.steps.len()),
        };
        for step in &self.pass.steps {
            let region = resolve_all(&step.spans, block);
            computed
                .shapes
                .push(region.iter().map(|along| along.length as usize).collect());
            let value = self.run_step(step, &region, extent, &computed, memory)?;
            computed.values.push(value);
            for &index in &step.completes {
                match self.pass.roots[index].kind {
                    RootKind::Map => self.emit(index, extent, &computed, memory),
                    RootKind::Reduce => self.reduce_root(index, extent, &computed, memory),
                    RootKind::Algorithm => unreachable!("algorithms are no passes"),
                    RootKind::Contraction | RootKind::Blocked => self.multiply_root(index, extent, &computed, memory),
                }
            }
        }
        Ok(())
    }

    fn bytes<'b>(&'b self, place: Place, slots: &'b Buffers<Frame>, outputs: &'b Buffers<TaskBuffer>) -> &'b [u8] {
        match place {
            Place::Input(position) => self.inputs.0[position].1.bytes(),
            Place::Memory(array) => {
                let ArrayKind::Memory(source) = &self.plan.arrays[array as usize].kind else {
                    unreachable!("only memory arrays are borrowed")
                };
                source.memory().expect("a memory source has memory").data
            }
            Place::Slot(slot) => slots.get(slot),
            Place::Output(root) => outputs.get(root).memory.bytes(),
        }
    }

    fn run_step(
        &self,
        step: &Step,
        region: &[Interval],
        extent: &[Interval],
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
    ) -> Result<Strided, EngineError> {
        let shape = computed.shapes.last().expect("pushed by the caller");
        match &step.kind {
            StepKind::Gather(gather) => Ok(self.gather(step, gather, shape, region, memory)),
            StepKind::View => {
                let input = step.inputs[0];
                let (base, from) = (&computed.values[input], &computed.shapes[input]);
                Ok(view_of(&step.node.op, base, from, shape))
            }
            _ => self.run_computed(step, region, extent, computed, memory),
        }
    }

    /// A read: where it is no view of a tile, it is put together in a slot.
    fn gather(
        &self,
        step: &Step,
        gather: &Gather,
        shape: &[usize],
        region: &[Interval],
        memory: &mut TaskMemory<'_>,
    ) -> Strided {
        let reader = Reader {
            plan: self.plan,
            tiles: self.tiles,
            inputs: self.inputs,
        };
        if region.iter().any(|along| along.is_empty()) {
            return Strided {
                place: Place::Slot(0),
                offset: 0,
                strides: vec![0; shape.len()],
            };
        }
        if let Some(value) = reader.view(gather, region) {
            return value;
        }
        let slot = step.slot.expect("planned for gathers that may be assembled");
        let bytes = shape.iter().product::<usize>() * step.node.dtype.size();
        let frame = memory.slots.get_mut(slot);
        reader.assemble(gather, step.node.dtype, region, &mut frame[..bytes]);
        Strided {
            place: Place::Slot(slot),
            offset: 0,
            strides: contiguous(shape),
        }
    }

    fn run_computed(
        &self,
        step: &Step,
        region: &[Interval],
        extent: &[Interval],
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
    ) -> Result<Strided, EngineError> {
        let shape = computed.shapes.last().expect("pushed by the caller");
        let item = step.node.dtype.size();
        let bytes = shape.iter().product::<usize>() * item;
        let TaskMemory {
            slots,
            registers,
            outputs,
        } = memory;
        if let Some(root) = step.emit {
            let offset = tile_offset(&self.pass.roots[root], region, extent);
            outputs.lend(root, |buffer, outputs| {
                let mut memory = TaskMemory {
                    slots,
                    registers,
                    outputs,
                };
                let target = &mut buffer.memory.bytes_mut()[offset * item..offset * item + bytes];
                self.compute(step, computed, &mut memory, target)
            })?;
            return Ok(Strided {
                place: Place::Output(root),
                offset,
                strides: contiguous(shape),
            });
        }
        let slot = step.slot.expect("planned for computed values");
        slots.lend(slot, |frame, slots| {
            let mut memory = TaskMemory {
                slots,
                registers,
                outputs,
            };
            self.compute(step, computed, &mut memory, &mut frame[..bytes])
        })?;
        Ok(Strided {
            place: Place::Slot(slot),
            offset: 0,
            strides: contiguous(shape),
        })
    }

    fn compute(
        &self,
        step: &Step,
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
        target: &mut [u8],
    ) -> Result<(), EngineError> {
        let shape = &computed.shapes.last().expect("pushed by the caller")[..];
        match &step.kind {
            StepKind::Fused(program) => self.compute_fused(program, shape, computed, memory, target),
            StepKind::Matmul => {
                let operands = [0, 1].map(|side| {
                    let input = step.inputs[side];
                    (&computed.values[input], &computed.shapes[input])
                });
                let data = operands.map(|(value, _)| self.bytes(value.place, memory.slots, memory.outputs));
                multiply(step.node.dtype, operands, data, target, shape, false);
                Ok(())
            }
            StepKind::Reduce { reducer, finish, axes } => {
                let input = step.inputs[0];
                let reduction = Reduction {
                    reducer,
                    axes,
                    value: &computed.values[input],
                    shape: &computed.shapes[input],
                    start: &vec![0; computed.shapes[input].len()],
                    copy: step.scratch[0],
                };
                let elements: usize = shape.iter().product();
                let bytes = elements * reducer.op.accumulator_size(reducer.input);
                memory.slots.lend(step.scratch[1], |accumulators, slots| {
                    let accumulators = &mut accumulators[..bytes];
                    reducer.init(accumulators);
                    self.accumulate(&reduction, slots, memory.outputs, accumulators);
                    reducer.finish(accumulators, *finish, target);
                });
                Ok(())
            }
            StepKind::Function(key) => self.call(step, key, computed, memory, target),
            StepKind::Gather(_) | StepKind::View => unreachable!("views and reads do not compute"),
        }
    }

    fn compute_fused(
        &self,
        program: &Fused,
        shape: &[usize],
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
        target: &mut [u8],
    ) -> Result<(), EngineError> {
        let inputs = program
            .inputs
            .iter()
            .map(|&(input, item)| {
                let value = &computed.values[input];
                let strides = broadcast_strides(&value.strides, &computed.shapes[input], shape);
                FusedInput {
                    data: self.bytes(value.place, memory.slots, memory.outputs),
                    item,
                    offset: value.offset,
                    strides,
                }
            })
            .collect();
        strips::run(program, shape, inputs, memory.registers, target)
    }

    /// Calls a function of the user with contiguous copies of its inputs.
    fn call(
        &self,
        step: &Step,
        key: &FunctionKey,
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
        target: &mut [u8],
    ) -> Result<(), EngineError> {
        let shape = &computed.shapes.last().expect("pushed by the caller")[..];
        let dtype_of = |input: usize| self.pass.steps[input].node.dtype;
        for (&input, &slot) in step.inputs.iter().zip(&step.scratch) {
            let value = &computed.values[input];
            memory.slots.lend(slot, |frame, slots| {
                copy_strided(
                    dtype_of(input).size(),
                    shape,
                    StridedBytes::new(
                        self.bytes(value.place, slots, memory.outputs),
                        value.offset,
                        &value.strides,
                    ),
                    StridedBytesMut::new(frame, 0, &contiguous(shape)),
                );
            });
        }
        let elements: usize = shape.iter().product();
        let blocks: Vec<Block<'_>> = step
            .scratch
            .iter()
            .zip(&step.inputs)
            .map(|(&slot, &input)| Block {
                data: &memory.slots.get(slot)[..elements * dtype_of(input).size()],
                dtype: dtype_of(input),
                shape,
            })
            .collect();
        key.function
            .call(&blocks, target, step.node.dtype)
            .map_err(EngineError::Function)
    }

    fn accumulate(
        &self,
        reduction: &Reduction<'_>,
        slots: &mut Buffers<Frame>,
        outputs: &Buffers<TaskBuffer>,
        accumulators: &mut [u8],
    ) {
        let Reduction {
            reducer,
            axes,
            value,
            shape,
            ..
        } = *reduction;
        let item = reducer.input.size();
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let base = axes.last().map_or(0, |&axis| reduction.start[axis] as i64);
        let adjacent = axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let elements: usize = shape.iter().product();
        let middle: usize = axes.iter().map(|&axis| shape[axis]).product();
        if adjacent && is_contiguous(shape, &value.strides) {
            let (first, last) = (
                axes.first().copied().unwrap_or(0),
                axes.last().map_or(0, |&axis| axis + 1),
            );
            let outer: usize = shape[..first].iter().product();
            let inner: usize = shape[last..].iter().product();
            let begin = value.offset * item;
            let data = &self.bytes(value.place, slots, outputs)[begin..begin + elements * item];
            reducer.accumulate(data, outer, middle, inner, base, 1, accumulators);
            return;
        }
        // Kept axes first, reduced axes last, in a contiguous copy.
        let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
        let permuted: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let strides: Vec<isize> = order.iter().map(|&axis| value.strides[axis]).collect();
        slots.lend(reduction.copy, |frame, slots| {
            copy_strided(
                item,
                &permuted,
                StridedBytes::new(self.bytes(value.place, slots, outputs), value.offset, &strides),
                StridedBytesMut::new(frame, 0, &contiguous(&permuted)),
            );
        });
        let outer: usize = kept.iter().map(|&axis| shape[axis]).product();
        let copied = &slots.get(reduction.copy)[..elements * item];
        reducer.accumulate(copied, outer, middle, 1, base, 1, accumulators);
    }

    /// Stores a `Map` root's block in its tile, unless the step wrote it there.
    fn emit(&self, index: usize, extent: &[Interval], computed: &BlockValues<'_>, memory: &mut TaskMemory<'_>) {
        let root = &self.pass.roots[index];
        let step = root.operands[0];
        if self.pass.steps[step].emit == Some(index) {
            return;
        }
        let value = &computed.values[step];
        let shape = &computed.shapes[step];
        if shape.contains(&0) {
            return;
        }
        let region = resolve_all(&root.spans, computed.block);
        let tile: Vec<usize> = resolve_all(&root.spans, extent)
            .iter()
            .map(|along| along.length as usize)
            .collect();
        let offset = tile_offset(root, &region, extent);
        memory.outputs.lend(index, |buffer, outputs| {
            copy_strided(
                root.node.dtype.size(),
                shape,
                StridedBytes::new(
                    self.bytes(value.place, memory.slots, outputs),
                    value.offset,
                    &value.strides,
                ),
                StridedBytesMut::new(buffer.memory.bytes_mut(), offset, &contiguous(&tile)),
            );
        });
    }

    fn reduce_root(&self, index: usize, extent: &[Interval], computed: &BlockValues<'_>, memory: &mut TaskMemory<'_>) {
        let root = &self.pass.roots[index];
        let Some(Accumulation::Reduce { reducer, axes, .. }) = &root.accumulation else {
            unreachable!("a reduction")
        };
        let step = root.operands[0];
        let region = resolve_all(&self.pass.steps[step].spans, computed.block);
        let start: Vec<u64> = region.iter().map(|along| along.start).collect();
        let kept = resolve_all(&root.spans, computed.block);
        let size = reducer.op.accumulator_size(reducer.input);
        let begin = tile_offset(root, &kept, extent) * size;
        let bytes = kept.iter().map(|along| along.length as usize).product::<usize>() * size;
        let reduction = Reduction {
            reducer,
            axes,
            value: &computed.values[step],
            shape: &computed.shapes[step],
            start: &start,
            copy: root.scratch.expect("planned for reductions"),
        };
        memory.outputs.lend(index, |buffer, outputs| {
            let accumulators = &mut buffer.memory.bytes_mut()[begin..begin + bytes];
            self.accumulate(&reduction, memory.slots, outputs, accumulators);
        });
    }

    fn multiply_root(
        &self,
        index: usize,
        extent: &[Interval],
        computed: &BlockValues<'_>,
        memory: &mut TaskMemory<'_>,
    ) {
        let root = &self.pass.roots[index];
        let region = resolve_all(&root.spans, computed.block);
        let offset = tile_offset(root, &region, extent) * root.node.dtype.size();
        let shape: Vec<usize> = region.iter().map(|along| along.length as usize).collect();
        let bytes = shape.iter().product::<usize>() * root.node.dtype.size();
        let operands = [0, 1].map(|side| {
            (
                &computed.values[root.operands[side]],
                &computed.shapes[root.operands[side]],
            )
        });
        let whole = resolve_all(&root.spans, extent);
        let is_last = region.iter().zip(whole).all(|(part, whole)| part.end() == whole.end());
        memory.outputs.lend(index, |buffer, outputs| {
            let data = operands.map(|(value, _)| self.bytes(value.place, memory.slots, outputs));
            // The first block of the first task of a result starts it; blocks along kept dimensions start their own part.
            let accumulate = buffer.started;
            let target = &mut buffer.memory.bytes_mut()[offset..offset + bytes];
            multiply(root.node.dtype, operands, data, target, &shape, accumulate);
            buffer.started |= is_last;
        });
    }
}

/// Bytes of a task's accumulators.
fn buffer_bytes(root: &PassRoot, reducer: &Reducer, extent: &[Interval]) -> usize {
    let elements: u64 = resolve_all(&root.spans, extent)
        .iter()
        .map(|along| along.length)
        .product();
    elements as usize * reducer.op.accumulator_size(reducer.input)
}

/// Where a region begins in the root's tile, in elements.
fn tile_offset(root: &PassRoot, region: &[Interval], extent: &[Interval]) -> usize {
    let tile = resolve_all(&root.spans, extent);
    let shape: Vec<usize> = tile.iter().map(|along| along.length as usize).collect();
    let strides = contiguous(&shape);
    region
        .iter()
        .zip(&tile)
        .zip(&strides)
        .map(|((part, whole), &stride)| (part.start - whole.start) as usize * stride as usize)
        .sum()
}
