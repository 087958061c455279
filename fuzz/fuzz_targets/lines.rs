//! Any bytes as lines of numbers: as many in each column and no more than lines, or an error.
#![no_main]

use outcore_store::{LineFormat, Lines, NumberType};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [settings, text @ ..] = bytes else { return };
    let format = LineFormat {
        name: "lines".into(),
        ids: if settings & 1 == 0 { [0, 1] } else { [2, 0] },
        values: match settings >> 1 & 3 {
            0 => None,
            1 => Some(vec![]),
            _ => Some(vec![3]),
        },
        number: match (settings & 8, settings & 64) {
            (0, 0) => NumberType::Int64,
            (0, _) => NumberType::Uint64,
            _ => NumberType::Float64,
        },
        separators: b",;|".to_vec(),
        comments: b"#%".to_vec(),
        base: u64::from(settings >> 4 & 1),
        limits: (settings & 32 != 0).then_some([1000, 1 << 40]),
    };
    let Ok(found) = Lines::new(format).parse(text, 1) else {
        return;
    };
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!(found.ids[0].len() <= lines && found.ids[1].len() == found.ids[0].len());
    assert!(found.values.iter().all(|values| values.len() == found.ids[0].len()));
});
