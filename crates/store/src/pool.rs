//! Equal values held once: a set of shared pointers that forgets what nobody else holds.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A set of values that are alive somewhere else as well.
pub(crate) struct Pool<T: ?Sized> {
    table: HashTable<Arc<T>>,
    hasher: DefaultHashBuilder,
    sweep_at: usize,
}

/// Below this many values a sweep is not worth its time.
const SMALLEST_SWEEP: usize = 1024;

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { table: HashTable::new(), hasher: DefaultHashBuilder::default(), sweep_at: SMALLEST_SWEEP }
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T> {
    /// The pooled value that equals `value`, made now if there is none.
    pub(crate) fn intern<Q>(&mut self, value: &Q, equal: impl Fn(&T) -> bool, make: impl FnOnce() -> Arc<T>) -> Arc<T>
    where
        Q: ?Sized + Hash,
    {
        let hash = self.hasher.hash_one(value);
        if let Some(found) = self.table.find(hash, |candidate| equal(candidate)) {
            return found.clone();
        }
        self.sweep();
        let made = make();
        let hasher = &self.hasher;
        self.table.insert_unique(hash, made.clone(), |other| hasher.hash_one(&**other));
        made
    }

    /// Forgets what only the pool holds, each time it has doubled since the last sweep: constant cost per value.
    fn sweep(&mut self) {
        if self.table.len() < self.sweep_at {
            return;
        }
        self.table.retain(|value| Arc::strong_count(value) > 1);
        let hasher = &self.hasher;
        self.table.shrink_to_fit(|value| hasher.hash_one(&**value));
        self.sweep_at = SMALLEST_SWEEP.max(self.table.len() * 2);
    }

    /// How many values it holds.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intern(pool: &mut Pool<str>, text: &str) -> Arc<str> {
        pool.intern(text, |other| other == text, || text.into())
    }

    #[test]
    fn equal_values_are_one() {
        let mut pool = Pool::default();
        let first = intern(&mut pool, "a");
        let second = intern(&mut pool, "a");
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &intern(&mut pool, "b")));
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let mut pool = Pool::default();
        let kept = intern(&mut pool, "kept");
        for number in 0..100_000 {
            intern(&mut pool, &number.to_string());
        }
        assert!(pool.len() <= SMALLEST_SWEEP);
        assert!(Arc::ptr_eq(&kept, &intern(&mut pool, "kept")));
    }
}
