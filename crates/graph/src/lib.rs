//! Graphs as bytes: lists of neighbours coded by their gaps, and the index that says where each of them lies.
//!
//! Pure functions on slices, which any bytes may be given to: no file, no thread, no allocation that the bytes ask for.
//!
//! A list is the number of its neighbours (7 bits a byte, the last byte without the high bit), then two bits for the length
//! of each gap, four gaps to a byte, then the gaps, of 1 to 4 bytes each. Neighbours ascend; the first gap is the distance
//! from the vertex itself, its sign in the lowest bit. A vertex without neighbours has a list of no bytes.
//! Two bits and whole bytes are decoded without a branch for each gap, unlike codes that end in a marked byte
//! (Dean, "Challenges in building large-scale information retrieval systems", WSDM 2009, group varint).
//!
//! **Invariant.** Unsafe code lives in the module `fence` alone: vectors for processors that have them.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod fence;
mod gaps;
mod index;
mod list;

pub use index::{IndexParts, ListIndex, Span};
pub use list::{decode, degree, encode, has_any, list_bytes_max, ListParts, Malformed, HEAD_BYTES};

/// The number of a vertex. A graph has fewer than 2^32 - 1 of them: what is known of each is in memory.
pub type Vertex = u32;
