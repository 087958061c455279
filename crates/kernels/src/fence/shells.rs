//! Target-feature shells: an algorithm is written once as an `#[inline(always)]` body and compiled per instruction set.
//!
//! The shape follows memchr's `arch::generic`: the body is generic, the shell only grants instructions. `fma` is granted
//! for its encodings, but Rust never contracts `a * b + c`, so every shell returns the same bits.
//!
//! On x86-64 the bodies are compiled for the processor that builds, or with the feature `portable` for what processors have
//! had since 2013 (AVX2) and since 2017 (AVX-512). The feature `baseline` adds older ones. Each is as much work again.

use super::operands::{FoldBlock, GemmOperands, SparseTile};

/// The instruction sets a body is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // each is in some builds only
enum Level {
    Baseline,
    V3,
    V4,
}

/// Whether this processor has the instructions of `Level::V4`.
#[cfg(target_arch = "x86_64")]
fn has_v4() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && has_v3()
}

/// Whether this processor has the instructions of `Level::V3`.
#[cfg(target_arch = "x86_64")]
fn has_v3() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// The best of the instruction sets that bodies are compiled for and this processor has.
#[cfg(target_arch = "x86_64")]
fn level() -> Option<Level> {
    use std::sync::OnceLock;
    static LEVEL: OnceLock<Option<Level>> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        if cfg!(level_v4) && has_v4() {
            Some(Level::V4)
        } else if cfg!(level_v3) && has_v3() {
            Some(Level::V3)
        } else {
            cfg!(feature = "baseline").then_some(Level::Baseline)
        }
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn level() -> Option<Level> {
    Some(Level::Baseline)
}

/// Whether this processor has the instructions that kernels are compiled for.
///
/// # Errors
/// It has not; what to do about it.
pub fn check_processor() -> Result<(), &'static str> {
    level().map(|_| ()).ok_or(TOO_OLD)
}

const TOO_OLD: &str = if cfg!(level_v3) {
    "outcore is compiled for processors with AVX2 and FMA, and this one has not both; \
     build it with `maturin build --release --features baseline`"
} else {
    "outcore is compiled for the processor that it was built on, which has AVX-512, and this one has not; \
     build it here, or with `maturin build --release --features portable`"
};

/// Whether this processor has what [`super::vectors`] is compiled for: the instructions of `Level::V4`, and `popcnt`.
#[cfg(target_arch = "x86_64")]
pub fn has_vectors() -> bool {
    has_v4() && is_x86_feature_detected!("popcnt")
}

/// Stamps a body trait and its lookup for one signature.
///
/// The shells are methods of the body, not functions beside it: a compiler unit holds what belongs to one module, and
/// three thousand shells of this one would be compiled on one thread.
macro_rules! shells {
    ($(#[$doc:meta])* $Body:ident($($argument:ident: $Type:ty),*)) => {
        $(#[$doc])*
        pub trait $Body: Sized {
            /// The algorithm; `#[inline(always)]`, so that it is compiled with its shell's instructions.
            fn run($($argument: $Type),*);

            /// The body with the instructions of `Level::V4`.
            ///
            /// # Safety
            /// `level` has seen each of them on this processor.
            #[cfg(level_v4)]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
            unsafe fn granted_v4($($argument: $Type),*) {
                Self::run($($argument),*)
            }

            /// The body with the instructions of `Level::V3`.
            ///
            /// # Safety
            /// As for `granted_v4`.
            #[cfg(level_v3)]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn granted_v3($($argument: $Type),*) {
                Self::run($($argument),*)
            }

            #[cfg(level_v4)]
            fn v4($($argument: $Type),*) {
                // SAFETY: handed out only after `level` saw each of the shell's features on this processor.
                unsafe { Self::granted_v4($($argument),*) }
            }

            #[cfg(level_v3)]
            fn v3($($argument: $Type),*) {
                // SAFETY: handed out only after `level` saw each of the shell's features on this processor.
                unsafe { Self::granted_v3($($argument),*) }
            }

            /// The body compiled for the best instruction set of this processor.
            fn kernel() -> fn($($Type),*) {
                match level() {
                    #[cfg(level_v4)]
                    Some(Level::V4) => Self::v4,
                    #[cfg(level_v3)]
                    Some(Level::V3) => Self::v3,
                    #[cfg(any(not(target_arch = "x86_64"), feature = "baseline"))]
                    Some(Level::Baseline) => Self::run,
                    #[allow(unreachable_patterns)]
                    _ => panic!("{TOO_OLD}"),
                }
            }
        }
    };
}

shells!(
    /// One array in, one out.
    UnaryBody(input: &[u8], output: &mut [u8])
);
shells!(
    /// Two arrays in, one out.
    BinaryBody(left: &[u8], right: &[u8], output: &mut [u8])
);
shells!(
    /// A condition and two arrays in, one out.
    SelectBody(condition: &[u8], left: &[u8], right: &[u8], output: &mut [u8])
);
shells!(
    /// A block of values folded into accumulators.
    FoldBody(block: FoldBlock<'_>, accumulators: &mut [u8])
);
shells!(
    /// An array changed in place, with a few words of findings.
    SweepBody(data: &mut [u8], findings: &mut [u64; 3])
);
shells!(
    /// A tile of a sparse matrix times a dense block, added to another; what is wrong with the tile is said.
    TileBody(tile: SparseTile<'_>, x: &[u8], y: &mut [u8], fault: &mut Option<&'static str>)
);
shells!(
    /// A small product on strided operands.
    ProductBody(product: GemmOperands<'_>)
);
shells!(
    /// Tiles that are changed together, and tiles of results, by sizes.
    TilesBody(tiles: &mut [&mut [u8]], results: &mut [&mut [u8]], sizes: &[usize], space: &mut [u8])
);
shells!(
    /// Arrays of real numbers and a few numbers in, one array out.
    NumbersBody(arrays: &[&[f64]], numbers: &[f64], out: &mut [f64])
);
