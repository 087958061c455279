//! The order of an elimination: its assembly tree in postorder, each element with the variables that went with it.

use super::lists::NONE;
use super::quotient::{Quotient, QuotientNode};

/// Fields of a node that are free after the elimination, by what they hold here.
impl QuotientNode {
    fn first_child(&mut self) -> &mut u32 {
        &mut self.degree
    }

    fn sibling(&mut self) -> &mut u32 {
        &mut self.mark
    }

    /// Of an element: the first variable merged into it. Of a merged variable: the next of the same element.
    fn member(&mut self) -> &mut u32 {
        &mut self.length
    }
}

impl Quotient {
    /// Calls `put` with each inner vertex in the order of elimination, a subtree of the assembly tree after the other.
    ///
    /// All postorders of a tree give the same fill (Liu, "The role of elimination trees in sparse factorization", SIAM
    /// J. Matrix Anal. Appl. 11 (1990), section 6).
    pub(crate) fn postorder(&mut self, mut put: impl FnMut(u32)) {
        let root = self.link_children();
        self.link_members();
        let nodes = &mut self.nodes;
        let mut element = root;
        while element != NONE {
            while *nodes[element as usize].first_child() != NONE {
                element = *nodes[element as usize].first_child();
            }
            // An element without children left is next; then comes its sibling's subtree, or the parent.
            loop {
                put(element);
                let mut member = *nodes[element as usize].member();
                while member != NONE {
                    put(member);
                    member = *nodes[member as usize].member();
                }
                let sibling = *nodes[element as usize].sibling();
                let parent = nodes[element as usize].start;
                element = if sibling != NONE { sibling } else { parent as u32 };
                if sibling != NONE || element == NONE {
                    break;
                }
            }
        }
    }

    /// Links each element to its first child and to its sibling, both by the order of elimination; `start` is the
    /// parent, or `NONE`. Returns the first root.
    fn link_children(&mut self) -> u32 {
        let nodes = &mut self.nodes;
        let mut root = NONE;
        // Parents are eliminated after their children, so that they are met first.
        for &pivot in self.pivots.iter().rev() {
            let node = &mut nodes[pivot as usize];
            let parent = node.absorber().unwrap_or(NONE);
            node.start = u64::from(parent);
            *node.first_child() = NONE;
            *node.member() = NONE;
            let first = if parent == NONE {
                &mut root
            } else {
                nodes[parent as usize].first_child()
            };
            let sibling = std::mem::replace(first, pivot);
            *nodes[pivot as usize].sibling() = sibling;
        }
        root
    }

    /// Links the variables merged into each element; their `start` becomes that element.
    fn link_members(&mut self) {
        let nodes = &mut self.nodes;
        for vertex in (0..self.inner).rev() {
            if !nodes[vertex].is_merged() {
                continue;
            }
            let mut element = vertex;
            while nodes[element].is_merged() {
                element = nodes[element].start as usize;
            }
            let mut at = vertex;
            while nodes[at].is_merged() {
                at = std::mem::replace(&mut nodes[at].start, element as u64) as usize;
            }
            let next = std::mem::replace(nodes[element].member(), vertex as u32);
            *nodes[vertex].member() = next;
        }
    }
}
