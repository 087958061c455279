//! Fixtures with bytes changed, cut off and put in: an answer or an error, in bounded memory and with bounded reads.
//!
//! Checksums would keep changes out of the parsers, so half of the changes are covered up by new checksums.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod changes;
mod support;

use changes::{checked_blocks, Numbers};
use support::{fixtures, listing, runs, CountingFile};

/// More than any fixture needs.
const MEMORY: usize = 8 << 20;
/// Blocks that are asked for, at most; fixtures take some thousands.
const BLOCKS: usize = 200_000;
/// Lists changed bytes and holds memory and reads against their bounds. Gives whether there was an answer.
fn is_listed(bytes: Vec<u8>) -> bool {
    let file = CountingFile::new(bytes, MEMORY);
    let answer = listing(&file);
    assert!(
        file.asked.get() < BLOCKS,
        "{} blocks for {:?}",
        file.asked.get(),
        answer.map(|text| text.len())
    );
    answer.is_ok()
}

#[test]
fn changed_files_are_answers_or_errors() {
    let (mut answers, mut errors) = (0, 0);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for path in fixtures() {
        let whole = std::fs::read(&path).unwrap();
        let blocks = checked_blocks(&whole);
        for run in 0..2 * runs() {
            let mut bytes = whole.clone();
            numbers.change(&mut bytes, if run % 2 == 0 { &blocks } else { &[] });
            if is_listed(bytes) {
                answers += 1;
            } else {
                errors += 1;
            }
        }
    }
    println!("{answers} answers, {errors} errors");
    // Both happen: changes reach the parsers, and some fall into data.
    assert!(answers > runs() && errors > runs());
}

#[test]
fn files_with_bytes_cut_off_or_put_in_are_answers_or_errors() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for path in fixtures() {
        let whole = std::fs::read(&path).unwrap();
        for run in 0..runs() / 2 {
            let mut bytes = whole.clone();
            let at = numbers.below(bytes.len());
            match run % 3 {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, numbers.below(256) as u8),
                _ => drop(bytes.drain(at..(at + 1 + numbers.below(16)).min(whole.len()))),
            }
            is_listed(bytes);
        }
    }
}
