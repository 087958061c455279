//! Boxes of an array, the contiguous runs they are made of, and copies between boxes.

use outcore_dtype::DType;

use crate::base::interval::Interval;
use crate::StoreError;

/// A box of an array: where it starts and its shape, in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    pub start: Vec<u64>,
    pub shape: Vec<u64>,
}

impl Region {
    pub fn new(start: Vec<u64>, shape: Vec<u64>) -> Region {
        debug_assert_eq!(start.len(), shape.len());
        Region { start, shape }
    }

    /// All of an array.
    pub fn full(shape: &[u64]) -> Region {
        Region {
            start: vec![0; shape.len()],
            shape: shape.to_vec(),
        }
    }

    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    pub fn end(&self, axis: usize) -> u64 {
        self.start[axis] + self.shape[axis]
    }

    /// The box both share, when it is not empty.
    pub fn intersect(&self, other: &Region) -> Option<Region> {
        let mut shared = Region {
            start: Vec::new(),
            shape: Vec::new(),
        };
        for axis in 0..self.start.len() {
            let start = self.start[axis].max(other.start[axis]);
            let end = self.end(axis).min(other.end(axis));
            if start >= end {
                return None;
            }
            shared.start.push(start);
            shared.shape.push(end - start);
        }
        Some(shared)
    }

    /// The same box seen from `origin`.
    pub fn relative_to(&self, origin: &[u64]) -> Region {
        let start = self
            .start
            .iter()
            .zip(origin)
            .map(|(start, origin)| start - origin)
            .collect();
        Region {
            start,
            shape: self.shape.clone(),
        }
    }

    /// Refuses a box that does not lie in an array of `shape`.
    ///
    /// # Errors
    /// The region leaves the shape; both are named.
    pub fn check_in(&self, shape: &[u64], name: &str) -> Result<(), StoreError> {
        let inside = self.start.len() == shape.len()
            && self.shape.len() == shape.len()
            && (0..shape.len()).all(|axis| {
                self.start[axis]
                    .checked_add(self.shape[axis])
                    .is_some_and(|end| end <= shape[axis])
            });
        if inside {
            return Ok(());
        }
        let Region { start, shape: extent } = self;
        Err(StoreError::Invalid(format!(
            "{name}: region {start:?} + {extent:?} is outside of shape {shape:?}"
        )))
    }

    /// The maximal contiguous runs of the box in a C-ordered array, ascending.
    pub fn runs<'a>(&'a self, array: &'a [u64]) -> RegionRuns<'a> {
        let mut inner = self.shape.len();
        let mut length = 1;
        while inner > 0 {
            inner -= 1;
            length *= self.shape[inner];
            if self.shape[inner] != array[inner] {
                break;
            }
        }
        let strides = c_strides(array);
        let first = self
            .start
            .iter()
            .zip(&strides)
            .map(|(start, stride)| start * stride)
            .sum();
        let next = (!self.is_empty()).then_some(first);
        RegionRuns {
            region: self,
            strides,
            outer: inner,
            length,
            position: vec![0; inner],
            next,
        }
    }

    /// Whether the box is one run of a C-ordered array.
    pub fn is_contiguous_in(&self, array: &[u64]) -> bool {
        self.runs(array).nth(1).is_none()
    }
}

/// Strides of a C-ordered array, in elements.
pub(crate) fn c_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1u64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// The product, unless it overflows; zero-sized axes count as zero whatever the others are.
pub(crate) fn checked_elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape
        .iter()
        .try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

/// Whether sizes of regions of an array can be computed with, even where some of its axes have no length.
pub(crate) fn is_computable(shape: &[u64], dtype: DType) -> bool {
    let others: Vec<u64> = shape.iter().map(|&length| length.max(1)).collect();
    let bytes = checked_elements(&others).and_then(|elements| elements.checked_mul(dtype.size() as u64));
    bytes.is_some_and(|bytes| bytes < i64::MAX as u64 / 4)
}

/// Iterator over intervals of elements.
pub struct RegionRuns<'a> {
    region: &'a Region,
    strides: Vec<u64>,
    /// Axes before this one are stepped through; the others make up one run.
    outer: usize,
    length: u64,
    position: Vec<u64>,
    next: Option<u64>,
}

impl Iterator for RegionRuns<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let run = Interval::new(self.next?, self.length);
        self.next = None;
        let mut offset = run.start;
        for axis in (0..self.outer).rev() {
            self.position[axis] += 1;
            offset += self.strides[axis];
            if self.position[axis] < self.region.shape[axis] {
                self.next = Some(offset);
                break;
            }
            offset -= self.position[axis] * self.strides[axis];
            self.position[axis] = 0;
        }
        Some(run)
    }
}

