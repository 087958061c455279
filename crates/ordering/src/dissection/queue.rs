//! Priority queue of separator vertices by gain.

/// `positions` of what is not in the queue.
const ABSENT: u32 = u32::MAX;

/// Binary heap of slots, the greatest gain first; a slot's gain may change while it is in the heap.
#[derive(Default)]
pub(super) struct GainQueue {
    heap: Vec<GainEntry>,
    positions: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) struct GainEntry {
    pub(super) gain: i32,
    pub(super) slot: u32,
}

impl GainQueue {
    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.positions.clear();
    }

    pub(super) fn reserve(&mut self, slots: usize) {
        self.heap.reserve_exact(slots);
        self.positions.reserve_exact(slots);
    }

    pub(super) fn peek(&self) -> Option<GainEntry> {
        self.heap.first().copied()
    }

    pub(super) fn insert(&mut self, slot: u32, gain: i32) {
        if self.positions.len() <= slot as usize {
            self.positions.resize(slot as usize + 1, ABSENT);
        }
        let at = self.heap.len();
        self.heap.push(GainEntry { gain, slot });
        self.rise(at, GainEntry { gain, slot });
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(at) = self.position(slot) else { return };
        self.positions[slot as usize] = ABSENT;
        if let Some(last) = self.heap.pop() {
            if at < self.heap.len() {
                self.place(at, last);
            }
        }
    }

    /// Does nothing if the slot is not in the queue.
    #[inline]
    pub(super) fn update(&mut self, slot: u32, gain: i32) {
        if let Some(at) = self.position(slot) {
            self.place(at, GainEntry { gain, slot });
        }
    }

    #[inline]
    fn position(&self, slot: u32) -> Option<usize> {
        self.positions
            .get(slot as usize)
            .filter(|&&at| at != ABSENT)
            .map(|&at| at as usize)
    }

    fn place(&mut self, at: usize, entry: GainEntry) {
        if at > 0 && self.heap[(at - 1) / 2].gain < entry.gain {
            self.rise(at, entry);
        } else {
            self.sink(at, entry);
        }
    }

    fn rise(&mut self, mut at: usize, entry: GainEntry) {
        while at > 0 {
            let above = (at - 1) / 2;
            if self.heap[above].gain >= entry.gain {
                break;
            }
            self.set(at, self.heap[above]);
            at = above;
        }
        self.set(at, entry);
    }

    fn sink(&mut self, mut at: usize, entry: GainEntry) {
        loop {
            let mut below = 2 * at + 1;
            if below >= self.heap.len() {
                break;
            }
            if below + 1 < self.heap.len() && self.heap[below + 1].gain > self.heap[below].gain {
                below += 1;
            }
            if self.heap[below].gain <= entry.gain {
                break;
            }
            self.set(at, self.heap[below]);
            at = below;
        }
        self.set(at, entry);
    }

    #[inline]
    fn set(&mut self, at: usize, entry: GainEntry) {
        self.heap[at] = entry;
        self.positions[entry.slot as usize] = at as u32;
    }
}
