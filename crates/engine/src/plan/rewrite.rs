//! Rewrites of whole expressions before they are cut into passes.

use std::collections::{HashMap, HashSet};

use outcore_store::Layout;

use crate::expr::{over, topological, Digest, Expr, Node, Op, SourceKey};
use crate::ops;
use crate::{cancel, EngineError};

/// Products with two axes are worth moving; what a byte written and read again costs in operations.
const FLOPS_PER_BYTE: f64 = 60.0;

/// Nodes that compute the same as one: annotations tell them apart for the caller alone.
pub fn equal_as_one(roots: &[Expr]) -> Vec<Expr> {
    let mut first: HashMap<Digest, Expr> = HashMap::new();
    let mut is_twice = false;
    for node in topological(roots) {
        let one = first.entry(node.digest()).or_insert_with(|| node.clone());
        is_twice |= one.id != node.id;
    }
    if !is_twice {
        return roots.to_vec();
    }
    let mut built: HashMap<Digest, Expr> = HashMap::new();
    for node in topological(roots) {
        if !built.contains_key(&node.digest()) {
            let inputs = node.inputs.iter().map(|input| built[&input.digest()].clone()).collect();
            let one = over(&node, inputs);
            one.call_as(node.called());
            built.insert(node.digest(), one);
        }
    }
    roots.iter().map(|root| built[&root.digest()].clone()).collect()
}

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
        cancel::check();
        let mut new = rebuild(node, &rewritten)?;
        if is_plain_product(node) && !absorbed.contains(&node.id) {
            let factors = collect_factors(node, &joins);
            if factors.len() > 2 {
                let factors: Vec<Expr> = factors.iter().map(|factor| rewritten[&factor.id].clone()).collect();
                let product = cheapest_product(&factors)?;
                if product.id != new.id {
                    log.push(format!("reassociate: {}", describe(&product, &factors)));
                    new = product;
                }
            }
        }
        new.call_as(node.called());
        rewritten.insert(node.id, new);
    }
    Ok((roots.iter().map(|root| rewritten[&root.id].clone()).collect(), log))
}

/// Shapes of stored arrays as the arrays themselves: the file is read as if it had been written in that shape. Where the
/// array is also read in its own shape, by tiles of as many leading rows, it stays one array, so that one read serves both.
///
/// # Errors
/// None that the original expression would not have given.
pub fn read_in_shape(roots: &[Expr]) -> Result<Vec<Expr>, EngineError> {
    let order = topological(roots);
    let is_stored_shape = |node: &Expr| matches!(node.op, Op::Reshape) && ops::is_row_major(&node.inputs[0]);
    let is_memory_shape = |node: &Expr| match (&node.op, &node.inputs[..]) {
        (Op::Reshape, [input]) => matches!(&input.op, Op::Source(key) if key.0.layout() == Layout::Memory),
        _ => false,
    };
    let mut read_otherwise = HashSet::new();
    for node in order.iter().filter(|node| !is_stored_shape(node)) {
        read_otherwise.extend(node.inputs.iter().map(|input| input.id));
    }
    let mut rewritten: HashMap<u64, Expr> = HashMap::new();
    for node in &order {
        cancel::check();
        let seen = (is_stored_shape(node) || is_memory_shape(node)) && {
            let input = &node.inputs[0];
            let same_rows = input.shape.first() == node.shape.first() && input.tile.first() == node.tile.first();
            !(same_rows && read_otherwise.contains(&input.id))
        };
        let new = match seen.then(|| in_shape(node)).flatten() {
            Some(source) => Node::intern(source, vec![], node.shape.clone(), node.dtype, node.tile.clone()),
            None => in_tiles(&rebuild(node, &rewritten)?),
        };
        new.call_as(node.called());
        rewritten.insert(node.id, new);
    }
    Ok(roots.iter().map(|root| rewritten[&root.id].clone()).collect())
}

/// Files of large products in tiles for products; nothing where there are none.
///
/// # Errors
/// None that the original expression would not have given.
pub fn in_product_tiles(roots: &[Expr]) -> Result<Option<Vec<Expr>>, EngineError> {
    let mut rewritten: HashMap<u64, Expr> = HashMap::new();
    let mut is_changed = false;
    for node in &topological(roots) {
        cancel::check();
        let inputs: Vec<Expr> = node.inputs.iter().map(|input| rewritten[&input.id].clone()).collect();
        let is_same = inputs.iter().zip(&node.inputs).all(|(new, old)| new.id == old.id);
        let mut new = match is_same {
            true => node.clone(),
            false => Node::intern(
                node.op.clone(),
                inputs,
                node.shape.clone(),
                node.dtype,
                node.tile.clone(),
            ),
        };
        if let Some(tiled) = ops::in_product_tiles(&new)? {
            (new, is_changed) = (tiled, true);
        }
        new.call_as(node.called());
        rewritten.insert(node.id, new);
    }
    Ok(is_changed.then(|| roots.iter().map(|root| rewritten[&root.id].clone()).collect()))
}

