//! Refinement of vertex separators by moving their vertices to one side or the other.
//!
//! Fiduccia and Mattheyses' scheme for vertex separators: a separator vertex goes to a side, and its neighbours on the other
//! side come into the separator (Ashcraft, Liu, "A partition improvement algorithm for generalized nested dissection",
//! Boeing BCSTECH-94-020 (1994); Hendrickson, Rothberg, "Improving the run time and quality of nested dissection ordering",
//! SIAM J. Sci. Comput. 20 (1998), section 2.3). Both sides are open in each pass.

use super::queue::Queue;
use crate::graph::View;
use crate::watch::{Patience, Stopped};

pub(super) const SEPARATOR: u8 = 2;
const NONE: u32 = u32::MAX;

/// For each vertex its side, 0 or 1, or `SEPARATOR`; and the weight of each of the three.
#[derive(Clone, Default)]
pub(super) struct Separation {
    pub(super) sides: Vec<u8>,
    pub(super) weights: [i64; 3],
}

/// What makes a separation better: less weight beyond the limit of a side, then a lighter separator, then balance.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Cost {
    excess: i64,
    separator: f64,
    imbalance: i64,
}

impl Separation {
    pub(super) fn side_max(&self) -> i64 {
        let total: i64 = self.weights.iter().sum();
        (total * 3 + 4) / 5
    }

    pub(super) fn cost(&self, side_max: i64) -> Cost {
        let [one, other, separator] = self.weights;
        Cost {
            excess: (one.max(other) - side_max).max(0),
            separator: separator as f64,
            imbalance: (one - other).abs(),
        }
    }
}

/// A vertex that is or was in the separator.
#[derive(Clone, Copy)]
struct Slot {
    vertex: u32,
    weight: i32,
    /// Weight of the neighbours in each side, while the vertex is in the separator.
    beside: [i32; 2],
    is_locked: bool,
}

impl Slot {
    /// How much lighter the separator gets if this goes to a side.
    #[inline]
    fn gain(&self, to: usize) -> i32 {
        self.weight - self.beside[1 - to]
    }
}

struct Move {
    slot: u32,
    to: u8,
    /// Where the slots it brought into the separator start.
    brought: u32,
}

/// Room for refinements, one after the other.
#[derive(Default)]
pub(super) struct Refiner {
    slots: Vec<Slot>,
    /// For each vertex its slot; `NONE` for all between refinements.
    slot_of: Vec<u32>,
    queues: [Queue; 2],
    moves: Vec<Move>,
    brought: Vec<u32>,
}

impl Refiner {
    /// Grows side 0 around a vertex until it is too heavy, and returns to the best separation on the way.
    pub(super) fn grow(&mut self, view: View<'_>, from: usize, at: &mut Separation) {
        at.sides.clear();
        at.sides.resize(view.vertices(), 1);
        at.weights = [0, i64::from(view.total_weight()), 0];
        let side_max = at.side_max();
        self.begin(view, at);
        self.bring(view, at, from, 1);
        self.queues[0].insert(0, self.slots[0].gain(0));
        let mut next = from;
        let mut best = None;
        let mut kept = 0;
        loop {
            let Some(entry) = self.queues[0].peek() else {
                // The separator is empty: the next component, unless the sides are balanced.
                let cost = at.cost(side_max);
                if best.is_none_or(|best| cost < best) {
                    best = Some(cost);
                    kept = self.moves.len();
                }
                if at.weights[1] <= side_max {
                    break;
                }
                while at.sides[next] != 1 {
                    next = (next + 1) % view.vertices();
                }
                self.brought.clear();
                self.moves.clear();
                kept = 0;
                best = None;
                let slot = self.bring(view, at, next, 1);
                self.queues[0].insert(slot, self.slots[slot as usize].gain(0));
                continue;
            };
            self.apply(view, at, entry.slot, 0);
            if at.weights[0] > side_max && best.is_some() {
                break;
            }
            let cost = at.cost(side_max);
            if best.is_none_or(|best| cost < best) {
                best = Some(cost);
                kept = self.moves.len();
            }
        }
        self.roll_back(view, at, kept);
        self.end();
    }

    /// Moves separator vertices until no pass betters the separation.
    pub(super) fn refine(
        &mut self,
        view: View<'_>,
        at: &mut Separation,
        passes: usize,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        let side_max = at.side_max();
        self.begin(view, at);
        for pass in 0..passes {
            patience.work(4 * self.slots.len())?;
            if !self.pass(view, at, side_max, pass, patience)? {
                break;
            }
        }
        self.end();
        Ok(())
    }

    fn begin(&mut self, view: View<'_>, at: &Separation) {
        if self.slot_of.len() < view.vertices() {
            self.slot_of.resize(view.vertices(), NONE);
        }
        for vertex in 0..view.vertices() {
            if at.sides[vertex] == SEPARATOR {
                self.add(view, at, vertex);
            }
        }
        self.queues[0].clear();
        self.queues[1].clear();
        self.moves.clear();
        self.brought.clear();
    }

    fn end(&mut self) {
        for slot in self.slots.drain(..) {
            self.slot_of[slot.vertex as usize] = NONE;
        }
    }

    /// The slot of a vertex of the separator, with the weights beside it counted.
    fn add(&mut self, view: View<'_>, at: &Separation, vertex: usize) -> u32 {
        let mut beside = [0, 0, 0];
        for &other in view.neighbours_of(vertex) {
            beside[at.sides[other as usize] as usize] += view.weight(other as usize) as i32;
        }
        let beside = [beside[0], beside[1]];
        let known = self.slot_of[vertex];
        if known != NONE {
            self.slots[known as usize].beside = beside;
            return known;
        }
        let slot = self.slots.len() as u32;
        self.slot_of[vertex] = slot;
        let weight = view.weight(vertex) as i32;
        self.slots.push(Slot {
            vertex: vertex as u32,
            weight,
            beside,
            is_locked: false,
        });
        slot
    }

