//! Bytes of one file: direct, buffered, in memory, behind a network; the fence around io_uring, which imports nothing of ours; stamps that tell
//! whether a file changed. Uses `base` and `memory`. Start with the traits in `backends.rs`.

mod backends;
pub(crate) mod object;
pub mod remote;
#[allow(unsafe_code)] // buffers that the kernel fills
mod ring;
#[allow(unsafe_code)] // promises that buffers do not move
mod stable;
pub mod stamp;

pub use backends::{descriptor, Backend, Backing, Blob, Buffered, CallWatch, Direct, Memory, Mode};
pub(crate) use ring::{Bell, Completed, Ring, DEPTH};
pub use ring::{Stable, StableMut};
