//! Loop programs: nests of loops over elements of arrays, as tasks over tiles.
//!
//! A front end hands over nests with affine bounds and subscripts; dependences say which loops may be cut, and each box of
//! iterations is a task. Orders of tasks are the schedule's (Kandemir, Son, Karakoy, Improving I/O performance of applications
//! through compiler-directed code restructuring, FAST 2008).
//!
//! Uses `task`, `expr`, `strips` and `ops`. Start with `program.rs`, which says what a program is; `dependences.rs` and `cut.rs`
//! decide, `tasks.rs` lists the tasks, `walk.rs` runs one, in loops that `distribution.rs` has parted; `slices.rs` calls functions of
//! the user with whole slices.

mod affine;
mod call;
mod cut;
mod dependences;
mod distribution;
mod embedding;
mod formula;
mod initial;
mod kernel;
mod leaf;
mod line;
mod polyhedron;
mod program;
mod reuse;
mod slices;
mod sweep;
mod tasks;
mod tiling;
mod walk;

pub use call::SliceFunction;
pub use formula::{FormulaOperand, FormulaOperation, FormulaTerm, LineFormula};
pub use kernel::{LineBlock, LineCompiler, LineElement, LineKernel, LineLeaf, LineStep, LineTarget, SharedKernel};
pub use leaf::loop_leaf;
pub use program::LoopValues;

pub use tasks::loop_nest;