    /// One pass: each vertex moves once at most. Whether the separation is better.
    fn pass(
        &mut self,
        view: View<'_>,
        at: &mut Separation,
        side_max: i64,
        number: usize,
        patience: &Patience<'_>,
    ) -> Result<bool, Stopped> {
        self.queues[0].clear();
        self.queues[1].clear();
        self.moves.clear();
        self.brought.clear();
        let mut open = 0;
        for slot in 0..self.slots.len() {
            self.slots[slot].is_locked = false;
            if at.sides[self.slots[slot].vertex as usize] == SEPARATOR {
                open += 1;
                for to in 0..2 {
                    self.queues[to].insert(slot as u32, self.slots[slot].gain(to));
                }
            }
        }
        let patience_moves = (2 * open).clamp(30, 300);
        let before = at.cost(side_max);
        let mut best = before;
        let mut kept = 0;
        while let Some((slot, to)) = self.choose(at, side_max, number) {
            self.apply(view, at, slot, to);
            patience.work(8)?;
            let cost = at.cost(side_max);
            if cost < best {
                best = cost;
                kept = self.moves.len();
            } else if self.moves.len() - kept > patience_moves {
                break;
            }
        }
        self.roll_back(view, at, kept);
        Ok(best < before)
    }

    /// The move of greatest gain that no side is too heavy for.
    fn choose(&mut self, at: &Separation, side_max: i64, number: usize) -> Option<(u32, usize)> {
        loop {
            let to = match (self.queues[0].peek(), self.queues[1].peek()) {
                (None, None) => return None,
                (Some(_), None) => 0,
                (None, Some(_)) => 1,
                (Some(one), Some(other)) if one.gain != other.gain => usize::from(other.gain > one.gain),
                _ if at.weights[0] != at.weights[1] => usize::from(at.weights[1] < at.weights[0]),
                _ => number % 2,
            };
            let slot = self.queues[to].peek()?.slot;
            let heavier = at.weights[to] + i64::from(self.slots[slot as usize].weight);
            if heavier <= side_max || heavier <= at.weights[1 - to] {
                return Some((slot, to));
            }
            self.queues[to].remove(slot);
        }
    }

    /// Moves a separator vertex to a side, and brings its neighbours on the other side into the separator.
    fn apply(&mut self, view: View<'_>, at: &mut Separation, slot: u32, to: usize) {
        let Slot { vertex, weight, .. } = self.slots[slot as usize];
        self.moves.push(Move {
            slot,
            to: to as u8,
            brought: self.brought.len() as u32,
        });
        self.slots[slot as usize].is_locked = true;
        self.queues[0].remove(slot);
        self.queues[1].remove(slot);
        at.sides[vertex as usize] = to as u8;
        at.weights[SEPARATOR as usize] -= i64::from(weight);
        at.weights[to] += i64::from(weight);
        for &other in view.neighbours_of(vertex as usize) {
            let side = at.sides[other as usize];
            if side == SEPARATOR {
                self.shift(other, to, weight);
            } else if side as usize != to {
                let brought = self.bring(view, at, other as usize, 1 - to);
                self.brought.push(brought);
                let slot = self.slots[brought as usize];
                if !slot.is_locked {
                    self.queues[0].insert(brought, slot.gain(0));
                    self.queues[1].insert(brought, slot.gain(1));
                }
            }
        }
    }

    /// Changes the weight beside a separator vertex.
    #[inline]
    fn shift(&mut self, vertex: u32, side: usize, by: i32) {
        let slot = self.slot_of[vertex as usize];
        let known = &mut self.slots[slot as usize];
        known.beside[side] += by;
        let gain = known.gain(1 - side);
        self.queues[1 - side].update(slot, gain);
    }

    /// Takes a vertex from its side into the separator.
    fn bring(&mut self, view: View<'_>, at: &mut Separation, vertex: usize, side: usize) -> u32 {
        let weight = view.weight(vertex) as i32;
        at.sides[vertex] = SEPARATOR;
        at.weights[side] -= i64::from(weight);
        at.weights[SEPARATOR as usize] += i64::from(weight);
        for &other in view.neighbours_of(vertex) {
            if at.sides[other as usize] == SEPARATOR {
                self.shift(other, side, -weight);
            }
        }
        self.add(view, at, vertex)
    }

    /// Takes back all moves but the first `kept`.
    fn roll_back(&mut self, view: View<'_>, at: &mut Separation, kept: usize) {
        self.queues[0].clear();
        self.queues[1].clear();
        while self.moves.len() > kept {
            let Some(Move { slot, to, brought }) = self.moves.pop() else {
                break;
            };
            let to = to as usize;
            while self.brought.len() > brought as usize {
                let Some(back) = self.brought.pop() else { break };
                let Slot { vertex, weight, .. } = self.slots[back as usize];
                at.sides[vertex as usize] = 1 - to as u8;
                at.weights[1 - to] += i64::from(weight);
                at.weights[SEPARATOR as usize] -= i64::from(weight);
                for &other in view.neighbours_of(vertex as usize) {
                    if at.sides[other as usize] == SEPARATOR {
                        self.shift(other, 1 - to, weight);
                    }
                }
            }
            self.bring(view, at, self.slots[slot as usize].vertex as usize, to);
        }
    }
}
