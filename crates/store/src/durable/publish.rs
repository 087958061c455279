//! Giving outputs their names: all of them, or none.

use std::sync::Arc;

use crate::base::error::StandingOutput;
use crate::{Io, Partial, StoreError};

pub(crate) fn place_all(partials: &[&Partial], io: &Io) -> Result<(), StoreError> {
    place(partials, io)?;
    partials.iter().for_each(|partial| partial.discard_replaced());
    Ok(())
}

pub(crate) fn place(partials: &[&Partial], io: &Io) -> Result<(), StoreError> {
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
            standing.push(StandingOutput { path, old, cause });
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
