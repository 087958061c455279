//! Reads through views: without a copy where one tile holds the block, assembled from pieces otherwise.

use outcore_dtype::DType;
use outcore_kernels::{copy_strided, generate, Generator, StridedBytes, StridedBytesMut};
use outcore_store::Interval;

use crate::plan::gather::{concat_pieces, BaseAxis};
use crate::plan::pieces::each_piece;
use crate::plan::{ArrayId, ArrayKind, Base, Gather, Plan};
use crate::run::compute::value::{contiguous, Inputs, Place, Strided};
use crate::schedule::tasks::each_tile;
use crate::schedule::tiles::coordinates;
use crate::schedule::{TileId, TileTable};

/// What a gather reads from.
pub struct Reader<'a> {
    pub plan: &'a Plan,
    pub tiles: &'a TileTable,
    pub inputs: &'a Inputs,
}

/// Where pieces are copied to: offset and strides in elements.
struct CopyTarget<'a> {
    data: &'a mut [u8],
    offset: usize,
    strides: Vec<isize>,
}

impl Reader<'_> {
    /// The value as a view of one tile or of the caller's array; nothing when it has to be assembled.
    pub fn view(&self, gather: &Gather, region: &[Interval]) -> Option<Strided> {
        let Base::Array(array) = gather.base else { return None };
        let info = &self.plan.arrays[array as usize];
        if let ArrayKind::Memory(source) = &info.kind {
            let memory = source.memory()?;
            let strides: Vec<isize> = memory.strides.iter().map(|&stride| stride as isize).collect();
            let origin = vec![0; strides.len()];
            return Some(strided(
                gather,
                region,
                Place::Memory(array),
                memory.offset as isize,
                &strides,
                &origin,
            ));
        }
        let touched = gather.base_box(region);
        let mut index = 0;
        let mut origin = Vec::with_capacity(touched.len());
        for (axis, &Interval { start, length }) in touched.iter().enumerate() {
            let tile = info.node.tile[axis];
            let at = start / tile;
            if (start + length - 1) / tile != at {
                return None;
            }
            index = index * info.counts[axis] + at;
            origin.push(at * tile);
        }
        let tile = self.tiles.first[array as usize] + index as TileId;
        let place = Place::Input(self.inputs.position(tile));
        let shape: Vec<usize> = origin
            .iter()
            .enumerate()
            .map(|(axis, &at)| info.node.tile[axis].min(info.node.shape[axis] - at) as usize)
            .collect();
        Some(strided(gather, region, place, 0, &contiguous(&shape), &origin))
    }

    /// Copies the value, C-contiguous, into `data`.
    pub fn assemble(&self, gather: &Gather, dtype: DType, region: &[Interval], data: &mut [u8]) {
        let shape: Vec<usize> = region.iter().map(|along| along.length as usize).collect();
        let strides = contiguous(&shape);
        self.copy(
            gather,
            dtype,
            region,
            &mut CopyTarget {
                data,
                offset: 0,
                strides,
            },
        );
    }

    fn copy(&self, gather: &Gather, dtype: DType, region: &[Interval], target: &mut CopyTarget<'_>) {
        if region.iter().any(|along| along.length == 0) {
            return;
        }
        match &gather.base {
            Base::Array(array) => self.copy_array(gather, *array, dtype, region, target),
            Base::Generate { generator, shape } => copy_generated(gather, generator, shape, dtype, region, target),
            Base::Concat { axis, parts, ends } => {
                let touched = gather.base_box(region);
                for (part, _) in concat_pieces(*axis, ends, &touched) {
                    let begin = if part == 0 { 0 } else { ends[part - 1] };
                    let joined = JoinedPart {
                        part: &parts[part],
                        axis: *axis,
                        along: Interval::between(begin, ends[part]),
                    };
                    self.copy_part(gather, joined, dtype, region, target);
                }
            }
            Base::Reshape { inner, from, to } => {
                let begin = target.offset;
                each_piece(from, to, &gather.axes, region, &target.strides, &mut |piece| {
                    let composed = Gather {
                        base: inner.base.clone(),
                        axes: inner.axes.iter().map(|axis| piece.compose(axis)).collect(),
                    };
                    let mut part = CopyTarget {
                        data: &mut *target.data,
                        offset: begin.wrapping_add_signed(piece.offset),
                        strides: piece.strides.clone(),
                    };
                    self.copy(&composed, dtype, &piece.region, &mut part);
                });
            }
        }
    }

    fn copy_array(
        &self,
        gather: &Gather,
        array: ArrayId,
        dtype: DType,
        region: &[Interval],
        target: &mut CopyTarget<'_>,
    ) {
        let info = &self.plan.arrays[array as usize];
        if matches!(info.kind, ArrayKind::Memory(_)) {
            let value = self.view(gather, region).expect("memory arrays are always viewed");
            let ArrayKind::Memory(source) = &info.kind else {
                unreachable!("matched above")
            };
            let memory = source.memory().expect("a memory source has memory");
            let shape: Vec<usize> = region.iter().map(|along| along.length as usize).collect();
            copy_strided(
                dtype.size(),
                &shape,
                StridedBytes::new(memory.data, value.offset, &value.strides),
                StridedBytesMut::new(target.data, target.offset, &target.strides),
            );
            return;
        }
        let touched = gather.base_box(region);
        let mut cell = Vec::new();
        each_tile(&info.node.tile, &info.counts, &touched, &mut |index| {
            coordinates(&info.counts, index, &mut cell);
            let origin: Vec<u64> = cell.iter().zip(&info.node.tile).map(|(&at, &tile)| at * tile).collect();
            let lengths: Vec<u64> = (0..origin.len())
                .map(|axis| info.node.tile[axis].min(info.node.shape[axis] - origin[axis]))
                .collect();
            let Some(part) = restrict(&gather.axes, region, &origin, &lengths) else {
                return;
            };
            let tile = self.tiles.first[array as usize] + index as TileId;
            let position = self.inputs.position(tile);
            let shape: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
            let value = strided(gather, &part, Place::Input(position), 0, &contiguous(&shape), &origin);
            let sub: Vec<usize> = part.iter().map(|along| along.length as usize).collect();
            let into = target
                .offset
                .wrapping_add_signed(inner_offset(&part, region, &target.strides));
            let bytes = self.inputs.0[position].1.bytes();
            copy_strided(
                dtype.size(),
                &sub,
                StridedBytes::new(bytes, value.offset, &value.strides),
                StridedBytesMut::new(target.data, into, &target.strides),
            );
        });
    }

    /// The part of a joined array that one operand holds: its own views composed with those over the join.
    fn copy_part(
        &self,
        gather: &Gather,
        joined: JoinedPart<'_>,
        dtype: DType,
        region: &[Interval],
        target: &mut CopyTarget<'_>,
    ) {
        let JoinedPart { part, axis, along } = joined;
        let whole: Vec<u64> = (0..gather.axes.len())
            .map(|a| if a == axis { along.start } else { 0 })
            .collect();
        let lengths: Vec<u64> = (0..gather.axes.len())
            .map(|a| if a == axis { along.length } else { u64::MAX >> 2 })
            .collect();
        let Some(sub) = restrict(&gather.axes, region, &whole, &lengths) else {
            return;
        };
        let axes = part
            .axes
            .iter()
            .map(|inner| {
                let Some(through) = inner.output else { return *inner };
                let outer = gather.axes[through];
                let shift = if through == axis { along.start as i64 } else { 0 };
                BaseAxis {
                    output: outer.output,
                    start: inner.start + inner.step * (outer.start - shift),
                    step: inner.step * outer.step,
                }
            })
            .collect();
        let composed = Gather {
            base: part.base.clone(),
            axes,
        };
        let saved = target.offset;
        target.offset = saved.wrapping_add_signed(inner_offset(&sub, region, &target.strides));
        self.copy(&composed, dtype, &sub, target);
        target.offset = saved;
    }
}

