//! How long things take, in operations of a product: a processor does 10 to 40 of these in a nanosecond.

/// An element that passes through a kernel.
pub const PER_ELEMENT: f64 = 16.0;
/// An element that is drawn at random.
pub const PER_DRAWN: f64 = 300.0;
/// An element that a function of the user is called with.
pub const PER_CALLED: f64 = 100.0;
/// A key that is sorted or merged.
pub const PER_KEY: f64 = 400.0;
/// An entry of a factor that a solve reads, beside its operations.
pub const PER_ENTRY: f64 = 40.0;
