//! Hints to the processor, which change no value.

#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Asks for the cache lines of `bytes` ahead of their use.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.iter().step_by(LINE_BYTES) {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a prefetch reads nothing into the program and faults on no address; this one is of live memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Asks for the cache lines of `bytes` ahead of writes to them.
#[inline]
pub fn prefetch_for_write(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.iter_mut().step_by(LINE_BYTES) {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_ET0};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_mut(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Asks for the cache line of the element at `at`, if there is one, ahead of a write to it.
#[inline(always)]
pub fn prefetch_element<T>(elements: &mut [T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get_mut(at) {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_ET0};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_mut(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, at);
}
