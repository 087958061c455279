//! Memory of cache pages, each lent to many readers or to one owner: checked with every loan, not trusted.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};

use rustix::mm::{madvise, Advice};

use crate::base::gate::Gate;
use crate::base::page::PAGE;
use crate::AlignedBuffer;

const OWNED: u32 = 1 << 31;
const PARTS: usize = 32;
/// The name of no page.
const NO_NAME: u64 = u64::MAX;

/// Frames of one size for pages, numbered from 0. More can be added at any time; none ever moves.
///
/// Invariants:
/// 1. `lent` of a frame is `OWNED` while one `PageMut` of it lives, else the number of its `PageRef`s and `PagePin`s.
/// 2. A frame without owner has all of the page that its name says, or the name of none.
/// 3. A part is never replaced, so what points into it is valid while the `PageMemory` lives.
pub(crate) struct PageMemory {
    page_bytes: usize,
    /// Frames of part 0; each further part has as many as all before it together.
    base: usize,
    parts: [OnceLock<PagePart>; PARTS],
    /// Frames whose memory is used, and so is there.
    used: AtomicUsize,
    /// Announces that a frame is lent to nobody any more.
    idle: Gate,
}

struct PagePart {
    pages: AlignedBuffer,
    /// `PageRecord`s: zeroed memory is that of frames without name and loan, and is not there before it is touched.
    records: AlignedBuffer,
    /// Done once memory has been given back: the kernel would fill the gaps to make huge pages of what is left.
    no_huge_pages: Once,
}

/// What is known of a frame; it is told from its set's tag by the name, and pinned, in one cache line.
#[repr(C, align(16))]
struct PageRecord {
    name: AtomicU64,
    lent: AtomicU32,
    /// Whether it is one of the `used`.
    is_used: AtomicBool,
}

/// Begins to bring `value`, or its first two cache lines, to the processor, for who will look at it soon.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        let start = std::ptr::from_ref(value).cast::<i8>();
        // SAFETY: hints about addresses, which change nothing whatever lies there. SSE is part of the architecture.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Bytes that the ledger is charged for a frame besides its page.
pub(crate) const RECORD_BYTES: usize = size_of::<PageRecord>();

/// The part that item `at` lies in, and its place there.
pub(crate) fn locate(base: usize, at: usize) -> (usize, usize) {
    if at < base {
        return (0, at);
    }
    let part = doublings(base, at) as usize;
    (part + 1, at - (base << part))
}

/// How often `base` can be doubled and is `number` at most; neither is 0, nor is `base` more. A division takes much longer.
#[inline]
pub(crate) fn doublings(base: usize, number: usize) -> u32 {
    let most = number.ilog2() - base.ilog2();
    most - u32::from(base << most > number)
}

/// How many items part `part` has.
pub(crate) fn part_len(base: usize, part: usize) -> usize {
    base << part.saturating_sub(1)
}

impl PageMemory {
    pub(crate) fn new(page_bytes: usize, base: usize) -> PageMemory {
        PageMemory {
            page_bytes,
            base: base.max(1),
            parts: [const { OnceLock::new() }; PARTS],
            used: AtomicUsize::new(0),
            idle: Gate::default(),
        }
    }

    /// Sees to it that frame `frame` can be used. Not from two threads at once.
    pub(crate) fn make(&self, frame: u32) -> std::io::Result<()> {
        let (part, _) = locate(self.base, frame as usize);
        if self.parts[part].get().is_none() {
            let frames = part_len(self.base, part);
            let made = PagePart {
                pages: AlignedBuffer::new(frames * self.page_bytes)?,
                records: AlignedBuffer::new(frames * RECORD_BYTES)?,
                no_huge_pages: Once::new(),
            };
            let _ = self.parts[part].set(made);
        }
        Ok(())
    }

    /// Frames whose memory is used, whether they hold a page now or did.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Announces that frames have been given back.
    pub(crate) fn idle(&self) -> &Gate {
        &self.idle
    }

    #[inline]
    fn find(&self, frame: u32) -> (&PagePart, usize) {
        let (part, at) = locate(self.base, frame as usize);
        (
            self.parts[part].get().expect("frames are made before they are used"),
            at,
        )
    }

