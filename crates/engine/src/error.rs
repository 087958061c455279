//! What can go wrong, each with the numbers that explain it.

use outcore_store::{show_size, show_size_up, StoreError};

/// What a function over tiles raised.
pub type FunctionError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Shapes that do not go together; the message names both sides.
    #[error("{0}")]
    Shape(String),
    /// An element type the operator does not take.
    #[error("{0}")]
    DType(String),
    /// An axis or index outside the array.
    #[error("{0}")]
    Index(String),
    /// A plan that cannot fit, refused before anything ran.
    #[error("{operator}: needs {} of memory at once, the limit leaves {} ({detail}); {} {}", show_size(*need), show_size(*available), if *exact { "the smallest limit that works is" } else { "a limit that works is above" }, show_size_up(*smallest))]
    Memory {
        operator: String,
        need: u64,
        available: u64,
        smallest: u64,
        /// Whether the limit named is known to work; else it is only known that less does not.
        exact: bool,
        detail: String,
        /// Whether the plan itself has no room, so that another must not be made beside it.
        planning: bool,
    },
    /// A matrix that has no such factors.
    #[error("{0}")]
    LinAlg(String),
    /// A value that the operation cannot take.
    #[error("{0}")]
    Argument(String),
    /// A plan that cannot be made for another reason.
    #[error("{0}")]
    Plan(String),
    /// An invariant that does not hold: a bug of ours, wherever it shows.
    #[error(
        "{0}; this is a bug in outcore: please report it with this message and, if you can, what explain() prints"
    )]
    Internal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A program whose start state is gone; planning it again helps.
    #[error("{0}")]
    Stale(String),
    /// A session that is closed, or another process's.
    #[error("{0}")]
    Session(String),
    /// A function of the user raised; what it raised is the caller's own type and goes back as it came.
    #[error("{0}")]
    Function(FunctionError),
    #[error("cancelled")]
    Cancelled,
    /// Stopped because of what another program did; the message says which way.
    #[error("{0}")]
    Interrupted(String),
}

impl EngineError {
    /// Whether the values are the reason, so that the same computation comes to the same end each time.
    pub fn is_of_values(&self) -> bool {
        matches!(self, EngineError::LinAlg(_))
    }

    /// A stable code that both languages test against.
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::Shape(_) => "shape",
            EngineError::DType(_) => "dtype",
            EngineError::Index(_) => "index",
            EngineError::Memory { .. } => "memory",
            EngineError::LinAlg(_) => "linalg",
            EngineError::Argument(_) => "invalid",
            EngineError::Plan(_) => "plan",
            EngineError::Stale(_) => "stale",
            EngineError::Store(error) => error.code(),
            EngineError::Session(_) => "session",
            EngineError::Function(_) => "function",
            EngineError::Internal(_) => "internal",
            EngineError::Cancelled | EngineError::Interrupted(_) => "cancelled",
        }
    }
}
