//! The backend that keeps nothing: for tests, and for what may be lost.

use std::sync::Arc;

use crate::{
    core::{Change, Core},
    revision::Epoch,
    sequencer::{Log, LogError},
};

/// A log that forgets.
pub(crate) struct Memory;

impl Log for Memory {
    fn append(&mut self, _changes: &[Change]) -> Result<(), LogError> {
        Ok(())
    }

    fn renew_epoch(&mut self, _epoch: Epoch) -> Result<(), LogError> {
        Ok(())
    }

    fn tidy(&mut self, _core: &Arc<Core>, _compact: bool) -> Result<(), LogError> {
        Ok(())
    }

    fn close(&mut self) {}
}
