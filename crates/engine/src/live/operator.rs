//! Live work as it is before it runs: its memory, its bound of I/O.

use super::memory::LiveMemory;
use super::pages::Paged;
use super::resources::{Resources, Watch};
use crate::EngineError;

/// Work whose reads follow from its results so far.
///
/// 1. `memory` and `bound` are pure, and read nothing: a forecast is made of them.
/// 2. `run` holds no more than the resources say, `known` and `memory`; it reads with their `io` or by way of their cache alone.
pub trait LiveOperator: Sync {
    type Output: Send;

    /// As errors call it.
    fn name(&self) -> &'static str;

    /// The memory that it needs and can use with so many threads.
    fn memory(&self, threads: usize) -> LiveMemory;

    /// The file that it reads by way of a page cache, if it does.
    fn paged(&self) -> Option<&dyn Paged> {
        None
    }

    fn bound(&self) -> IoBound {
        IoBound::default()
    }

    /// Does the work.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it says; the error of `watch`.
    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<Self::Output, EngineError>;

    /// False where it had `frugal` bytes and they were too few.
    fn is_enough(&self, _output: &Self::Output) -> bool {
        true
    }

    /// Bytes that go with the work and count for others, so that the allocator gives them back.
    fn freed_bytes(&self) -> u64 {
        u64::MAX
    }
}

/// The bytes that an operator reads, as far as that is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoBound {
    /// The most, where no page is met in the cache; nothing where it is not bounded.
    pub most: Option<u64>,
    /// Where each page is read once. No bound: a cache may let pages go.
    pub once: u64,
    /// Bytes read where the cache has room for all lists, and no page of them yet: exactly, of work that reads them in order.
    pub cold: Option<u64>,
    /// The reason.
    pub because: String,
}
