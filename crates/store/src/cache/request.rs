//! What is asked for, and what is given.

/// A range of bytes that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSpan {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u32,
}

/// The bytes of one request where they lie in the cache: a slice of each page.
pub struct Pages<'a> {
    pub(super) slices: &'a [&'a [u8]],
}

impl<'a> Pages<'a> {
    /// The bytes in order; the first and the last page are cut to the request.
    pub fn slices(&self) -> &'a [&'a [u8]] {
        self.slices
    }

    /// Bytes of the request.
    pub fn len(&self) -> usize {
        self.slices.iter().map(|slice| slice.len()).sum()
    }

    /// Whether the request was for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as one slice: in place if they lie in one page, else copied to `scratch`.
    pub fn contiguous<'b>(&self, scratch: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        if let [one] = self.slices {
            return one;
        }
        scratch.clear();
        self.slices.iter().for_each(|slice| scratch.extend_from_slice(slice));
        scratch
    }

    /// Copies the bytes to `buffer`, which has as many.
    pub fn copy_to(&self, mut buffer: &mut [u8]) {
        for slice in self.slices {
            let (front, rest) = buffer.split_at_mut(slice.len());
            front.copy_from_slice(slice);
            buffer = rest;
        }
    }
}
