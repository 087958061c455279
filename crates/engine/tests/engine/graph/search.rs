//! Searches and paths.

use super::*;

#[test]
fn levels_are_those_of_a_queue() {
    for made in shapes() {
        for (directions, both) in [(&OUT[..], false), (&[Direction::Out, Direction::In][..], true)] {
            let found = the_same(&made, &Io::direct(), |resources| {
                levels(&made, 0, directions, resources).unwrap()
            });
            assert_eq!(found, expected_levels(&made, 0, both));
        }
    }
}

#[test]
fn lists_in_which_a_search_finds_nothing_are_not_read_again() {
    let made = made(3000, &skewed(3000, 12000), true);
    let expected = expected_levels(&made, 0, false);
    // The second is not memory enough to keep them.
    for (memory, is_enough) in [(64 << 20, true), (64, false)] {
        let activity = Activity::default();
        let io = Io::direct();
        let resources = Resources {
            memory,
            activity: &activity,
            ..the_means(&io)
        };
        assert_eq!(levels(&made, 0, &OUT, &resources).unwrap(), expected);
        activity.end(None);
        let rows = activity.rows();
        let turned = rows.iter().position(|row| row.lists != row.active).unwrap();
        let behind: u64 = rows[turned + 1..].iter().map(|row| row.read_bytes).sum();
        assert!(turned + 2 < rows.len() && rows[turned].read_bytes > 0, "{rows:?}");
        assert_eq!(behind == 0, is_enough, "{rows:?}");
    }
}

#[test]
fn distances_are_the_shortest() {
    for made in shapes() {
        let io = Io::direct();
        let degrees = [Direction::Out, Direction::In].map(|direction| made.file.degrees(direction, &io).unwrap());
        let mut expected = vec![f64::INFINITY; made.vertices];
        expected[0] = 0.0;
        for _ in 0..made.vertices {
            let before = expected.clone();
            for (from, to) in &made.edges {
                let new = expected[*from as usize] + weight(*from, *to);
                expected[*to as usize] = expected[*to as usize].min(new);
            }
            if expected == before {
                break;
            }
        }
        for step in [0.1, 3.0, 1e9] {
            let found = the_same(&made, &io, |resources| {
                distances(&made, (&degrees[0], &degrees[1]), 0, step, resources)
            });
            assert_eq!(found, expected);
        }
    }
}

/// δ of every vertex, by the definition: of the shortest paths from the source to each other, the part through it.
fn plain_between(made: &Made, source: u32) -> Vec<f64> {
    let levels = expected_levels(made, source, false);
    let next =
        |(from, to): &&(u32, u32)| levels[*from as usize] >= 0 && levels[*to as usize] == levels[*from as usize] + 1;
    let mut by_level: Vec<_> = made.edges.iter().filter(next).copied().collect();
    by_level.sort_by_key(|(from, _)| levels[*from as usize]);
    let mut paths = vec![0.0; made.vertices];
    paths[source as usize] = 1.0;
    by_level
        .iter()
        .for_each(|(from, to)| paths[*to as usize] += paths[*from as usize]);
    let mut sums = vec![0.0; made.vertices];
    for (from, to) in by_level.iter().rev() {
        sums[*from as usize] += paths[*from as usize] / paths[*to as usize] * (1.0 + sums[*to as usize]);
    }
    sums[source as usize] = 0.0;
    sums
}

#[test]
fn betweenness_is_that_of_its_definition_in_either_memory() {
    let io = Io::direct();
    for made in shapes() {
        if made.vertices == 0 {
            continue;
        }
        let sources = [0, made.vertices as u32 / 2, 0];
        let mut expected = vec![0.0; made.vertices];
        for source in sources {
            let of = plain_between(&made, source);
            expected.iter_mut().zip(of).for_each(|(sum, more)| *sum += more);
        }
        let any = graph::BETWEENNESS_BYTES[0];
        let found = the_same(&made, &io, |resources| {
            graph::betweenness(&made.file, &sources, any, resources, &mut go)
                .unwrap()
                .unwrap()
        });
        for (vertex, (sum, right)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (sum - right).abs() <= 1e-9 * right.max(1.0),
                "{vertex}: {sum} and {right}"
            );
        }
        let few = graph::betweenness(
            &made.file,
            &sources,
            graph::BETWEENNESS_BYTES[1],
            &the_means(&io),
            &mut go,
        );
        assert!(few.unwrap().is_none_or(|few| few == found));
    }
}

#[test]
fn little_memory_is_enough_for_some_fifty_levels_and_not_for_a_thousand() {
    let io = Io::direct();
    let [any, few] = graph::BETWEENNESS_BYTES;
    // Those of a level lie as far apart as can be.
    for (levels, is_enough) in [(2, true), (10, true), (50, true), (1000, false)] {
        let n = 4000u32;
        let edges: Vec<(u32, u32)> = (0..n)
            .map(|vertex| (vertex, vertex + 1))
            .filter(|(_, to)| to % levels != 0)
            .collect();
        let roots = (1..n / levels).map(|path| (0, path * levels));
        let made = made(n as usize, &edges.into_iter().chain(roots).collect::<Vec<_>>(), true);
        let between = |bytes| graph::betweenness(&made.file, &[0], bytes, &the_means(&io), &mut go).unwrap();
        let found = between(any).unwrap();
        assert_eq!(found[1], f64::from(levels.saturating_sub(2)));
        assert_eq!(between(few), is_enough.then_some(found), "{levels} levels");
    }
}
