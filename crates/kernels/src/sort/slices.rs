//! The caller's bytes as what a sort works on.

use bytemuck::Pod;

/// Bytes as elements; no bytes need no alignment.
pub(super) fn view<A: Pod, B: Pod>(slice: &[A]) -> &[B] {
    if slice.is_empty() {
        return &[];
    }
    bytemuck::cast_slice(slice)
}

/// As [`view`].
pub(super) fn view_mut<A: Pod, B: Pod>(slice: &mut [A]) -> &mut [B] {
    if slice.is_empty() {
        return &mut [];
    }
    bytemuck::cast_slice_mut(slice)
}

/// Exactly the first `bytes` of the workspace.
pub(super) fn take<'a>(what: &str, workspace: &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    assert!(
        workspace.len() >= bytes,
        "{what}: {bytes} bytes of workspace needed, {} given",
        workspace.len()
    );
    &mut workspace[..bytes]
}

/// The payload of keys that carry none: elements of no size, at no place.
pub(super) fn nothing<'a>(count: usize) -> &'a mut [()] {
    vec![(); count].leak()
}