/// One of the arrays that are joined along `axis`, and where it lies there.
#[derive(Clone, Copy)]
struct JoinedPart<'a> {
    part: &'a Gather,
    axis: usize,
    along: Interval,
}

/// The strided view of a gather over memory whose axes have `strides` and begin at `origin`.
fn strided(
    gather: &Gather,
    region: &[Interval],
    place: Place,
    offset: isize,
    base_strides: &[isize],
    origin: &[u64],
) -> Strided {
    let mut strides = vec![0; region.len()];
    let mut offset = offset;
    for (axis, base) in gather.axes.iter().enumerate() {
        let mut first = base.start;
        if let Some(output) = base.output {
            first += base.step * region[output].start as i64;
            strides[output] = base.step as isize * base_strides[axis];
        }
        offset += (first as isize - origin[axis] as isize) * base_strides[axis];
    }
    Strided {
        place,
        offset: offset as usize,
        strides,
    }
}

/// The part of `region` whose base indices fall into the box at `origin`.
fn restrict(axes: &[BaseAxis], region: &[Interval], origin: &[u64], lengths: &[u64]) -> Option<Vec<Interval>> {
    let mut part = region.to_vec();
    for (axis, base) in axes.iter().enumerate() {
        let (low, high) = (origin[axis] as i64, (origin[axis] + lengths[axis]) as i64 - 1);
        let Some(output) = base.output else {
            if base.start < low || base.start > high {
                return None;
            }
            continue;
        };
        let (near, far) = if base.step > 0 {
            (low - base.start, high - base.start)
        } else {
            (base.start - high, base.start - low)
        };
        let step = base.step.abs();
        let first = near.div_euclid(step) + i64::from(near.rem_euclid(step) != 0);
        let last = far.div_euclid(step);
        let Interval { start, length } = part[output];
        let begin = first.max(start as i64);
        let end = (last + 1).min((start + length) as i64);
        if begin >= end {
            return None;
        }
        part[output] = Interval::new(begin as u64, (end - begin) as u64);
    }
    Some(part)
}

