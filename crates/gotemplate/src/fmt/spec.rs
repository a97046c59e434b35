//! The flags, width and precision of a verb, and padding by them.

use super::Printer;
use crate::unicode;

#[derive(Clone, Copy, Default)]
pub(super) struct Spec {
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%#v`: values as Go source would write them.
    pub(super) go_syntax: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

impl Spec {
    /// Zeros pad only on the left.
    pub(super) fn pads_with_zeros(&self) -> bool {
        self.zero && !self.minus
    }
}

impl Printer {
    /// Writes text padded to the width, which counts characters.
    pub(super) fn pad(&mut self, text: &[u8]) {
        let missing = self.missing(|| unicode::count(text));
        if !self.spec.minus {
            self.padding(missing);
        }
        self.out.push_bytes(text);
        if self.spec.minus {
            self.padding(missing);
        }
    }

    /// The same without zeros, for what has placed its own.
    pub(super) fn pad_with_blanks(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.spec.zero, false);
        self.pad(text);
        self.spec.zero = zero;
    }

    pub(super) fn padding(&mut self, count: usize) {
        let filler = if self.spec.pads_with_zeros() { b'0' } else { b' ' };
        self.out.push_repeated(filler, count);
    }

    /// How far a text of the given length stays behind the width.
    pub(super) fn missing(&self, length: impl FnOnce() -> usize) -> usize {
        self.spec.width.map_or(0, |width| width.saturating_sub(length()))
    }
}
