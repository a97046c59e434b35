//! A token bucket: so many packets a second, and a burst after a pause.

use std::time::{Duration, Instant};

/// How fast packets may be published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Packets per second in the long run.
    pub per_second: f64,
    /// Packets at once after a pause.
    pub burst: f64,
}

/// The bucket of one connection.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Option<Rate>,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn new(rate: Option<Rate>, now: Instant) -> Self {
        Self { rate, tokens: rate.map_or(0.0, |rate| rate.burst), filled: now }
    }

    /// Takes a token, or says how long until there is one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(rate) = self.rate else { return Ok(()) };
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * rate.per_second).min(rate.burst.max(1.0));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / rate.per_second.max(f64::MIN_POSITIVE);
        Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::from_secs(3600)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(Some(Rate { per_second: 10.0, burst: 3.0 }), start);
        for _ in 0..3 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        let wait = bucket.take(start).unwrap_err();
        assert!(wait > Duration::from_millis(90) && wait < Duration::from_millis(110), "{wait:?}");
        assert_eq!(bucket.take(start + wait + Duration::from_millis(1)), Ok(()));
        assert!(Bucket::new(None, start).take(start).is_ok());
    }
}