    #[inline]
    fn record(&self, frame: u32) -> &PageRecord {
        let (part, at) = self.find(frame);
        debug_assert!((at + 1) * RECORD_BYTES <= part.records.len());
        // SAFETY: `records` holds `part_len` records, of which `locate` gives one; zeroed bytes are valid atomics, they
        // are reached through shared references only, and stay (invariant 3).
        unsafe { part.records.start().cast::<PageRecord>().add(at).as_ref() }
    }

    #[inline]
    fn start(&self, frame: u32) -> NonNull<u8> {
        let (part, at) = self.find(frame);
        debug_assert!((at + 1) * self.page_bytes <= part.pages.len());
        // SAFETY: `pages` holds `part_len` pages, of which `locate` gives one.
        unsafe { part.pages.start().add(at * self.page_bytes) }
    }

    pub(crate) fn name(&self, frame: u32) -> u64 {
        self.record(frame).name.load(Ordering::Relaxed)
    }

    pub(crate) fn set_name(&self, frame: u32, name: u64) {
        self.record(frame).name.store(name, Ordering::Relaxed);
    }

    /// Begins to bring what is known of the frame to the processor.
    #[inline]
    pub(crate) fn expect(&self, frame: u32) {
        prefetch(self.record(frame));
    }

    #[inline]
    fn add_reader(&self, frame: u32) -> Option<&PageRecord> {
        let record = self.record(frame);
        let more = |lent: u32| (lent < OWNED - 1).then_some(lent + 1);
        let added = record.lent.fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        added.is_ok().then_some(record)
    }

    fn remove_reader(&self, record: &PageRecord) {
        if record.lent.fetch_sub(1, Ordering::Release) == 1 {
            self.idle.announce();
        }
    }

    /// Lends the frame to one more reader, unless it has an owner.
    #[inline]
    pub(crate) fn pin(&self, frame: u32) -> Option<PageRef<'_>> {
        let record = self.add_reader(frame)?;
        Some(PageRef {
            memory: self,
            record,
            start: self.start(frame),
        })
    }

    /// As `pin`, if the frame has the page of that name now: no set needs to be locked for that.
    #[inline]
    pub(crate) fn pin_named(&self, frame: u32, name: u64) -> Option<PageRef<'_>> {
        // Who is lent a frame sees its name as its last owner left it, and that stays.
        self.pin(frame)
            .filter(|page| page.record.name.load(Ordering::Relaxed) == name)
    }

    /// As `pin`, for as long as the caller likes.
    pub(crate) fn hold(self: &Arc<Self>, frame: u32) -> Option<PagePin> {
        self.add_reader(frame)?;
        Some(PagePin {
            memory: self.clone(),
            frame,
            start: self.start(frame),
        })
    }

    /// Lends the frame to an owner, unless it is lent.
    pub(crate) fn own(self: &Arc<Self>, frame: u32) -> Option<PageMut> {
        let lent = &self.record(frame).lent;
        lent.compare_exchange(0, OWNED, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(PageMut {
            memory: self.clone(),
            frame,
            start: self.start(frame),
        })
    }
}

/// A page that may be read, and stays where and what it is.
pub(crate) struct PageRef<'a> {
    memory: &'a PageMemory,
    record: &'a PageRecord,
    start: NonNull<u8>,
}

impl PageRef<'_> {
    /// The same page, pinned once more.
    pub(crate) fn again(&self) -> Self {
        self.record.lent.fetch_add(1, Ordering::Relaxed);
        PageRef { ..*self }
    }
}

impl Deref for PageRef<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the frame has `page_bytes` bytes, and no owner while this loan lasts (invariant 1).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.memory.page_bytes) }
    }
}

impl Drop for PageRef<'_> {
    fn drop(&mut self) {
        self.memory.remove_reader(self.record);
    }
}

/// A `PageRef` that keeps the memory too.
pub(crate) struct PagePin {
    memory: Arc<PageMemory>,
    frame: u32,
    start: NonNull<u8>,
}

// SAFETY: a loan of bytes that nobody changes while it lasts; it may be read and ended by any thread.
unsafe impl Send for PagePin {}

impl Deref for PagePin {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: as for `PageRef`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.memory.page_bytes) }
    }
}

impl Drop for PagePin {
    fn drop(&mut self) {
        self.memory.remove_reader(self.memory.record(self.frame));
    }
}

/// A page that this value alone may read and write.
pub(crate) struct PageMut {
    memory: Arc<PageMemory>,
    frame: u32,
    start: NonNull<u8>,
}

