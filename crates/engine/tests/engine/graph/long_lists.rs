//! Lists that come in parts.

use super::*;

const HUB: u32 = 70_000;

/// A vertex with a million neighbours, whose list is of more bytes than a batch.
fn star() -> Made {
    let vertices = 1 << 20;
    written(vertices, 2 * (u64::from(vertices) - 1), |vertex| match vertex {
        HUB => (0..vertices).filter(|other| *other != HUB).collect(),
        _ => vec![HUB],
    })
}

/// Counts how often it is given a part of the list of the hub.
struct Calls {
    in_parts: bool,
    calls: AtomicU32,
}

impl VertexProgram for Calls {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn takes_parts(&self) -> bool {
        self.in_parts
    }

    fn run(&self, iteration: u32, _: u32, _: &mut u32) -> bool {
        iteration < 2
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[u32], outbox: &mut Outbox<u32>) {
        if list.vertex == HUB {
            self.calls.fetch_add(1, Relaxed);
        }
        list.neighbours
            .iter()
            .for_each(|other| outbox.send(*other, list.vertex));
    }

    fn on_message(&self, _: u32, _: u32, last: &mut u32, from: u32) -> bool {
        *last = last.wrapping_mul(31).wrapping_add(from);
        true
    }
}

#[test]
fn long_lists_come_in_parts_to_who_takes_them() {
    let made = star();
    assert!(graph::least_memory_of_parts(&made.file, 8, true) < graph::least_memory(&made.file, 8));
    let both = [false, true].map(|in_parts| {
        the_same(&made, &Io::direct(), |resources| {
            let calls = AtomicU32::new(0);
            let mut program = Calls { in_parts, calls };
            let mut states = vec![0; made.vertices];
            let mut active = Frontier::none(made.vertices);
            (0..made.vertices as u32).for_each(|vertex| active.insert(vertex));
            graph::run(
                &plain(&made),
                &mut program,
                &mut states,
                &mut active,
                Delivery::Synchronous,
                resources,
                &mut go,
            )
            .unwrap();
            assert_eq!(program.calls.into_inner(), if in_parts { 8 } else { 2 });
            states
        })
    });
    assert_eq!(both[0], both[1]);
    // The lowest sender is the first in an iteration, and the last in the next.
    let others = || (0..made.vertices as u32).filter(|other| *other != HUB);
    let heard = |last: u32, from: u32| last.wrapping_mul(31).wrapping_add(from);
    let expected = others().rev().fold(others().fold(0, heard), heard);
    assert_eq!(both[0][HUB as usize], expected);
    assert_eq!(both[0][3], heard(HUB, HUB));
}

