//! Programs that ask for the lists of others, and programs that go in stages.

use std::sync::Mutex;

use super::*;

/// Runs a program from some vertices on; gives how many lists were read.
fn ran<P: VertexProgram>(
    made: &Made,
    program: &mut P,
    states: &mut [P::State],
    begin: impl Iterator<Item = u32>,
    resources: &Resources<'_>,
) -> Vec<u64> {
    let activity = Activity::default();
    let resources = Resources {
        activity: &activity,
        ..*resources
    };
    let mut active = Frontier::none(made.vertices);
    begin.for_each(|vertex| active.insert(vertex));
    graph::run(
        &plain(made),
        program,
        states,
        &mut active,
        Delivery::Synchronous,
        &resources,
        &mut go,
    )
    .unwrap();
    activity.end(None);
    activity.rows().iter().map(|row| row.lists).collect()
}

fn heard(known: u64, from: u32, value: usize) -> u64 {
    known
        .wrapping_mul(31)
        .wrapping_add(u64::from(from) << 8)
        .wrapping_add(value as u64)
}

fn in_both(one: &[u32], other: &[u32]) -> usize {
    one.iter().filter(|vertex| other.binary_search(vertex).is_ok()).count()
}

/// Asks for its neighbours first and for their lists then; hears from each how many neighbours they share.
struct Shared;

#[derive(Clone, Default, Debug, PartialEq)]
struct Around {
    neighbours: Vec<u32>,
    shared: u64,
}

impl VertexProgram for Shared {
    type State = Around;
    type Message = (u32, usize);

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, iteration: u32, _: u32, _: &mut Around) -> bool {
        iteration == 0
    }

    fn request(&self, iteration: u32, _: u32, state: &Around, requests: &mut Requests<'_>) {
        if iteration == 1 {
            state.neighbours.iter().for_each(|other| requests.add(*other));
        }
    }

    fn on_edges(&self, iteration: u32, list: &List<'_>, states: &[Around], outbox: &mut Outbox<(u32, usize)>) {
        for other in list.neighbours {
            if iteration == 0 {
                outbox.send(list.vertex, (*other, 0));
            } else if !states[*other as usize].neighbours.is_empty() {
                let shared = in_both(list.neighbours, &states[*other as usize].neighbours);
                outbox.send(*other, (list.vertex, shared));
            }
        }
    }

    fn on_message(&self, iteration: u32, _: u32, state: &mut Around, (from, shared): (u32, usize)) -> bool {
        match iteration {
            0 => state.neighbours.push(from),
            _ => state.shared = heard(state.shared, from, shared),
        }
        iteration == 0
    }
}

/// Of every third vertex, against a loop: each list that is asked for is read once, whoever asks.
fn share(made: &Made, lists: &[Vec<u32>]) {
    let some = || (0..made.vertices as u32).step_by(3);
    let mut expected = vec![Around::default(); made.vertices];
    let mut asked: BTreeSet<u32> = BTreeSet::new();
    for vertex in some() {
        let neighbours = &lists[vertex as usize];
        let shared = neighbours.iter().rev();
        let shared = shared.map(|other| (*other, in_both(&lists[*other as usize], neighbours)));
        expected[vertex as usize] = Around {
            neighbours: neighbours.clone(),
            shared: shared.fold(0, |known, (from, shared)| heard(known, from, shared)),
        };
        asked.extend(neighbours);
    }
    let (found, read) = the_same(made, &Io::direct(), |resources| {
        let mut states = vec![Around::default(); made.vertices];
        let read = ran(made, &mut Shared, &mut states, some(), resources);
        (states, read)
    });
    assert!(found == expected);
    assert_eq!(read, [some().count() as u64, asked.len() as u64]);
}

#[test]
fn a_vertex_asks_for_the_lists_of_others() {
    let made = made(2000, &skewed(2000, 9000), false);
    let lists: Vec<Vec<u32>> = (0..2000).map(|vertex| neighbours_of(&made, vertex)).collect();
    share(&made, &lists);
    // More vertices than one thread runs.
    let vertices = 60_000u32;
    let around = |vertex: u32| {
        let steps = [1, 2, 17, vertices - 17, vertices - 2, vertices - 1];
        let around: BTreeSet<u32> = steps.iter().map(|step| (vertex + step) % vertices).collect();
        around.into_iter().collect::<Vec<_>>()
    };
    let lists: Vec<Vec<u32>> = (0..vertices).map(around).collect();
    share(&written(vertices, 6 * u64::from(vertices), around), &lists);
}

