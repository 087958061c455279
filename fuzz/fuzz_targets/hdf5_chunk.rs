//! Any bytes as a chunk of any filters: as many bytes as the chunk has elements for, or an error, never a panic or a large
//! allocation.
#![no_main]

const FILTERS: [u16; 9] = [1, 2, 3, 6, 32000, 32001, 32004, 32008, 32015];

/// Numbers that a filter is set by.
const VALUES: usize = 10;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([first, second, length, items], rest)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let Some((values, chunk)) = rest.split_first_chunk::<VALUES>() else {
        return;
    };
    // The upper bit of a number stands for large ones.
    let values = values.map(|value| {
        if value < 128 {
            value.into()
        } else {
            u32::from(value) << 24
        }
    });
    let filter = |number: u8| (FILTERS[usize::from(number) % FILTERS.len()], values.to_vec());
    let filters = [filter(*first), filter(*second)];
    let count = 1 + usize::from(*second >= 128);
    let (item, length) = (1 << (items % 4), 16 * usize::from(*length));
    if let Ok(decoded) = outcore_store::decode_hdf5_chunk(&filters[..count], item, chunk, length) {
        assert_eq!(decoded.len(), length);
    }
});