#[test]
fn algorithms_take_long_lists_in_parts() {
    let made = star();
    let io = Io::direct();
    let leaves = made.vertices - 1;
    let is_hub = |vertex: usize| vertex == HUB as usize;
    let found = the_same(&made, &io, |resources| levels(&made, 5, &OUT, resources).unwrap());
    let distance = |vertex: usize| match vertex {
        5 => 0,
        vertex if is_hub(vertex) => 1,
        _ => 2,
    };
    assert!(found
        .iter()
        .enumerate()
        .all(|(vertex, level)| *level == distance(vertex)));
    let degrees = made.file.degrees(Direction::Out, &io).unwrap();
    let paths = the_same(&made, &io, |resources| {
        distances(&made, (&degrees, &degrees), HUB, 1e9, resources)
    });
    for (vertex, distance) in (0..).zip(&paths) {
        let direct = if vertex == HUB {
            0.0
        } else {
            weight(vertex.min(HUB), vertex.max(HUB))
        };
        assert_eq!(*distance, direct, "{vertex}");
    }
    let together = the_same(&made, &io, |resources| {
        graph::components(&made.file, resources, &mut go).unwrap()
    });
    assert!(together.iter().all(|lowest| *lowest == 0));
    let between = the_same(&made, &io, |resources| {
        graph::betweenness(&made.file, &[5], graph::BETWEENNESS_BYTES[0], resources, &mut go)
            .unwrap()
            .unwrap()
    });
    assert!((0..)
        .zip(&between)
        .all(|(vertex, sum)| *sum == if is_hub(vertex) { (leaves - 1) as f64 } else { 0.0 }));
    let what = graph::Ranking {
        damping: 0.85,
        tolerance: 1e-15,
        iterations: 500,
        teleport: None,
        dangling: None,
        start: None,
    };
    let strength = Strength::Degrees(&degrees);
    let (ranks, _) = the_same(&made, &io, |resources| {
        graph::ranks(&made.file, &strength, None, &what, resources, &mut go).unwrap()
    });
    // h = (1 - d) / n + d n' l, l = (1 - d) / n + d h / n', where n' are the leaves.
    let base = 0.15 / made.vertices as f64;
    let hub = (base + 0.85 * leaves as f64 * base) / (1.0 - 0.85 * 0.85);
    let leaf = base + 0.85 * hub / leaves as f64;
    for (vertex, rank) in ranks.iter().enumerate() {
        let expected = if is_hub(vertex) { hub } else { leaf };
        assert!((rank / expected - 1.0).abs() < 1e-9, "{vertex}: {rank} and {expected}");
    }
    let asked = [3, HUB, HUB + 1];
    let (begins, neighbours, weights) = the_same(&made, &io, |resources| {
        let asked = graph::ListRequest {
            file: &made.file,
            direction: Direction::Out,
            degrees: Some(&degrees),
            vertices: &asked,
        };
        let found = asked.whole(resources, &mut go).unwrap();
        (found.begins, found.neighbours, found.weights)
    });
    assert_eq!(begins, [0, 1, 1 + leaves as i64, 2 + leaves as i64]);
    assert!(neighbours[1..=leaves]
        .iter()
        .copied()
        .eq((0..made.vertices as u32).filter(|other| *other != HUB)));
    let of_hub = neighbours[1..=leaves].iter().zip(&weights[1..=leaves]);
    assert!({ of_hub }.all(|(other, found)| *found == weight(HUB.min(*other), HUB.max(*other))));
}

const HUBS: [u32; 2] = [9, (1 << 21) - 4];

/// Two vertices that are neighbours of each other, each of all of its half, a million. With `pairs` vertices 2k and 2k + 1 are
/// neighbours, too: so each pair makes a triangle with the hub, but the hub's own.
fn two_hubs(pairs: bool) -> Made {
    let (half, all) = (1u32 << 20, 1u32 << 21);
    let [low, high] = HUBS;
    let own = u64::from(pairs) * u64::from(half - 2);
    written(all, 2 * (2 * u64::from(half - 1) + 1 + own), |vertex| {
        let hub = if vertex < half { low } else { high };
        if vertex == low {
            (0..half).filter(|other| *other != low).chain([high]).collect()
        } else if vertex == high {
            let above = (half..all).filter(|other| *other != high);
            [low].into_iter().chain(above).collect()
        } else {
            let mut around = vec![hub];
            around.extend((pairs && vertex ^ 1 != hub).then_some(vertex ^ 1));
            around.sort_unstable();
            around
        }
    })
}

