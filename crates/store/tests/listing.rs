//! Arrays by lists of their chunks: read as the chunks lie, refused where the files do not hold them.

use std::fs;
use std::path::{Path, PathBuf};

use outcore_store::{decode_listed_chunk, open_listing, ChunkListing, Io, Opening, Region, Reservation, StoreError};

use crate::support::read;

struct Granting;

impl Opening for Granting {
    fn look(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
    fn keep(&mut self, _bytes: usize) -> Result<Option<Reservation>, StoreError> {
        Ok(None)
    }
}

fn document(codecs: &str) -> String {
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [5, 4], "data_type": "uint8", "fill_value": 9,
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2, 4]}}}},
            "chunk_key_encoding": {{"name": "default"}}, "codecs": ["bytes"{codecs}]}}"#
    )
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = [folder.join("a.bin"), folder.join("b.bin")];
    fs::write(&files[0], (0..20).collect::<Vec<u8>>()).unwrap();
    fs::write(&files[1], (100..112).collect::<Vec<u8>>()).unwrap();
    files.to_vec()
}

fn opened(
    files: &[PathBuf],
    codecs: &str,
    chunks: &[[u64; 5]],
    is_cut: bool,
) -> Result<outcore_store::Opened, StoreError> {
    let document = document(codecs);
    let listing = ChunkListing {
        path: &files[0],
        member: "",
        document: document.as_bytes(),
        files,
        chunks,
        is_cut,
    };
    open_listing(&listing, &mut Granting)
}

fn all_of(files: &[PathBuf], chunks: &[[u64; 5]], is_cut: bool) -> Result<Vec<u8>, StoreError> {
    let source = opened(files, "", chunks, is_cut)?.source;
    read(&*source, &Region::full(&[5, 4]), &Io::direct())
}

#[test]
fn chunks_of_one_file_and_of_several_are_read_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let one = all_of(&files[..1], &[[1, 0, 3, 8, 0], [0, 0, 12, 8, 0], [2, 0, 0, 4, 0]], true).unwrap();
    assert_eq!(
        one,
        [(12..20).collect::<Vec<u8>>(), (3..11).collect(), (0..4).collect()].concat()
    );
    // Chunks that are not listed are fill value; chunks that are not cut go on behind the array.
    let two = all_of(&files, &[[0, 1, 1, 8, 0], [2, 0, 6, 8, 0]], false).unwrap();
    assert_eq!(
        two,
        [(101..109).collect::<Vec<u8>>(), vec![9; 8], (6..10).collect()].concat()
    );
}

#[test]
fn lists_that_files_do_not_hold_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let name = files[0].display();
    let refusal = |chunks: &[[u64; 5]]| opened(&files, "", chunks, false).unwrap_err().to_string();
    let cases: [(&[[u64; 5]], String); 5] = [
        (&[[3, 0, 0, 8, 0]], format!("{name}: chunk 3 of 3, in file 0 of 2")),
        (&[[0, 2, 0, 8, 0]], format!("{name}: chunk 0 of 3, in file 2 of 2")),
        (
            &[[0, 0, 13, 8, 0]],
            format!("{name}: byte 13: chunk 0 of {name} has 8 bytes there, the file has 20"),
        ),
        (
            &[[0, 0, u64::MAX, 8, 0]],
            format!(
                "{name}: byte {}: chunk 0 of {name} has 8 bytes there, the file has 20",
                u64::MAX
            ),
        ),
        (
            &[[1, 0, 0, 8, 0], [1, 1, 0, 8, 0]],
            format!("{name}: chunk 1 is listed twice"),
        ),
    ];
    for (chunks, expected) in cases {
        assert_eq!(refusal(chunks), expected);
    }
    let short = all_of(&files, &[[0, 0, 0, 7, 0]], false).unwrap_err().to_string();
    assert!(short.ends_with("a chunk of 7 bytes where 8 are expected"), "{short}");
}

#[test]
fn a_list_is_known_again_and_another_one_is_another_array() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let identity = |chunks: &[[u64; 5]]| {
        let source = opened(&files, "", chunks, false).unwrap().source;
        source.identity().to_string()
    };
    assert_eq!(identity(&[[0, 0, 0, 8, 0]]), identity(&[[0, 0, 0, 8, 0]]));
    assert_ne!(identity(&[[0, 0, 0, 8, 0]]), identity(&[[0, 0, 1, 8, 0]]));
}

#[test]
fn chunks_in_memory_are_decoded() {
    let differences = r#", {"name": "outcore.differences", "configuration": {"row": 4}}"#;
    let decoded = decode_listed_chunk(document(differences).as_bytes(), &[1; 8]).unwrap();
    assert_eq!(decoded, [1, 2, 3, 4, 1, 2, 3, 4]);
    let refusal = decode_listed_chunk(document("").as_bytes(), &[1; 7]).unwrap_err();
    assert_eq!(refusal, "a chunk decodes to 7 bytes, not 8");
    assert!(decode_listed_chunk(b"{", &[]).is_err());
}
