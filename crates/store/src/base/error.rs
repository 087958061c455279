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
    #[error("{}: changed since it was opened ({reason}); open it again to read what is there now", path.display())]
    Changed { path: PathBuf, reason: String },
    /// Another process was at work on what this one writes; `output` is the name that will not be given then.
    #[error("{}: disturbed by another process{}: {reason}", path.display(), meanwhile(output.as_deref()))]
    Disturbed {
        path: PathBuf,
        output: Option<PathBuf>,
        reason: String,
    },
    #[error("{cause}; taking back the outputs published before it failed: {}", standing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    HalfPublished {
        cause: Arc<StoreError>,
        standing: Vec<StandingOutput>,
    },
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

/// An output that could not be taken back.
#[derive(Clone, Debug)]
pub struct StandingOutput {
    pub path: PathBuf,
    /// Where what it replaced is now.
    pub old: Option<PathBuf>,
    pub cause: String,
}

impl std::fmt::Display for StandingOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.cause)?;
        match &self.old {
            Some(old) => write!(f, ", what was there before is {}", old.display()),
            None => Ok(()),
        }
    }
}

fn meanwhile(output: Option<&Path>) -> String {
    output.map_or(String::new(), |output| {
        format!(" while {} was written", output.display())
    })
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
            StoreError::Io { cause, .. } if cause.kind() == PermissionDenied => "permission",
            StoreError::Io {
                cause,
                action: "open" | "stat",
                ..
            } if cause.kind() == NotFound => "missing",
            StoreError::Io { .. } | StoreError::Disturbed { .. } => "io",
            StoreError::HalfPublished { cause, .. } => cause.code(),
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
        let (path, cause) = (path.to_path_buf(), cause.into());
        let changed = cause
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ChangedMeanwhile>());
        if let Some(ChangedMeanwhile(reason)) = changed {
            let reason = reason.clone();
            return StoreError::Changed { path, reason };
        }
        StoreError::Io {
            path,
            offset,
            action,
            cause: Arc::new(cause),
        }
    }

    pub(crate) fn disturbed(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Disturbed {
            path: path.to_path_buf(),
            output: None,
            reason: reason.into(),
        }
    }

    /// The same error, naming the output that suffers from it.
    pub(crate) fn at_output(mut self, target: &Path) -> StoreError {
        if let StoreError::Disturbed { output, .. } = &mut self {
            *output = Some(target.to_path_buf());
        }
        self
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

/// The cause of a failed read: the bytes there are not those of the file as it was.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ChangedMeanwhile(pub String);

/// The result of everything here.
pub type Result<T> = std::result::Result<T, StoreError>;
