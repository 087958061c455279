use std::path::PathBuf;

use super::*;
use crate::AlignedBuffer;

const PAGE: usize = crate::PAGE;

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

fn buffer(bytes: usize) -> AlignedBuffer {
    AlignedBuffer::new(bytes).unwrap()
}

/// A file of `bytes` bytes that tell where they are.
fn written(io: &Io, bytes: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = io.open(&path, Mode::CreateUnaligned).unwrap();
    io.write(&file, &(0..bytes).map(byte).collect::<Vec<u8>>(), 0).unwrap();
    (dir, path)
}

fn queues(io: &Io) -> [Queue<AlignedBuffer>; 2] {
    [Queue::new(io), Queue::plain(io)]
}

fn check(done: &Done<AlignedBuffer>, offset: usize, bytes: usize) {
    done.outcome.as_ref().unwrap();
    let data = done.buffers.iter().flat_map(|buffer| buffer.iter());
    assert!(data
        .take(bytes)
        .enumerate()
        .all(|(at, found)| *found == byte(offset + at)));
}

#[test]
fn many_reads_of_all_sizes_come_back_whole() {
    let bytes = (3 << 20) + 700;
    for io in [Io::direct(), Io::buffered()] {
        let (_dir, path) = written(&io, bytes);
        let file = io.open(&path, Mode::Read).unwrap();
        for mut queue in queues(&io) {
            let before = io.counters();
            let mut asked = Vec::new();
            // More than a ring takes at once; one buffer, several, and large ones; up to the end of the file.
            for number in 0..700 {
                let offset = number * 1021 % (bytes / PAGE) * PAGE;
                let buffers: Vec<AlignedBuffer> = (0..number % 5 + 1).map(|at| buffer(PAGE << (at % 3))).collect();
                let room: usize = buffers.iter().map(|buffer| buffer.len()).sum();
                let expected = room.min(bytes - offset);
                queue.read(&file, buffers, offset as u64, expected, number as u64);
                asked.push((offset, expected, false));
            }
            queue.read(&file, vec![buffer(2 << 20)], 0, 2 << 20, 700);
            asked.push((0, 2 << 20, false));
            while let Some(done) = queue.next_read(true) {
                let (offset, expected, answered) = &mut asked[done.token as usize];
                check(&done, *offset, *expected);
                assert!(!std::mem::replace(answered, true));
            }
            assert!(asked.iter().all(|asked| asked.2) && queue.under_way() == 0);
            let made = io.counters().since(&before);
            assert_eq!(made.bytes_read, asked.iter().map(|asked| asked.1 as u64).sum::<u64>());
        }
    }
}

#[test]
fn requests_of_one_sector() {
    let io = Io::buffered();
    let (_dir, path) = written(&io, 100 * 512);
    let file = io.open(&path, Mode::Read).unwrap();
    let mut queue = Queue::new(&io);
    for sector in 0..100 {
        let mut frame = crate::FramePool::new(crate::Ledger::new(1 << 20))
            .allocate(512, "a sector")
            .unwrap();
        frame.fill(0);
        queue.read(&file, vec![frame], sector * 512, 512, sector);
    }
    while let Some(done) = queue.next_read(true) {
        done.outcome.unwrap();
        let start = done.token as usize * 512;
        assert!(done.buffers[0]
            .iter()
            .enumerate()
            .all(|(at, found)| *found == byte(start + at)));
    }
}

#[test]
fn a_ring_is_used_again_by_its_thread_and_left_with_requests_under_way() {
    let io = Io::direct();
    let (_dir, path) = written(&io, 1 << 20);
    let file = io.open(&path, Mode::Read).unwrap();
    for _ in 0..20 {
        let mut queue = Queue::new(&io);
        let mut other = Queue::new(&io);
        for page in 0..100 {
            queue.read(&file, vec![buffer(PAGE)], page * PAGE as u64, PAGE, page);
            other.read(&file, vec![buffer(PAGE)], page * PAGE as u64, PAGE, page);
        }
        let done = queue.next_read(true).unwrap();
        check(&done, done.token as usize * PAGE, PAGE);
    }
}

#[test]
fn writes_come_back_as_reads() {
    for io in [Io::direct(), Io::buffered()] {
        let (_dir, path) = written(&io, 0);
        let file = io.open(&path, Mode::Reopen).unwrap();
        for mut queue in queues(&io) {
            for number in 0..20 {
                let mut buffers = vec![buffer(PAGE), buffer(2 * PAGE)];
                let start = number * 3 * PAGE;
                for (at, byte_at) in buffers.iter_mut().flat_map(|buffer| buffer.iter_mut()).enumerate() {
                    *byte_at = byte(start + at);
                }
                queue.write(&file, buffers, start as u64, 3 * PAGE, number as u64);
            }
            while let Some(done) = queue.next_write(true) {
                done.outcome.unwrap();
            }
            let mut back = buffer(60 * PAGE);
            io.read(&file, &mut back, 0, 60 * PAGE).unwrap();
            assert!(back.iter().enumerate().all(|(at, found)| *found == byte(at)));
        }
    }
}

