//! Formats do what they say of themselves.

use std::path::{Path, PathBuf};

use outcore_dtype::DType;
use outcore_store::{
    find_updatable, formats, open, plan_sink, Ability, Annotation, AnnotationValue, Annotations, Io, StoreError,
};

use crate::support::{fill, pool};

const SHAPE: [u64; 2] = [6, 8];
const TILE: [u64; 2] = [3, 8];

fn annotations() -> Annotations {
    Annotations {
        dims: vec![Some("y".into()), Some("x".into())],
        attributes: vec![Annotation {
            name: "unit".into(),
            value: AnnotationValue::Text("m".into()),
        }],
        ..Annotations::default()
    }
}

fn written(folder: &Path, suffix: &str, io: &Io) -> Result<PathBuf, StoreError> {
    let path = folder.join(format!("x.{suffix}"));
    let plan = plan_sink(&path, &SHAPE, DType::F32, &TILE, false)?.annotated(&annotations());
    fill(&*plan.create(io)?, &SHAPE, DType::F32, &pool(), io)?;
    Ok(path)
}

#[test]
fn outputs_keep_what_their_formats_say() {
    let (folder, io) = (tempfile::tempdir().unwrap(), Io::direct());
    for format in formats() {
        let can = |ability: Ability| format.abilities.contains(&ability);
        assert_eq!(format.suffix.is_some(), can(Ability::Write), "{}", format.name);
        let Some(suffix) = format.suffix else { continue };
        let path = written(folder.path(), suffix, &io).unwrap();
        let opened = open(&path, &io).unwrap();
        assert_eq!(opened.format, format.name);
        let is_annotated = opened.annotations.dims == annotations().dims;
        assert_eq!(is_annotated, can(Ability::Attributes), "{}", format.name);
        let is_updatable = find_updatable(&path).is_ok();
        assert_eq!(
            is_updatable,
            can(Ability::Append) && can(Ability::Region),
            "{}",
            format.name
        );
    }
}

#[test]
fn a_name_that_is_a_folder_is_none_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |name: &str| plan_sink(&folder.path().join(name), &SHAPE, DType::F32, &TILE, false);
    assert!(plan("x.zarr/").is_ok() && plan("x.npy").is_ok());
    let refusal = plan("x.npy/").unwrap_err().to_string();
    assert!(
        refusal.ends_with("ends in /, which names a directory, and a .npy output is a file"),
        "{refusal}"
    );
    for name in ["x.ocs", "x.tif", "x"] {
        assert!(plan(name).is_err());
    }
}
