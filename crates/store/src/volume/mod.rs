//! Volumes: one logical file over several directories, which are meant to be on several disks.
//!
//! A volume is a directory, its *home*, that holds `outcore-volume.json`. A file below it that is longer than a page is a
//! *stub* (`stub.rs`) under its name, and its bytes lie in blocks on the *disks*, the directories that the description
//! names: on each in one *part*, `parts/<number of the file>`. Files of a page at most, and what other programs put there,
//! are plain files.
//!
//! 1. A stub is as long as its file, and is written to when the file is: the system's word on length, times and identity
//!    is true, names work as for any file.
//! 2. A stub stands before its parts are made, and goes before they are removed: what a process that was killed leaves is
//!    an unfinished file, which cleaners know, or parts without a stub, which `check` finds.
//! 3. Part n is as long as the blocks of it that the file has; a shorter one is an error, never zeros.
//!
//! Uses `base`, `memory` and `backend`. Start with `assembled.rs`, then `blob.rs`.

pub(crate) mod assembled;
mod blob;
pub(crate) mod description;
pub(crate) mod disk;
pub(crate) mod flights;
pub(crate) mod layout;
pub(crate) mod locate;
pub(crate) mod open;
mod remove;
#[allow(unsafe_code)] // buffers lent to threads that are waited for
pub(crate) mod scatter;
mod striped;
pub(crate) mod stub;
mod worker;

pub use description::{parse_member, Description};
pub use disk::{errno, DiskCounters, DiskError};
pub use layout::BlockLayout;
pub use remove::remove_file;
pub use stub::Stub;

pub(crate) use locate::home_of;
pub(crate) use open::{free_bytes, is_stray, refuse_stray, Volumes};
pub(crate) use remove::{rename_over, unlink, Removing};