/// Asks for the list of a vertex that there is not.
struct Beyond;

impl VertexProgram for Beyond {
    type State = ();
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, (): &mut ()) -> bool {
        false
    }

    fn request(&self, _: u32, _: u32, (): &(), requests: &mut Requests<'_>) {
        requests.add(5);
    }

    fn on_edges(&self, _: u32, _: &List<'_>, _: &[()], _: &mut Outbox<()>) {}

    fn on_message(&self, _: u32, _: u32, (): &mut (), (): ()) -> bool {
        false
    }
}

#[test]
#[should_panic(expected = "5 is no vertex; there are 5")]
fn what_is_no_vertex_has_no_list() {
    let made = made(5, &[(3, 3), (1, 4)], false);
    ran(&made, &mut Beyond, &mut [(); 5], 0..1, &the_means(&Io::direct()));
}

/// Those that no neighbour of an earlier stage covers ask for their lists, and cover their neighbours.
struct Cover {
    /// Fewest bytes of lists in each stage but the last.
    bytes: Vec<u64>,
    given: Mutex<Vec<u32>>,
}

impl Cover {
    fn stage_of(&self, list_bytes: u64) -> u32 {
        let stage = self.bytes.iter().position(|fewest| list_bytes >= *fewest);
        stage.map_or(u32::MAX, |stage| stage as u32)
    }
}

impl VertexProgram for Cover {
    type State = Option<u32>;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &[Direction::Out, Direction::In]
    }

    fn run(&self, _: u32, _: u32, covered: &mut Option<u32>) -> bool {
        covered.is_none()
    }

    fn stages(&self) -> u32 {
        1 + self.bytes.len() as u32
    }

    fn stage(&self, _: u32, _: u32, _: &Option<u32>, list_bytes: u64) -> u32 {
        self.stage_of(list_bytes)
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[Option<u32>], outbox: &mut Outbox<u32>) {
        self.given.lock().unwrap().push(list.vertex);
        list.neighbours
            .iter()
            .for_each(|other| outbox.send(*other, list.vertex));
    }

    fn on_message(&self, _: u32, _: u32, covered: &mut Option<u32>, by: u32) -> bool {
        covered.get_or_insert(by);
        false
    }
}

/// The same of a graph whose bytes of lists are known; who covers each vertex, and how many lists are read.
fn covered(made: &Made, program: &Cover, list_bytes: impl Fn(u32) -> u64) -> (Vec<Option<u32>>, u64) {
    let (mut states, mut read) = (vec![None; made.vertices], 0);
    let stages: Vec<u32> = (0..made.vertices as u32)
        .map(|vertex| program.stage_of(list_bytes(vertex)))
        .collect();
    for stage in stages.iter().copied().collect::<BTreeSet<_>>() {
        let run: Vec<bool> = stages
            .iter()
            .zip(&states)
            .map(|(of, state)| *of == stage && state.is_none())
            .collect();
        let mut edges: Vec<(u32, u32)> = made.edges.clone();
        edges.sort_unstable();
        let mut back: Vec<(u32, u32)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
        back.sort_unstable();
        for (from, to) in edges.into_iter().chain(back).filter(|(from, _)| run[*from as usize]) {
            states[to as usize].get_or_insert(from);
        }
        read += 2 * run.iter().filter(|runs| **runs).count() as u64;
    }
    (states, read)
}

