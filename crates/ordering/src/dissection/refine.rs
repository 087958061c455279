//! Refinement of vertex separators by moving their vertices to one side or the other.
//!
//! Fiduccia and Mattheyses' scheme for vertex separators: a separator vertex goes to a side, and its neighbours on the
//! other side come into the separator (Ashcraft, Liu, "A partition improvement algorithm for generalized nested
//! dissection", Boeing BCSTECH-94-020 (1994); Hendrickson, Rothberg, "Improving the run time and quality of nested
//! dissection ordering", SIAM J. Sci. Comput. 20 (1998), section 2.3). Both sides are open in each pass.

use super::queue::GainQueue;
use crate::graph::View;
use crate::watch::{Patience, Stopped};

pub(super) const SEPARATOR: u8 = 2;
const NONE: u32 = u32::MAX;

/// The heavier side has at most this share of both sides' weight.
const SIDE_SHARE_MAX: f64 = 0.8;
/// How much imbalance weighs against a light separator, where separations of different searches are compared.
///
/// If the cost F of a part is some power of its weight, 3/2 in two dimensions and 2 in three, sides of weights (1 - i)
/// / 2 and (1 + i) / 2 cost about F(i) = s^3 / (1 - i^2), with s the separator's weight: equal cost has s ~ 1 + 0.3
/// i^2.
pub(super) const IMBALANCE_COST: f64 = 0.3;
/// A refinement that has seen more than a share of the vertices in the separator ends: 1 of so many.
const SEEN_SHARE: usize = 4;
const SEEN_MIN: usize = 256;

/// For each vertex its side, 0 or 1, or `SEPARATOR`; and the weight of each of the three.
#[derive(Clone, Default)]
pub(super) struct Separation {
    pub(super) sides: Vec<u8>,
    pub(super) weights: [i64; 3],
    /// How much imbalance weighs in the search for this one.
    pub(super) imbalance_cost: f64,
}

/// The order of separations, better ones first: less weight beyond the limit of a side, then a light separator and balance.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct SeparatorCost {
    excess: i64,
    separator: f64,
    imbalance: i64,
}

impl Separation {
    fn side_max(&self) -> i64 {
        ((self.weights[0] + self.weights[1]) as f64 * SIDE_SHARE_MAX) as i64 + 1
    }

    pub(super) fn cost(&self) -> SeparatorCost {
        self.cost_with(self.imbalance_cost)
    }

    pub(super) fn cost_with(&self, imbalance_cost: f64) -> SeparatorCost {
        let [one, other, separator] = self.weights;
        let imbalance = (one - other).abs();
        let share = imbalance as f64 / (one + other).max(1) as f64;
        SeparatorCost {
            excess: (one.max(other) - self.side_max()).max(0),
            separator: separator as f64 * (1.0 + imbalance_cost * share * share),
            imbalance,
        }
    }
}

/// How long a refinement looks for a better separator.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    pub(super) passes: usize,
    /// A pass ends after so many moves without a better one: this for each vertex of the separator, in quarters.
    pub(super) quarter_moves: usize,
    pub(super) moves_max: usize,
}

impl Effort {
    fn moves(&self, separator: usize) -> usize {
        (separator * self.quarter_moves / 4).clamp(10, self.moves_max)
    }
}

/// A vertex that is or was in the separator.
#[derive(Clone, Copy)]
struct SeparatorSlot {
    vertex: u32,
    weight: i32,
    /// Weight of the neighbours in each side, while the vertex is in the separator.
    beside: [i32; 2],
    is_locked: bool,
}

impl SeparatorSlot {
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
    slots: Vec<SeparatorSlot>,
    /// For each vertex its slot; `NONE` for all between refinements.
    slot_of: Vec<u32>,
    queues: [GainQueue; 2],
    moves: Vec<Move>,
    brought: Vec<u32>,
    /// Neighbours visited since the caller was last asked whether to stop.
    visited: usize,
}

impl Refiner {
    /// Grows side 0 around a vertex until it is too heavy, and returns to the best separation on the way.
    pub(super) fn grow(
        &mut self,
        view: View<'_>,
        from: usize,
        at: &mut Separation,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        at.sides.clear();
        at.sides.resize(view.vertices(), 1);
        at.weights = [0, i64::from(view.total_weight()), 0];
        self.begin(view, at);
        self.reserve(view.vertices());
        let mut next = from;
        let mut best: Option<SeparatorCost> = None;
        let mut kept = 0;
        loop {
            if at.weights[0] > at.side_max() && best.is_some() {
                break;
            }
            let cost = at.cost();
            if !self.moves.is_empty() && best.is_none_or(|best| cost < best) {
                best = Some(cost);
                kept = self.moves.len();
            }
            let slot = match self.queues[0].peek() {
                Some(entry) => entry.slot,
                None if self.moves.len() == kept && at.weights[1] <= at.side_max() => break,
                None => {
                    // The separator is empty: side 0 has whole components, and goes on in the next.
                    let Some(found) = (next..view.vertices())
                        .chain(0..next)
                        .find(|&vertex| at.sides[vertex] == 1)
                    else {
                        break;
                    };
                    next = found;
                    self.moves.clear();
                    self.brought.clear();
                    best = None;
                    kept = 0;
                    self.bring(view, at, next, 1)
                }
            };
            patience.work(16 + std::mem::take(&mut self.visited))?;
            self.apply(view, at, slot, 0);
        }
        self.roll_back(view, at, kept);
        self.end();
        Ok(())
    }

