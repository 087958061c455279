//! Giving outputs their names: all of them, or none.

use std::sync::Arc;

use crate::error::Standing;
use crate::{Io, Partial, Sink, StoreError};

/// Gives sealed outputs their names, all or none as far as the file system lets it.
///
/// Everything is looked at before the first name changes. What outputs replace is kept until `settle`; when one cannot be
/// placed, those before it are taken back, the last first.
///
/// # Errors
/// What went wrong first, and nothing is published; `HalfPublished` when an output could not be taken back, with the place
/// of what it replaced.
pub fn publish(sinks: &[Arc<dyn Sink>], io: &Io) -> Result<(), StoreError> {
    sinks.iter().try_for_each(|sink| sink.check())?;
    let partials: Vec<&Partial> = sinks.iter().filter_map(|sink| sink.partial()).collect();
    place(&partials, io)
}

/// Removes what published outputs replaced, and their journals.
pub fn settle(sinks: &[Arc<dyn Sink>]) {
    let partials = sinks.iter().filter_map(|sink| sink.partial());
    partials.for_each(Partial::settle);
}

pub(crate) fn place_all(partials: &[&Partial], io: &Io) -> Result<(), StoreError> {
    place(partials, io)?;
    partials.iter().for_each(|partial| partial.settle());
    Ok(())
}

fn place(partials: &[&Partial], io: &Io) -> Result<(), StoreError> {
    let placed = partials
        .iter()
        .try_for_each(|partial| partial.place(io))
        .and_then(|()| partials.iter().try_for_each(|partial| partial.sync_name(io)));
    let Err(cause) = placed else { return Ok(()) };
    let mut standing = Vec::new();
    for partial in partials.iter().rev() {
        if let Err(error) = partial.take_back(io) {
            let (path, old) = partial.leave();
            let cause = error.to_string();
            standing.push(Standing { path, old, cause });
        }
    }
    for partial in partials {
        // As durable as it can be; the first error is the one to tell.
        let _ = partial.sync_name(io);
        partial.discard();
    }
    if standing.is_empty() {
        return Err(cause);
    }
    let cause = Arc::new(cause);
    Err(StoreError::HalfPublished { cause, standing })
}
