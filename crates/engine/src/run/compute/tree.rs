//! Partial results joined in a fixed binary tree over tile numbers, whatever the order they complete in.

use std::collections::HashMap;

/// The partial results of one output tile that wait for their siblings.
///
/// Invariants:
/// 1. Node `(level, index)` stands for the leaves `index·2^level ..` below it; siblings `2i, 2i+1` join, left first.
/// 2. A node without a sibling rises as it is.
/// 3. So the shape of the tree depends on the number of leaves only.
pub struct Tree<T> {
    leaves: u64,
    waiting: HashMap<(u32, u64), T>,
}

/// The next step for a node that was put in.
pub enum TreeStep<T> {
    /// It waits for its sibling.
    Wait,
    /// Join the two (left, right) and put the result in at the place given.
    Join { left: T, right: T, level: u32, index: u64 },
    /// It is the whole.
    Done(T),
}

impl<T> Tree<T> {
    pub fn new(leaves: u64) -> Tree<T> {
        Tree {
            leaves,
            waiting: HashMap::new(),
        }
    }

    /// Puts in the node at `(level, index)`; a leaf has level zero.
    pub fn put(&mut self, value: T, level: u32, index: u64) -> TreeStep<T> {
        let (mut level, mut index) = (level, index);
        loop {
            let width = self.leaves.div_ceil(1 << level);
            if width == 1 {
                return TreeStep::Done(value);
            }
            let sibling = index ^ 1;
            if sibling < width {
                let Some(other) = self.waiting.remove(&(level, sibling)) else {
                    self.waiting.insert((level, index), value);
                    return TreeStep::Wait;
                };
                let (left, right) = if index % 2 == 0 { (value, other) } else { (other, value) };
                return TreeStep::Join {
                    left,
                    right,
                    level: level + 1,
                    index: index / 2,
                };
            }
            level += 1;
            index /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join_all(order: &[u64], leaves: u64) -> String {
        let mut tree = Tree::new(leaves);
        for &leaf in order {
            let mut next = (leaf.to_string(), 0, leaf);
            loop {
                match tree.put(next.0, next.1, next.2) {
                    TreeStep::Wait => break,
                    TreeStep::Done(text) => return text,
                    TreeStep::Join {
                        left,
                        right,
                        level,
                        index,
                    } => next = (format!("({left}{right})"), level, index),
                }
            }
        }
        panic!("never complete");
    }

    #[test]
    fn the_tree_has_one_shape_for_every_order() {
        assert_eq!(join_all(&[0, 1, 2, 3, 4], 5), "(((01)(23))4)");
        assert_eq!(join_all(&[4, 2, 0, 3, 1], 5), "(((01)(23))4)");
        assert_eq!(join_all(&[3, 4, 1, 2, 0], 5), "(((01)(23))4)");
        assert_eq!(join_all(&[0], 1), "0");
    }
}
