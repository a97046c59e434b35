//! When to try again what failed: after pauses that double.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(120);

/// The pause since something failed last, if it did not work since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause(Option<(Instant, Duration)>);

impl Pause {
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.0.is_none_or(|(until, _)| until <= now)
    }

    /// Until when it lasts.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.map(|(until, _)| until)
    }

    /// It failed.
    pub(super) fn begin(&mut self, now: Instant) {
        let length = self.0.map_or(FIRST, |(_, length)| (length * 2).min(LONGEST));
        self.0 = Some((now + length, length));
    }

    /// It worked.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_longest_one_and_begin_anew_when_it_worked() {
        let (mut pause, mut now) = (Pause::default(), Instant::now());
        assert!(pause.is_over(now));
        let mut seconds = Vec::new();
        for _ in 0..8 {
            pause.begin(now);
            assert!(!pause.is_over(now));
            let until = pause.until().expect("it began");
            seconds.push((until - now).as_secs());
            now = until;
            assert!(pause.is_over(now));
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 120]);
        pause.end();
        pause.begin(now);
        assert_eq!(pause.until(), Some(now + FIRST));
    }
}
