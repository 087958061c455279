//! Any bytes as a file of a graph: an answer or an error, never a panic or a large allocation. What passes for lists is
//! decoded, under whatever checksum, and what is coded comes back.
#![no_main]

use outcore_coding::lists::{decode, degree, encode, has_any, IndexParts, ListIndex};

const VERTICES: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = outcore_store::parse_graph(bytes);
    let (mut found, mut coded) = (vec![], vec![]);
    let is_met = has_any(7, bytes, VERTICES, |vertex| vertex % 3 == 1);
    if decode(7, bytes, VERTICES, &mut found).is_ok() {
        assert_eq!(is_met, Ok(found.iter().any(|vertex| vertex % 3 == 1)));
        assert!(found.is_sorted() && found.iter().all(|vertex| u64::from(*vertex) < VERTICES));
        assert_eq!(degree(bytes), Ok(found.len()));
        encode(7, &found, &mut coded);
        let mut again = vec![];
        decode(7, &coded, VERTICES, &mut again).expect("what was coded is a list");
        assert_eq!(found, again);
    }
    // Lengths, and of large lists whatever stands behind.
    let (lengths, large) = bytes.split_at(bytes.len() / 2);
    let large = large.chunks_exact(9).map(|chunk| {
        (
            u32::from(chunk[0]),
            u64::from_le_bytes(chunk[1..9].try_into().expect("eight")),
        )
    });
    let parts = IndexParts {
        lengths: lengths.to_vec(),
        large: large.collect(),
    };
    if let Ok(index) = ListIndex::new(parts) {
        let mut end = 0;
        for (vertex, span) in index.spans(0..u32::MAX) {
            assert_eq!(span.offset, end);
            assert_eq!(index.span(vertex), span);
            end = span.end();
        }
        assert_eq!(end, index.total_bytes());
    }
});
