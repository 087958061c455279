//! Elements that are no numbers of one type, as bytes, and the fields that lie in them.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use crate::array::in_memory::MemorySource;
use crate::array::region::{c_strides, is_computable};
use crate::array::rowmajor::make_native;
use crate::array::source::{as_inner, Layout, Opened, ReadCost, Source};
use crate::{Io, Region, StoreError};

/// An array of records or of text.
#[derive(Clone, Debug)]
pub struct StoredRecords {
    /// Bytes, along one axis more: that of the bytes of an element.
    pub bytes: Opened,
    /// The type of elements as JSON: `{"bytes": 12, "type": "S12"}`, or `{"bytes": 12, "fields": [[name, offset, type], ...]}`
    /// where a type is such an object again, or `{"bytes": 12, "of": type, "shape": [3]}`. Types of numbers are named as
    /// NumPy does; elements of `V12` are bytes that nothing reads.
    pub record: String,
}

/// Where a field lies in each element, and what of.
#[derive(Clone, Debug)]
pub struct FieldPlace {
    /// Bytes of the element before the field.
    pub offset: u64,
    /// The axes within an element, behind those of the array.
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub is_swapped: bool,
}

impl StoredRecords {
    /// The refusal of records where numbers are asked for.
    pub fn no_numbers(&self) -> StoreError {
        let reason = format!("elements are no numbers, but {}", self.record);
        StoreError::unsupported(Path::new(&self.bytes.source.name()), reason)
    }

    /// The field of all elements.
    ///
    /// # Errors
    /// `invalid`, for a field that leaves the elements.
    pub fn field(&self, place: FieldPlace) -> Result<Arc<dyn Source>, StoreError> {
        let inner = self.bytes.source.clone();
        let Some((record, shape)) = inner.shape().split_last() else {
            return Err(StoreError::Invalid(format!("{}: has no bytes", inner.name())));
        };
        let whole = [shape, &place.shape].concat();
        let bytes = place
            .shape
            .iter()
            .try_fold(place.dtype.size() as u64, |all, length| all.checked_mul(*length));
        let end = bytes.and_then(|bytes| bytes.checked_add(place.offset));
        if end.is_none_or(|end| end > *record) || !is_computable(&whole, place.dtype) {
            return Err(StoreError::Invalid(format!(
                "{}: {place:?} leaves {record} bytes",
                inner.name()
            )));
        }
        let field = RecordField {
            identity: format!("{}@{place:?}", inner.identity()),
            inner,
            place,
            shape: whole,
        };
        match field.inner.memory() {
            Some(_) => field.in_memory(),
            None => Ok(Arc::new(field)),
        }
    }
}

/// A field of the elements of `inner`, whose last axis are their bytes.
///
/// Invariant: the field lies in an element.
#[derive(Debug)]
struct RecordField {
    inner: Arc<dyn Source>,
    place: FieldPlace,
    shape: Vec<u64>,
    identity: String,
}

impl RecordField {
    fn outer(&self) -> usize {
        self.shape.len() - self.place.shape.len()
    }

    /// The part of a region that lies within elements.
    fn part(&self, region: &Region) -> Region {
        let outer = self.outer();
        Region::new(region.start[outer..].to_vec(), region.shape[outer..].to_vec())
    }

    /// The bytes from the first to the last that a region has in each element.
    fn hull(&self, region: &Region) -> Region {
        let (outer, item) = (self.outer(), self.place.dtype.size() as u64);
        let part = self.part(region);
        let axes = c_strides(&self.place.shape).into_iter().enumerate();
        let (first, last) = axes.fold((0, 0), |(first, last), (axis, stride)| {
            (
                first + part.start[axis] * stride,
                last + part.end(axis).saturating_sub(1) * stride,
            )
        });
        let bytes = if region.is_empty() {
            0
        } else {
            (last + 1 - first) * item
        };
        let mut start = region.start[..outer].to_vec();
        let mut shape = region.shape[..outer].to_vec();
        start.push(self.place.offset + first * item);
        shape.push(bytes);
        Region::new(start, shape)
    }

    /// Has a region's elements follow each other from `base` on, where bytes of the hull lie from `from` on behind it.
    fn gather(&self, region: &Region, frame: &mut [u8], from: usize, base: usize) {
        let item = self.place.dtype.size();
        let (part, hull) = (self.part(region), self.hull(region));
        let elements: u64 = hull.shape[..self.outer()].iter().product();
        let stride = hull.shape[self.outer()] as usize;
        let skipped = (hull.start[self.outer()] - self.place.offset) as usize;
        let runs = part.runs(&self.place.shape);
        let runs: Vec<(usize, usize)> = runs
            .map(|run| (run.start as usize * item - skipped, run.length as usize * item))
            .collect();
        let mut to = base;
        for element in 0..elements as usize {
            for (begin, length) in &runs {
                let at = from + element * stride + begin;
                frame.copy_within(at..at + length, to);
                to += length;
            }
        }
        make_native(&mut frame[base..to], self.place.dtype, self.place.is_swapped);
    }

    /// Of bytes that are in memory, a copy.
    fn in_memory(&self) -> Result<Arc<dyn Source>, StoreError> {
        let Some(view) = self.inner.memory() else {
            return Err(StoreError::Invalid(format!("{}: is not in memory", self.name())));
        };
        let strides: Vec<i64> = c_strides(&self.shape).into_iter().map(|stride| stride as i64).collect();
        let record = self.inner.shape()[self.outer()] as usize;
        let (begin, item) = (self.place.offset as usize, self.place.dtype.size());
        let bytes = self.place.shape.iter().product::<u64>() as usize * item;
        let records = view.data.chunks_exact(record.max(1));
        let mut copy: Vec<u8> = records
            .flat_map(|record| &record[begin..begin + bytes])
            .copied()
            .collect();
        make_native(&mut copy, self.place.dtype, self.place.is_swapped);
        let source = MemorySource::new(Arc::new(copy), self.place.dtype, 0, &self.shape, &strides)?;
        Ok(Arc::new(source.known_as(&self.identity)))
    }
}

impl Source for RecordField {
    as_inner!();

    fn dtype(&self) -> DType {
        self.place.dtype
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn layout(&self) -> Layout {
        match self.inner.layout() {
            Layout::Chunks(chunk) => Layout::Chunks([&chunk[..self.outer()], &self.place.shape].concat()),
            other => other,
        }
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn check_region(&self, region: &Region) -> Result<(), StoreError> {
        region.check_in(&self.shape, &self.name())?;
        self.inner.check_region(&self.hull(region))
    }

    fn cost(&self, region: &Region, io: &Io) -> Result<ReadCost, StoreError> {
        region.check_in(&self.shape, &self.name())?;
        self.inner.cost(&self.hull(region), io)
    }

    fn read(&self, region: &Region, frame: &mut [u8], io: &Io) -> Result<usize, StoreError> {
        region.check_in(&self.shape, &self.name())?;
        let from = self.inner.read(&self.hull(region), frame, io)?;
        let base = from - from % self.place.dtype.size();
        self.gather(region, frame, from, base);
        Ok(base)
    }
}
