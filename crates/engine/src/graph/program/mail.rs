//! Messages of vertex programs in Python, which are combined as they come: a value for each vertex, whatever is sent.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

use outcore_coding::lists::Vertex;

use super::combine::{Combine, Combined, MessageNumber};
use crate::graph::read::frontier::are_vertices;
use crate::live::LiveRun;
use crate::EngineError;

/// Messages of an iteration. They are combined in the order in which they are sent, so that sums have the same bits; with a
/// thread of its own, behind the back of who sends them.
pub struct Mail<T: MessageNumber> {
    vertices: usize,
    held: Where<T>,
    has_thread: bool,
}

/// The holder of the messages.
enum Where<T> {
    Here(Combined<T>),
    /// A thread that combines what it is given, until nobody gives it more.
    Away {
        letters: SyncSender<Letter<T>>,
        emptied: Receiver<Letter<T>>,
        thread: JoinHandle<Combined<T>>,
    },
    /// The thread panicked.
    Lost,
}

/// A copy of what `multicast` is given.
#[derive(Default)]
struct Letter<T> {
    begins: Vec<i64>,
    neighbours: Vec<Vertex>,
    values: Vec<T>,
}

/// Messages in a letter for which another thread pays, and those and lists for which there is memory.
const FEW: usize = 1 << 14;
const MOST: usize = 1 << 19;
const MOST_LISTS: usize = 1 << 17;
/// Letters that wait for the thread.
const WAITING: usize = 2;

impl<T: MessageNumber> Mail<T> {
    pub fn new(vertices: usize, combine: Combine, has_thread: bool) -> Mail<T> {
        Mail {
            vertices,
            held: Where::Here(Combined::new(vertices, combine)),
            has_thread,
        }
    }

    /// Messages in memory that a run holds, with a thread of their own where there is enough.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn held(run: &LiveRun, vertices: usize, combine: Combine) -> Result<Mail<T>, EngineError> {
        const OPERATOR: &str = "graph: messages";
        run.hold(OPERATOR, Mail::<T>::memory_bytes(vertices as u64))?;
        let is_several = run.session().options().threads > 1;
        let has_thread = is_several && run.hold_spared(OPERATOR, Mail::<T>::thread_bytes());
        Ok(Mail::new(vertices, combine, has_thread))
    }

    /// Bytes that it takes.
    pub fn memory_bytes(vertices: u64) -> u64 {
        vertices * size_of::<T>() as u64 + vertices / 8
    }

    /// Bytes that it takes besides, with a thread of its own.
    pub fn thread_bytes() -> u64 {
        let letter = MOST * size_of::<Vertex>() + MOST_LISTS * (size_of::<i64>() + size_of::<T>());
        ((WAITING + 2) * letter) as u64
    }

    /// A value to each of some vertices.
    ///
    /// # Errors
    /// A vertex that is none: nobody is told then.
    pub fn send(&mut self, to: &[Vertex], values: &[T]) -> Result<(), EngineError> {
        are_vertices("send", to, self.vertices)?;
        self.here()?.put(to.chunks(1).zip(values.iter().copied()));
        Ok(())
    }

    /// A value to each neighbour of each of some lists, that of `begins[i]` to `begins[i + 1]` the i-th.
    ///
    /// # Errors
    /// A vertex that is none, or lists that are not among the neighbours: nobody is told then.
    pub fn multicast(&mut self, begins: &[i64], neighbours: &[Vertex], values: &[T]) -> Result<(), EngineError> {
        if let Some(ends) = begins.windows(2).find(|ends| part(neighbours, ends).is_none()) {
            let text = format!("multicast: there are {} neighbours, not {ends:?}", neighbours.len());
            return Err(EngineError::Argument(text));
        }
        are_vertices("send", neighbours, self.vertices)?;
        let fits = (FEW..=MOST).contains(&neighbours.len()) && begins.len() <= MOST_LISTS && values.len() <= MOST_LISTS;
        if !(self.has_thread && fits) {
            put(self.here()?, begins, neighbours, values);
            return Ok(());
        }
        self.go_away();
        let Where::Away { letters, emptied, .. } = &self.held else {
            return Err(lost());
        };
        let mut letter = emptied.try_recv().unwrap_or_default();
        copy(&mut letter.begins, begins);
        copy(&mut letter.neighbours, neighbours);
        copy(&mut letter.values, values);
        letters.send(letter).map_err(|_| lost())
    }

    /// Has a thread have the messages.
    fn go_away(&mut self) {
        self.held = match std::mem::replace(&mut self.held, Where::Lost) {
            Where::Here(mut held) => {
                let (letters, inbox) = sync_channel::<Letter<T>>(WAITING);
                let (empties, emptied) = sync_channel(WAITING + 2);
                let thread = std::thread::spawn(move || {
                    for letter in inbox {
                        put(&mut held, &letter.begins, &letter.neighbours, &letter.values);
                        let _ = empties.try_send(letter);
                    }
                    held
                });
                Where::Away {
                    letters,
                    emptied,
                    thread,
                }
            }
            other => other,
        };
    }

    /// The messages, when all that were sent are combined.
    fn here(&mut self) -> Result<&mut Combined<T>, EngineError> {
        self.held = match std::mem::replace(&mut self.held, Where::Lost) {
            Where::Away { letters, thread, .. } => {
                drop(letters);
                thread.join().map_or(Where::Lost, Where::Here)
            }
            other => other,
        };
        match &mut self.held {
            Where::Here(held) => Ok(held),
            _ => Err(lost()),
        }
    }

    /// How many vertices were told something.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn count(&mut self) -> Result<u64, EngineError> {
        Ok(self.here()?.count())
    }

    /// The vertices that were told something, ascending, and what; then there are no messages.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn take(&mut self) -> Result<(Vec<Vertex>, Vec<T>), EngineError> {
        Ok(self.here()?.take())
    }
}

