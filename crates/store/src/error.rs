//! The one error of this room. Each variant carries the numbers that explain it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What can go wrong between memory and disk.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}", describe(path, *offset, action, cause))]
    Io {
        path: PathBuf,
        offset: u64,
        action: &'static str,
        cause: Arc<std::io::Error>,
    },
    #[error("{}: {reason}", path.display())]
    Format { path: PathBuf, reason: String },
    #[error("{}: {reason}", path.display())]
    Unsupported { path: PathBuf, reason: String },
    #[error("{}: already exists; pass overwrite=True to replace it", path.display())]
    Exists { path: PathBuf },
    #[error("{}: changed since it was opened ({reason})", path.display())]
    Changed { path: PathBuf, reason: String },
    #[error("{what} needs {need} bytes, but {used} of {limit} bytes are in use")]
    Memory {
        what: String,
        need: usize,
        used: usize,
        limit: usize,
    },
    #[error("scratch needs {need} more bytes, but {used} of its quota of {quota} bytes are in use")]
    Quota { need: u64, used: u64, quota: u64 },
    #[error("{}: {need} bytes are needed, but {free} are free on this file system", path.display())]
    Space { path: PathBuf, need: u64, free: u64 },
    #[error("{0}")]
    Invalid(String),
}

/// The byte is told where one was meant.
fn describe(path: &Path, offset: u64, action: &str, cause: &std::io::Error) -> String {
    let path = path.display();
    match action {
        "open" if cause.kind() == std::io::ErrorKind::NotFound => format!("{path}: no such file or directory"),
        "read" | "write" => format!("{path}: cannot {action} at byte {offset}: {cause}"),
        _ => format!("{path}: cannot {action}: {cause}"),
    }
}

fn is_full(cause: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(cause.kind(), StorageFull | QuotaExceeded)
}

impl StoreError {
    /// A word that callers in any language may test; it never changes.
    pub fn code(&self) -> &'static str {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        match self {
            StoreError::Io { cause, .. } if is_full(cause) => "space",
            StoreError::Io { cause, action, .. } if *action == "open" && cause.kind() == NotFound => "missing",
            StoreError::Io { cause, .. } if cause.kind() == PermissionDenied => "permission",
            StoreError::Io { .. } => "io",
            StoreError::Format { .. } => "format",
            StoreError::Unsupported { .. } => "unsupported",
            StoreError::Exists { .. } => "exists",
            StoreError::Changed { .. } => "changed",
            StoreError::Memory { .. } => "memory",
            StoreError::Quota { .. } => "quota",
            StoreError::Space { .. } => "space",
            StoreError::Invalid(_) => "invalid",
        }
    }

    pub(crate) fn io(path: &Path, offset: u64, action: &'static str, cause: impl Into<std::io::Error>) -> StoreError {
        StoreError::Io {
            path: path.to_path_buf(),
            offset,
            action,
            cause: Arc::new(cause.into()),
        }
    }

    pub(crate) fn format(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Format {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    pub(crate) fn unsupported(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Unsupported {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }
}