/// Runs of bytes of one array beside those of another that list the same elements in the same order.
pub(crate) struct PairedRuns<'a> {
    runs: RegionRuns<'a>,
    /// Bytes of an element.
    item: u64,
    rest: Interval,
}

impl<'a> PairedRuns<'a> {
    pub(crate) fn new(runs: RegionRuns<'a>, item: usize) -> PairedRuns<'a> {
        PairedRuns {
            runs,
            item: item as u64,
            rest: Interval::new(0, 0),
        }
    }

    /// Gives `each` the places of the next `length` bytes.
    pub(crate) fn each(&mut self, mut length: u64, mut each: impl FnMut(Interval)) {
        while length > 0 {
            if self.rest.length == 0 {
                let Some(run) = self.runs.next() else { return };
                self.rest = Interval::new(run.start * self.item, run.length * self.item);
                continue;
            }
            let taken = self.rest.length.min(length);
            each(Interval::new(self.rest.start, taken));
            self.rest = Interval::new(self.rest.start + taken, self.rest.length - taken);
            length -= taken;
        }
    }
}

/// The grid cells that a box touches, in C order, one after the other in the same memory.
pub(crate) struct Cells {
    low: Vec<u64>,
    high: Vec<u64>,
    at: Vec<u64>,
    started: bool,
    done: bool,
}

impl Cells {
    /// The cells of shape `cell` that `region` touches.
    pub(crate) fn of(region: &Region, cell: &[u64]) -> Cells {
        let done = region.is_empty();
        let axes = || (0..cell.len()).filter(|_| !done);
        let low: Vec<u64> = axes().map(|axis| region.start[axis] / cell[axis]).collect();
        Cells {
            high: axes().map(|axis| (region.end(axis) - 1) / cell[axis]).collect(),
            at: low.clone(),
            low,
            started: false,
            done,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        if self.done {
            return 0;
        }
        self.low
            .iter()
            .zip(&self.high)
            .map(|(low, high)| high - low + 1)
            .product()
    }

    pub(crate) fn next(&mut self) -> Option<&[u64]> {
        if !self.done && self.started {
            self.done = true;
            for axis in (0..self.at.len()).rev() {
                if self.at[axis] < self.high[axis] {
                    self.at[axis] += 1;
                    self.done = false;
                    break;
                }
                self.at[axis] = self.low[axis];
            }
        }
        self.started = true;
        (!self.done).then_some(&self.at)
    }
}

/// One side of a copy: where element 0 lies and how far apart elements are, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Lattice {
    pub offset: i64,
    pub strides: Vec<i64>,
}

impl Lattice {
    /// The lattice of a box inside a C-ordered array.
    pub(crate) fn of_box(array: &[u64], start: &[u64]) -> Lattice {
        let strides: Vec<i64> = c_strides(array).into_iter().map(|stride| stride as i64).collect();
        Lattice {
            offset: start
                .iter()
                .zip(&strides)
                .map(|(start, stride)| *start as i64 * stride)
                .sum(),
            strides,
        }
    }
}

/// Copies a box of `shape` elements of `item` bytes between two lattices. Ranges are checked by slicing.
pub(crate) fn copy_lattice(from: &[u8], source: &Lattice, to: &mut [u8], target: &Lattice, shape: &[u64], item: usize) {
    if shape.contains(&0) {
        return;
    }
    // Axes that are contiguous on both sides become one run of bytes.
    let mut outer = shape.len();
    let mut run = 1i64;
    while outer > 0 && source.strides[outer - 1] == run && target.strides[outer - 1] == run {
        outer -= 1;
        run *= shape[outer] as i64;
    }
    // Without such an axis the last one is stepped through element by element.
    let steps = (run == 1 && outer > 0).then(|| {
        outer -= 1;
        Steps {
            count: shape[outer],
            read: source.strides[outer],
            write: target.strides[outer],
        }
    });
    let mut position = vec![0u64; outer];
    let (mut read, mut write) = (source.offset, target.offset);
    let bytes = run as usize * item;
    loop {
        match &steps {
            Some(steps) => steps.copy(from, read, to, write, item),
            None => {
                let (r, w) = (read as usize * item, write as usize * item);
                to[w..w + bytes].copy_from_slice(&from[r..r + bytes]);
            }
        }
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            position[axis] += 1;
            read += source.strides[axis];
            write += target.strides[axis];
            if position[axis] < shape[axis] {
                break;
            }
            read -= position[axis] as i64 * source.strides[axis];
            write -= position[axis] as i64 * target.strides[axis];
            position[axis] = 0;
        }
    }
}

/// A line of elements that are not neighbours on at least one side.
struct Steps {
    count: u64,
    read: i64,
    write: i64,
}

