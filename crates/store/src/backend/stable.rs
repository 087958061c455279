//! The buffers that a ring is lent.

use super::ring::{Stable, StableMut};
use crate::memory::frames::Frame;
use crate::memory::mapping::AlignedBuffer;
use crate::memory::pages::{PageMut, PagePin};

// SAFETY: a mapping that the value owns.
unsafe impl Stable for AlignedBuffer {}
// SAFETY: as above.
unsafe impl StableMut for AlignedBuffer {}
// SAFETY: it owns an `AlignedBuffer`, and has a fixed capacity.
unsafe impl Stable for Frame {}
// SAFETY: as above.
unsafe impl StableMut for Frame {}
// SAFETY: a frame that never moves and has no owner while the pin lives.
unsafe impl Stable for PagePin {}
// SAFETY: a frame that never moves, lent to this value alone.
unsafe impl Stable for PageMut {}
// SAFETY: as above.
unsafe impl StableMut for PageMut {}
