//! Arrays as they are before a program, and the key by which programs over them differ.

use outcore_kernels::Generator;
use outcore_store::process_nonce;

use super::program::{LoopProgram, LoopValues};
use crate::expr::{next_id, Digest, Expr, Op};
use crate::ops::show;
use crate::task::Grid;

/// The values of an array before the program.
#[derive(Clone, Debug)]
pub(super) enum Initial {
    /// Tiles of an input, by its number.
    Input(usize),
    /// One element, over and over.
    Element(Vec<u8>),
}

/// The element of each array that is written and is the same element everywhere before; such arrays get tiles like others.
pub(super) fn elements_of(
    program: &mut LoopProgram,
    inputs: &[Expr],
    has_own_tiles: &dyn Fn(usize) -> bool,
) -> Vec<Option<Vec<u8>>> {
    let elements: Vec<Option<Vec<u8>>> = (inputs.iter().zip(&program.arrays))
        .map(|(input, array)| match &input.op {
            Op::Generate(Generator::Full(value)) if array.is_written => value.to_bytes(input.dtype).ok(),
            _ => None,
        })
        .collect();
    for (array, element) in elements.iter().enumerate() {
        if let Some(element) = element.as_ref().filter(|_| !has_own_tiles(array)) {
            program.cut_like_others(array, &|other| elements[other].is_some(), element.len() as u64);
        }
    }
    elements
}

/// The values of all arrays before a program, and the operands that hold those which are not one element.
pub(super) fn initial_of(inputs: &[Expr], elements: Vec<Option<Vec<u8>>>) -> (Vec<Initial>, Vec<Expr>) {
    let mut operands = vec![];
    let pairs = inputs.iter().zip(elements);
    let initial = pairs.map(|(input, element)| match element {
        Some(element) => Initial::Element(element),
        None => {
            operands.push(input.clone());
            Initial::Input(operands.len() - 1)
        }
    });
    (initial.collect(), operands)
}

/// The key by which a program differs from others over the same operands.
pub(super) fn key_of(words: &[i64], values: LoopValues<'_>, initial: &[Initial], results: &[Grid]) -> Vec<u8> {
    let mut key = Vec::new();
    words.iter().for_each(|word| key.extend(word.to_le_bytes()));
    values.nodes.iter().for_each(|node| key.extend(node.digest().0));
    if !values.functions.is_empty() {
        // Functions are equal to themselves only, and no other program has these.
        let [process, random] = process_nonce();
        for word in [process, random, next_id()] {
            key.extend(word.to_le_bytes());
        }
    }
    initial
        .iter()
        .for_each(|initial| key.extend(format!("{initial:?}").bytes()));
    for grid in results {
        key.extend(show(&grid.shape).bytes());
        key.extend(grid.dtype.name().bytes());
    }
    Digest::of(&key).0.to_vec()
}
