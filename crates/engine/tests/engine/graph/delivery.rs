//! When messages are delivered, and programs that panic.

use super::*;

/// The lowest vertex that is known to be connected, which neighbours are told of.
struct Lowest;

impl VertexProgram for Lowest {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, _: &mut u32) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[u32], outbox: &mut Outbox<u32>) {
        let own = states[list.vertex as usize];
        let higher = list.neighbours.iter().filter(|other| states[**other as usize] > own);
        higher.for_each(|other| outbox.send(*other, own));
    }

    fn on_message(&self, _: u32, _: u32, state: &mut u32, lowest: u32) -> bool {
        let is_lower = lowest < *state;
        *state = lowest.min(*state);
        is_lower
    }
}

/// The distance from where it begins, told to neighbours.
struct Farther;

impl VertexProgram for Farther {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, _: &mut u32) -> bool {
        true
    }

    fn on_edges(&self, _: u32, list: &List<'_>, states: &[u32], outbox: &mut Outbox<u32>) {
        let next = states[list.vertex as usize] + 1;
        let farther = list.neighbours.iter().filter(|other| states[**other as usize] > next);
        farther.for_each(|other| outbox.send(*other, next));
    }

    fn on_message(&self, _: u32, _: u32, state: &mut u32, distance: u32) -> bool {
        let is_nearer = distance < *state;
        *state = distance.min(*state);
        is_nearer
    }
}

#[test]
fn asynchronous_runs_end_where_synchronous_ones_do_and_no_later() {
    // A tree whose numbers are those of a heap, of several batches.
    let vertices = (1u32 << 20) - 1;
    let made = written(vertices, 2 * (u64::from(vertices) - 1), |vertex| {
        let above = vertex.checked_sub(1).map(|below| below / 2);
        let around = [above, Some(2 * vertex + 1), Some(2 * vertex + 2)];
        around.into_iter().flatten().filter(|other| *other < vertices).collect()
    });
    let io = Io::direct();
    fn ran<P: VertexProgram<State = u32>>(
        made: &Made,
        mut program: P,
        states: &[u32],
        begin: impl Iterator<Item = u32>,
        mode: Delivery,
        resources: &Resources<'_>,
    ) -> (Vec<u32>, u32) {
        let mut states = states.to_vec();
        let mut active = Frontier::none(made.vertices);
        begin.for_each(|vertex| active.insert(vertex));
        let iterations = graph::run(
            &plain(made),
            &mut program,
            &mut states,
            &mut active,
            mode,
            resources,
            &mut go,
        )
        .unwrap();
        (states, iterations)
    }
    let names: Vec<u32> = (0..vertices).collect();
    let mut far = vec![u32::MAX; vertices as usize];
    far[0] = 0;
    for threads in [1, 2, 8] {
        // All messages of an iteration fit.
        let resources = Resources {
            memory: 1 << 30,
            threads,
            ..the_means(&io)
        };
        let labels = |mode| ran(&made, Lowest, &names, 0..vertices, mode, &resources);
        let (found, iterations) = labels(Delivery::Synchronous);
        assert_eq!(iterations, 20);
        assert!(found.iter().all(|lowest| *lowest == 0));
        let (at_once, sooner) = labels(Delivery::Asynchronous);
        resources.activity.end(None);
        assert_eq!(at_once, found);
        assert!(
            sooner <= iterations,
            "{sooner} and {iterations} iterations of {threads} threads"
        );
        let lists = resources
            .activity
            .rows()
            .iter()
            .map(|row| row.lists)
            .collect::<Vec<_>>();
        let (each, rest) = lists.split_at(iterations as usize);
        let asked = [each, rest].map(|lists| lists.iter().sum::<u64>());
        // Eight threads have all lists under way at once.
        assert!(
            asked[1] < asked[0] || threads == 8 && asked[1] == asked[0],
            "{asked:?} of {threads} threads"
        );
        let search = |mode| ran(&made, Farther, &far, std::iter::once(0), mode, &resources);
        let (found, iterations) = search(Delivery::Synchronous);
        assert!((0..)
            .zip(&found)
            .all(|(vertex, level): (u32, _)| *level == (vertex + 1).ilog2()));
        let (at_once, sooner) = search(Delivery::Asynchronous);
        assert_eq!(at_once, found);
        assert!(sooner <= iterations);
    }
}

/// Panics at one place.
struct Panics(&'static str);

impl Panics {
    fn at(&self, place: &str) -> bool {
        assert_ne!(self.0, place);
        true
    }
}

impl VertexProgram for Panics {
    type State = ();
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, (): &mut ()) -> bool {
        self.at("run")
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[()], outbox: &mut Outbox<()>) {
        self.at("on_edges");
        list.neighbours.iter().for_each(|other| outbox.send(*other, ()));
    }

    fn on_message(&self, _: u32, _: u32, (): &mut (), (): ()) -> bool {
        self.at("on_message")
    }

    fn on_iteration_end(&mut self, iteration: u32, _: &mut [()], active: &mut Frontier) {
        self.at("on_iteration_end");
        if iteration == 1 {
            active.clear();
        }
    }
}

#[test]
fn a_program_that_panics_ends_in_an_error_wherever_it_does() {
    let io = Io::direct();
    // Of one batch and of several, so few vertices that the caller works on them and so many that threads do.
    let few = made(40, &[(0, 1), (3, 2)], true);
    let many = written(1 << 20, 1 << 20, |vertex| vec![vertex ^ 1]);
    for (made, threads) in [(&few, 1), (&few, 2), (&many, 1), (&many, 3)] {
        for place in ["run", "on_edges", "on_message", "on_iteration_end", "nowhere"] {
            let resources = Resources {
                threads,
                ..the_means(&io)
            };
            let mut active = Frontier::none(made.vertices);
            (0..made.vertices as u32).for_each(|vertex| active.insert(vertex));
            let mut states = vec![(); made.vertices];
            let ran = graph::run(
                &plain(made),
                &mut Panics(place),
                &mut states,
                &mut active,
                Delivery::Synchronous,
                &resources,
                &mut go,
            );
            match ran {
                Ok(iterations) => assert_eq!((place, iterations), ("nowhere", 2)),
                Err(EngineError::Internal(text)) => {
                    assert_ne!(place, "nowhere", "{text}");
                    assert!(text.starts_with("a vertex program panicked: "), "{text}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
}
