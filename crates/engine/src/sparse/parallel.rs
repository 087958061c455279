//! Pieces of work by several threads at once, with results in the order of the pieces.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::cancel::Watch;
use crate::EngineError;

/// What `work` gives for each of `count` pieces, done by so many threads; this one asks `watch` before each of its own.
///
/// # Errors
/// The first in the order of the pieces, or that of `watch`; pieces that nobody has begun are left then.
pub(super) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    watch: &mut Watch<'_>,
    work: impl Fn(usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let (next, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
    let each = |watch: &mut Watch<'_>| {
        let mut done: Vec<(usize, Result<T, EngineError>)> = vec![];
        while !ends.load(Ordering::Relaxed) {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count {
                break;
            }
            watch().inspect_err(|_| ends.store(true, Ordering::Relaxed))?;
            let result = work(piece);
            if result.is_err() {
                ends.store(true, Ordering::Relaxed);
            }
            done.push((piece, result));
        }
        Ok::<_, EngineError>(done)
    };
    let others = threads.min(count).saturating_sub(1);
    let done = std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(|| each(&mut || Ok(())))).collect();
        let mut done = each(watch);
        for other in others {
            let part = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done = done.and_then(|mut done| {
                done.extend(part?);
                Ok(done)
            });
        }
        done
    });
    let mut done = done?;
    done.sort_unstable_by_key(|(piece, _)| *piece);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for threads in 1..5 {
            let found = in_order(100, threads, &mut || Ok(()), |piece| Ok(piece * piece));
            assert_eq!(
                found.ok(),
                Some((0..100).map(|piece| piece * piece).collect::<Vec<_>>())
            );
        }
    }

    #[test]
    fn the_first_error_is_given() {
        let found = in_order(50, 1, &mut || Ok(()), |piece| match piece {
            7.. => Err(EngineError::Argument(piece.to_string())),
            _ => Ok(piece),
        });
        assert!(matches!(found, Err(EngineError::Argument(text)) if text == "7"));
        let watched = in_order(50, 3, &mut || Err(EngineError::Cancelled), Ok);
        assert!(matches!(watched, Err(EngineError::Cancelled)));
    }
}
