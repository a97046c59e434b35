//! Sequence ids: which of two statuses of the same work is the newer one.

use jiff::Timestamp;

/// Milliseconds between the Unix epoch and the epoch that sequence ids count from.
const EPOCH_MILLIS: i64 = 1_288_834_974_657;
/// Every agent uses the same node number; a source refuses ids of another node.
const NODE: u64 = 1;
const NODE_SHIFT: u32 = 12;
const TIME_SHIFT: u32 = 22;
const STEP_MASK: u64 = (1 << NODE_SHIFT) - 1;
const NODE_MASK: u64 = (1 << (TIME_SHIFT - NODE_SHIFT)) - 1;
/// The step is hidden below the millisecond of a timestamp: 4096 steps of 100 ns stay below 1 ms.
const STEP_NANOS: i128 = 100;

/// A snowflake: 41 bits of milliseconds, 10 of node, 12 of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

impl Sequence {
    /// Reads a sequence id; one of another node is refused, because it cannot be compared with ours.
    pub fn new(id: u64) -> Option<Self> {
        ((id >> NODE_SHIFT) & NODE_MASK == NODE && id >> 63 == 0).then_some(Self(id))
    }

    /// The first sequence of the millisecond that `time` falls into. Times before the epoch give the first of all.
    pub fn at(time: Timestamp) -> Self {
        Self::from_parts(time.as_millisecond(), 0)
    }

    /// Reads the sequence that [`Sequence::time`] wrote. A timestamp of another origin gives a sequence in its order.
    pub fn from_time(time: Timestamp) -> Self {
        let nanos = time.as_nanosecond().rem_euclid(1_000_000);
        let step = u64::try_from(nanos / STEP_NANOS).unwrap_or(0).min(STEP_MASK);
        Self::from_parts(time.as_nanosecond().div_euclid(1_000_000).try_into().unwrap_or(0), step)
    }

    fn from_parts(unix_millis: i64, step: u64) -> Self {
        let millis = u64::try_from(unix_millis - EPOCH_MILLIS).unwrap_or(0).min((1 << 41) - 1);
        Self(millis << TIME_SHIFT | NODE << NODE_SHIFT | step)
    }

    /// The sequence as a timestamp that keeps its order, for a dialect that has no sequence ids.
    pub fn time(self) -> Timestamp {
        let millis = (self.0 >> TIME_SHIFT) as i64 + EPOCH_MILLIS;
        let nanos = i128::from(millis) * 1_000_000 + i128::from(self.0 & STEP_MASK) * STEP_NANOS;
        Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX)
    }

    /// The smallest sequence above this one.
    pub fn next(self) -> Self {
        match self.0 & STEP_MASK {
            STEP_MASK => Self::from_parts((self.0 >> TIME_SHIFT) as i64 + EPOCH_MILLIS + 1, 0),
            _ => Self(self.0 + 1),
        }
    }

    /// The id on the wire.
    pub fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_id_reads_as_its_time() {
        let captured = Sequence::new(2_122_068_407_904_899_072).unwrap();
        assert_eq!(captured.time().to_string(), "2026-11-15T20:45:09.226Z");
        assert_eq!(Sequence::at(captured.time()), captured);
    }

    #[test]
    fn another_node_is_refused() {
        assert_eq!(Sequence::new(2 << NODE_SHIFT), None);
        assert_eq!(Sequence::new(u64::MAX), None);
    }

    #[test]
    fn time_keeps_every_step_in_order() {
        let mut sequence = Sequence::at("2026-11-16T01:00:00Z".parse().unwrap());
        for _ in 0..10_000 {
            let next = sequence.next();
            assert!(next > sequence);
            assert!(next.time() > sequence.time());
            assert_eq!(Sequence::from_time(next.time()), next);
            sequence = next;
        }
    }

    #[test]
    fn absurd_times_stay_in_range() {
        assert!(Sequence::at(Timestamp::MIN) < Sequence::at(Timestamp::MAX));
        assert!(Sequence::new(Sequence::from_time(Timestamp::MAX).get()).is_some());
        assert!(Sequence::from_time(Timestamp::MIN).time() <= Timestamp::MAX);
    }
}
