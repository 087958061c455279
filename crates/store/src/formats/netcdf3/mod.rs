//! Variables of NetCDF-3 files (CDF-1, CDF-2 and CDF-5) as sources.
//!
//! Start with `header.rs`, which says where variables are; `open.rs` makes sources of them, `records.rs` places the records of a
//! variable that grows.

mod annotations;
mod header;
mod open;
mod records;

pub use header::{parse_netcdf3_header, NetCdf3Header};
pub(crate) use open::NetCdf3;
