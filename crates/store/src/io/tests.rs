use super::*;

fn written(io: &Io) -> File {
    let file = io.open(Path::new("f"), Mode::Create).unwrap();
    let data: Vec<u8> = (0..10_000u32).map(|value| value as u8).collect();
    io.write(&file, &data, 0).unwrap();
    file
}

#[test]
fn short_calls_are_resumed_and_counted_once() {
    let io = Io::memory();
    io.set_faults(Some(Faults::parse("short-write:1,short-read:1").unwrap()));
    let file = written(&io);
    let mut back = vec![0; 10_000];
    io.read(&file, &mut back, 0, 10_000).unwrap();
    assert!(back.iter().enumerate().all(|(at, byte)| *byte == at as u8));
    let counters = io.counters();
    assert_eq!((counters.bytes_read, counters.bytes_written), (10_000, 10_000));
    assert_eq!((counters.read_calls, counters.write_calls), (2, 2));
}

#[test]
fn a_scope_counts_its_own_transfers_and_its_outer_one_counts_all() {
    let io = Io::memory();
    let file = written(&io);
    let (first, second) = (io.scoped(), io.scoped());
    let inner = first.scoped();
    let mut back = vec![0; 100];
    first.read(&file, &mut back, 0, 100).unwrap();
    inner.read(&file, &mut back, 0, 30).unwrap();
    second.read_metadata(&file, &mut back, 0, 50).unwrap();
    second.write(&file, &back, 0).unwrap();
    second.count_read(7);
    let read = |io: &Io| io.counters().bytes_read;
    assert_eq!(
        (read(&inner), read(&first), read(&second), read(&io)),
        (30, 130, 7, 137)
    );
    assert_eq!(
        (first.counters().bytes_written, second.counters().bytes_written),
        (0, 100)
    );
    assert_eq!(io.counters().bytes_written, 10_100);
    assert_eq!(
        (first.counters().metadata_bytes_read, io.counters().metadata_bytes_read),
        (0, 50)
    );
    // Faults are the disks', whatever the scope.
    io.set_faults(Some(Faults::parse("read:1").unwrap()));
    assert!(inner.read(&file, &mut back, 0, 30).is_err());
    assert_eq!(read(&inner), 30);
}

#[test]
fn a_fault_names_path_offset_and_cause() {
    let io = Io::memory();
    let file = written(&io);
    io.set_faults(Some(Faults::parse("read:2,write:1:enospc").unwrap()));
    let mut back = vec![0; 10];
    io.read(&file, &mut back, 0, 10).unwrap();
    let error = io.read(&file, &mut back, 70, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f: cannot read at byte 70: Input/output error (os error 5)"
    );
    let error = io.write(&file, &back, 5).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f: cannot write at byte 5: No space left on device (os error 28)"
    );
    io.set_faults(None);
    io.write(&file, &back, 5).unwrap();
}

#[test]
fn a_file_that_ends_early_is_an_error() {
    let io = Io::memory();
    let file = written(&io);
    let mut back = vec![0; 100];
    let error = io.read(&file, &mut back, 9_950, 100).unwrap_err();
    assert!(error.to_string().contains("the file ends 50 bytes early"), "{error}");
}

#[test]
fn torn_writes_leave_half_and_fail() {
    let io = Io::memory();
    let file = io.open(Path::new("t"), Mode::Create).unwrap();
    io.set_faults(Some(Faults::parse("torn-write:1").unwrap()));
    assert!(io.write(&file, &[1; 100], 0).is_err());
    assert_eq!(file.len().unwrap(), 50);
    assert_eq!(io.counters().bytes_written, 0);
}
