//! The log's lines.

/// Writes a line to the log.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { tracing::info!($($part)*) };
}