#[test]
fn counts_of_long_lists_are_those_of_a_formula() {
    let made = two_hubs(true);
    let io = Io::direct();
    let degrees = made.file.degrees(Direction::Out, &io).unwrap();
    let half = 1u64 << 20;
    let is_hub = |vertex: u32| HUBS.contains(&vertex);
    // In blocks that cut the lists of the hubs, and in one.
    for block in [1 << 20, 64 << 20] {
        let (all, each) = the_same(&made, &io, |resources| {
            graph::triangles(&made.file, &degrees, true, block, resources, &mut go).unwrap()
        });
        assert_eq!(all, half - 2);
        let of = |vertex: u32| match (is_hub(vertex), is_hub(vertex ^ 1)) {
            (true, _) => (half - 2) / 2,
            (_, true) => 0,
            _ => 1,
        };
        assert!((0..).zip(&each).all(|(vertex, found)| *found == of(vertex)));
    }
    let close = the_same(&made, &io, |resources| {
        graph::clustering(&made.file, &degrees, 64 << 20, resources, &mut go).unwrap()
    });
    for (vertex, found) in (0..).zip(&close) {
        let expected = match (is_hub(vertex), is_hub(vertex ^ 1)) {
            (true, _) => (half - 2) as f64 / (half as f64 * (half - 1) as f64),
            (_, true) => 0.0,
            _ => 1.0,
        };
        assert_eq!(*found, expected, "{vertex}");
    }
    let densest = the_same(&made, &io, |resources| {
        graph::scan(&made.file, &degrees, resources, &mut go).unwrap()
    });
    let densest = densest.unwrap();
    assert_eq!((densest.vertex, densest.edges), (HUBS[0], half + (half - 2) / 2));
    assert_eq!(densest.looked_at, 64, "the degrees of all others are too low");
    let loops = the_same(&made, &io, |resources| {
        graph::loops(&made.file, resources, &mut go).unwrap()
    });
    assert!(loops.is_empty());
}

#[test]
fn what_neighbours_say_is_heard_from_all_parts_of_a_list() {
    let made = two_hubs(true);
    let io = Io::direct();
    let around = HUBS.map(|hub| neighbours_of(&made, hub));
    let hub_of = |vertex: u32| usize::from(vertex >= 1 << 20);
    for seed in [1, 2] {
        let chosen = the_same(&made, &io, |resources| {
            graph::independent(&made.file, seed, resources, &mut go).unwrap()
        });
        for (hub, around) in HUBS.iter().zip(&around) {
            assert_eq!(chosen.has(*hub), !around.iter().any(|other| chosen.has(*other)));
        }
        for vertex in (0..1 << 21).filter(|vertex| !HUBS.contains(vertex)) {
            let [hub, pair] = [HUBS[hub_of(vertex)], vertex ^ 1];
            let is_by_one = chosen.has(hub) || pair != hub && chosen.has(pair);
            assert_eq!(chosen.has(vertex), !is_by_one, "{vertex}");
        }
        let (labels, done) = the_same(&made, &io, |resources| {
            graph::spread(&made.file, 100, seed, resources, &mut go).unwrap()
        });
        assert!(done.is_some(), "labels go on changing");
        // In the end each has a label that no other is more frequent than around it.
        for (hub, around) in HUBS.iter().zip(&around) {
            let mut counts = std::collections::HashMap::<u32, u32>::new();
            for other in around {
                *counts.entry(labels[*other as usize]).or_default() += 1;
            }
            assert_eq!(counts.get(&labels[*hub as usize]), counts.values().max());
        }
        for vertex in (0..1 << 21).filter(|vertex| !HUBS.contains(vertex)) {
            let own = labels[vertex as usize];
            assert!([HUBS[hub_of(vertex)], vertex ^ 1]
                .map(|other| labels[other as usize])
                .contains(&own));
        }
    }
    // Communities of a graph of two stars: what moves the hubs comes from all of their lists.
    let made = two_hubs(false);
    let folder = tempfile::tempdir().unwrap();
    let what = graph::Louvain {
        resolution: 1.0,
        seed: 3,
        threshold: 1e-7,
        exponent: 0,
    };
    let (labels, modularity) = the_same(&made, &io, |resources| {
        let mut path = || Ok(folder.path().join("c.ocg"));
        let mut coarse = graph::Coarse {
            bytes: 1 << 20,
            path: &mut path,
        };
        graph::louvain(&made.file, None, &what, &mut coarse, resources, &mut go).unwrap()
    });
    assert!((0..).zip(&labels).all(|(vertex, label)| *label == (vertex >> 20) << 20));
    let edges = f64::from((1 << 21) - 1);
    assert!(
        (modularity - ((edges - 1.0) / edges - 0.5)).abs() < 1e-9,
        "{modularity}"
    );
}