impl Steps {
    fn copy(&self, from: &[u8], read: i64, to: &mut [u8], write: i64, item: usize) {
        match item {
            1 => self.copy_items::<1>(from, read, to, write),
            2 => self.copy_items::<2>(from, read, to, write),
            4 => self.copy_items::<4>(from, read, to, write),
            8 => self.copy_items::<8>(from, read, to, write),
            _ => self.copy_items::<16>(from, read, to, write),
        }
    }

    /// The size is a constant, so that an element is one load and one store.
    fn copy_items<const ITEM: usize>(&self, from: &[u8], mut read: i64, to: &mut [u8], mut write: i64) {
        for _ in 0..self.count {
            let (r, w) = (read as usize * ITEM, write as usize * ITEM);
            to[w..w + ITEM].copy_from_slice(&from[r..r + ITEM]);
            read += self.read;
            write += self.write;
        }
    }
}

/// The box of a tile of a grid.
pub(crate) fn region_of(shape: &[u64], tile: &[u64], mut index: u64) -> Option<Region> {
    let mut start = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        let count = shape[axis].div_ceil(tile[axis]);
        start[axis] = index.checked_rem(count)? * tile[axis];
        index /= count;
    }
    let lengths = start.iter().zip(tile).zip(shape);
    let shape = lengths
        .map(|((start, tile), length)| (*tile).min(length - start))
        .collect();
    (index == 0).then_some(Region { start, shape })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_rows_are_one_run() {
        let rows = Region::new(vec![2, 0, 0], vec![3, 4, 5]);
        assert_eq!(rows.runs(&[9, 4, 5]).collect::<Vec<_>>(), [Interval::new(40, 60)]);
        let columns = Region::new(vec![1, 1], vec![2, 2]);
        assert_eq!(
            columns.runs(&[4, 5]).collect::<Vec<_>>(),
            [Interval::new(6, 2), Interval::new(11, 2)]
        );
        assert_eq!(Region::full(&[]).runs(&[]).collect::<Vec<_>>(), [Interval::new(0, 1)]);
        assert_eq!(Region::full(&[3, 0]).runs(&[3, 0]).count(), 0);
    }

    fn array_and_box() -> impl Strategy<Value = (Vec<u64>, Region)> {
        proptest::collection::vec((1u64..6, 0u64..6, 0u64..6), 0..4).prop_map(|axes| {
            let array: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let start: Vec<u64> = axes.iter().map(|axis| axis.1.min(axis.0)).collect();
            let shape = axes
                .iter()
                .zip(&start)
                .map(|(axis, start)| axis.2.min(axis.0 - start))
                .collect();
            (array, Region { start, shape })
        })
    }

    proptest! {
        #[test]
        fn runs_list_the_elements_of_the_box_in_order((array, region) in array_and_box()) {
            let listed: Vec<u64> = region.runs(&array).flat_map(Interval::indices).collect();
            let strides = c_strides(&array);
            let total: u64 = array.iter().product();
            let expected: Vec<u64> = (0..total)
                .filter(|element| (0..array.len()).all(|axis| {
                    let index = element / strides[axis] % array[axis];
                    region.start[axis] <= index && index < region.end(axis)
                }))
                .collect();
            prop_assert_eq!(&listed, &expected);
            let from: Vec<u8> = (0..total as usize).map(|value| value as u8).collect();
            let mut to = vec![0u8; region.elements() as usize];
            let target = Lattice::of_box(&region.shape, &vec![0; array.len()]);
            copy_lattice(&from, &Lattice::of_box(&array, &region.start), &mut to, &target, &region.shape, 1);
            prop_assert_eq!(to, expected.iter().map(|value| *value as u8).collect::<Vec<_>>());
        }

        #[test]
        fn paired_runs_list_the_bytes_in_order_however_they_are_cut((array, region) in array_and_box(), cut in 1u64..9) {
            let bytes = |run: Interval| run.start * 3..(run.start + run.length) * 3;
            let expected: Vec<u64> = region.runs(&array).flat_map(bytes).collect();
            let (mut listed, mut paired) = (vec![], PairedRuns::new(region.runs(&array), 3));
            for _ in 0..(3 * region.elements()).div_ceil(cut) {
                paired.each(cut, |place| listed.extend(place.indices()));
            }
            prop_assert_eq!(listed, expected);
        }

        #[test]
        fn cells_cover_the_box_once((array, region) in array_and_box(), cell in 1u64..4) {
            let cell = vec![cell; array.len()];
            let mut cells = Cells::of(&region, &cell);
            let count = cells.count();
            let (mut covered, mut seen) = (0, 0);
            while let Some(index) = cells.next() {
                let start: Vec<u64> = index.iter().zip(&cell).map(|(index, cell)| index * cell).collect();
                covered += region.intersect(&Region::new(start, cell.clone())).map_or(0, |part| part.elements());
                seen += 1;
            }
            prop_assert_eq!((covered, seen), (region.elements(), count));
        }
    }
}
