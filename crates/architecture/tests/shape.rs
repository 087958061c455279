//! Lengths of files and functions, numbers of parameters, and words that stand for one thing.

use std::collections::{BTreeMap, BTreeSet};

use outcore_architecture::{functions, tokens, Function, Modules};

use crate::{root_of, texts_of, CRATES};

/// Files that may say `(u64, u64)`, each with the reason.
const PAIRS: [(&str, &str); 1] = [("kernels/src/generate/fill.rs", "a row and a column")];

#[test]
fn intervals_of_indices_are_no_pairs() {
    let mut files = BTreeSet::new();
    for name in ["engine", "kernels"] {
        for (file, text) in texts_of(name, "src") {
            let words = tokens(&text).concat();
            // Two arguments of a closure are no pair.
            let pairs = words.replace("Fn(u64,u64)", "").replace("FnMut(u64,u64)", "");
            if pairs.contains("(u64,u64)") {
                files.insert(format!("{name}/src/{}", file.display()));
            }
        }
    }
    hold(
        "no pairs: say `Interval`, or name the two numbers",
        &files,
        &PAIRS.map(|(file, _)| file),
    );
}

/// Lines of a file, at most; of a function from `fn` to its closing brace; parameters beside `self`.
const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
const PARAMETERS: usize = 7;

/// Files that are longer still: to be split.
const LONG_FILES: [&str; 0] = [];

/// Functions that are longer still: to be split.
const LONG_FUNCTIONS: [&str; 0] = [];

/// Functions that may have more parameters, each with the reason.
const MANY_PARAMETERS: [(&str, &str); 7] = [
    ("crates/python/src/files/text.rs: new", PYTHON),
    ("crates/python/src/graph/reading.rs: each_lists", PYTHON),
    ("crates/python/src/sparse/ingest.rs: assemble_sparse", PYTHON),
    ("crates/python/src/sparse/matrix.rs: open_rows", PYTHON),
    ("crates/python/src/sparse/products.rs: foresee_spgemm", PYTHON),
    ("crates/python/src/sparse/products.rs: spgemm", PYTHON),
    ("crates/python/src/sparse/writer.rs: new", PYTHON),
];

/// A binding's parameters are those of the Python function.
const PYTHON: &str = "Python names the parameters";

/// All Rust files by their places in the workspace.
fn all_texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, place) in CRATES.map(|name| (name, format!("crates/{name}"))).into_iter().chain([
        ("architecture", "crates/architecture".into()),
        ("../fuzz", "fuzz".into()),
    ]) {
        for folder in ["src", "tests", "examples", "benches", "fuzz_targets"] {
            let named = texts_of(name, folder).into_iter();
            texts.extend(named.map(|(file, text)| (format!("{place}/{folder}/{}", file.display()), text)));
        }
    }
    texts
}

/// Fails where something is beyond a limit and not listed, or listed and within it.
fn hold(limit: &str, beyond: &BTreeSet<String>, listed: &[&str]) {
    let listed: BTreeSet<String> = listed.iter().map(|name| name.to_string()).collect();
    let more: Vec<&String> = beyond.difference(&listed).collect();
    let less: Vec<&String> = listed.difference(beyond).collect();
    assert!(more.is_empty(), "more than {limit}: {more:#?}");
    assert!(less.is_empty(), "listed, but within {limit}: {less:#?}");
}

#[test]
fn files_can_be_read_at_one_go() {
    let long = all_texts()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > FILE_LINES);
    hold(
        &format!("{FILE_LINES} lines"),
        &long.map(|(file, _)| file).collect(),
        &LONG_FILES,
    );
}

#[test]
fn functions_are_short_and_have_few_parameters() {
    let (mut long, mut many) = (BTreeSet::new(), BTreeSet::new());
    for (file, text) in all_texts() {
        for function in functions(&text) {
            let place = format!("{file}: {}", function.name);
            if function.parameters > PARAMETERS {
                many.insert(place.clone());
            }
            if function.lines > FUNCTION_LINES {
                long.insert(place);
            }
        }
    }
    hold(&format!("{FUNCTION_LINES} lines"), &long, &LONG_FUNCTIONS);
    let listed = MANY_PARAMETERS.map(|(place, _)| place);
    hold(&format!("{PARAMETERS} parameters"), &many, &listed);
}

#[test]
fn a_type_name_of_the_engine_stands_for_one_thing() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in texts_of("engine", "src") {
        let words = tokens(&text);
        let mut depth = 0;
        for pair in words.windows(2) {
            match &pair[0][..] {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            // Types within braces are those of traits.
            let defines = matches!(&pair[0][..], "struct" | "enum" | "trait") || pair[0] == "type" && depth == 0;
            if defines && pair[1].starts_with(char::is_uppercase) {
                files
                    .entry(pair[1].clone())
                    .or_default()
                    .insert(file.display().to_string());
            }
        }
    }
    for module in Modules::of_crate(&root_of("engine")).all {
        for import in module.imports {
            // One of another crate, unless it is handed on from here.
            let is_other = import.path[0].starts_with("outcore_") && !import.public;
            if let Some(files) = files.get_mut(&import.name).filter(|_| is_other) {
                files.insert(import.path.join("::"));
            }
        }
    }
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "names of several things: {files:#?}");
}

#[test]
fn lines_and_parameters_of_functions_are_counted() {
    let text = "
        trait T { fn f<F: Fn(u8, u8) -> u8>(&'a mut self, one: F, (a, b): (u8, u8)) -> [u8; 2] where F: Copy; }
        fn g(
            map: Map<u8, fn(u8, u8)>,
            make: impl Fn() -> (u8, u8),
        ) {
            fn inside(mut self: Me) { '}' }
        }
        type P = fn(u8, u8);
    ";
    let expected = [("f", 2, 1), ("g", 2, 6), ("inside", 0, 1)];
    let expected = expected.map(|(name, parameters, lines)| Function {
        name: name.into(),
        parameters,
        lines,
    });
    assert_eq!(functions(text), expected);
}