/// Eight reads or writes of four pages with each call failing in turn; says which failed, and the error.
fn with_faults(io: &Io, file: &File, setting: &str, ring: bool) -> (Vec<u64>, String) {
    io.set_faults(Some(Faults::parse(setting).unwrap()));
    let mut queue = if ring { Queue::new(io) } else { Queue::plain(io) };
    let write = setting.contains("write");
    let (mut failed, mut message) = (Vec::new(), String::new());
    for number in 0..8 {
        let mut buffers = vec![buffer(2 * PAGE), buffer(2 * PAGE)];
        let offset = number * 4 * PAGE as u64;
        for (at, byte_at) in buffers.iter_mut().flat_map(|buffer| buffer.iter_mut()).enumerate() {
            *byte_at = if write { byte(offset as usize + at) } else { 0 };
        }
        match write {
            true => queue.write(file, buffers, offset, 4 * PAGE, number),
            false => queue.read(file, buffers, offset, 4 * PAGE, number),
        }
    }
    while let Some(done) = if write {
        queue.next_write(true)
    } else {
        queue.next_read(true)
    } {
        match &done.outcome {
            Ok(()) => check(&done, done.token as usize * 4 * PAGE, 4 * PAGE),
            Err(error) => {
                failed.push(done.token);
                message = error.to_string();
            }
        }
    }
    io.set_faults(None);
    (failed, message)
}

#[test]
fn each_call_of_a_batch_can_fail_or_be_short_or_torn() {
    let io = Io::direct();
    let (_dir, path) = written(&io, 32 * PAGE);
    let file = io.open(&path, Mode::Reopen).unwrap();
    for ring in [true, false] {
        for nth in 1..=8u64 {
            let offset = (nth - 1) * 4 * PAGE as u64;
            for (setting, action, at) in [("read", "read", 0), ("write", "write", 0), ("torn-write", "write", 0)] {
                let before = io.counters();
                let (failed, message) = with_faults(&io, &file, &format!("{setting}:{nth}"), ring);
                assert_eq!(failed, [nth - 1], "{setting}");
                let expected = format!("cannot {action} at byte {}: Input/output error", offset + at);
                assert!(
                    message.starts_with(path.to_str().unwrap()) && message.contains(&expected),
                    "{message}"
                );
                let made = io.counters().since(&before);
                assert_eq!(made.bytes_read + made.bytes_written, 7 * 4 * PAGE as u64);
            }
            for setting in ["short-read", "short-write"] {
                let before = io.counters();
                let (failed, _) = with_faults(&io, &file, &format!("{setting}:{nth}"), ring);
                assert!(failed.is_empty());
                let made = io.counters().since(&before);
                assert_eq!(made.bytes_read + made.bytes_written, 32 * PAGE as u64);
                assert_eq!(made.read_calls + made.write_calls, 9);
            }
        }
    }
}

#[test]
fn a_file_that_ends_early_fails_its_request_alone() {
    for io in [Io::direct(), Io::buffered()] {
        let (_dir, path) = written(&io, 5 * PAGE + 100);
        let file = io.open(&path, Mode::Read).unwrap();
        for mut queue in queues(&io) {
            queue.read(&file, vec![buffer(PAGE), buffer(PAGE)], 4 * PAGE as u64, 2 * PAGE, 0);
            queue.read(&file, vec![buffer(PAGE), buffer(PAGE)], 4 * PAGE as u64, PAGE + 100, 1);
            let mut outcomes = [String::new(), String::new()];
            while let Some(done) = queue.next_read(true) {
                outcomes[done.token as usize] = done.outcome.err().map_or(String::new(), |error| error.to_string());
            }
            assert!(
                outcomes[0].ends_with("the file ends 3996 bytes early"),
                "{}",
                outcomes[0]
            );
            assert_eq!(outcomes[1], "");
        }
    }
}

#[test]
fn a_queue_begins_while_more_is_taken() {
    let io = Io::direct();
    let (_dir, path) = written(&io, 64 * PAGE);
    let file = io.open(&path, Mode::Reopen).unwrap();
    let mut queue = Queue::for_writes(&io);
    for number in 0..32 {
        let mut page = buffer(PAGE);
        page.fill(250);
        queue.write(&file, vec![page], number * PAGE as u64, PAGE, number);
    }
    // Nobody told it to, and nobody waits.
    let begun = std::time::Instant::now();
    let mut back = buffer(PAGE);
    while back[0] != 250 {
        assert!(begun.elapsed().as_secs() < 10, "the first write is not begun");
        io.read(&file, &mut back, 0, PAGE).unwrap();
    }
    assert_eq!(queue.under_way(), 32);
    while let Some(done) = queue.next_write(true) {
        done.outcome.unwrap();
    }
    // Those that were not told of are not left behind either.
    let mut all = buffer(32 * PAGE);
    io.read(&file, &mut all, 0, 32 * PAGE).unwrap();
    assert!(all.iter().all(|byte| *byte == 250));
}
