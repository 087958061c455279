//! Components, triangles and communities.

use super::*;

#[test]
fn components_are_named_by_their_lowest_vertex() {
    for made in shapes() {
        let found = the_same(&made, &Io::direct(), |resources| {
            graph::components(&made.file, resources, &mut go).unwrap()
        });
        let mut expected: Vec<u32> = (0..made.vertices as u32).collect();
        for _ in 0..made.vertices {
            let before = expected.clone();
            for (from, to) in &made.edges {
                let low = expected[*from as usize].min(expected[*to as usize]);
                (expected[*from as usize], expected[*to as usize]) = (low, low);
            }
            if expected == before {
                break;
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn strong_components_reach_each_other() {
    for made in shapes()
        .into_iter()
        .filter(|made| made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let found = the_same(&made, &io, |resources| {
            graph::strong_components(&made.file, resources, &mut go).unwrap()
        });
        for (vertex, lowest) in found.iter().enumerate() {
            assert!(*lowest as usize <= vertex && found[*lowest as usize] == *lowest);
        }
        let means_frames = Frames::default();
        let resources = Resources {
            known: 0,
            memory: 64 << 20,
            portion_pages: PORTION_PAGES,
            threads: 1,
            io_threads: 1,
            io: &io,
            frames: &means_frames,
            cache: None,
            activity: &Activity::default(),
            memory_limit: 0,
            grow: &|_| Ok(()),
            scratch: &no_scratch,
        };
        let mut near = vec![];
        for vertex in (0..made.vertices as u32).step_by(7) {
            near.push((vertex, levels(&made, vertex, &OUT, &resources).unwrap()));
        }
        for (vertex, reached) in &near {
            for (other, back) in &near {
                let both = reached[*other as usize] != graph::UNMET && back[*vertex as usize] != graph::UNMET;
                assert_eq!(
                    found[*vertex as usize] == found[*other as usize],
                    both,
                    "{vertex} and {other}"
                );
            }
        }
    }
}

#[test]
fn triangles_are_those_of_three_loops() {
    for made in shapes()
        .into_iter()
        .filter(|made| !made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let degrees = made.file.degrees(Direction::Out, &io).unwrap();
        let edges: BTreeSet<(u32, u32)> = made.edges.iter().copied().collect();
        let mut expected = vec![0u64; made.vertices];
        for (first, second) in edges.iter().filter(|(first, second)| first < second) {
            for third in second + 1..made.vertices as u32 {
                if edges.contains(&(*first, third)) && edges.contains(&(*second, third)) {
                    [*first, *second, third]
                        .iter()
                        .for_each(|vertex| expected[*vertex as usize] += 1);
                }
            }
        }
        for block in [1 << 12, 64 << 20] {
            let (all, each) = the_same(&made, &io, |resources| {
                graph::triangles(&made.file, &degrees, true, block, resources, &mut go).unwrap()
            });
            assert_eq!((all, &each), (expected.iter().sum::<u64>() / 3, &expected));
            let (again, none) = the_same(&made, &io, |resources| {
                graph::triangles(&made.file, &degrees, false, block, resources, &mut go).unwrap()
            });
            assert_eq!((again, none), (all, vec![]));
        }
    }
}

#[test]
fn the_most_edges_are_around_one_vertex() {
    for made in shapes()
        .into_iter()
        .filter(|made| !made.file.shape().directed && made.vertices <= 500)
    {
        let io = Io::direct();
        let degrees = made.file.degrees(Direction::Out, &io).unwrap();
        let (_, triangles) = the_same(&made, &io, |resources| {
            graph::triangles(&made.file, &degrees, true, 1 << 20, resources, &mut go).unwrap()
        });
        let mut around = triangles;
        let plain = made.edges.iter().filter(|(from, to)| from != to);
        plain.for_each(|(from, _)| around[*from as usize] += 1);
        let most = around.iter().max().copied().unwrap();
        let lowest = around.iter().position(|edges| *edges == most).unwrap() as u32;
        let found = the_same(&made, &io, |resources| {
            graph::scan(&made.file, &degrees, resources, &mut go).unwrap()
        });
        let found = found.unwrap();
        assert_eq!((found.vertex, found.edges), (lowest, most));
        assert!(found.looked_at <= made.vertices as u64);
    }
}

/// Graphs of communities that do not fit are stored, and are the same.
#[test]
fn communities_are_the_same_in_whatever_memory() {
    let mut times_stored = 0;
    for made in shapes().into_iter().filter(|made| !made.file.shape().directed) {
        let io = Io::direct();
        let folder = tempfile::tempdir().unwrap();
        let what = graph::Louvain {
            resolution: 1.0,
            seed: 5,
            threshold: 1e-7,
            exponent: 0,
        };
        let stored = std::cell::Cell::new(0);
        let with = |bytes, resources: &Resources<'_>| {
            let mut path = || {
                stored.set(stored.get() + 1);
                Ok(folder.path().join(format!("{}.ocg", stored.get())))
            };
            let mut coarse = graph::Coarse { bytes, path: &mut path };
            let resources = Resources {
                memory: 64 << 20,
                ..*resources
            };
            graph::louvain(&made.file, None, &what, &mut coarse, &resources, &mut go)
        };
        let kept = the_same(&made, &io, |resources| with(1 << 20, resources).unwrap());
        assert_eq!(stored.get(), 0);
        assert!((0..).zip(&kept.0).all(|(vertex, label): (u32, _)| *label <= vertex));
        // Too little for a row of the first graph of communities is said; a bit more is enough.
        let least = (16..24).find_map(|power| match with(1 << power, &the_means(&io)) {
            Ok(found) => Some((power, found)),
            Err(EngineError::Memory { .. }) => None,
            Err(error) => panic!("{error}"),
        });
        assert_eq!(least.unwrap().1, kept);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files stay");
        times_stored += stored.get();
    }
    assert!(times_stored > 0, "no memory was too little");
}

/// Vertices without edges are gone through once to find that, and once to merge the others.
#[test]
fn graphs_of_communities_hold_no_vertex_without_edges() {
    let ring: Vec<(u32, u32)> = (0..100)
        .map(|place| (place * 30 + 7, (place + 1) % 100 * 30 + 7))
        .collect();
    let made = made(3000, &ring, false);
    let io = Io::direct();
    let resources = the_means(&io);
    let what = graph::Louvain {
        resolution: 1.0,
        seed: 0,
        threshold: 1e-7,
        exponent: 0,
    };
    let mut path = || unreachable!("there is room");
    let mut coarse = graph::Coarse {
        bytes: 1 << 20,
        path: &mut path,
    };
    let (labels, modularity) = graph::louvain(&made.file, None, &what, &mut coarse, &resources, &mut go).unwrap();
    resources.activity.end(None);
    let active: Vec<u64> = resources.activity.rows().iter().map(|row| row.active).collect();
    assert_eq!(active.iter().filter(|active| **active == 3000).count(), 2, "{active:?}");
    assert!(active.len() > 5, "{active:?}");
    assert!(
        active.iter().all(|active| *active == 3000 || *active <= 100),
        "{active:?}"
    );
    assert!((0..).zip(&labels).all(|(vertex, label)| if vertex % 30 == 7 {
        *label <= vertex && label % 30 == 7
    } else {
        *label == vertex
    }));
    let parts: BTreeSet<&u32> = labels.iter().filter(|label| **label % 30 == 7).collect();
    assert!(
        (5..=25).contains(&parts.len()) && modularity > 0.75,
        "{parts:?} {modularity}"
    );
}
