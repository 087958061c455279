//! Files that HDF5's own library wrote, against what h5py says of them.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod support;

use outcore_hdf5::{Hdf5Error, Hdf5File, Hdf5Object};

use support::{data_folder, fixtures, listing, CountingFile};

/// More than any fixture needs.
const MEMORY: usize = 8 << 20;

fn fixture(name: &str) -> CountingFile {
    CountingFile::new(std::fs::read(data_folder().join(name)).unwrap(), MEMORY)
}

/// The first line that differs, with the one before.
fn difference(own: &str, expected: &str) -> String {
    let place = own.lines().zip(expected.lines()).position(|(one, other)| one != other);
    let place = place.unwrap_or(own.lines().count().min(expected.lines().count()));
    let of = |text: &str| {
        text.lines()
            .skip(place.saturating_sub(2))
            .take(4)
            .collect::<Vec<_>>()
            .join("\n")
    };
    format!("line {place}:\n{}\nexpected:\n{}", of(own), of(expected))
}

#[test]
fn listings_are_those_of_h5py() {
    let mut differences = Vec::new();
    let paths = fixtures();
    let mut compared = 0;
    for path in paths {
        // Only of `refused.h5` there is none.
        let Ok(expected) = std::fs::read_to_string(path.with_extension("txt")) else {
            continue;
        };
        compared += 1;
        let file = CountingFile::new(std::fs::read(&path).unwrap(), MEMORY);
        let own = listing(&file).unwrap_or_else(|error| error.to_string());
        if own != expected {
            differences.push(format!("{}: {}", path.display(), difference(&own, &expected)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert_eq!(compared, 10);
}

#[test]
fn soft_links_are_followed_within_the_file_and_to_an_end() {
    for name in ["old.h5", "v200.h5"] {
        let file = fixture(name);
        let opened = Hdf5File::open(&file).unwrap();
        for path in ["/soft", "relative/member 3", "group/back/", "//group/./back"] {
            assert!(
                matches!(opened.object(path), Ok(Hdf5Object::Dataset(_))),
                "{name}: {path}"
            );
        }
        assert!(matches!(opened.object("/relative"), Ok(Hdf5Object::Group(_))));
        for path in ["lost", "group/none", "soft/below a dataset", "lost/further"] {
            assert!(
                matches!(opened.object(path), Err(Hdf5Error::NotFound(own)) if own == path),
                "{name}: {path}"
            );
        }
        for path in ["circle", "external", "external/x"] {
            assert!(
                matches!(opened.object(path), Err(Hdf5Error::Unsupported(_))),
                "{name}: {path}"
            );
        }
    }
}

#[test]
fn attributes_come_in_the_order_of_creation_where_there_is_one() {
    let file = fixture("v200.h5");
    let opened = Hdf5File::open(&file).unwrap();
    let names = |path: &str| match opened.object(path).unwrap() {
        Hdf5Object::Group(group) => group.attributes.into_iter().map(|own| own.name).collect::<Vec<_>>(),
        _ => panic!("{path} is no group"),
    };
    assert_eq!(names("few"), ["z", "a", "y", "b"]);
    let mut created: Vec<String> = (0..20).map(|number| format!("attribute {}", number * 7 % 20)).collect();
    assert_eq!(names("ordered"), created);
    created.push("huge".into());
    created.sort();
    assert_eq!(names("dense"), created);
}

#[test]
fn parts_that_are_refused_are_named() {
    let file = fixture("refused.h5");
    let opened = Hdf5File::open(&file).unwrap();
    for (path, name) in [
        ("external data", "external files"),
        ("virtual", "virtual dataset"),
        ("filtered", "filters of a fractal heap"),
    ] {
        let error = opened.object(path).expect_err(path);
        assert!(
            matches!(&error, Hdf5Error::Unsupported(part) if part.contains(name)),
            "{path}: {error}"
        );
    }
}

#[test]
fn edges_are_unfiltered_where_the_file_says_so() {
    let file = fixture("v200_indices.h5");
    let opened = Hdf5File::open(&file).unwrap();
    for (path, expected) in [("edges", true), ("fixed filtered", false)] {
        let Hdf5Object::Dataset(facts) = opened.object(path).unwrap() else {
            panic!("{path} is no dataset");
        };
        assert_eq!(facts.edges_unfiltered(), expected, "{path}");
    }
}

#[test]
fn files_that_are_cut_off_or_no_hdf5_are_damaged() {
    let whole = fixture("v18.h5").bytes;
    for bytes in [
        &whole[..whole.len() - 1],
        &whole[..700],
        &whole[..100],
        &b"CDF\x01"[..],
        &[],
    ] {
        let file = CountingFile::new(bytes.to_vec(), MEMORY);
        assert!(
            matches!(Hdf5File::open(&file), Err(Hdf5Error::Damaged { .. })),
            "{} bytes",
            bytes.len()
        );
    }
}

#[test]
fn checksums_are_held_against_what_they_cover() {
    let mut file = fixture("v200.h5");
    // The message of an attribute in the header of the root.
    let place = file.bytes.windows(8).position(|bytes| bytes == b"integers").unwrap();
    file.bytes[place] ^= 1;
    let error = listing(&file).expect_err("a changed name");
    assert!(error.to_string().contains("checksum"), "{error}");
}
