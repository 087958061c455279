//! What threads that each wait for their own request get out of a volume:
//! `cargo run --release --example volume_io <directory> <disks> [GiB] [seconds]`.
//!
//! Makes a volume of that many directories there, and a file in it; prints requests and bytes a second and processor time
//! of each request, past the page cache, for short ones at random and long ones in order. Removes both when all goes well.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use outcore_store::io::{File, Mode};
use outcore_store::volumes::{create, BlockLayout};
use outcore_store::{AlignedBuffer, Io, StoreError};
use rustix::time::{clock_gettime, ClockId};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const STEP: usize = 4 << 20;

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// splitmix64 (Steele, Lea and Flood 2014).
fn mixed(state: u64) -> u64 {
    let mut mixed = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

struct Case {
    threads: u64,
    bytes: usize,
    random: bool,
    write: bool,
}

/// Requests that the threads made, in `length` or a little more.
fn run(io: &Io, file: &File, case: &Case, length: Duration) -> Fallible<u64> {
    let places = file.len()? / case.bytes as u64;
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = |mut buffer: AlignedBuffer| -> Result<(), StoreError> {
        buffer.fill(7);
        while !over.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            let place = if case.random { mixed(number) } else { number } % places;
            let offset = place * case.bytes as u64;
            match case.write {
                true => io.write(file, &buffer, offset)?,
                false => io.read(file, &mut buffer, offset, case.bytes)?,
            }
        }
        Ok(())
    };
    let buffers = (0..case.threads).map(|_| AlignedBuffer::new(case.bytes));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let work = &work;
        let begin = |buffer| scope.spawn(move || work(buffer));
        let threads: Vec<_> = buffers.into_iter().map(begin).collect();
        std::thread::sleep(length);
        over.store(true, Relaxed);
        let mut outcomes = threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"));
        outcomes.try_for_each(|outcome| outcome)
    })?;
    Ok(next.into_inner())
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, disks, rest @ ..] = &arguments[..] else {
        return Err("usage: volume_io <directory> <disks> [GiB] [seconds]".into());
    };
    let home = PathBuf::from(directory).join("volume");
    let bytes = rest.first().map_or(Ok(1), |gib| gib.parse::<u64>())? << 30;
    let seconds = rest.get(1).map_or(Ok(2.0), |seconds| seconds.parse())?;
    let members: Vec<(PathBuf, u32)> = (0..disks.parse()?)
        .map(|disk: u32| (home.join(format!("disk-{disk}")), 1))
        .collect();
    create(&home, &members, BlockLayout::Rotated, 1 << 20)?;
    let (io, path) = (Io::direct(), home.join("file"));
    let file = io.open(&path, Mode::Create)?;
    file.allocate(bytes)?;
    let mut buffer = AlignedBuffer::new(STEP)?;
    for (at, word) in buffer.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mixed(at as u64).to_le_bytes());
    }
    for offset in (0..bytes).step_by(STEP) {
        buffer[..8].copy_from_slice(&offset.to_le_bytes());
        io.write(&file, &buffer, offset)?;
    }
    io.sync(&file)?;
    for (bytes, random, write) in [
        (4 << 10, true, false),
        (64 << 10, true, false),
        (STEP, false, false),
        (4 << 10, true, true),
        (STEP, false, true),
    ] {
        for threads in [1, 4, 16, 64] {
            if threads > 16 && bytes == STEP {
                continue;
            }
            let case = Case {
                threads,
                bytes,
                random,
                write,
            };
            let (begun, before) = (Instant::now(), processor());
            let count = run(&io, &file, &case, Duration::try_from_secs_f64(seconds)?)? as f64;
            let (elapsed, worked) = (begun.elapsed().as_secs_f64(), (processor() - before).as_secs_f64());
            println!(
                "{} {:>4} KiB {}, {threads:>2} threads: {:>9.0} a second, {:>7.3} GB/s, {:>8.2} µs each",
                if write { "write" } else { "read " },
                bytes >> 10,
                if random { "at random" } else { "in order " },
                count / elapsed,
                count * bytes as f64 / elapsed / 1e9,
                worked * 1e6 / count
            );
        }
    }
    drop(file);
    std::fs::remove_dir_all(&home)?;
    Ok(())
}
