//! Builders by their names. Each checks its parameters as it checks those of a caller.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::Side;
use outcore_kernels::{Factor, Fourier, Scan, Tally, Transposition};
use outcore_sparse::Semiring;

use crate::expr::{Expr, Node, Op};
use crate::solve::{QrCut, SlabCut};
use crate::sort::Method;
use crate::sparse::{KeyedMatrix, PartPlaces, Rearrangement, SparseOperand};
use crate::task::{Parameter, Parameters, Recipe};
use crate::{linalg, ops, solve, sort, sparse, EngineError};

/// The recipe of a node that is computed by an operator, and which of its results the node is; nothing where no other process
/// can build it.
pub fn recipe(node: &Node) -> Option<(Recipe, usize)> {
    let (recipe, result) = match &node.op {
        Op::Algorithm(key, result) => (key.0.recipe()?, *result),
        Op::Staged(key, result) => (key.0.recipe()?, *result),
        Op::MapBlocks(key) => (key.function.recipe()?, 0),
        _ => return None,
    };
    // An operator whose inputs were cut for it by another is built of them otherwise.
    let built = rebuild(recipe.builder, &recipe.parameters, &node.inputs).ok()?;
    let is_same = built.get(result).is_some_and(|built| built.id == node.id);
    is_same.then_some((recipe, result))
}

