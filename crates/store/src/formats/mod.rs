//! One folder a format. A format uses `array` and the rooms below, and no other format.

pub mod graph;
pub mod npy;
pub mod sparse;
pub mod text;
pub mod zarr;
