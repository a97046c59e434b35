//! Scalars in single and double quotes.

use super::{
    Content, Node, Scalar, Span, Style,
    parse::{Parser, Result},
    plain::fold,
};

impl Parser<'_> {
    pub(super) fn single_quoted(&mut self) -> Result<Node> {
        let start = self.pos;
        self.pos += 1;
        let mut text = String::new();
        let mut from = self.pos;
        loop {
            match self.peek() {
                None => return Err(self.error_at(start, "the quote is not closed")),
                Some(b'\'') if self.byte(self.pos + 1) == Some(b'\'') => {
                    text.push_str(&self.src[from..=self.pos]);
                    self.pos += 2;
                    from = self.pos;
                }
                Some(b'\'') => break,
                Some(b'\n' | b'\r') => {
                    self.fold_lines(&mut text, from, 0);
                    from = self.pos;
                }
                Some(_) => self.pos += 1,
            }
        }
        text.push_str(&self.src[from..self.pos]);
        Ok(self.quoted_node(start, text, Style::Single))
    }

    pub(super) fn double_quoted(&mut self) -> Result<Node> {
        let start = self.pos;
        self.pos += 1;
        let mut text = String::new();
        let mut from = self.pos;
        // What an escape produced is never trimmed at the end of a line.
        let mut fixed = 0;
        loop {
            match self.peek() {
                None => return Err(self.error_at(start, "the quote is not closed")),
                Some(b'"') => break,
                Some(b'\\') => {
                    text.push_str(&self.src[from..self.pos]);
                    self.escape(&mut text)?;
                    fixed = text.len();
                    from = self.pos;
                }
                Some(b'\n' | b'\r') => {
                    self.fold_lines(&mut text, from, fixed);
                    fixed = text.len();
                    from = self.pos;
                }
                Some(_) => self.pos += 1,
            }
        }
        text.push_str(&self.src[from..self.pos]);
        Ok(self.quoted_node(start, text, Style::Double))
    }

    /// Ends a line inside quotes: blanks around the break go, and the break is folded.
    fn fold_lines(&mut self, text: &mut String, from: usize, fixed: usize) {
        text.push_str(&self.src[from..self.pos]);
        let kept = text.trim_end_matches([' ', '\t']).len().max(fixed);
        text.truncate(kept);
        if let Some(breaks) = self.blank_lines() {
            fold(text, breaks);
        }
    }

    fn quoted_node(&mut self, start: usize, text: String, style: Style) -> Node {
        self.pos += 1;
        let mut node = Node::new(Content::Scalar(Scalar { text, style }));
        node.origin = Some(Span::new(start, self.pos));
        node
    }

    fn escape(&mut self, text: &mut String) -> Result<()> {
        let at = self.pos;
        self.pos += 1;
        let Some(byte) = self.peek() else { return Err(self.error("the quote is not closed")) };
        let c = match byte {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0b',
            b'f' => '\x0c',
            b'r' => '\r',
            b'e' => '\x1b',
            b' ' | b'"' | b'\\' => char::from(byte),
            b'/' => {
                self.refuse_for_kpt(at, "kpt does not know the escape \\/");
                '/'
            }
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.hex_escape(text, 2),
            b'u' => return self.hex_escape(text, 4),
            b'U' => return self.hex_escape(text, 8),
            b'\n' | b'\r' => {
                self.newline();
                self.skip_blanks();
                return Ok(());
            }
            _ => return Err(self.error_at(at, "unknown escape in double quotes")),
        };
        text.push(c);
        self.pos += 1;
        Ok(())
    }

    fn hex_escape(&mut self, text: &mut String, digits: usize) -> Result<()> {
        let at = self.pos - 1;
        let mut code = self.hex_digits(self.pos + 1, digits).ok_or_else(|| self.error_at(at, "expected hex digits"))?;
        self.pos += 1 + digits;
        // JSON writes characters beyond the first plane as two escapes.
        if (0xd800..0xdc00).contains(&code)
            && self.byte(self.pos) == Some(b'\\')
            && self.byte(self.pos + 1) == Some(b'u')
        {
            let low = self.hex_digits(self.pos + 2, 4).filter(|low| (0xdc00..0xe000).contains(low));
            if let Some(low) = low {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                self.pos += 6;
            }
        }
        let c = char::from_u32(code).ok_or_else(|| self.error_at(at, "this escape is no character"))?;
        text.push(c);
        Ok(())
    }

    fn hex_digits(&self, from: usize, digits: usize) -> Option<u32> {
        let text = self.bytes.get(from..from + digits)?;
        text.iter().try_fold(0_u32, |code, &b| Some(code << 4 | char::from(b).to_digit(16)?))
    }
}