type BuiltResults = Result<Vec<Expr>, EngineError>;
type Builder = fn(&mut Parameters<'_>, &[Expr]) -> BuiltResults;

/// Each builder, and how many inputs it takes at least.
const BUILDERS: &[(&str, usize, Builder)] = &[
    ("Q basis", 1, |with, of| {
        let cut = QrCut::described_by(with)?;
        one(solve::qr_basis(&cut, &of[0], with.word()?))
    }),
    ("Q product", 2, |with, of| {
        one(solve::qr_product(&QrCut::described_by(with)?, &of[0], &of[1], false))
    }),
    ("adjoint Q product", 2, |with, of| {
        one(solve::qr_product(&QrCut::described_by(with)?, &of[0], &of[1], true))
    }),
    ("cholesky triangle", 1, |with, of| {
        let (rows, is_complex) = (with.word()?, with.flag()?);
        let dtype = if is_complex { DType::C128 } else { DType::F64 };
        one(solve::cholesky_triangle(rows, dtype, &of[0]))
    }),
    ("column statistics", 1, |with, of| {
        sort::column_statistics(&of[0], with.floats()?)
    }),
    ("compress", 2, |with, of| {
        one(ops::compress_before(&of[0], &of[1], with.words()?))
    }),
    ("count granules", 1, |_, of| one(ops::count_granules(&of[0]))),
    ("dense cholesky", 1, |_, of| {
        one(solve::dense_cholesky(&of[0], None).map(|(_, factor)| factor))
    }),
    ("describe", 1, |_, of| one(ops::described(&of[0]))),
    ("factorize", 1, |with, of| {
        linalg::factorize(with.named(Factor::named)?, &of[0], of.get(1))
    }),
    ("fourier", 1, fourier),
    ("group middles", 2, |with, of| {
        sort::group_middles(&of[0], &of[1], with.word()?, with.flag()?)
    }),
    ("hermitian eigenvalues", 1, |with, of| {
        let (has_vectors, first, end) = (with.flag()?, with.word()?, with.word()?);
        solve::hermitian(&of[0], has_vectors.then_some(first..end))
    }),
    ("lu", 1, |with, of| {
        one(solve::dense_lu(&of[0], with.flag()?).map(|(_, factor)| factor))
    }),
    ("lu pivots", 1, |with, of| {
        let (rows, is_complex) = (with.word()?, with.flag()?);
        let cut = slab_cut(rows, if is_complex { DType::C128 } else { DType::F64 })?;
        Ok(solve::lu_pivots(&cut, &of[0])?.into())
    }),
    ("lu solves", 2, |with, of| {
        let of_matrix =
            Transposition::numbered(with.word()?).ok_or_else(|| with.refusal("number of a transposition"))?;
        let cut = slab_cut(of[1].shape.first().copied().unwrap_or(0), of[1].dtype)?;
        one(solve::lu_solved(&cut, &of[0], &of[1], of_matrix))
    }),
    ("nonzero", 1, |with, of| one(ops::nonzero_before(&of[0], with.words()?))),
    ("order statistics", 1, |with, of| {
        sort::order_statistics(&of[0], with.floats()?)
    }),
    ("qr", 1, |_, of| one(solve::dense_qr(&of[0]).map(|(_, factor)| factor))),
    ("qr least squares", 2, |with, of| {
        let [solution, turned] = solve::qr_least_squares(&QrCut::described_by(with)?, &of[0], &of[1])?;
        Ok(vec![turned, solution])
    }),
    ("qr triangle", 1, |with, of| {
        one(solve::qr_triangle(&QrCut::described_by(with)?, &of[0]))
    }),
    ("rows by", 3, |_, of| one(sort::rows_by(&of[0], &of[1], &of[2]))),
    ("scan", 1, |with, of| {
        one(ops::scan(
            with.named(Scan::named)?,
            &of[0],
            with.word()? as usize,
            of.get(1),
        ))
    }),
    ("search", 2, |with, of| one(ops::search(&of[0], &of[1], side(with)?))),
    ("search sorted", 2, |with, of| {
        one(sort::search_sorted(&of[0], &of[1], side(with)?))
    }),
    ("sort by", 1, sort_by),
    ("sort columns", 1, |with, of| {
        one(sort::sort_columns(&of[0], with.flag()?, with.flag()?))
    }),
    ("sort lanes", 1, |with, of| {
        one(ops::sort_lanes(&of[0], with.flag()?, with.flag()?))
    }),
    ("sparse columns", 1, |with, of| {
        let count = with.word()?.min(8);
        let formulas = (0..count).map(|_| sparse::formula_of(with).map(Arc::new));
        sparse::entry_columns(&sparse::of_tiles(&of[0])?, formulas.collect::<Result<_, _>>()?)
    }),
    ("sparse combination", 2, sparse_combination),
    ("sparse entries", 1, |with, of| {
        one(sparse::stored(&SparseOperand::described_by(with, &of[0])?))
    }),
    ("sparse of columns", 1, |with, of| {
        let matrix = KeyedMatrix::described_by(with)?;
        Ok(vec![sparse::keyed(matrix, of)?.node().clone()])
    }),
    ("sparse part", 1, sparse_part),
    ("sparse product", 2, sparse_product),
    ("sparse rearrangement", 1, sparse_rearrangement),
    ("take", 2, take),
    ("tally", 1, tally),
    ("triangular solves", 2, |with, of| {
        let is = [with.flag()?, with.flag()?];
        let of_matrix =
            Transposition::numbered(with.word()?).ok_or_else(|| with.refusal("number of a transposition"))?;
        one(solve::triangular_solved(&of[0], &of[1], is, of_matrix))
    }),
    ("whole axes", 1, |with, of| {
        one(ops::uncut(&of[0], with.word()? as usize))
    }),
];

/// The results of an operator, by the name of its builder.
///
/// # Errors
/// A builder that there is not, too few inputs, parameters that the builder does not take; errors of the builder.
pub fn rebuild(builder: &str, parameters: &[Parameter], inputs: &[Expr]) -> BuiltResults {
    let refuse = |reason: String| Err(EngineError::Argument(format!("{builder}: {reason}")));
    let Some((_, least, build)) = BUILDERS.iter().find(|(name, ..)| *name == builder) else {
        return refuse("no operator is built so".into());
    };
    match inputs.len() < *least {
        true => refuse(format!("{} inputs, and it takes {least}", inputs.len())),
        false => build(&mut Parameters::new(builder, parameters), inputs),
    }
}

fn one(built: Result<Expr, EngineError>) -> BuiltResults {
    Ok(vec![built?])
}

fn slab_cut(rows: u64, dtype: DType) -> Result<SlabCut, EngineError> {
    SlabCut::of(rows, dtype).map_err(EngineError::Argument)
}

fn side(with: &mut Parameters<'_>) -> Result<Side, EngineError> {
    Ok(if with.flag()? { Side::Right } else { Side::Left })
}

fn fourier(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let (kind, axis, length) = (with.named(Fourier::named)?, with.word()? as usize, with.word()?);
    one(ops::fourier(
        kind,
        &of[0],
        axis,
        length,
        with.float()?,
        Some(with.word()?),
    ))
}

fn sort_by(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let (descending, method) = (with.flag()?, with.text()?);
    sort::sort_by(&of[0], &of[1..], descending, Method::named(method))
}

fn take(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    one(match with.flag()? {
        true => sort::take_ascending(&of[0], &of[1]),
        false => sort::take(&of[0], &of[1]),
    })
}

fn tally(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let (op, rows, dtype) = (with.named(Tally::named)?, with.word()?, with.named(DType::from_name)?);
    one(ops::tallied(op, &of[0], of.get(1), of.get(2), rows, dtype))
}

fn sparse_product(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let (semiring, transposed) = (with.named(Semiring::named)?, with.flag()?);
    let matrix = SparseOperand::described_by(with, &of[0])?;
    one(sparse::product(&matrix, transposed, &of[1], semiring))
}

fn sparse_combination(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let formula = sparse::formula_of(with)?;
    let first = SparseOperand::described_by(with, &of[0])?;
    let second = SparseOperand::described_by(with, &of[1])?;
    Ok(vec![sparse::combined(&first, &second, formula)?.node().clone()])
}

fn sparse_part(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let places = PartPlaces::described_by(with)?;
    let matrix = SparseOperand::described_by(with, &of[0])?;
    Ok(vec![sparse::part(&matrix, places)?.node().clone()])
}

fn sparse_rearrangement(with: &mut Parameters<'_>, of: &[Expr]) -> BuiltResults {
    let rearrangement = Rearrangement::described_by(with)?;
    let matrix = SparseOperand::described_by(with, &of[0])?;
    Ok(vec![sparse::rearranged(&matrix, rearrangement)?.node().clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builders_have_one_name_each_and_stand_in_order() {
        assert!(BUILDERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn parameters_from_anywhere_are_refused() {
        let x = ops::constant(outcore_dtype::Scalar::Float(0.0), DType::F64)
            .and_then(|zero| ops::broadcast_to(&zero, &[4, 4]));
        let x = x.expect("a matrix");
        for (builder, least, _) in BUILDERS {
            let inputs = vec![x.clone(); *least];
            assert!(
                rebuild(builder, &[], &inputs[1..]).is_err(),
                "{builder}: too few inputs"
            );
            // Whatever comes, it is an error or a node.
            for parameter in [
                Parameter::Word(u64::MAX),
                Parameter::Float(f64::NAN),
                Parameter::Text("?".into()),
                Parameter::Words(vec![u64::MAX; 3]),
                Parameter::Floats(vec![f64::NAN]),
                Parameter::Node(None),
            ] {
                let _ = rebuild(builder, &vec![parameter; 6], &inputs);
            }
        }
        assert!(rebuild("nothing", &[], &[x]).is_err());
    }
}
