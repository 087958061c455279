//! Giving outputs their names: all of them, or none.

use std::sync::Arc;

use super::sink::Sink;
use crate::durable::partial::Partial;
use crate::durable::publish::place;
use crate::{Io, StoreError};

/// Gives sealed outputs their names, all or none as far as the file system lets it.
///
/// Everything is looked at before the first name changes. What outputs replace is kept until `discard_replaced`; when one cannot be
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
pub fn discard_replaced(sinks: &[Arc<dyn Sink>]) {
    let partials = sinks.iter().filter_map(|sink| sink.partial());
    partials.for_each(Partial::discard_replaced);
}
