//! Arithmetic with timestamps that never fails: at the ends of time it stays there.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// `now + duration`, or the end of time.
pub(crate) fn later(now: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| now.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}
