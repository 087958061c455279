//! Boxes of arrays, and how the axes of one follow from those of another.

use outcore_store::Interval;

/// A box of an array: an interval of each axis.
pub type AxisBox = Vec<Interval>;

/// How one axis of the base follows from the gathered value's axes: index `start + step · i` for output index `i`,
/// or `start` alone where the axis is fixed or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseAxis {
    pub output: Option<usize>,
    pub start: i64,
    pub step: i64,
}

/// Cuts the flat indices `first..first + count` into boxes, in order.
pub fn flat_boxes(shape: &[u64], first: u64, count: u64) -> Vec<(AxisBox, u64)> {
    let mut boxes = Vec::new();
    let (mut flat, end) = (first, first + count);
    let strides: Vec<u64> = (0..shape.len())
        .map(|axis| shape[axis + 1..].iter().product())
        .collect();
    while flat < end {
        // The longest run of whole trailing axes that starts here.
        let axis = (0..shape.len()).find(|&axis| flat % strides[axis] == 0 && strides[axis] <= end - flat);
        let axis = axis.unwrap_or(shape.len().saturating_sub(1));
        if shape.is_empty() {
            return vec![(vec![], 1)];
        }
        let position = flat / strides[axis] % shape[axis];
        let run = ((end - flat) / strides[axis]).min(shape[axis] - position);
        let region = (0..shape.len())
            .map(|a| match a.cmp(&axis) {
                std::cmp::Ordering::Less => Interval::new(flat / strides[a] % shape[a], 1),
                std::cmp::Ordering::Equal => Interval::new(position, run),
                std::cmp::Ordering::Greater => Interval::new(0, shape[a]),
            })
            .collect();
        boxes.push((region, run * strides[axis]));
        flat += run * strides[axis];
    }
    boxes
}
