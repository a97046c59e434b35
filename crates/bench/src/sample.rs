//! Many timings of the same thing, and what to say of them.

use std::time::{Duration, Instant};

/// Timings, shortest first.
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn new(mut timings: Vec<Duration>) -> Self {
        timings.sort_unstable();
        Self(timings)
    }

    /// The shortest time that is not exceeded by `percent` of the timings (nearest rank); zero if there are none.
    pub(crate) fn percentile(&self, percent: f64) -> Duration {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or_default()
    }
}

/// The shortest of several rounds: what is measured is the program, not what else the machine does meanwhile.
pub(crate) fn shortest<E>(rounds: usize, mut round: impl FnMut() -> Result<Duration, E>) -> Result<Duration, E> {
    let mut shortest = Duration::MAX;
    for _ in 0..rounds {
        shortest = shortest.min(round()?);
    }
    Ok(shortest)
}

/// How long something takes. What it returns is dropped after the clock has stopped.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(millis: impl IntoIterator<Item = u64>, percents: &[f64]) -> Vec<u64> {
        let samples = Samples::new(millis.into_iter().map(Duration::from_millis).collect());
        percents.iter().map(|percent| samples.percentile(*percent).as_millis() as u64).collect()
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        assert_eq!(percentiles((1..=100).rev(), &[0.0, 1.0, 50.0, 99.0, 99.5, 100.0]), [1, 1, 50, 99, 100, 100]);
        assert_eq!(percentiles([15, 20, 35, 40, 50], &[5.0, 30.0, 40.0, 50.0, 100.0]), [15, 20, 20, 35, 50]);
    }

    #[test]
    fn percentiles_of_few_timings_exist() {
        assert_eq!(percentiles([7], &[0.0, 50.0, 99.0]), [7, 7, 7]);
        assert_eq!(percentiles([], &[50.0]), [0]);
    }

    #[test]
    fn the_shortest_round_counts() {
        let mut rounds = [3, 1, 2].into_iter().map(Duration::from_secs);
        let shortest = shortest(3, || rounds.next().ok_or("too many rounds"));
        assert_eq!(shortest, Ok(Duration::from_secs(1)));
    }
}
