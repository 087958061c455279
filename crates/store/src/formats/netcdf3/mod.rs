//! Variables of NetCDF-3 files (CDF-1, CDF-2 and CDF-5) as sources.
//!
//! Start with `header.rs`, which says where variables are; `open.rs` makes sources of them, `manifest.rs` places the records of a
//! variable that grows.

mod annotations;
mod header;
mod manifest;
mod open;

pub use header::{parse_netcdf3_header, NetCdf3Header};
pub(crate) use open::{find_netcdf3, is_begun_by};
