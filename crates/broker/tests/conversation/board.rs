//! A list that one thread adds to while others wait for what they want to see on it.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The list. Clones share it.
pub(crate) struct Board<T>(Arc<(Mutex<Vec<T>>, Condvar)>);

impl<T> Default for Board<T> {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(Vec::new()), Condvar::new())))
    }
}

impl<T> Clone for Board<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone> Board<T> {
    pub(crate) fn push(&self, item: T) {
        self.0.0.lock().unwrap().push(item);
        self.0.1.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.0.lock().unwrap().len()
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until the list shows what is looked for.
    pub(crate) fn wait<R>(&self, what: &str, mut find: impl FnMut(&[T]) -> Option<R>) -> R {
        tokio::task::block_in_place(|| {
            let mut found = None;
            let list = self.0.0.lock().unwrap();
            let waited = self.0.1.wait_timeout_while(list, PATIENCE, |list| {
                found = find(list);
                found.is_none()
            });
            drop(waited.unwrap());
            found.unwrap_or_else(|| panic!("waited in vain for {what}"))
        })
    }
}
