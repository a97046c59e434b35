//! What stands between values: blanks, comments and line breaks.

use super::parse::{Parser, Result};

impl Parser<'_> {
    /// Steps over a line break at the current position.
    pub(super) fn newline(&mut self) {
        if self.peek() == Some(b'\r') && self.byte(self.pos + 1) == Some(b'\n') {
            self.pos += 1;
        }
        self.pos += 1;
        self.line = self.pos;
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.pos += 1;
        }
    }

    /// Steps over the rest of the line if it is a comment. After a value in quotes or brackets a comment needs no blank
    /// before it: libyaml and all that descend from it agree on that.
    fn skip_comment(&mut self) {
        if self.peek() == Some(b'#') {
            while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                self.pos += 1;
            }
        }
    }

    /// Steps over blanks, comments and line breaks; says whether a line ended. In block style a tab cannot indent.
    pub(super) fn skip_trivia(&mut self) -> Result<bool> {
        let mut crossed = false;
        loop {
            let from = self.pos;
            self.skip_blanks();
            if from == self.line && matches!(self.peek(), None | Some(b'\n' | b'\r' | b'#')) {
                self.check_tab(from);
            }
            self.skip_comment();
            match self.peek() {
                Some(b'\n' | b'\r') => {
                    self.newline();
                    crossed = true;
                }
                _ => break,
            }
        }
        let indented_by_tab = self.bytes[self.line..self.pos].contains(&b'\t');
        let on_new_line = self.bytes[self.line..self.pos].iter().all(|b| matches!(b, b' ' | b'\t'));
        if on_new_line && !self.at_end() && indented_by_tab {
            return Err(self.error("a tab cannot indent a line"));
        }
        Ok(crossed)
    }

    /// Notes that kpt refuses a tab among the blanks from an offset on. After a plain value, which might go on, it minds only
    /// those that are not indented deeper than the value's collection.
    fn check_tab(&mut self, from: usize) {
        let Some(at) = (from..self.pos).find(|&at| self.bytes[at] == b'\t') else { return };
        let (plain_end, indent) = self.last_plain;
        let after_plain = self.src.get(plain_end..at).is_some_and(|between| between.trim().is_empty());
        if !(after_plain && (at - self.line) as i32 > indent) {
            self.refuse_for_kpt(at, "kpt does not read a tab here: use blanks");
        }
    }

    pub(super) fn refuse_for_kpt(&mut self, at: usize, message: &str) {
        if self.refused_by_kpt.is_none() {
            self.refused_by_kpt = Some(self.error_at(at, message));
        }
    }

    /// Looks at the blanks after a dash or a question mark.
    pub(super) fn check_mark_blanks(&mut self) {
        let mark = self.mark();
        self.skip_blanks();
        self.last_plain = (usize::MAX, 0);
        self.check_tab(mark.pos);
        self.reset(mark);
    }

    /// As [`Self::skip_trivia`], inside brackets, where tabs are ordinary blanks.
    pub(super) fn skip_flow_trivia(&mut self) {
        loop {
            self.skip_blanks();
            self.skip_comment();
            match self.peek() {
                Some(b'\n' | b'\r') => self.newline(),
                _ => break,
            }
        }
    }

    /// Steps over the rest of the line, where only blanks and a comment may stand.
    pub(super) fn end_of_line(&mut self) -> Result<()> {
        self.skip_blanks();
        self.skip_comment();
        match self.peek() {
            None => Ok(()),
            Some(b'\n' | b'\r') => {
                self.newline();
                Ok(())
            }
            Some(_) => Err(self.error("unexpected text after a value")),
        }
    }
}