impl<T: MessageNumber> Drop for Mail<T> {
    /// Its memory is free when it is gone.
    fn drop(&mut self) {
        let _ = self.here();
    }
}

fn lost() -> EngineError {
    EngineError::Internal("the thread that combines messages panicked".into())
}

/// Makes a vector what a slice is, in no more memory than it needs.
fn copy<T: Copy>(to: &mut Vec<T>, from: &[T]) {
    to.clear();
    to.reserve_exact(from.len());
    to.extend_from_slice(from);
}

/// A list, if it is among the neighbours.
fn part<'a>(neighbours: &'a [Vertex], ends: &[i64]) -> Option<&'a [Vertex]> {
    neighbours.get(ends[0] as usize..ends[1] as usize)
}

fn put<T: MessageNumber>(held: &mut Combined<T>, begins: &[i64], neighbours: &[Vertex], values: &[T]) {
    let lists = begins.windows(2).filter_map(|ends| part(neighbours, ends));
    held.put(lists.zip(values.iter().copied()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn combined<T: MessageNumber + std::fmt::Debug>(
        combine: Combine,
        of: impl Fn(u8) -> T,
        plain: impl Fn(T, T) -> T,
        sent: &[(u32, u8)],
    ) {
        let mut mail = Mail::new(100, combine, false);
        for _ in 0..2 {
            let mut expected: BTreeMap<u32, T> = BTreeMap::new();
            for (to, value) in sent {
                let value = of(*value);
                expected
                    .entry(*to)
                    .and_modify(|held| *held = plain(*held, value))
                    .or_insert(value);
            }
            let (to, values): (Vec<u32>, Vec<T>) = sent.iter().map(|(to, value)| (*to, of(*value))).unzip();
            let (front, back) = (to.len() / 2, to.len());
            mail.send(&to[..front], &values[..front]).unwrap();
            mail.send(&to[front..back], &values[front..]).unwrap();
            assert_eq!(mail.count().unwrap(), expected.len() as u64);
            let (ids, found) = mail.take().unwrap();
            assert_eq!(ids, expected.keys().copied().collect::<Vec<_>>());
            assert_eq!(
                format!("{found:?}"),
                format!("{:?}", expected.values().collect::<Vec<_>>())
            );
            assert!(mail.take().unwrap().0.is_empty());
        }
    }

    const ODD: [f64; 6] = [f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::NAN, 0.1, -1e300];

    fn least(a: f64, b: f64) -> f64 {
        if b < a || b.is_nan() {
            b
        } else {
            a
        }
    }

    proptest! {
        #[test]
        fn each_vertex_is_told_one_value(sent in prop::collection::vec((0u32..100, 0u8..255), 0..400)) {
            let of = |value: u8| value as i8;
            combined(Combine::Min, of, i8::min, &sent);
            combined(Combine::Max, of, i8::max, &sent);
            combined(Combine::Sum, of, i8::wrapping_add, &sent);
            combined(Combine::Max, |value| u16::from(value / 128), u16::max, &sent);
            let odd = |value: u8| ODD[value as usize % ODD.len()];
            combined(Combine::Min, odd, least, &sent);
            combined(Combine::Max, odd, |a, b| -least(-a, -b), &sent);
            combined(Combine::Sum, odd, |a, b| a + b, &sent);
        }
    }

    #[test]
    fn lists_are_told_as_their_neighbours_are() {
        let mut mail = Mail::<u32>::new(5, Combine::Sum, true);
        mail.multicast(&[0, 2, 2, 3], &[4, 1, 4], &[10, 7, 1]).unwrap();
        assert_eq!(mail.take().unwrap(), (vec![1, 4], vec![10, 11]));
    }

    #[test]
    fn a_thread_of_its_own_makes_no_difference() {
        let vertices = 1000;
        let neighbours: Vec<Vertex> = (0..FEW as u32).map(|at| at * at % 997).collect();
        let begins: Vec<i64> = (0..=64).map(|list| list * FEW as i64 / 64).collect();
        let mut found = vec![];
        for has_thread in [false, true] {
            let mut mail = Mail::<f64>::new(vertices, Combine::Sum, has_thread);
            for _ in 0..2 {
                for letter in 0..3 * WAITING {
                    let values: Vec<f64> = (0..64).map(|list| 0.1 * (list + 64 * letter) as f64).collect();
                    mail.multicast(&begins, &neighbours, &values).unwrap();
                    if letter == WAITING {
                        mail.send(&[998, 3], &[0.3, 1e9]).unwrap();
                    }
                    assert_eq!(matches!(mail.held, Where::Away { .. }), has_thread && letter != WAITING);
                }
                assert_eq!(mail.count().unwrap(), 500, "squares of a prime, and a vertex more");
                found.push(mail.take().unwrap());
            }
            // What is too much for a letter waits for those that are under way.
            mail.multicast(&begins, &neighbours, &[1.0; 64]).unwrap();
            mail.multicast(&[0, 1 + MOST as i64], &vec![5; 1 + MOST], &[2.0])
                .unwrap();
            assert!(matches!(mail.held, Where::Here(_)));
        }
        assert!(found.windows(2).all(|same| same[0] == same[1]));
    }

    #[test]
    fn what_is_no_vertex_or_no_list_is_refused() {
        let mut mail = Mail::<u32>::new(5, Combine::Min, true);
        assert!(matches!(mail.send(&[4, 5], &[1, 1]), Err(EngineError::Index(_))));
        assert!(matches!(
            mail.multicast(&[0, 1], &[5], &[1]),
            Err(EngineError::Index(_))
        ));
        for begins in [[0, 2], [1, 0], [-1, 1]] {
            assert!(matches!(
                mail.multicast(&begins, &[1], &[1]),
                Err(EngineError::Argument(_))
            ));
        }
        assert_eq!(mail.count().unwrap(), 0, "nobody is told what was refused");
    }
}
