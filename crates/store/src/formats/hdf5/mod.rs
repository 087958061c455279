//! Datasets of HDF5 files as sources: `outcore-hdf5` says where the data are, and they are read as those of other formats. As
//! outputs, where somebody else makes the file around their elements: `part.rs`.
//!
//! NetCDF-4, `.h5ad` and MATLAB 7.3 files are HDF5. Start with `open.rs`; `types.rs` says which elements and filters there are.

mod annotations;
mod bytes;
mod open;
mod part;
mod records;
mod types;

pub(crate) use open::Hdf5;
pub use part::FilePart;
pub(crate) use part::PartPlan;
pub use types::decode_hdf5_chunk;
