//! Which roots are computed by the same pass.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::closure::Closure;
use super::partition::{pass_key, Partition, PassKey};
use super::root::Root;
use super::PlanOptions;
use crate::cancel;
use crate::expr::Op;

/// Roots that will be one pass, and the arrays that stream past them.
struct Group {
    level: usize,
    members: Vec<u64>,
    streams: HashSet<u64>,
}

impl Group {
    /// Takes in an earlier group: its roots come first.
    fn absorb(&mut self, mut earlier: Group) {
        earlier.members.append(&mut self.members);
        self.members = earlier.members;
        if self.streams.len() < earlier.streams.len() {
            std::mem::swap(&mut self.streams, &mut earlier.streams);
        }
        self.streams.extend(earlier.streams);
    }
}

/// The arrays that a root reads along its walk, and its own value.
fn streams(root: &Root, closure: &Closure) -> HashSet<u64> {
    let streamed = closure.loads.iter().filter(|(_, spans)| {
        spans
            .as_ref()
            .is_none_or(|spans| spans.iter().any(|span| span.dim.is_some()))
    });
    streamed
        .map(|(load, _)| load.id)
        .chain(std::iter::once(root.node.id))
        .collect()
}

/// Roots grouped into passes: same key, and bound by an array they both stream or by a value one gives the other.
pub fn group(partition: &Partition, options: &PlanOptions) -> Vec<Vec<Root>> {
    // A group that a later one absorbed leaves its place empty.
    let mut groups: Vec<Option<Group>> = Vec::new();
    let mut algorithms: HashMap<_, usize> = HashMap::new();
    let mut alike: HashMap<PassKey<'_>, Vec<usize>> = HashMap::new();
    for node in &partition.order {
        cancel::check();
        let Some(root) = partition.roots.get(&node.id) else {
            continue;
        };
        let key = pass_key(root, root.level, options);
        let mut group = Group {
            level: root.level,
            members: vec![node.id],
            streams: streams(root, &partition.closures[&node.id]),
        };
        if let Op::Algorithm(algorithm, _) = &node.op {
            let inputs: Vec<u64> = node.inputs.iter().map(|input| input.id).collect();
            match algorithms.entry((algorithm, inputs)) {
                Entry::Occupied(place) => groups[*place.get()].as_mut().expect("never absorbed").absorb(group),
                Entry::Vacant(place) => {
                    place.insert(groups.len());
                    groups.push(Some(group));
                }
            }
            continue;
        }
        let same_key = alike.entry(key).or_default();
        same_key.retain(|&place| {
            let other = groups[place].as_ref().expect("absorbed groups are not listed");
            let joins = root.domain.shape.is_empty() || !other.streams.is_disjoint(&group.streams);
            if joins {
                group.absorb(groups[place].take().expect("seen above"));
            }
            !joins
        });
        same_key.push(groups.len());
        groups.push(Some(group));
    }
    let mut groups: Vec<Group> = groups.into_iter().flatten().collect();
    groups.sort_by_key(|group| group.level);
    let roots = |group: Group| group.members.iter().map(|id| partition.roots[id].clone()).collect();
    groups.into_iter().map(roots).collect()
}
