//! What our ring does to a file, for `benchmarks/raw_io.py` to hold against fio:
//! `cargo run --release --example raw_io <file> <read|write|randread|randwrite> <bytes> <depth> <seconds>`.
//!
//! Transfers of that many bytes, one after the other or at random places, with that many under way, past the page cache,
//! over the whole file, which is there already. Prints transfers, seconds, and processor seconds of the process, as JSON.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use outcore_store::io::{Done, File, Mode, Queue};
use outcore_store::{AlignedBuffer, Io, StoreError};
use rustix::time::{clock_gettime, ClockId};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Which transfer is next.
struct Places {
    random: bool,
    count: u64,
    state: u64,
}

impl Places {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        if !self.random {
            return (self.state - 1) % self.count;
        }
        // splitmix64 (Steele, Lea and Flood 2014).
        let mut mixed = self.state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(self.count)) >> 64) as u64
    }
}

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Keeps `depth` transfers under way until the time is over; how many there were.
fn transfer(
    queue: &mut Queue<AlignedBuffer>,
    mut idle: Vec<Vec<AlignedBuffer>>,
    length: Duration,
    mut begin: impl FnMut(&mut Queue<AlignedBuffer>, Vec<AlignedBuffer>),
    next: impl Fn(&mut Queue<AlignedBuffer>, bool) -> Option<Done<AlignedBuffer>>,
) -> Result<u64, StoreError> {
    let (end, mut count) = (Instant::now() + length, 0);
    while Instant::now() < end {
        idle.drain(..).for_each(|buffers| begin(queue, buffers));
        let mut wait = true;
        while let Some(done) = next(queue, wait) {
            done.outcome?;
            idle.push(done.buffers);
            (wait, count) = (false, count + 1);
        }
    }
    while let Some(done) = next(queue, true) {
        done.outcome?;
        count += 1;
    }
    Ok(count)
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, what, bytes, depth, seconds] = &arguments[..] else {
        return Err("usage: raw_io <file> <read|write|randread|randwrite> <bytes> <depth> <seconds>".into());
    };
    let (bytes, depth): (usize, usize) = (bytes.parse()?, depth.parse()?);
    let length = Duration::try_from_secs_f64(seconds.parse()?)?;
    let (random, write) = match what.as_str() {
        "read" => (false, false),
        "write" => (false, true),
        "randread" => (true, false),
        "randwrite" => (true, true),
        _ => return Err(format!("{what}: none of read, write, randread, randwrite").into()),
    };
    let io = Io::direct();
    let file: File = io.open(&PathBuf::from(path), if write { Mode::Reopen } else { Mode::Read })?;
    let count = file.len()? / bytes.max(1) as u64;
    if count == 0 || !bytes.is_multiple_of(outcore_store::PAGE) {
        return Err("transfers are whole pages, and no longer than the file".into());
    }
    let mut places = Places {
        random,
        count,
        state: 0,
    };
    let mut queue: Queue<AlignedBuffer> = Queue::new(&io);
    if !queue.has_ring() {
        return Err("the system gives no ring".into());
    }
    let mut idle = Vec::new();
    for number in 0..depth {
        let mut buffer = AlignedBuffer::new(bytes)?;
        buffer.fill(number as u8 + 1);
        idle.push(vec![buffer]);
    }
    let mut place = || places.next() * bytes as u64;
    let (begun, before) = (Instant::now(), processor());
    let transfers = if write {
        let begin = |queue: &mut Queue<_>, buffers| queue.write(&file, buffers, place(), bytes, 0);
        transfer(&mut queue, idle, length, begin, Queue::next_write)?
    } else {
        let begin = |queue: &mut Queue<_>, buffers| queue.read(&file, buffers, place(), bytes, 0);
        transfer(&mut queue, idle, length, begin, Queue::next_read)?
    };
    let (elapsed, worked) = (begun.elapsed(), processor() - before);
    println!(
        "{{\"transfers\": {transfers}, \"seconds\": {:.6}, \"processor_seconds\": {:.6}}}",
        elapsed.as_secs_f64(),
        worked.as_secs_f64()
    );
    Ok(())
}
