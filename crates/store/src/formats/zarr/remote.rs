//! Finding an array's chunks in a store: by a list of its keys, or one by one where a server gives no lists.

use std::path::Path;

use super::inventory::{ChunkRecord, Inventory, ListedChunk};
use super::keys::{prefix_of, KeyEncoding};
use crate::array::region::c_strides;
use crate::array::source::Opening;
use crate::backend::remote::{RemoteFacts, RemotePlace};
use crate::backend::stamp::Stamp;
use crate::StoreError;

/// Chunks that are asked for between two looks whether the array is still needed, and keys that are listed.
const KEYS_PER_LOOK: usize = 1024;
/// Chunks at most that are asked for one by one.
const ASKED_MAX: u64 = 1 << 20;

/// The chunks below a prefix, whose grid is `counts`. Keys that are no chunk's are passed over.
pub(super) fn list_remote(
    dir: &Path,
    place: &RemotePlace,
    keys: &KeyEncoding,
    counts: &[u64],
    opening: &mut dyn Opening,
) -> Result<Inventory, StoreError> {
    let mut chunks = RemoteChunks {
        place,
        listed: ListedChunk::default(),
        opening,
        refusal: None,
    };
    let all = counts.iter().product();
    if place.store.is_listed() {
        chunks.by_list(dir, keys, counts)?;
    } else if all > ASKED_MAX {
        let reason = format!("{all} chunks on a server that gives no lists, at most {ASKED_MAX} are asked for");
        return Err(StoreError::unsupported(dir, reason));
    } else {
        chunks.one_by_one(dir, keys, counts, all)?;
    }
    Ok(chunks.listed.finish())
}

struct RemoteChunks<'a> {
    place: &'a RemotePlace,
    listed: ListedChunk,
    opening: &'a mut dyn Opening,
    /// The error of ours that ended a list.
    refusal: Option<StoreError>,
}

impl RemoteChunks<'_> {
    fn add(&mut self, number: u64, facts: RemoteFacts) -> Result<(), StoreError> {
        let at = self.listed.records.len();
        if at.is_multiple_of(KEYS_PER_LOOK) {
            self.opening.look()?;
        }
        self.listed.add(ChunkRecord::listed(number, 0), self.opening)?;
        self.listed.stamp(at, Some(Stamp::of_object(self.place, facts)));
        Ok(())
    }

    fn by_list(&mut self, dir: &Path, keys: &KeyEncoding, counts: &[u64]) -> Result<(), StoreError> {
        let prefix = prefix_of(self.place);
        let strides = c_strides(counts);
        let store = &self.place.store;
        let listed = store.list(&prefix, &mut |key, facts| {
            let name = key.strip_prefix(&prefix).unwrap_or(key);
            let index = keys.index(name, counts.len());
            let index = index.filter(|index| index.iter().zip(counts).all(|(at, count)| at < count));
            let Some(index) = index else { return Ok(()) };
            let number = index.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            self.add(number, facts).map_err(|error| {
                let reason = error.to_string();
                self.refusal = Some(error);
                std::io::Error::other(reason)
            })
        });
        match self.refusal.take() {
            Some(error) => Err(error),
            None => listed.map_err(|cause| StoreError::io(dir, 0, "list", cause)),
        }
    }

    fn one_by_one(&mut self, dir: &Path, keys: &KeyEncoding, counts: &[u64], all: u64) -> Result<(), StoreError> {
        let prefix = prefix_of(self.place);
        let strides = c_strides(counts);
        let index = |number: u64| -> Vec<u64> {
            let along = strides.iter().zip(counts);
            along.map(|(stride, count)| number / stride % count).collect()
        };
        for first in (0..all).step_by(KEYS_PER_LOOK) {
            self.opening.look()?;
            let numbers = first..all.min(first + KEYS_PER_LOOK as u64);
            let asked: Vec<String> = numbers
                .clone()
                .map(|number| format!("{prefix}{}", keys.name(&index(number))))
                .collect();
            let answers = self.place.store.facts_of_many(&asked);
            let answers = answers.map_err(|cause| StoreError::io(dir, 0, "list", cause))?;
            for (number, facts) in numbers.zip(answers) {
                if let Some(facts) = facts {
                    self.add(number, facts)?;
                }
            }
        }
        Ok(())
    }
}
