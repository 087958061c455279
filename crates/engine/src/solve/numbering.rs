//! Numbers of tasks that stand in groups of different lengths.

/// The group that a number lies in, of so many groups, each of which begins at `start` of its own number.
pub(super) fn group_of(groups: u64, number: u64, start: impl Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, groups);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if start(middle) <= number {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
