//! Collections in brackets: `{…}` and `[…]`, JSON among them.

use super::{
    Collection, Content, Node, Part, Place, Span,
    parse::{Parser, Result, attach, null_at},
};

impl Parser<'_> {
    /// A collection at its opening bracket.
    pub(super) fn flow_collection(&mut self) -> Result<Node> {
        self.enter()?;
        let start = self.pos;
        let is_map = self.peek() == Some(b'{');
        let close = if is_map { b'}' } else { b']' };
        self.pos += 1;
        let mut parts = Vec::new();
        let mut lead = self.pos;
        loop {
            self.skip_flow_trivia();
            match self.peek() {
                None => return Err(self.error_at(start, "the bracket is not closed")),
                Some(b) if b == close => break,
                Some(b',') => return Err(self.error("a value is missing before this comma")),
                Some(_) => {}
            }
            let part = if is_map { self.flow_entry(lead)? } else { self.flow_element(lead)? };
            lead = part.place.map_or(self.pos, |place| place.end as usize);
            parts.push(part);
            self.skip_flow_trivia();
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b) if b == close => break,
                None => return Err(self.error_at(start, "the bracket is not closed")),
                Some(_) => return Err(self.error("expected a comma or the closing bracket")),
            }
        }
        self.pos += 1;
        let collection = Collection {
            parts,
            flow: true,
            start: start as u32,
            head: start as u32,
            tail: lead as u32,
            ..Collection::default()
        };
        let mut node = Node::new(if is_map { Content::Map(collection) } else { Content::List(collection) });
        node.origin = Some(Span::new(start, self.pos));
        self.leave();
        Ok(node)
    }

    fn flow_entry(&mut self, lead: usize) -> Result<Part> {
        let start = self.pos;
        if self.peek() == Some(b'?') && self.is_space(self.pos + 1) {
            self.pos += 1;
            self.skip_flow_trivia();
        }
        let key = self.flow_node()?;
        self.flow_value(key, start, lead)
    }

    /// The colon and the value after a key; both may be left out.
    fn flow_value(&mut self, key: Node, start: usize, lead: usize) -> Result<Part> {
        let key_end = self.mark();
        self.skip_flow_trivia();
        let (mark_end, value) = if self.peek() == Some(b':') {
            self.pos += 1;
            let mark_end = self.pos;
            let after_colon = self.mark();
            self.skip_flow_trivia();
            if matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
                self.reset(after_colon);
                (mark_end, null_at(mark_end, None))
            } else {
                (mark_end, self.flow_node()?)
            }
        } else {
            self.reset(key_end);
            (key_end.pos, null_at(key_end.pos, None))
        };
        Ok(self.flow_part(Some(key), value, start, mark_end, lead))
    }

    fn flow_element(&mut self, lead: usize) -> Result<Part> {
        let start = self.pos;
        let explicit = self.peek() == Some(b'?') && self.is_space(self.pos + 1);
        if explicit {
            self.pos += 1;
            self.skip_flow_trivia();
        }
        let value = self.flow_node()?;
        let after = self.mark();
        self.skip_flow_trivia();
        let is_pair = self.peek() == Some(b':');
        self.reset(after);
        if !explicit && !is_pair {
            return Ok(self.flow_part(None, value, start, start, lead));
        }
        // `[a: b]` is a list of one map.
        let pair = self.flow_value(value, start, start)?;
        let collection = Collection {
            parts: vec![pair],
            flow: true,
            bare: true,
            start: start as u32,
            head: start as u32,
            tail: self.pos as u32,
            ..Collection::default()
        };
        let mut map = Node::new(Content::Map(collection));
        map.origin = Some(Span::new(start, self.pos));
        Ok(self.flow_part(None, map, start, start, lead))
    }

    fn flow_part(&self, key: Option<Node>, value: Node, start: usize, mark_end: usize, lead: usize) -> Part {
        let place = Place {
            lead: lead as u32,
            head: start as u32,
            start: start as u32,
            mark_end: mark_end as u32,
            value: value.origin.unwrap_or_default(),
            value_is_block: false,
            end: self.pos as u32,
        };
        Part { place: Some(place), ..Part::new(key, value) }
    }

    fn flow_node(&mut self) -> Result<Node> {
        self.enter()?;
        let start = self.pos;
        let weight_before = self.weight_so_far();
        let props = self.props()?;
        let props_end = self.mark();
        self.skip_flow_trivia();
        let mut node = match self.peek() {
            Some(b'[' | b'{') => self.flow_collection()?,
            Some(b'"') => self.double_quoted()?,
            Some(b'\'') => self.single_quoted()?,
            Some(b'*') => self.alias()?,
            Some(b',' | b']' | b'}' | b':') | None if props.is_some() => {
                self.reset(props_end);
                null_at(props_end.pos, None)
            }
            _ => self.plain_flow()?,
        };
        attach(&mut node, props, start);
        self.remember_anchor(&node, weight_before);
        self.leave();
        Ok(node)
    }
}
