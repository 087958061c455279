//! The groups that a path goes through, where names of dimensions are looked for.

use std::rc::Rc;

use super::group::GroupMember;

/// The groups on the way to an object, the root first.
pub(super) struct GroupTrail(Vec<Rc<Vec<GroupMember>>>);

impl GroupTrail {
    pub fn new(groups: Vec<Rc<Vec<GroupMember>>>) -> GroupTrail {
        GroupTrail(groups)
    }

    /// The members of the last group, of the one before, and so on.
    pub fn backwards(&self) -> impl Iterator<Item = &Vec<GroupMember>> {
        self.0.iter().rev().map(Rc::as_ref)
    }
}