    /// Moves separator vertices until no pass betters the separation.
    pub(super) fn refine(
        &mut self,
        view: View<'_>,
        at: &mut Separation,
        effort: Effort,
        patience: &Patience<'_>,
    ) -> Result<(), Stopped> {
        if self.begin(view, at) {
            for pass in 0..effort.passes {
                patience.work(4 * self.slots.len())?;
                if !self.pass(view, at, effort, pass, patience)? {
                    break;
                }
            }
        }
        self.end();
        Ok(())
    }

    /// Any vertex may come into the separator while side 0 grows.
    fn reserve(&mut self, vertices: usize) {
        self.slots.reserve_exact(vertices);
        self.moves.reserve_exact(vertices);
        self.brought.reserve_exact(vertices);
        self.queues[0].reserve(vertices);
    }

    /// Lets go of the room of a large graph.
    pub(super) fn release(&mut self) {
        *self = Refiner::default();
    }

    fn seen_max(view: View<'_>) -> usize {
        (view.vertices() / SEEN_SHARE).max(SEEN_MIN)
    }

    /// Gives a slot to each vertex of the separator. False if they are too many to refine.
    fn begin(&mut self, view: View<'_>, at: &Separation) -> bool {
        self.queues[0].clear();
        self.queues[1].clear();
        self.moves.clear();
        self.brought.clear();
        let separator = at.sides.iter().filter(|&&side| side == SEPARATOR).count();
        if separator > Refiner::seen_max(view) {
            return false;
        }
        if self.slot_of.len() < view.vertices() {
            self.slot_of.reserve_exact(view.vertices() - self.slot_of.len());
            self.slot_of.resize(view.vertices(), NONE);
        }
        for (vertex, _) in at.sides.iter().enumerate().filter(|(_, &side)| side == SEPARATOR) {
            self.add(view, at, vertex);
        }
        true
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
        self.record(vertex, view.weight(vertex) as i32, [beside[0], beside[1]])
    }

    fn record(&mut self, vertex: usize, weight: i32, beside: [i32; 2]) -> u32 {
        let known = self.slot_of[vertex];
        if known != NONE {
            self.slots[known as usize].beside = beside;
            return known;
        }
        let slot = self.slots.len() as u32;
        self.slot_of[vertex] = slot;
        self.slots.push(SeparatorSlot {
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
        effort: Effort,
        number: usize,
        patience: &Patience<'_>,
    ) -> Result<bool, Stopped> {
        let moves_max = effort.moves(self.open(at));
        let seen_max = Refiner::seen_max(view);
        let before = at.cost();
        let mut best = before;
        let mut kept = 0;
        while let Some((slot, to)) = self.choose(at, number) {
            self.apply(view, at, slot, to);
            patience.work(16 + std::mem::take(&mut self.visited))?;
            // Imbalance only adds to the cost.
            let is_hopeless = best.excess == 0 && at.weights[SEPARATOR as usize] as f64 > best.separator;
            let cost = if is_hopeless { best } else { at.cost() };
            if cost < best {
                best = cost;
                kept = self.moves.len();
            } else if self.moves.len() - kept > moves_max || self.slots.len() > seen_max {
                break;
            }
        }
        self.roll_back(view, at, kept);
        Ok(best < before)
    }

    /// Puts the separator into both queues; returns how many vertices it has.
    fn open(&mut self, at: &Separation) -> usize {
        self.queues[0].clear();
        self.queues[1].clear();
        self.moves.clear();
        self.brought.clear();
        let mut open = 0;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.is_locked = false;
            if at.sides[slot.vertex as usize] == SEPARATOR {
                open += 1;
                self.queues[0].insert(number as u32, slot.gain(0));
                self.queues[1].insert(number as u32, slot.gain(1));
            }
        }
        open
    }

    /// The move of greatest gain that no side is too heavy for.
    fn choose(&mut self, at: &Separation, number: usize) -> Option<(u32, usize)> {
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
            if heavier <= at.side_max() || heavier <= at.weights[1 - to] {
                return Some((slot, to));
            }
            self.queues[to].remove(slot);
        }
    }

    /// Moves a separator vertex to a side, and brings its neighbours on the other side into the separator.
    fn apply(&mut self, view: View<'_>, at: &mut Separation, slot: u32, to: usize) {
        let SeparatorSlot { vertex, weight, .. } = self.slots[slot as usize];
        self.moves.push(Move {
            slot,
            to: to as u8,
            brought: self.brought.len() as u32,
        });
        self.slots[slot as usize].is_locked = true;
        self.queues[0].remove(slot);
        self.queues[1].remove(slot);
        self.visited += view.degree(vertex as usize);
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
                    self.queues[to].insert(brought, slot.gain(to));
                    // To this side only: the way back would undo the move.
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
        let mut beside = [0; 3];
        self.visited += view.degree(vertex);
        for &other in view.neighbours_of(vertex) {
            let of = at.sides[other as usize];
            if of == SEPARATOR {
                self.shift(other, side, -weight);
            } else {
                beside[of as usize] += view.weight(other as usize) as i32;
            }
        }
        self.record(vertex, weight, [beside[0], beside[1]])
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
                let SeparatorSlot { vertex, weight, .. } = self.slots[back as usize];
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
