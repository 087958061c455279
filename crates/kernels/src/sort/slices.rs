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

/// RadixPlaces that are filled one behind the other.
pub(super) struct Filling<'a, 'b> {
    pub places: &'a mut [&'b mut [u8]],
    /// Bytes of the first of them that are filled.
    pub at: usize,
}

impl Filling<'_, '_> {
    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let place = &mut self.places[0][self.at..];
            let length = place.len().min(bytes.len());
            place[..length].copy_from_slice(&bytes[..length]);
            (self.at, bytes) = (self.at + length, &bytes[length..]);
            if length == place.len() {
                self.places = &mut std::mem::take(&mut self.places)[1..];
                self.at = 0;
            }
        }
    }
}