// SAFETY: bytes that are owned, as those of a `Box<[u8]>` are.
unsafe impl Send for PageMut {}

impl PageMut {
    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

    /// Says that the frame has no page, before it is lent to readers.
    pub(crate) fn forget(&self) {
        self.memory.set_name(self.frame, NO_NAME);
    }

    /// Says that the memory will be used.
    pub(crate) fn use_it(&self) {
        if !self.memory.record(self.frame).is_used.swap(true, Ordering::Relaxed) {
            self.memory.used.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets the system have the memory back, where frames are whole pages of it; says how much that is. The bytes are
    /// zeros from then on.
    pub(crate) fn discard(&mut self) -> usize {
        let bytes = self.memory.page_bytes;
        if !bytes.is_multiple_of(PAGE) {
            return 0;
        }
        let (part, _) = self.memory.find(self.frame);
        part.no_huge_pages.call_once(|| {
            let (start, all) = (part.pages.start().as_ptr().cast(), part.pages.len());
            // SAFETY: the range is a mapping of ours, or pages of one; the advice changes no bytes.
            let _ = unsafe { madvise(start, all, Advice::LinuxNoHugepage) };
        });
        // SAFETY: private anonymous memory of whole pages, which nobody else reads or writes (invariant 1).
        let done = unsafe { madvise(self.start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        if done.is_err() {
            return 0;
        }
        self.forget();
        if self.memory.record(self.frame).is_used.swap(false, Ordering::Relaxed) {
            self.memory.used.fetch_sub(1, Ordering::Relaxed);
        }
        bytes
    }
}

impl Deref for PageMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the frame has `page_bytes` bytes and is lent to this value alone (invariant 1).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.memory.page_bytes) }
    }
}

impl DerefMut for PageMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.memory.page_bytes) }
    }
}

impl Drop for PageMut {
    fn drop(&mut self) {
        self.memory.record(self.frame).lent.store(0, Ordering::Release);
        self.memory.idle.announce();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_gaps() {
        let mut next = (0, 0);
        for at in 0..200 {
            assert_eq!(locate(3, at), next);
            next.1 += 1;
            if next.1 == part_len(3, next.0) {
                next = (next.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_page_has_readers_or_an_owner() {
        let memory = Arc::new(PageMemory::new(512, 2));
        for frame in 0..7 {
            memory.make(frame).unwrap();
        }
        let mut owned = memory.own(6).unwrap();
        owned.fill(7);
        assert!(memory.own(6).is_none() && memory.pin(6).is_none() && memory.hold(6).is_none());
        assert!(memory.own(5).is_some());
        drop(owned);
        let (first, second) = (memory.pin(6).unwrap(), memory.hold(6).unwrap());
        assert!(memory.own(6).is_none());
        assert!(first.iter().chain(second.iter()).all(|&byte| byte == 7));
        drop(first);
        assert!(memory.own(6).is_none());
        drop(second);
        assert!(memory.own(6).is_some());
    }

    #[test]
    fn a_base_doubles_as_often_as_a_division_says() {
        for base in 1..40 {
            for number in base..1000 {
                assert_eq!(doublings(base, number), (number / base).ilog2(), "{base} {number}");
            }
        }
    }

    #[test]
    fn a_frame_has_the_page_of_its_name_or_none() {
        let memory = Arc::new(PageMemory::new(PAGE, 1));
        memory.make(0).unwrap();
        let named = |name| memory.pin_named(0, name).is_some();
        let owned = memory.own(0).unwrap();
        memory.set_name(0, 5);
        assert!(!named(5), "it is being read");
        drop(owned);
        assert!(named(5) && !named(6));
        let unread = memory.own(0).expect("nobody has it, whatever was asked for");
        unread.forget();
        drop(unread);
        assert!(!named(5));
        memory.set_name(0, 5);
        assert_eq!(memory.own(0).unwrap().discard(), PAGE);
        assert!(!named(5));
    }

    #[test]
    fn a_discarded_page_is_zeros() {
        let memory = Arc::new(PageMemory::new(PAGE, 1));
        memory.make(0).unwrap();
        let mut page = memory.own(0).unwrap();
        page.fill(1);
        assert_eq!(page.discard(), PAGE);
        assert!(page.iter().all(|&byte| byte == 0));
    }
}
