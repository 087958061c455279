//! Rows by distance in a binary heap that knows their places.

use super::assignment::MatchedRow;
use super::columns::NONE;

/// The place of a row whose distance is final.
pub(super) const DONE: u32 = NONE - 1;
/// The place of a row that no augmenting path meets.
pub(super) const DEAD: u32 = NONE - 2;

/// A heap of rows; `MatchedRow::place` is `NONE` outside of it.
pub(super) struct RowHeap {
    rows: Vec<u32>,
}

impl RowHeap {
    pub(super) fn new(rows: usize) -> RowHeap {
        RowHeap {
            rows: Vec::with_capacity(rows),
        }
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Distance of the nearest row, or infinity.
    #[inline]
    pub(super) fn least(&self, states: &[MatchedRow]) -> f64 {
        self.rows
            .first()
            .map_or(f64::INFINITY, |&row| states[row as usize].distance)
    }

    pub(super) fn insert(&mut self, states: &mut [MatchedRow], row: u32) {
        self.rows.push(row);
        self.rise(states, self.rows.len() - 1, row);
    }

    /// The distance of a row in the heap became less.
    pub(super) fn decrease(&mut self, states: &mut [MatchedRow], row: u32) {
        self.rise(states, states[row as usize].place as usize, row);
    }

    /// Takes out the nearest row, of which there is one, and marks it as `DONE`.
    pub(super) fn pop(&mut self, states: &mut [MatchedRow]) -> u32 {
        let last = self.rows.pop().expect("a row in the heap");
        let nearest = self.rows.first().copied().unwrap_or(last);
        if !self.rows.is_empty() {
            self.sink(states, last);
        }
        states[nearest as usize].place = DONE;
        nearest
    }

    fn put(&mut self, states: &mut [MatchedRow], place: usize, row: u32) {
        self.rows[place] = row;
        states[row as usize].place = place as u32;
    }

    fn rise(&mut self, states: &mut [MatchedRow], mut place: usize, row: u32) {
        let distance = states[row as usize].distance;
        while place > 0 {
            let above = self.rows[(place - 1) / 2];
            if states[above as usize].distance <= distance {
                break;
            }
            self.put(states, place, above);
            place = (place - 1) / 2;
        }
        self.put(states, place, row);
    }

    /// Puts a row in place of the first.
    fn sink(&mut self, states: &mut [MatchedRow], row: u32) {
        let distance = states[row as usize].distance;
        let mut place = 0;
        loop {
            let mut child = 2 * place + 1;
            if child >= self.rows.len() {
                break;
            }
            let of = |place: usize| states[self.rows[place] as usize].distance;
            if child + 1 < self.rows.len() && of(child + 1) < of(child) {
                child += 1;
            }
            if distance <= of(child) {
                break;
            }
            self.put(states, place, self.rows[child]);
            place = child;
        }
        self.put(states, place, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn rows_leave_by_distance() {
        let mut random = Random::new(1);
        let row = MatchedRow {
            dual: 0.0,
            distance: 0.0,
            column: NONE,
            parent: NONE,
            place: NONE,
        };
        let mut states = vec![row; 500];
        let mut heap = RowHeap::new(500);
        for row in 0..500 {
            states[row].distance = 100.0 + random.below(50) as f64;
            heap.insert(&mut states, row as u32);
        }
        for _ in 0..300 {
            let row = random.below(500);
            states[row].distance -= random.below(60) as f64;
            heap.decrease(&mut states, row as u32);
        }
        let mut distances: Vec<f64> = states.iter().map(|state| state.distance).collect();
        distances.sort_by(f64::total_cmp);
        for distance in distances {
            assert_eq!(heap.least(&states), distance);
            let row = heap.pop(&mut states);
            assert_eq!(
                (states[row as usize].distance, states[row as usize].place),
                (distance, DONE)
            );
        }
        assert_eq!(heap.least(&states), f64::INFINITY);
    }
}
