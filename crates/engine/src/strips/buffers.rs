//! Buffers that are lent one at a time.

/// Buffers by number. One is lent for the length of a closure, which reads the others meanwhile and may lend of them.
///
/// Invariant: outside of the closure that has it, a buffer that was put is there until it is taken.
pub struct Buffers<T>(Vec<Option<T>>);

impl<T> Buffers<T> {
    /// Places for so many buffers.
    pub fn places(count: usize) -> Buffers<T> {
        Buffers((0..count).map(|_| None).collect())
    }

    #[inline]
    pub fn put(&mut self, number: usize, buffer: T) {
        self.0[number] = Some(buffer);
    }

    /// # Panics
    /// Where the buffer is not there: it was never put, or is lent.
    #[inline]
    pub fn take(&mut self, number: usize) -> T {
        self.0[number].take().expect(ABSENT)
    }

    /// # Panics
    /// As `take`.
    #[inline]
    pub fn get(&self, number: usize) -> &T {
        self.0[number].as_ref().expect(ABSENT)
    }

    /// # Panics
    /// As `take`.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> &mut T {
        self.0[number].as_mut().expect(ABSENT)
    }

    /// Hands a buffer to `work`, and the others.
    ///
    /// # Panics
    /// As `take`.
    #[inline]
    pub fn lend<R>(&mut self, number: usize, work: impl FnOnce(&mut T, &mut Buffers<T>) -> R) -> R {
        let mut buffer = self.take(number);
        let result = work(&mut buffer, self);
        self.put(number, buffer);
        result
    }

    /// The buffers in order, with places that have none.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = Option<&mut T>> {
        self.0.iter_mut().map(Option::as_mut)
    }
}

impl<T> FromIterator<T> for Buffers<T> {
    fn from_iter<I: IntoIterator<Item = T>>(buffers: I) -> Buffers<T> {
        Buffers(buffers.into_iter().map(Some).collect())
    }
}

const ABSENT: &str = "a buffer that is used is there";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_back_when_its_closure_returns() {
        let mut buffers: Buffers<u8> = [3, 4, 5].into_iter().collect();
        let sum = buffers.lend(1, |buffer, others| {
            *buffer += others.get(0);
            others.lend(2, |last, others| *last + *buffer + others.get(0))
        });
        assert_eq!((sum, *buffers.get(1), *buffers.get(2)), (15, 7, 5));
    }

    #[test]
    #[should_panic(expected = "is there")]
    fn a_buffer_is_lent_to_one_at_a_time() {
        let mut buffers: Buffers<u8> = [3].into_iter().collect();
        buffers.lend(0, |_, others| others.take(0));
    }
}