#[test]
fn stages_follow_each_other_and_later_ones_meet_what_earlier_ones_made() {
    let made = made(3000, &skewed(3000, 9000), true);
    let list_bytes = |vertex| {
        OUT_AND_IN
            .map(|of| made.file.section(of).index.span(vertex).bytes)
            .iter()
            .sum()
    };
    let mut read = vec![];
    for bytes in [vec![], vec![40], vec![200, 40, 39, 10]] {
        let program = |given| Cover {
            bytes: bytes.clone(),
            given,
        };
        let expected = covered(&made, &program(Mutex::default()), list_bytes);
        let found = the_same(&made, &Io::direct(), |resources| {
            let mut program = program(Mutex::default());
            let mut states = vec![None; made.vertices];
            let read = ran(&made, &mut program, &mut states, 0..made.vertices as u32, resources);
            let given = program.given.lock().unwrap();
            assert!(given
                .iter()
                .map(|vertex| program.stage_of(list_bytes(*vertex)))
                .is_sorted());
            (states, read.iter().sum::<u64>())
        });
        assert!(found == expected, "in stages of {bytes:?} bytes");
        read.push(found.1);
    }
    // What the highest degrees cover is not read.
    assert_eq!(read[0], 2 * made.vertices as u64);
    assert!(read[1..].iter().all(|lists| lists < &read[0]), "{read:?}");
}

const OUT_AND_IN: [Direction; 2] = [Direction::Out, Direction::In];

/// Goes along a path in one iteration: each vertex brings the next to an earlier stage.
struct Along {
    stages: u32,
    given: Mutex<Vec<u32>>,
}

impl VertexProgram for Along {
    type State = u32;
    type Message = u32;

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, _: &mut u32) -> bool {
        true
    }

    fn stages(&self) -> u32 {
        self.stages
    }

    fn stage(&self, iteration: u32, _: u32, stage: &u32, _: u64) -> u32 {
        assert_eq!(iteration, 0);
        *stage
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[u32], outbox: &mut Outbox<u32>) {
        self.given.lock().unwrap().push(list.vertex);
        list.neighbours.iter().for_each(|next| outbox.send(*next, list.vertex));
    }

    fn on_message(&self, _: u32, vertex: u32, stage: &mut u32, _: u32) -> bool {
        // That of every third vertex is over by now: it runs in the next.
        *stage = if vertex.is_multiple_of(3) { 0 } else { vertex };
        false
    }
}

#[test]
fn a_stage_follows_from_the_states_before_it() {
    let path: Vec<(u32, u32)> = (0..100).rev().map(|vertex| (vertex, vertex + 1)).collect();
    let made = made(101, &path, true);
    the_same(&made, &Io::direct(), |resources| {
        let given = Mutex::default();
        let mut program = Along { stages: 200, given };
        let mut states = vec![u32::MAX; made.vertices];
        states[0] = 0;
        let read = ran(&made, &mut program, &mut states, 0..101, resources);
        assert_eq!(program.given.into_inner().unwrap(), (0..100).collect::<Vec<_>>());
        assert_eq!(read, [101]);
    });
}

/// All ask for the list of the first vertex, and none for its own.
struct First {
    stages: u32,
    given: Mutex<Vec<u32>>,
}

impl VertexProgram for First {
    type State = ();
    type Message = ();

    fn directions(&self) -> &[Direction] {
        &OUT
    }

    fn run(&self, _: u32, _: u32, (): &mut ()) -> bool {
        false
    }

    fn request(&self, _: u32, _: u32, (): &(), requests: &mut Requests<'_>) {
        requests.add(0);
    }

    fn stages(&self) -> u32 {
        self.stages
    }

    fn stage(&self, _: u32, vertex: u32, (): &(), _: u64) -> u32 {
        vertex
    }

    fn on_edges(&self, _: u32, list: &List<'_>, _: &[()], _: &mut Outbox<()>) {
        self.given.lock().unwrap().push(list.vertex);
    }

    fn on_message(&self, _: u32, _: u32, (): &mut (), (): ()) -> bool {
        false
    }
}

#[test]
fn a_list_is_given_once_in_each_stage_that_asks_for_it() {
    let made = made(300, &(1..300).map(|vertex| (0, vertex)).collect::<Vec<_>>(), false);
    for stages in [0, 1, 2, 7] {
        the_same(&made, &Io::direct(), |resources| {
            let given = Mutex::default();
            let mut program = First { stages, given };
            ran(&made, &mut program, &mut [(); 300], 0..300, resources);
            assert_eq!(program.given.into_inner().unwrap(), vec![0; stages.max(1) as usize]);
        });
    }
}
