//! An object of a store as a file that is read.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};

use super::backends::Blob;
use super::remote::{RemoteFacts, RemotePlace};
use super::stamp::Stamp;
use crate::base::error::ChangedMeanwhile;

/// No request is made to open one. Invariant: all bytes that it gives are of one version of the object.
pub(crate) struct RemoteObject {
    place: RemotePlace,
    /// The version: the one that was asked for, or the first that answered.
    stamp: Mutex<Option<Stamp>>,
}

impl RemoteObject {
    /// The version with this stamp alone, if one is given.
    pub(crate) fn new(place: RemotePlace, stamp: Option<Stamp>) -> RemoteObject {
        RemoteObject {
            place,
            stamp: Mutex::new(stamp),
        }
    }

    /// Refuses an answer of another version.
    fn check(&self, facts: RemoteFacts) -> Result<()> {
        let now = Stamp::of_object(&self.place, facts);
        let mut version = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *version.get_or_insert(now);
        match before.difference(now, i128::MAX) {
            None => Ok(()),
            Some(reason) => {
                // Who holds this file against what it was sees that the two differ.
                *version = Some(now);
                Err(Error::other(ChangedMeanwhile(reason)))
            }
        }
    }
}

impl Blob for RemoteObject {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let (store, key) = (&self.place.store, &self.place.key);
        let (read, facts) = store.read_at(key, buffer, offset).map_err(|cause| {
            // A range may be refused because the object is a shorter one now.
            let now = store.facts(key).ok().map(|facts| self.check(facts));
            match now {
                Some(Err(changed)) => changed,
                _ => gone(cause),
            }
        })?;
        self.check(facts)?;
        Ok(read)
    }

    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(unwritten())
    }

    fn sync(&self) -> Result<()> {
        Err(unwritten())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.stamp()?.bytes)
    }

    fn stamp(&self) -> Result<Stamp> {
        if let Some(stamp) = *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(stamp);
        }
        let facts = self.place.store.facts(&self.place.key).map_err(gone)?;
        self.check(facts)?;
        Ok(Stamp::of_object(&self.place, facts))
    }

    fn set_len(&self, _bytes: u64) -> Result<()> {
        Err(unwritten())
    }

    fn alignment(&self) -> usize {
        1
    }
}

/// An opened file was there before.
fn gone(cause: Error) -> Error {
    match cause.kind() {
        ErrorKind::NotFound => Error::other(ChangedMeanwhile("it is gone".into())),
        _ => cause,
    }
}

fn unwritten() -> Error {
    Error::other("objects of stores are not written in place")
}
