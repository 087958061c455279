//! Pure functions on slices: what one task does to the bytes of its tiles.
//!
//! Nothing here reads a disk, allocates a result or knows of a plan. Arrays arrive as bytes in native order, aligned at
//! least to their element; `bool` is one byte holding 0 or 1. Kernels are looked up once and called on strips of a few
//! thousand elements, so a lookup returns a plain `fn` pointer with the processor's best instructions already chosen.
//!
//! **Invariant.** Results depend on the arguments only. The same loop is compiled for several instruction sets and never
//! contracted, so `+ - * /` and `sqrt` (and every sum built from them) give the same bits on every processor; the two
//! exceptions are dense products, which use fused multiplications where the processor has them, and functions of the
//! system's mathematical library.
//!
//! **Invariant.** Unsafe code lives in the module `fence` alone: target-feature shells and the calls into `gemm` and `faer`.
#![deny(unsafe_code)]
// Lanes are indexed because several arrays of them advance together; the compiler vectorizes that form.
#![allow(clippy::needless_range_loop)]

mod bounds;
mod compress;
mod describe;
mod elementwise;
mod factor;
#[allow(unsafe_code)]
mod fence;
mod fourier;
mod gather;
mod gemm;
mod generate;
mod half;
mod layout;
mod names;
mod real_fourier;
mod reduce;
mod scan;
pub mod sort;
mod spare;
mod tally;

pub use bounds::{find_beyond, Bounds};
pub use compress::{compress, count_true, nonzero_positions};
pub use describe::{clear_facts, describe, merge_facts, FACTS};
pub use elementwise::{
    binary_kernel, cast_kernel, select_kernel, unary_kernel, Binary, BinaryKernel, SelectKernel, Unary, UnaryKernel,
};
pub use factor::{
    BadPivot, BandShape, BlockChase, CandidateSides, Factor, Factorization, Failure, Hermitian, MergeSizes, NoPivot,
    Panel, PivotBlock, PivotColumns, PivotForm, PivotRecord, PivotRule, PivotTriangle, PivotedKind, Pivoting,
    Reflectors, RightHandSides, SelectedInverse, SweepRecord, SweepSpan, TileElements, TileLayout, Transposition,
    Triangle,
};
pub use fence::hint::{prefetch, prefetch_for_write};
pub use fence::operands::SparseTile;
pub use fence::shells::{check_processor, TileBody};
pub use fourier::{Fourier, FourierPlan};
pub use gather::{find_outside, gather_rows, positions_between, RowsInBlocks};
pub use gemm::{gemm, Matrix, MatrixMut};
pub use generate::{generate, Generator};
pub use layout::{copy_strided, StridedBytes, StridedBytesMut};
pub use reduce::{Finish, Reduce, Reducer};
pub use scan::{scan, Scan};
pub use tally::{clear_tally, merge_tallies, tally, tally_places, tally_squares, Tally, TallyTypes};
