//! Writes and reads 4 GiB in tiles of 4 MiB: `cargo run --release --example bandwidth <directory>`.
//!
//! Prints wall bandwidth and processor seconds per GiB for each format and number of threads.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use outcore_dtype::DType;
use outcore_store::{create, open, Frame, FramePool, Io, IoPool, Ledger, Region, StoreError};

const SHAPE: [u64; 2] = [131_072, 4096];
const TILE: [u64; 2] = [128, 4096];

fn regions() -> impl Iterator<Item = Region> {
    (0..SHAPE[0])
        .step_by(TILE[0] as usize)
        .map(|row| Region::new(vec![row, 0], TILE.to_vec()))
}

/// User and system seconds of this process, in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn measure(what: &str, threads: usize, pool: &FramePool, job: impl Fn(Region, Frame) + Clone + Send + 'static) {
    let (start, processor) = (Instant::now(), processor_seconds());
    let workers = IoPool::new(threads);
    let (give, frames) = std::sync::mpsc::sync_channel(threads);
    for _ in 0..threads {
        let _ = give.send(());
    }
    for region in regions() {
        let _ = frames.recv();
        let Ok(frame) = pool.allocate(TILE[0] as usize * TILE[1] as usize * 8, "tile") else {
            return;
        };
        let (give, job) = (give.clone(), job.clone());
        workers.submit(Box::new(move || {
            job(region, frame);
            let _ = give.send(());
        }));
    }
    drop(workers);
    let seconds = start.elapsed().as_secs_f64();
    let gib = (SHAPE[0] * SHAPE[1] * 8) as f64 / f64::from(1 << 30);
    println!(
        "{what:12} {threads} threads: {:6.0} MiB/s, {:.2} processor s/GiB",
        gib * 1024.0 / seconds,
        (processor_seconds() - processor) / gib
    );
}

fn main() -> Result<(), StoreError> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let pool = FramePool::new(Ledger::new(64 << 20));
    warm_up(&pool)?;
    for suffix in ["npy", "zarr"] {
        let path = dir.join(format!("bandwidth.{suffix}"));
        run(&path, suffix, &pool)?;
        let _ = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
    }
    Ok(())
}

/// Leaves frames in the pool that hold bytes no disk can leave out.
fn warm_up(pool: &FramePool) -> Result<(), StoreError> {
    let bytes = TILE[0] as usize * TILE[1] as usize * 8;
    let mut frames = (0..4)
        .map(|_| pool.allocate(bytes, "tile"))
        .collect::<Result<Vec<Frame>, _>>()?;
    let mut state = 1u64;
    for word in frames.iter_mut().flat_map(|frame| frame.chunks_exact_mut(8)) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.copy_from_slice(&state.to_le_bytes());
    }
    Ok(())
}

fn run(path: &Path, suffix: &str, pool: &FramePool) -> Result<(), StoreError> {
    let io = Io::direct();
    for threads in [1, 2, 4] {
        let sink = create(path, &SHAPE, DType::F64, &TILE, true, &io)?;
        let (writer, writes) = (sink.clone(), io.clone());
        measure(&format!("write {suffix}"), threads, pool, move |region, frame| {
            writer.write(&region, frame.padded(), &writes).expect("write");
        });
        sink.finish(&io)?;
    }
    for threads in [1, 2, 4] {
        let source = Arc::clone(&open(path, &io)?.source);
        let reads = io.clone();
        measure(&format!("read {suffix}"), threads, pool, move |region, mut frame| {
            assert!(source.cost(&region, &reads).expect("a cost").frame_bytes <= frame.len());
            source.read(&region, &mut frame, &reads).expect("read");
        });
    }
    Ok(())
}
