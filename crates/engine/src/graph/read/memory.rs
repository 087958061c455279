//! Memory of a sweep: the least that it does with, and the most that it can use.

use outcore_store::{Direction, GraphFile, PAGE};

use super::batch::{most_neighbours, plan_bytes, BATCH_VERTICES, LONG_BYTES};
use crate::live::{BATCH_PAGES, CALL_BYTES, PORTION_PAGES};

/// Batches that are worked on and not handed over, for each thread.
pub(crate) const BACKLOG: usize = 4;

/// The least memory that a sweep does with, where each neighbour is sent a message of so many bytes.
pub fn least_memory(file: &GraphFile, message_bytes: u64) -> u64 {
    memory_for(file, message_bytes, BATCH_BYTES.max(largest_list(file)), true)
}

/// The same where long lists are taken in parts, so that the longest does not count, with or without their weights.
pub fn least_memory_of_parts(file: &GraphFile, message_bytes: u64, is_weighed: bool) -> u64 {
    memory_for(file, message_bytes, BATCH_BYTES, is_weighed)
}

/// With more memory than this a sweep does not do better: all lists are worked on and told at once.
pub fn most_memory(file: &GraphFile, message_bytes: u64, is_weighed: bool) -> u64 {
    memory_for(file, message_bytes, u64::MAX, is_weighed)
}

/// With so many bytes of lists in work, or all there are.
fn memory_for(file: &GraphFile, message_bytes: u64, list_bytes: u64, is_weighed: bool) -> u64 {
    let weights = file.shape().weights.filter(|_| is_weighed);
    let weight = weights.map_or(0, |dtype| dtype.size() as u64);
    // A neighbour is read, decoded and told, with its weight.
    let neighbour = 4 + weight + 8 * u64::from(weight > 0) + 2 * (4 + message_bytes.next_multiple_of(4));
    let neighbours = most_neighbours(list_bytes.min(all_list_bytes(file))).min(file.shape().edges);
    // What is found at a vertex is sixteen bytes at most, in lists that have grown.
    let waiting = BACKLOG as u64 * 32 * file.shape().vertices.min(u64::from(BATCH_VERTICES));
    (4 * BATCH_BYTES + 2 * neighbour * neighbours + waiting).max(CALL_BYTES)
}

/// Bytes of the lists of the longer direction.
fn all_list_bytes(file: &GraphFile) -> u64 {
    let of = |direction| file.section(direction).index.total_bytes();
    of(Direction::Out).max(of(Direction::In))
}

const BATCH_BYTES: u64 = BATCH_PAGES * PAGE as u64;
/// Threads that look at lists that are handed over, at most: one who takes them, and has a processor too, does not keep pace with more.
const PARTS_THREADS: usize = 4;

/// Bytes of lists that may be read before the first of them is taken: where one is larger than a batch, those that wait are
/// weighed, else it is enough to count them.
pub(crate) fn parts_round(file: &GraphFile) -> u64 {
    match largest_list(file) > BATCH_BYTES {
        true => BACKLOG as u64 * BATCH_BYTES,
        false => u64::MAX,
    }
}

/// Memory of lists that are handed over some at a time.
pub struct PartsMemory {
    /// Memory for reading, and beside it.
    pub reading: u64,
    pub beside: u64,
    /// Threads that look at them.
    pub threads: usize,
}

/// The memory of lists that are handed over some at a time, long ones whole or in parts.
pub fn for_parts(file: &GraphFile, in_parts: bool, threads: usize) -> PartsMemory {
    let largest = if in_parts { 0 } else { largest_list(file) };
    let weight = file.shape().weights.map_or(0, |dtype| dtype.size() as u64);
    // A neighbour takes a byte of a list at least; it is decoded with its weight, in what has grown.
    let neighbour = 4 + 8 * u64::from(weight > 0);
    let threads = threads.saturating_sub(1).clamp(1, PARTS_THREADS);
    let waiting = ((threads * BACKLOG + 2) as u64 * BATCH_BYTES).max(2 * largest);
    PartsMemory {
        reading: 4 * BATCH_BYTES,
        beside: (1 + weight) * largest + neighbour * waiting + portion_bytes(file, PORTION_PAGES),
        threads,
    }
}

/// Whether there are lists that are given in parts to those who take them so.
pub(crate) fn has_long_lists(file: &GraphFile) -> bool {
    largest_list(file) > LONG_BYTES
}

fn largest_list(file: &GraphFile) -> u64 {
    let of = |direction| {
        let large = file.section(direction).index.large();
        large.map(|(_, bytes)| bytes).max().unwrap_or(0)
    };
    of(Direction::Out).max(of(Direction::In))
}

/// What a sweep knows of the batches of a portion of so many pages, at most.
pub fn portion_bytes(file: &GraphFile, portion_pages: u64) -> u64 {
    let pages = [Direction::Out, Direction::In].map(|direction| file.section(direction).pages());
    plan_bytes(pages[0].max(pages[1]).min(portion_pages), file.shape().vertices)
}