/// Elements between the start of `region` and that of `part` in the target.
fn inner_offset(part: &[Interval], region: &[Interval], strides: &[isize]) -> isize {
    part.iter()
        .zip(region)
        .zip(strides)
        .map(|((part, whole), &stride)| (part.start - whole.start) as isize * stride)
        .sum()
}

/// Generated values, row by row of the base, so that no more than a row is held beside the target.
fn copy_generated(
    gather: &Gather,
    generator: &Generator,
    shape: &[u64],
    dtype: DType,
    region: &[Interval],
    target: &mut CopyTarget<'_>,
) {
    let item = dtype.size();
    let touched = gather.base_box(region);
    let extent: Vec<usize> = region.iter().map(|along| along.length as usize).collect();
    let plain = gather
        .axes
        .iter()
        .enumerate()
        .all(|(axis, base)| base.output == Some(axis) && base.step == 1)
        && gather.axes.len() == region.len()
        && target.strides == contiguous(&extent);
    let start: Vec<u64> = touched.iter().map(|along| along.start).collect();
    let lengths: Vec<usize> = touched.iter().map(|along| along.length as usize).collect();
    if plain {
        let bytes = lengths.iter().product::<usize>() * item;
        let begin = target.offset * item;
        generate(
            generator,
            dtype,
            shape,
            &start,
            &lengths,
            &mut target.data[begin..begin + bytes],
        );
        return;
    }
    // Under views: element by element.
    let ndim = region.len();
    let mut element = [0u128; 1];
    let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut element);
    let total: u64 = region.iter().map(|along| along.length).product();
    let counts: Vec<u64> = region.iter().map(|along| along.length).collect();
    let mut at = Vec::new();
    for index in 0..total {
        coordinates(&counts, index, &mut at);
        let single: Vec<Interval> = at
            .iter()
            .zip(region)
            .map(|(&position, along)| Interval::new(along.start + position, 1))
            .collect();
        let position: Vec<u64> = gather.base_box(&single).iter().map(|along| along.start).collect();
        generate(
            generator,
            dtype,
            shape,
            &position,
            &vec![1; position.len()],
            &mut scratch[..item],
        );
        let into = target.offset as isize
            + (0..ndim)
                .map(|axis| at[axis] as isize * target.strides[axis])
                .sum::<isize>();
        let into = into as usize * item;
        target.data[into..into + item].copy_from_slice(&scratch[..item]);
    }
}
