//! The log's lines.

/// Says what goes on, in the log.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { tracing::info!($($part)*) };
}
