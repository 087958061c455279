//! One task: every block of one cell of a pass, through the compiled steps.

use outcore_kernels::{copy_strided, Reducer};
use outcore_store::{Frame, Interval};

use crate::expr::Block;
use crate::plan::span::resolve_all;
use crate::plan::{Accumulation, ArrayKind, Pass, PassRoot, Plan, RootKind, Step, StepKind};
use crate::run::compute::fused::{self, Operands};
use crate::run::compute::gather::Reader;
use crate::run::compute::product::multiply;
use crate::run::compute::value::{contiguous, is_contiguous, Inputs, Place, Strided, TileMemory};
use crate::run::compute::workspace::Workspace;
use crate::schedule::tasks::cell_extent;
use crate::schedule::TileTable;
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
    /// One per root of the pass.
    pub buffers: Vec<Option<TaskBuffer>>,
}

/// A block and what has been computed in it.
struct BlockValues<'a> {
    block: &'a [Interval],
    values: Vec<Strided>,
    shapes: Vec<Vec<usize>>,
}

impl Task<'_> {
    /// Runs all blocks and gives the buffers back, filled.
    ///
    /// # Errors
    /// What a function of the user raised.
    pub fn run(mut self, workspace: &mut Workspace) -> Result<Vec<Option<TaskBuffer>>, EngineError> {
        let extent = cell_extent(self.pass, self.cell);
        for (root, buffer) in self.pass.roots.iter().zip(&mut self.buffers) {
            if let (Some(Accumulation::Reduce { reducer, .. }), Some(buffer)) = (&root.accumulation, buffer) {
                if !buffer.started {
                    let bytes = buffer_bytes(root, reducer, &extent);
                    reducer.init(&mut buffer.memory.bytes_mut()[..bytes]);
                    buffer.started = true;
                }
            }
        }
        let Some((dim, length)) = self.pass.block else {
            self.run_block(&extent.clone(), &extent, workspace)?;
            return Ok(self.buffers);
        };
        let Interval { start, length: total } = extent[dim];
        let mut block = extent.clone();
        let mut done = 0;
        while done < total {
            block[dim] = Interval::new(start + done, length.min(total - done));
            self.run_block(&block, &extent, workspace)?;
            done += length;
        }
        Ok(self.buffers)
    }

    fn run_block(
        &mut self,
        block: &[Interval],
        extent: &[Interval],
        workspace: &mut Workspace,
    ) -> Result<(), EngineError> {
        let mut computed = BlockValues {
            block,
            values: Vec::with_capacity(self.pass.steps.len()),
            shapes: Vec::with_capacity(self.pass.steps.len()),
        };
        let pass = self.pass;
        for step in &pass.steps {
            let region = resolve_all(&step.spans, block);
            computed
                .shapes
                .push(region.iter().map(|along| along.length as usize).collect());
            let value = self.run_step(step, &region, extent, &mut computed, workspace)?;
            computed.values.push(value);
            for &index in &step.completes {
                let root = &pass.roots[index];
                match root.kind {
                    RootKind::Map => self.emit(index, root, extent, &computed, workspace),
                    RootKind::Reduce => self.reduce_root(index, root, extent, &computed, workspace),
                    RootKind::Algorithm => unreachable!("algorithms are no passes"),
                    RootKind::Contraction | RootKind::Blocked => {
                        self.multiply_root(index, root, extent, &computed, workspace)
                    }
                }
            }
        }
        Ok(())
    }

    fn bytes<'b>(&'b self, place: Place, slots: &'b [Option<Frame>]) -> &'b [u8] {
        match place {
            Place::Input(position) => self.inputs.0[position].1.bytes(),
            Place::Memory(array) => {
                let ArrayKind::Memory(source) = &self.plan.arrays[array as usize].kind else {
                    unreachable!("only memory arrays are borrowed")
                };
                source.memory().expect("a memory source has memory").data
            }
            Place::Slot(slot) => slots[slot].as_ref().expect("slots are given back"),
            Place::Output(root) => self.buffers[root]
                .as_ref()
                .expect("outputs are given back")
                .memory
                .bytes(),
        }
    }

    fn run_step(
        &mut self,
        step: &Step,
        region: &[Interval],
        extent: &[Interval],
        computed: &mut BlockValues<'_>,
        workspace: &mut Workspace,
    ) -> Result<Strided, EngineError> {
        let shape = computed.shapes.last().expect("pushed by the caller").clone();
        match &step.kind {
            StepKind::Gather(gather) => {
                let reader = Reader {
                    plan: self.plan,
                    tiles: self.tiles,
                    inputs: self.inputs,
                };
                if region.iter().any(|along| along.length == 0) {
                    return Ok(Strided {
                        place: Place::Slot(0),
                        offset: 0,
                        strides: vec![0; shape.len()],
                    });
                }
                if let Some(value) = reader.view(gather, region) {
                    return Ok(value);
                }
                let slot = step.slot.expect("planned for gathers that may be assembled");
                let value = Strided {
                    place: Place::Slot(slot),
                    offset: 0,
                    strides: contiguous(&shape),
                };
                let mut frame = workspace.slots[slot].take().expect("slots are given back");
                let bytes = shape.iter().product::<usize>() * step.node.dtype.size();
                reader.assemble(gather, step.node.dtype, region, &mut frame[..bytes]);
                workspace.slots[slot] = Some(frame);
                Ok(value)
            }
            StepKind::View => Ok(view_of(step, computed)),
            _ => self.run_computed(step, &shape, region, extent, computed, workspace),
        }
    }

    fn run_computed(
        &mut self,
        step: &Step,
        shape: &[usize],
        region: &[Interval],
        extent: &[Interval],
        computed: &BlockValues<'_>,
        workspace: &mut Workspace,
    ) -> Result<Strided, EngineError> {
        let item = step.node.dtype.size();
        let bytes = shape.iter().product::<usize>() * item;
        if let Some(root) = step.emit {
            let offset = tile_offset(&self.pass.roots[root], region, extent);
            let mut buffer = self.buffers[root].take().expect("outputs are given back");
            let target = &mut buffer.memory.bytes_mut()[offset * item..offset * item + bytes];
            let result = self.compute(step, shape, computed, workspace, target);
            self.buffers[root] = Some(buffer);
            result?;
            return Ok(Strided {
                place: Place::Output(root),
                offset,
                strides: contiguous(shape),
            });
        }
        let slot = step.slot.expect("planned for computed values");
        let mut frame = workspace.slots[slot].take().expect("slots are given back");
        let result = self.compute(step, shape, computed, workspace, &mut frame[..bytes]);
        workspace.slots[slot] = Some(frame);
        result?;
        Ok(Strided {
            place: Place::Slot(slot),
            offset: 0,
            strides: contiguous(shape),
        })
    }

    fn compute(
        &self,
        step: &Step,
        shape: &[usize],
        computed: &BlockValues<'_>,
        workspace: &mut Workspace,
        target: &mut [u8],
    ) -> Result<(), EngineError> {
        let Workspace { slots, registers, .. } = workspace;
        match &step.kind {
            StepKind::Fused(program) => {
                let inputs = program
                    .inputs
                    .iter()
                    .map(|&(input, item)| {
                        let value = &computed.values[input];
                        let strides = broadcast_strides(&value.strides, &computed.shapes[input], shape);
                        Operands {
                            data: self.bytes(value.place, slots),
                            item,
                            offset: value.offset,
                            strides,
                        }
                    })
                    .collect();
                fused::run(program, shape, inputs, registers, target)?;
            }
            StepKind::Matmul => {
                let (x, y) = (step.inputs[0], step.inputs[1]);
                let operands = [
                    (&computed.values[x], &computed.shapes[x]),
                    (&computed.values[y], &computed.shapes[y]),
                ];
                let data = operands.map(|(value, _)| self.bytes(value.place, slots));
                multiply(step.node.dtype, operands, data, target, shape, false);
            }
            StepKind::Reduce { reducer, finish, axes } => {
                let input = step.inputs[0];
                let (copy, accumulators) = (step.scratch[0], step.scratch[1]);
                let mut accumulator = slots[accumulators].take().expect("slots are given back");
                let elements: usize = shape.iter().product();
                let bytes = elements * reducer.op.accumulator_size(reducer.input);
                reducer.init(&mut accumulator[..bytes]);
                let start = vec![0; computed.shapes[input].len()];
                self.accumulate(
                    reducer,
                    axes,
                    &computed.values[input],
                    &computed.shapes[input],
                    &start,
                    copy,
                    slots,
                    &mut accumulator[..bytes],
                );
                reducer.finish(&accumulator[..bytes], *finish, target);
                slots[accumulators] = Some(accumulator);
            }
            StepKind::Function(key) => {
                let dtypes: Vec<_> = step
                    .inputs
                    .iter()
                    .map(|&input| self.pass.steps[input].node.dtype)
                    .collect();
                for (&input, &slot) in step.inputs.iter().zip(&step.scratch) {
                    let mut frame = slots[slot].take().expect("slots are given back");
                    let value = &computed.values[input];
                    let strides = contiguous(shape);
                    copy_strided(
                        self.pass.steps[input].node.dtype.size(),
                        shape,
                        self.bytes(value.place, slots),
                        value.offset,
                        &value.strides,
                        &mut frame,
                        0,
                        &strides,
                    );
                    slots[slot] = Some(frame);
                }
                let elements: usize = shape.iter().product();
                let blocks: Vec<Block<'_>> = step
                    .scratch
                    .iter()
                    .zip(&dtypes)
                    .map(|(&slot, &dtype)| Block {
                        data: &slots[slot].as_ref().expect("copied above")[..elements * dtype.size()],
                        dtype,
                        shape,
                    })
                    .collect();
                key.function
                    .call(&blocks, target, step.node.dtype)
                    .map_err(EngineError::Function)?;
            }
            StepKind::Gather(_) | StepKind::View => unreachable!("views and reads do not compute"),
        }
        Ok(())
    }

    /// Adds a value into accumulators laid out like its kept axes. `start` is the value's position along each axis.
    #[allow(clippy::too_many_arguments)] // the operands of one reduction
    fn accumulate(
        &self,
        reducer: &Reducer,
        axes: &[usize],
        value: &Strided,
        shape: &[usize],
        start: &[u64],
        copy: usize,
        slots: &mut [Option<Frame>],
        accumulators: &mut [u8],
    ) {
        let item = reducer.input.size();
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let base = axes.last().map_or(0, |&axis| start[axis] as i64);
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
            let data = self.bytes(value.place, slots);
            let begin = value.offset * item;
            reducer.accumulate(
                &data[begin..begin + elements * item],
                outer,
                middle,
                inner,
                base,
                1,
                accumulators,
            );
            return;
        }
        // Kept axes first, reduced axes last, in a contiguous copy.
        let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
        let permuted: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let strides: Vec<isize> = order.iter().map(|&axis| value.strides[axis]).collect();
        let mut frame = slots[copy].take().expect("slots are given back");
        copy_strided(
            item,
            &permuted,
            self.bytes(value.place, slots),
            value.offset,
            &strides,
            &mut frame,
            0,
            &contiguous(&permuted),
        );
        let outer: usize = kept.iter().map(|&axis| shape[axis]).product();
        reducer.accumulate(&frame[..elements * item], outer, middle, 1, base, 1, accumulators);
        slots[copy] = Some(frame);
    }

    /// Stores a `Map` root's block in its tile, unless the step wrote it there.
    fn emit(
        &mut self,
        index: usize,
        root: &PassRoot,
        extent: &[Interval],
        computed: &BlockValues<'_>,
        workspace: &Workspace,
    ) {
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
        let mut buffer = self.buffers[index].take().expect("outputs are given back");
        let source = self.bytes(value.place, &workspace.slots);
        copy_strided(
            root.node.dtype.size(),
            shape,
            source,
            value.offset,
            &value.strides,
            buffer.memory.bytes_mut(),
            offset,
            &contiguous(&tile),
        );
        self.buffers[index] = Some(buffer);
    }

    fn reduce_root(
        &mut self,
        index: usize,
        root: &PassRoot,
        extent: &[Interval],
        computed: &BlockValues<'_>,
        workspace: &mut Workspace,
    ) {
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
        let mut buffer = self.buffers[index].take().expect("outputs are given back");
        let accumulators = &mut buffer.memory.bytes_mut()[begin..begin + bytes];
        let scratch = root.scratch.expect("planned for reductions");
        self.accumulate(
            reducer,
            axes,
            &computed.values[step],
            &computed.shapes[step],
            &start,
            scratch,
            &mut workspace.slots,
            accumulators,
        );
        self.buffers[index] = Some(buffer);
    }

    fn multiply_root(
        &mut self,
        index: usize,
        root: &PassRoot,
        extent: &[Interval],
        computed: &BlockValues<'_>,
        workspace: &Workspace,
    ) {
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
        let mut buffer = self.buffers[index].take().expect("outputs are given back");
        let data = operands.map(|(value, _)| self.bytes(value.place, &workspace.slots));
        // The first block of the first task of a result starts it; blocks along kept dimensions start their own part.
        let accumulate = buffer.started;
        multiply(
            root.node.dtype,
            operands,
            data,
            &mut buffer.memory.bytes_mut()[offset..offset + bytes],
            &shape,
            accumulate,
        );
        let whole = resolve_all(&root.spans, extent);
        let last_part = region.iter().zip(whole).all(|(part, whole)| part.end() == whole.end());
        buffer.started |= last_part;
        self.buffers[index] = Some(buffer);
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

/// Strides of an operand over a larger shape: axes of length one repeat.
fn broadcast_strides(strides: &[isize], from: &[usize], to: &[usize]) -> Vec<isize> {
    let skipped = to.len() - from.len();
    (0..to.len())
        .map(|axis| match axis.checked_sub(skipped) {
            Some(inner) if from[inner] == to[axis] => strides[inner],
            _ => 0,
        })
        .collect()
}

/// The value of a view step: the same bytes, other strides.
fn view_of(step: &Step, computed: &BlockValues<'_>) -> Strided {
    use crate::expr::Op;
    let input = step.inputs[0];
    let base = &computed.values[input];
    let from = &computed.shapes[input];
    let shape = computed.shapes.last().expect("pushed by the caller");
    let mut offset = base.offset as isize;
    let strides = match &step.node.op {
        Op::Permute(axes) => axes.iter().map(|&axis| base.strides[axis]).collect(),
        Op::Slice(slices) => {
            // The input covers exactly what the slice touches; a negative step starts at its far end.
            for (axis, slice) in slices.iter().enumerate() {
                if slice.step < 0 && from[axis] > 0 {
                    offset += (from[axis] as isize - 1) * base.strides[axis];
                }
            }
            slices
                .iter()
                .zip(&base.strides)
                .map(|(slice, &stride)| slice.step as isize * stride)
                .collect()
        }
        Op::Expand(axes) => {
            let mut inner = base.strides.iter();
            (0..shape.len())
                .map(|axis| {
                    if axes.contains(&axis) {
                        0
                    } else {
                        *inner.next().expect("one per axis")
                    }
                })
                .collect()
        }
        Op::Squeeze(axes) => (0..from.len())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| base.strides[axis])
            .collect(),
        Op::Broadcast => broadcast_strides(&base.strides, from, shape),
        other => unreachable!("{other:?} is not a view"),
    };
    Strided {
        place: base.place,
        offset: offset as usize,
        strides,
    }
}
