use super::*;

fn array(path: &Path, content: &str) {
    fs::create_dir(path).unwrap();
    fs::write(path.join("zarr.json"), r#"{"node_type": "array"}"#).unwrap();
    fs::write(path.join("c"), content).unwrap();
}

fn content(path: &Path) -> String {
    fs::read_to_string(path.join("c")).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn written(target: &Path) -> Partial {
    let make = |path: &Path| {
        array(path, "new");
        Ok(())
    };
    Partial::new(target, true, make).unwrap().0
}

#[test]
fn a_directory_is_replaced_in_two_steps_where_names_cannot_be_exchanged() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x.zarr");
    for is_discarded in [false, true] {
        let _ = fs::remove_dir_all(&target);
        array(&target, "old");
        let partial = written(&target);
        partial.place_plainly(&partial.check().unwrap()).unwrap();
        assert_eq!(content(&target), "new");
        if is_discarded {
            partial.discard_replaced();
        } else {
            partial.take_back(&Io::direct()).unwrap();
        }
        drop(partial);
        let expected = if is_discarded { "new" } else { "old" };
        assert_eq!(
            (content(&target), names(dir.path())),
            (expected.into(), vec!["x.zarr".into()])
        );
    }
}

#[test]
fn a_file_is_replaced_in_one_step_where_names_cannot_be_exchanged() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x.npy");
    for is_discarded in [false, true] {
        fs::write(&target, "old").unwrap();
        let make = |path: &Path| {
            fs::write(path, "new").unwrap();
            Ok(())
        };
        let partial = Partial::new(&target, true, make).unwrap().0;
        partial.place_plainly(&partial.check().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        if is_discarded {
            partial.discard_replaced();
        } else {
            partial.take_back(&Io::direct()).unwrap();
        }
        drop(partial);
        let expected = if is_discarded { "new" } else { "old" };
        assert_eq!(fs::read_to_string(&target).unwrap(), expected);
        assert_eq!(names(dir.path()), ["x.npy"]);
    }
}

#[test]
fn what_a_dead_process_put_aside_gets_its_name_back() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x.zarr");
    let aside = |random: &str, old: &str| {
        let folder = dir.path().join(format!("{MARK}1-{random}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(NAME), "x.zarr").unwrap();
        array(&folder.join(NEW), "new");
        array(&folder.join(OLD), old);
    };
    aside("a", "old");
    clean_partials(dir.path()).unwrap();
    assert_eq!(
        (content(&target), names(dir.path())),
        ("old".into(), vec!["x.zarr".into()])
    );
    // One whose name has been taken since is superfluous.
    aside("b", "older");
    clean_partials(dir.path()).unwrap();
    assert_eq!(
        (content(&target), names(dir.path())),
        ("old".into(), vec!["x.zarr".into()])
    );
}

#[test]
fn only_an_array_is_replaced_by_an_array() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x.zarr");
    array(&target, "old");
    assert!(check_replaceable(&target, true).is_ok());
    for json in [r#"{"node_type": "group"}"#, "{", ""] {
        fs::write(target.join("zarr.json"), json).unwrap();
        let error = check_replaceable(&target, true).unwrap_err();
        assert_eq!(error.code(), "format", "{error}");
    }
    assert!(check_replaceable(&target, false).is_err());
}