/// An algorithm whose inputs have tiles: what is in memory or made up is copied into some.
fn in_tiles(node: &Expr) -> Expr {
    let has_tiles = |input: &Expr| match &input.op {
        Op::Source(key) => key.0.layout() != Layout::Memory,
        Op::Generate(_) => false,
        _ => true,
    };
    if !matches!(node.op, Op::Algorithm(..)) || node.inputs.iter().all(has_tiles) {
        return node.clone();
    }
    let tiled = |input: &Expr| match has_tiles(input) {
        true => input.clone(),
        false => ops::copy_tiled(input, input.tile.clone()),
    };
    let inputs = node.inputs.iter().map(tiled).collect();
    Node::intern(
        node.op.clone(),
        inputs,
        node.shape.clone(),
        node.dtype,
        node.tile.clone(),
    )
}

/// The stored array below a reshape, in the shape.
fn in_shape(node: &Expr) -> Option<Op> {
    let input = &node.inputs[0];
    let (stored, first) = match &input.op {
        Op::Slice(slices) => {
            let row: u64 = input.shape[1..].iter().product();
            (&input.inputs[0], slices[0].start as u64 * row)
        }
        _ => (input, 0),
    };
    let Op::Source(key) = &stored.op else { return None };
    key.0.reshaped(first, &node.shape).map(SourceKey).map(Op::Source)
}

fn is_plain_product(node: &Expr) -> bool {
    matches!(node.op, Op::Matmul) && node.ndim() == 2
}

