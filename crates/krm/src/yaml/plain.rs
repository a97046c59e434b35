//! Scalars without quotes, block scalars, and how to tell a key from a value.

use super::{
    Content, Node, Scalar, Span, Style,
    parse::{Parser, Result},
};

/// YAML limits a key without `?` to this many bytes, and so bounds the search for its colon.
const MAX_KEY: usize = 1024;

impl Parser<'_> {
    /// Whether a key and its colon begin at the current position, on this line.
    pub(super) fn at_implicit_key(&self) -> bool {
        let limit = (self.pos + MAX_KEY).min(self.bytes.len());
        let mut pos = self.pos;
        while matches!(self.byte(pos), Some(b'&' | b'!')) {
            while !self.is_space(pos) {
                pos += 1;
            }
            while matches!(self.byte(pos), Some(b' ' | b'\t')) {
                pos += 1;
            }
        }
        let end = match self.byte(pos) {
            Some(quote @ (b'"' | b'\'')) => self.quoted_end(pos, quote, limit),
            Some(b'[' | b'{') => self.brackets_end(pos, limit),
            Some(b'*') => (pos..limit).find(|&at| self.is_space(at)),
            Some(_) => return self.plain_may_start(pos, false) && self.plain_line_end(pos, false).1,
            None => None,
        };
        let Some(mut end) = end else { return false };
        while matches!(self.byte(end), Some(b' ' | b'\t')) {
            end += 1;
        }
        self.byte(end) == Some(b':') && self.is_space(end + 1)
    }

    /// Where a quoted text ends if it ends on this line.
    fn quoted_end(&self, start: usize, quote: u8, limit: usize) -> Option<usize> {
        let mut pos = start + 1;
        while pos < limit {
            match self.bytes[pos] {
                b'\n' | b'\r' => return None,
                b'\\' if quote == b'"' => pos += 1,
                b if b == quote && quote == b'\'' && self.byte(pos + 1) == Some(quote) => pos += 1,
                b if b == quote => return Some(pos + 1),
                _ => {}
            }
            pos += 1;
        }
        None
    }

    /// Where a collection in brackets ends if it ends on this line.
    fn brackets_end(&self, start: usize, limit: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut pos = start;
        while pos < limit {
            match self.bytes[pos] {
                b'\n' | b'\r' => return None,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(pos + 1);
                    }
                }
                quote @ (b'"' | b'\'') => pos = self.quoted_end(pos, quote, limit)? - 1,
                _ => {}
            }
            pos += 1;
        }
        None
    }

    /// Where plain text that begins at an offset ends on its line, and whether a colon that makes it a key follows.
    pub(super) fn plain_line_end(&self, start: usize, in_flow: bool) -> (usize, bool) {
        let mut pos = start;
        let mut end = start;
        while let Some(byte) = self.byte(pos) {
            match byte {
                b'\n' | b'\r' => break,
                b' ' | b'\t' => {
                    if self.byte(pos + 1) == Some(b'#') {
                        break;
                    }
                }
                b':' => {
                    let ends_flow = in_flow && self.byte(pos + 1).is_some_and(is_flow_indicator);
                    if self.is_space(pos + 1) || ends_flow {
                        return (end, true);
                    }
                    end = pos + 1;
                }
                b if in_flow && is_flow_indicator(b) => break,
                _ => end = pos + 1,
            }
            pos += 1;
        }
        (end, false)
    }

    pub(super) fn plain_key(&mut self) -> Node {
        let start = self.pos;
        let (end, _) = self.plain_line_end(start, false);
        self.pos = end;
        self.plain_node(start, self.src[start..end].to_owned())
    }

    fn plain_node(&self, start: usize, text: String) -> Node {
        let mut node = Node::new(Content::Scalar(Scalar { text, style: Style::Plain }));
        node.origin = Some(Span::new(start, self.pos));
        node
    }

    fn check_plain_start(&self, in_flow: bool) -> Result<()> {
        let fits = self.plain_may_start(self.pos, in_flow);
        if fits { Ok(()) } else { Err(self.error("no value can begin with this character")) }
    }

    fn plain_may_start(&self, pos: usize, in_flow: bool) -> bool {
        match self.byte(pos) {
            Some(b'-' | b'?' | b':') => {
                let next = self.byte(pos + 1);
                !self.is_space(pos + 1) && next.is_some_and(|b| !in_flow || !is_flow_indicator(b))
            }
            Some(b) => !b",[]{}#&*!|>'\"%@`".contains(&b),
            None => false,
        }
    }

    /// Plain text below a collection at column `indent`; it runs on over lines that are indented deeper.
    pub(super) fn plain_block(&mut self, indent: i32) -> Result<Node> {
        self.check_plain_start(false)?;
        let start = self.pos;
        let (end, _) = self.plain_line_end(start, false);
        let mut text = self.src[start..end].to_owned();
        self.pos = end;
        loop {
            let line_end = self.mark();
            let Some(breaks) = self.blank_lines() else {
                self.reset(line_end);
                break;
            };
            if self.at_end() || self.column() <= indent || self.peek() == Some(b'#') {
                self.reset(line_end);
                break;
            }
            let from = self.pos;
            if self.bytes[..from].iter().rev().take(self.column() as usize).any(|&b| b == b'\t') {
                return Err(self.error("a tab cannot indent a line"));
            }
            let (end, is_key) = self.plain_line_end(from, false);
            if is_key {
                return Err(self.error("a map cannot begin inside a plain value: check the indentation"));
            }
            fold(&mut text, breaks);
            text.push_str(&self.src[from..end]);
            self.pos = end;
        }
        self.last_plain = (self.pos, indent);
        Ok(self.plain_node(start, text))
    }

    /// Plain text inside brackets.
    pub(super) fn plain_flow(&mut self) -> Result<Node> {
        self.check_plain_start(true)?;
        let start = self.pos;
        let (end, mut is_key) = self.plain_line_end(start, true);
        let mut text = self.src[start..end].to_owned();
        self.pos = end;
        while !is_key {
            let line_end = self.mark();
            let Some(breaks) = self.blank_lines() else {
                self.reset(line_end);
                break;
            };
            let ends = self.peek().is_none_or(|b| b == b'#' || is_flow_indicator(b));
            if ends || self.peek() == Some(b':') && self.is_space(self.pos + 1) {
                self.reset(line_end);
                break;
            }
            let from = self.pos;
            let (end, key_follows) = self.plain_line_end(from, true);
            is_key = key_follows;
            fold(&mut text, breaks);
            text.push_str(&self.src[from..end]);
            self.pos = end;
        }
        Ok(self.plain_node(start, text))
    }

    /// Steps over the end of this line and the blank ones after it; the number of line breaks, `None` if there is other
    /// text on this line (a comment, or what ends the value).
    pub(super) fn blank_lines(&mut self) -> Option<usize> {
        let mut breaks = 0;
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'\n' | b'\r') => {
                    self.newline();
                    breaks += 1;
                }
                _ => break,
            }
        }
        (breaks > 0).then_some(breaks)
    }

    /// A literal (`|`) or folded (`>`) block.
    pub(super) fn block_scalar(&mut self, indent: i32) -> Result<Node> {
        let start = self.pos;
        let folded = self.peek() == Some(b'>');
        self.pos += 1;
        let mut chomp = None;
        let mut explicit = None;
        while let Some(byte) = self.peek() {
            match byte {
                b'+' | b'-' if chomp.is_none() => chomp = Some(byte),
                b'1'..=b'9' if explicit.is_none() => explicit = Some(i32::from(byte - b'0')),
                _ => break,
            }
            self.pos += 1;
        }
        self.skip_blanks();
        if self.peek() == Some(b'#') && matches!(self.bytes[self.pos - 1], b' ' | b'\t') {
            while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                self.pos += 1;
            }
        }
        match self.peek() {
            Some(b'\n' | b'\r') => self.newline(),
            None => {}
            Some(_) => return Err(self.error("unexpected text after the mark of a text block")),
        }
        let width = match explicit {
            Some(step) => indent.max(0) + step,
            None => self.block_indent().max(indent + 1).max(1),
        } as usize;
        let (lines, trailing) = self.block_lines(width, chomp == Some(b'+'))?;
        let text = if folded { join_folded(&lines) } else { lines.join("\n") };
        // At the end of the text the last line may have no break that could be kept.
        let last_break = usize::from(!lines.is_empty() && self.bytes[..self.pos].ends_with(b"\n"));
        let text = match chomp {
            Some(b'-') => text,
            Some(_) => text + &"\n".repeat(trailing + last_break),
            None => text + &"\n".repeat(last_break),
        };
        let style = if folded { Style::Folded } else { Style::Literal };
        let mut node = Node::new(Content::Scalar(Scalar { text, style }));
        node.origin = Some(Span::new(start, self.pos));
        Ok(node)
    }

    /// The indentation of the first line of a block that is not blank.
    fn block_indent(&self) -> i32 {
        let mut pos = self.pos;
        loop {
            let start = pos;
            while self.byte(pos) == Some(b' ') {
                pos += 1;
            }
            match self.byte(pos) {
                Some(b'\n' | b'\r') => pos += 1,
                Some(_) => return (pos - start) as i32,
                None => return 0,
            }
        }
    }

    /// The lines of a block without their indentation, and how many blank ones follow. Those belong to the block only if
    /// it keeps them.
    fn block_lines(&mut self, width: usize, keep: bool) -> Result<(Vec<String>, usize)> {
        let mut lines: Vec<String> = Vec::new();
        let mut blank = 0;
        let mut end = self.mark();
        while !self.at_end() {
            let line = self.pos;
            while self.pos - line < width && self.peek() == Some(b' ') {
                self.pos += 1;
            }
            let from = self.pos;
            let is_blank = matches!(self.peek(), None | Some(b'\n' | b'\r'));
            if !is_blank && from - line < width {
                if self.peek() == Some(b'\t')
                    && self.src[from..].trim_start_matches([' ', '\t']).starts_with(['\n', '\r'])
                {
                    // A line of blanks and tabs is as good as empty.
                    self.refuse_for_kpt(from, "kpt does not read a tab here: use blanks");
                } else {
                    break;
                }
            }
            while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                self.pos += 1;
            }
            let text = if from - line < width { "" } else { &self.src[from..self.pos] };
            if text.is_empty() {
                if self.at_end() && self.pos == line {
                    break;
                }
                blank += 1;
            } else {
                lines.extend(std::iter::repeat_n(String::new(), blank));
                blank = 0;
                lines.push(text.to_owned());
            }
            if !self.at_end() {
                self.newline();
            }
            if blank == 0 || keep {
                end = self.mark();
            }
        }
        self.reset(end);
        Ok((lines, blank))
    }
}

/// Folds line breaks inside a flowing text: one becomes a blank, more lose one.
pub(super) fn fold(text: &mut String, breaks: usize) {
    if breaks == 1 {
        text.push(' ');
    } else {
        text.extend(std::iter::repeat_n('\n', breaks - 1));
    }
}

/// Joins the lines of a folded block: breaks between ordinary lines fold, those around indented lines stay.
fn join_folded(lines: &[String]) -> String {
    let mut text = String::new();
    let mut pending = 0;
    let mut before_indented = false;
    for (number, line) in lines.iter().enumerate() {
        if line.is_empty() {
            pending += 1;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        if number == pending {
            text.extend(std::iter::repeat_n('\n', pending));
        } else if indented || before_indented {
            text.extend(std::iter::repeat_n('\n', pending + 1));
        } else {
            fold(&mut text, pending + 1);
        }
        text.push_str(line);
        pending = 0;
        before_indented = indented;
    }
    text
}

fn is_flow_indicator(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}
