//! What several tests share.

use std::path::Path;

use outcore_dtype::DType;
use outcore_store::{create, open, FramePool, Interval, Io, Ledger, Region, Sink, Source, StoreError};

/// Tiles of a grid, clipped at the edge.
pub fn tiles(shape: &[u64], tile: &[u64]) -> Vec<Region> {
    let mut tiles = vec![Region::new(vec![], vec![])];
    for (&extent, &step) in shape.iter().zip(tile) {
        let mut next = Vec::new();
        for tile in &tiles {
            for start in (0..extent).step_by(step as usize) {
                let mut grown = tile.clone();
                grown.start.push(start);
                grown.shape.push(step.min(extent - start));
                next.push(grown);
            }
        }
        tiles = next;
    }
    tiles
}

/// The bytes of element number `element` of a test array.
pub fn pattern(element: u64, dtype: DType) -> Vec<u8> {
    if dtype == DType::Bool {
        return vec![u8::from(element.is_multiple_of(3))];
    }
    (0..dtype.size() as u64)
        .map(|byte| (element * 31 + byte * 7 + element / 251) as u8)
        .collect()
}

/// A region of a test array of `shape`, C-contiguous.
pub fn pattern_of(region: &Region, shape: &[u64], dtype: DType) -> Vec<u8> {
    let elements = region.runs(shape).flat_map(Interval::indices);
    elements.flat_map(|element| pattern(element, dtype)).collect()
}

pub fn pool() -> FramePool {
    FramePool::new(Ledger::new(256 << 20))
}

/// Writes every tile of a sink from a frame, checking the forecast of each, and finishes.
pub fn fill(sink: &dyn Sink, shape: &[u64], dtype: DType, pool: &FramePool, io: &Io) -> Result<(), StoreError> {
    for region in tiles(shape, sink.tile()) {
        let data = pattern_of(&region, shape, dtype);
        let mut frame = pool.allocate(data.len(), "tile")?;
        frame.copy_from_slice(&data);
        let before = io.counters();
        sink.write(&region, frame.padded(), io)?;
        assert_eq!(
            io.counters().since(&before).bytes_written,
            sink.write_bytes(&region),
            "{region:?}"
        );
    }
    sink.finish(io)
}

/// Creates and fills an array.
pub fn write(path: &Path, shape: &[u64], dtype: DType, tile: &[u64], io: &Io) -> Result<(), StoreError> {
    let sink = create(path, shape, dtype, tile, false, io)?;
    fill(&*sink, shape, dtype, &pool(), io)
}

/// Reads a region into a frame of exactly the size asked for, checking the forecast.
pub fn read(source: &dyn Source, region: &Region, io: &Io) -> Result<Vec<u8>, StoreError> {
    let cost = source.cost(region, io)?;
    let mut frame = pool().allocate(cost.frame_bytes, "tile")?;
    frame.fill(0xa5);
    let before = io.counters();
    let at = source.read(region, &mut frame, io)?;
    assert_eq!(
        io.counters().since(&before).bytes_read,
        cost.read_bytes,
        "{source:?} {region:?}"
    );
    assert_eq!(at % source.dtype().size(), 0);
    Ok(frame[at..at + region.elements() as usize * source.dtype().size()].to_vec())
}

pub fn read_all(path: &Path, io: &Io) -> Result<Vec<u8>, StoreError> {
    let opened = open(path, io)?;
    let all = Region::full(opened.source.shape());
    read(&*opened.source, &all, io)
}
