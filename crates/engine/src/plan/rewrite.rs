//! Rewrites of whole expressions before they are cut into passes.

use std::collections::{HashMap, HashSet};

use crate::expr::{topological, Expr, Node, Op};
use crate::ops;
use crate::EngineError;

/// Products with two axes are worth moving; what a byte written and read again costs in operations.
const FLOPS_PER_BYTE: f64 = 60.0;

/// Re-associates chains of matrix products by cost of operations and I/O, as the textbook's matrix-chain recurrence
/// (Cormen et al., section 14.2) with the bytes of each intermediate added. Gives the new roots and one line per change.
///
/// # Errors
/// None that the original expression would not have given.
pub fn reassociate(roots: &[Expr]) -> Result<(Vec<Expr>, Vec<String>), EngineError> {
    let order = topological(roots);
    let mut uses: HashMap<u64, usize> = HashMap::new();
    for node in &order {
        for input in &node.inputs {
            *uses.entry(input.id).or_default() += 1;
        }
    }
    let outputs: HashSet<u64> = roots.iter().map(|root| root.id).collect();
    // An inner product joins its consumer's chain when nobody else needs its value.
    let joins = |node: &Expr| is_plain_product(node) && uses.get(&node.id) == Some(&1) && !outputs.contains(&node.id);
    let mut rewritten: HashMap<u64, Expr> = HashMap::new();
    let mut log = Vec::new();
    let absorbed: HashSet<u64> = order
        .iter()
        .filter(|node| is_plain_product(node))
        .flat_map(|node| node.inputs.iter().filter(|input| joins(input)).map(|input| input.id))
        .collect();
    for node in &order {
        let new = if is_plain_product(node) && !absorbed.contains(&node.id) {
            let mut factors = Vec::new();
            collect_factors(node, &joins, &mut factors);
            let factors: Vec<Expr> = factors.iter().map(|factor| rewritten[&factor.id].clone()).collect();
            let product = if factors.len() > 2 {
                cheapest_product(&factors)?
            } else {
                None
            };
            match product {
                Some((product, text)) => {
                    if text != written_order(node, &joins) {
                        log.push(format!("reassociate: {text}"));
                    }
                    product
                }
                None => rebuild(node, &rewritten)?,
            }
        } else {
            rebuild(node, &rewritten)?
        };
        rewritten.insert(node.id, new);
    }
    Ok((roots.iter().map(|root| rewritten[&root.id].clone()).collect(), log))
}

fn is_plain_product(node: &Expr) -> bool {
    matches!(node.op, Op::Matmul) && node.ndim() == 2
}

fn collect_factors(node: &Expr, joins: &dyn Fn(&Expr) -> bool, factors: &mut Vec<Expr>) {
    for input in &node.inputs {
        if joins(input) {
            collect_factors(input, joins, factors);
        } else {
            factors.push(input.clone());
        }
    }
}

fn rebuild(node: &Expr, rewritten: &HashMap<u64, Expr>) -> Result<Expr, EngineError> {
    let inputs: Vec<Expr> = node.inputs.iter().map(|input| rewritten[&input.id].clone()).collect();
    if inputs.iter().zip(&node.inputs).all(|(new, old)| new.id == old.id) {
        return Ok(node.clone());
    }
    if matches!(node.op, Op::Matmul) {
        return ops::matmul(&inputs[0], &inputs[1]);
    }
    Ok(Node::intern(
        node.op.clone(),
        inputs,
        node.shape.clone(),
        node.dtype,
        node.tile.clone(),
    ))
}

/// The product as it was written, in the notation of `describe`.
fn written_order(node: &Expr, joins: &dyn Fn(&Expr) -> bool) -> String {
    let side = |input: &Expr| {
        if joins(input) {
            written_order(input, joins)
        } else {
            format!("[{}×{}]", input.shape[0], input.shape[1])
        }
    };
    format!("({} @ {})", side(&node.inputs[0]), side(&node.inputs[1]))
}

/// The cheapest way to multiply `factors`; nothing when that is the way from the left.
fn cheapest_product(factors: &[Expr]) -> Result<Option<(Expr, String)>, EngineError> {
    let count = factors.len();
    let size = |from: usize, to: usize| factors[from].shape[0] as f64 * factors[to].shape[1] as f64;
    let item = factors[0].dtype.size() as f64;
    let mut cost = vec![vec![0.0f64; count]; count];
    let mut split = vec![vec![0usize; count]; count];
    for length in 1..count {
        for from in 0..count - length {
            let to = from + length;
            cost[from][to] = f64::INFINITY;
            for middle in from..to {
                let flops = 2.0 * size(from, to) * factors[middle].shape[1] as f64;
                let traffic = if length + 1 < count {
                    2.0 * size(from, to) * item * FLOPS_PER_BYTE
                } else {
                    0.0
                };
                let total = cost[from][middle] + cost[middle + 1][to] + flops + traffic;
                if total < cost[from][to] {
                    cost[from][to] = total;
                    split[from][to] = middle;
                }
            }
        }
    }
    let product = build(factors, &split, 0, count - 1)?;
    Ok(Some((product, describe(factors, &split, 0, count - 1))))
}

fn build(factors: &[Expr], split: &[Vec<usize>], from: usize, to: usize) -> Result<Expr, EngineError> {
    if from == to {
        return Ok(factors[from].clone());
    }
    let middle = split[from][to];
    ops::matmul(
        &build(factors, split, from, middle)?,
        &build(factors, split, middle + 1, to)?,
    )
}

fn describe(factors: &[Expr], split: &[Vec<usize>], from: usize, to: usize) -> String {
    if from == to {
        return format!("[{}×{}]", factors[from].shape[0], factors[from].shape[1]);
    }
    let middle = split[from][to];
    format!(
        "({} @ {})",
        describe(factors, split, from, middle),
        describe(factors, split, middle + 1, to)
    )
}
