//! Lists of neighbours coded by their gaps, and the index that says where each of them lies.
//!
//! A list is the number of its neighbours (7 bits a byte, the last byte without the high bit), then two bits for the length
//! of each gap, four gaps to a byte, then the gaps, of 1 to 4 bytes each. Neighbours ascend; the first gap is the distance
//! from the vertex itself, its sign in the lowest bit. A vertex without neighbours has a list of no bytes.
//! Two bits and whole bytes are decoded without a branch for each gap, unlike codes that end in a marked byte
//! (Dean, "Challenges in building large-scale information retrieval systems", WSDM 2009, group varint).

#[allow(unsafe_code)]
mod fence;
mod gaps;
mod index;
mod list;
mod types;

pub use index::{IndexParts, ListIndex};
pub use list::{decode, degree, encode, has_any, list_bytes_max, ListParts, HEAD_BYTES};
pub use types::{Extent, Vertex};
