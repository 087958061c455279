//! One folder a format. Uses `array` and the rooms below; a format uses no other format. Start with `npy/`.

pub mod factor;
pub mod graph;
pub mod hdf5;
pub mod netcdf3;
pub mod npy;
pub mod sparse;
pub mod text;
pub mod zarr;
