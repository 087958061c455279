//! Sources without files, and programs in one line.

use std::path::PathBuf;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_engine::expr::Expr;
use outcore_engine::ops;
use outcore_engine::place::Policy;
use outcore_engine::plan::PlanOptions;
use outcore_engine::run::{Session, SessionOptions, Target, TraceLevel};
use outcore_kernels::Binary;
use outcore_store::{Frame, Interval, Io, Layout, ReadCost, Region, Source, StoreError, PAGE};

/// A stored array whose element at flat index `i` is `(i mod 97) / 97 + 1/8`: nothing on disk, every read counted.
#[derive(Debug)]
pub struct Made {
    name: String,
    shape: Vec<u64>,
    layout: Layout,
}

pub fn made_value(flat: u64) -> f64 {
    (flat % 97) as f64 / 97.0 + 0.125
}

impl Source for Made {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn shape(&self) -> &[u64] {
        &self.shape
    }
    fn dtype(&self) -> DType {
        DType::F64
    }
    fn layout(&self) -> Layout {
        self.layout.clone()
    }
    fn identity(&self) -> &str {
        &self.name
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn cost(&self, region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        Ok(ReadCost {
            read_bytes: region.elements() * 8,
            frame_bytes: region.elements() as usize * 8,
            workspace_bytes: 0,
        })
    }
    fn read(&self, region: &Region, frame: &mut [u8], _io: &Io) -> Result<usize, StoreError> {
        let mut at = 0;
        for Interval {
            start: first,
            length: count,
        } in region.runs(&self.shape)
        {
            for flat in first..first + count {
                frame[at..at + 8].copy_from_slice(&made_value(flat).to_ne_bytes());
                at += 8;
            }
        }
        Ok(0)
    }
    /// As if every tile shared a page with the one beside it.
    fn group_bytes(&self, regions: &[Region]) -> Option<u64> {
        let bytes: u64 = regions.iter().map(|region| region.elements() * 8).sum();
        Some(bytes - (regions.len() as u64 - 1) * PAGE as u64)
    }
    fn read_group(
        &self,
        regions: &[Region],
        frames: &mut [Frame],
        _staging: &mut [u8],
        io: &Io,
    ) -> Result<(), StoreError> {
        let mut tiles = regions.iter().zip(frames);
        tiles.try_for_each(|(region, frame)| self.read(region, frame, io).map(drop))
    }
}

/// A stored array in C order; the name is its identity, so each test uses its own.
pub fn stored(name: &str, shape: &[u64]) -> Expr {
    made(name, shape, Layout::RowMajor)
}

/// A stored array in chunks.
pub fn chunked(name: &str, shape: &[u64], chunk: &[u64]) -> Expr {
    made(name, shape, Layout::Chunks(chunk.to_vec()))
}

fn made(name: &str, shape: &[u64], layout: Layout) -> Expr {
    let source = Made {
        name: name.into(),
        shape: shape.to_vec(),
        layout,
    };
    ops::source(Arc::new(source)).expect("a sensible shape")
}

pub fn transposed(x: &Expr) -> Expr {
    ops::permute(x, &[1, 0]).expect("two axes")
}

pub fn product(x: &Expr, y: &Expr) -> Expr {
    ops::matmul(x, y).expect("shapes that fit")
}

pub fn apply(op: Binary, x: &Expr, y: &Expr) -> Expr {
    ops::binary(op, x, y).expect("shapes that fit")
}

/// Non-negative matrix factorization by multiplicative updates (Lee and Seung 2001, theorem 1).
pub fn factorization(name: &str, rows: u64, iterations: usize) -> (Expr, Expr) {
    let x = stored(&format!("{name}-X"), &[rows, 100]);
    let mut w = stored(&format!("{name}-W"), &[rows, 10]);
    let mut h = stored(&format!("{name}-H"), &[10, 100]);
    for _ in 0..iterations {
        let ht = transposed(&h);
        let above = apply(Binary::Multiply, &w, &product(&x, &ht));
        w = apply(Binary::Divide, &above, &product(&product(&w, &h), &ht));
        let wt = transposed(&w);
        let above = apply(Binary::Multiply, &h, &product(&wt, &x));
        h = apply(Binary::Divide, &above, &product(&product(&wt, &w), &h));
    }
    (w, h)
}

/// Gradient steps of a least-squares fit: one sweep over `X` each, when fused.
pub fn descent(name: &str, rows: u64, iterations: usize) -> Expr {
    let x = stored(&format!("{name}-X"), &[rows, 100]);
    let y = stored(&format!("{name}-y"), &[rows, 1]);
    let mut w = stored(&format!("{name}-w"), &[100, 1]);
    for _ in 0..iterations {
        let error = apply(Binary::Subtract, &product(&x, &w), &y);
        w = apply(Binary::Subtract, &w, &product(&transposed(&x), &error));
    }
    w
}

pub fn session(pool_bytes: u64, threads: usize, policy: Policy, plan: PlanOptions) -> Arc<Session> {
    let options = SessionOptions {
        memory_limit: 8 << 30,
        pool_limit: Some(pool_bytes),
        threads,
        io_threads: 2,
        window: None,
        scratch: vec![PathBuf::from(env!("CARGO_TARGET_TMPDIR"))],
        scratch_quota: None,
        policy,
        plan,
        direct_io: false,
        faults: None,
    };
    Arc::new(Session::new(options).expect("sensible options"))
}

/// Plays a program into memory and checks that its peak is the one forecast.
pub fn compute(session: &Arc<Session>, outputs: &[Expr]) -> Vec<Vec<f64>> {
    let targets = vec![Target::Memory; outputs.len()];
    let program = session.prepare(outputs, &targets).expect("fits");
    let outcome = program.run(TraceLevel::None, &mut |_| Ok(())).expect("runs");
    assert_eq!(outcome.peak_bytes, program.peak_bytes(), "peak memory is as forecast");
    outcome
        .results
        .iter()
        .zip(outputs)
        .map(|(frame, output)| {
            let bytes = &frame.as_ref().expect("a result in memory")[..output.nbytes() as usize];
            bytes
                .chunks_exact(8)
                .map(|chunk| f64::from_ne_bytes(chunk.try_into().expect("eight bytes")))
                .collect()
        })
        .collect()
}