/// The factors of a product, from left to right. In a loop: chains are as deep as programs are long.
fn collect_factors(node: &Expr, joins: &dyn Fn(&Expr) -> bool) -> Vec<Expr> {
    let mut factors = Vec::new();
    let mut pending: Vec<Expr> = node.inputs.iter().rev().cloned().collect();
    while let Some(factor) = pending.pop() {
        cancel::check();
        if joins(&factor) {
            pending.extend(factor.inputs.iter().rev().cloned());
        } else {
            factors.push(factor);
        }
    }
    factors
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

/// Chains of more factors are associated by a rule that needs one sweep, not by all ways to cut them.
const FACTORS_MAX: usize = 128;

fn cheapest_product(factors: &[Expr]) -> Result<Expr, EngineError> {
    if factors.len() > FACTORS_MAX {
        return product_by_sweep(factors);
    }
    let split = cheapest_splits(factors);
    build(factors, &split, 0, factors.len() - 1)
}

/// Where to cut each run of factors, by the recurrence over all ways to cut it.
fn cheapest_splits(factors: &[Expr]) -> Vec<Vec<usize>> {
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
    split
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

/// One sweep over the dimensions `d₀ … dₙ` of a chain: products over a dimension that is large beside its neighbours
/// come first, the rest spreads from the smallest dimension (Chin 1978; at most 25 % more operations than the cheapest
/// way, Hu and Shing 1981).
fn product_by_sweep(factors: &[Expr]) -> Result<Expr, EngineError> {
    let dimension = |at: usize| match factors.get(at) {
        Some(factor) => factor.shape[0] as f64,
        None => factors[at - 1].shape[1] as f64,
    };
    let smallest = (0..=factors.len())
        .min_by(|&a, &b| dimension(a).total_cmp(&dimension(b)))
        .unwrap_or(0);
    let inverse = |at: usize| 1.0 / dimension(at);
    // Dimensions that are left, each with the product from the one before it.
    let mut left: Vec<(usize, Option<Expr>)> = vec![(0, None)];
    for (at, factor) in factors.iter().enumerate() {
        cancel::check();
        let mut product = factor.clone();
        while let [.., (before, _), (inner, _)] = left[..] {
            let worth = inverse(smallest) + inverse(inner) < inverse(before) + inverse(at + 1);
            if inner == smallest || !worth {
                break;
            }
            let (_, earlier) = left.pop().expect("matched above");
            product = ops::matmul(&earlier.expect("only the first dimension has no product"), &product)?;
        }
        left.push((at + 1, Some(product)));
    }
    let middle = left.iter().position(|&(at, _)| at == smallest).unwrap_or(0);
    let products = |part: &[(usize, Option<Expr>)]| part.iter().filter_map(|(_, product)| product.clone()).collect();
    let (before, after): (Vec<Expr>, Vec<Expr>) = (products(&left[..=middle]), products(&left[middle + 1..]));
    let fold = |product: Option<Expr>, next: Expr, is_left: bool| match product {
        None => Ok(Some(next)),
        Some(product) if is_left => ops::matmul(&next, &product).map(Some),
        Some(product) => ops::matmul(&product, &next).map(Some),
    };
    let before = before
        .into_iter()
        .rev()
        .try_fold(None, |product, next| fold(product, next, true))?;
    let after = after
        .into_iter()
        .try_fold(None, |product, next| fold(product, next, false))?;
    match (before, after) {
        (Some(before), Some(after)) => ops::matmul(&before, &after),
        (one, other) => Ok(one.or(other).expect("a chain has factors")),
    }
}

/// Longest chain that is written out.
const WRITTEN_MAX: usize = 16;

/// The product in the notation of a formula, with shapes for names.
fn describe(product: &Expr, factors: &[Expr]) -> String {
    if factors.len() > WRITTEN_MAX {
        return format!("a chain of {} products", factors.len() - 1);
    }
    let shape = |node: &Expr| format!("[{}×{}]", node.shape[0], node.shape[1]);
    if factors.iter().any(|factor| factor.id == product.id) || product.inputs.len() != 2 {
        return shape(product);
    }
    let [x, y] = [0, 1].map(|side| describe(&product.inputs[side], factors));
    format!("({x} @ {y})")
}

#[cfg(test)]
mod tests {
    use outcore_dtype::{DType, Scalar};
    use outcore_kernels::Generator;

    use super::*;

    fn chain(dimensions: &[u64]) -> Vec<Expr> {
        let one = Generator::Full(Scalar::Int(1));
        let factor = |pair: &[u64]| ops::generate(one.clone(), pair.to_vec(), DType::F64).expect("a matrix");
        dimensions.windows(2).map(factor).collect()
    }

    /// Multiplications in a tree of products.
    fn cost(product: &Expr) -> u64 {
        match product.op {
            Op::Matmul => {
                let [x, y] = [&product.inputs[0], &product.inputs[1]];
                cost(x) + cost(y) + x.shape[0] * x.shape[1] * y.shape[1]
            }
            _ => 0,
        }
    }

    /// The fewest multiplications, over all ways to cut the chain.
    fn least(dimensions: &[u64]) -> u64 {
        let count = dimensions.len();
        let mut best = vec![vec![0u64; count]; count];
        for length in 2..count {
            for from in 0..count - length {
                let to = from + length;
                let cut = |middle: usize| {
                    let [a, b, c] = [from, middle, to].map(|at| dimensions[at]);
                    best[from][middle] + best[middle][to] + a * b * c
                };
                best[from][to] = (from + 1..to).map(cut).min().expect("two factors or more");
            }
        }
        best[0][count - 1]
    }

    #[test]
    fn one_sweep_is_within_a_quarter_of_the_cheapest_way() {
        let mut state = 7u64;
        for length in [3, 5, 9, 17, 40] {
            for _ in 0..40 {
                let dimensions: Vec<u64> = (0..=length)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        1 + (state >> 33) % 97
                    })
                    .collect();
                let product = product_by_sweep(&chain(&dimensions)).expect("shapes fit");
                assert_eq!(product.shape, [dimensions[0], dimensions[length]]);
                let (swept, best) = (cost(&product), least(&dimensions));
                assert!(4 * swept <= 5 * best, "{dimensions:?}: {swept} where {best} do");
            }
        }
    }

    #[test]
    fn a_vector_is_multiplied_first_whichever_end_it_stands_at() {
        let mut dimensions = vec![50; 300];
        dimensions.push(1);
        let from_the_right = cost(&product_by_sweep(&chain(&dimensions)).expect("shapes fit"));
        dimensions.reverse();
        let from_the_left = cost(&product_by_sweep(&chain(&dimensions)).expect("shapes fit"));
        assert_eq!(
            (from_the_right, from_the_left),
            (50 * 50 * 298 + 50 * 50, 50 * 50 * 298 + 50 * 50)
        );
    }
}
