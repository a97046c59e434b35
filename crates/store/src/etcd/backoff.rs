//! How long to wait before trying again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Growing, bounded pauses with jitter, so that many clients do not come back at once.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next attempt begins with the shortest pause again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&mut self) {
        // Without randomness all clients pause the longest.
        let random = getrandom::u32().unwrap_or(u32::MAX);
        let pause = delay(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause).await;
    }
}

/// Between half and all of a time that doubles with every failure.
fn delay(failures: u32, random: u32) -> Duration {
    let full = FIRST.saturating_mul(1 << failures.min(16)).min(LONGEST);
    full / 2 + full.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        assert_eq!(delay(0, 0), FIRST / 2);
        assert_eq!(delay(0, u32::MAX), FIRST);
        assert_eq!(delay(1, u32::MAX), FIRST * 2);
        assert!(delay(40, u32::MAX) == LONGEST && delay(40, 0) == LONGEST / 2);
    }
}
