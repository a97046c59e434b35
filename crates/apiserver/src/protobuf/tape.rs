//! A JSON text as a list of its values with their places, made in one pass: what is needed of it can then be picked in any order.

/// The values of a text in their order; those of an object are its keys and members in turn.
#[derive(Debug, Default)]
pub(super) struct Tape {
    pub(super) nodes: Vec<Node>,
    /// The objects and lists that have not ended yet.
    open: Vec<usize>,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Where it begins and ends in the text; of a string what lies between the quotes.
    start: u32,
    end: u32,
    /// The place of the value after it and all that it holds.
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    True,
    False,
    Number,
    /// A string that stands for itself.
    Text,
    /// A string with escapes.
    Escaped,
    Object,
    List,
}

impl Tape {
    /// Reads a text that was checked, or written, before. Of any other something is read.
    pub(super) fn read(&mut self, json: &[u8]) {
        self.nodes.clear();
        self.open.clear();
        let mut at = 0;
        while let Some(byte) = json.get(at) {
            match byte {
                b'{' => self.begin(Kind::Object, &mut at),
                b'[' => self.begin(Kind::List, &mut at),
                b'}' | b']' => {
                    at += 1;
                    let next = place(self.nodes.len());
                    let Some(node) = self.open.pop().and_then(|open| self.nodes.get_mut(open)) else { return };
                    (node.end, node.next) = (place(at), next);
                }
                b'"' => self.string(json, &mut at),
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => at += 1,
                _ => self.word(json, &mut at),
            }
        }
        // What did not end holds nothing.
        let next = place(self.nodes.len());
        for open in self.open.drain(..) {
            self.nodes[open] = Node { kind: Kind::Null, next, ..self.nodes[open] };
        }
    }

    fn begin(&mut self, kind: Kind, at: &mut usize) {
        self.open.push(self.nodes.len());
        self.nodes.push(Node { kind, start: place(*at), end: 0, next: 0 });
        *at += 1;
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = place(self.nodes.len() + 1);
        self.nodes.push(Node { kind, start: place(start), end: place(end), next });
    }

    fn string(&mut self, json: &[u8], at: &mut usize) {
        let start = *at + 1;
        let mut end = start;
        let mut kind = Kind::Text;
        loop {
            let rest = json.get(end..).unwrap_or_default();
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(length) if rest[length] == b'"' => {
                    end += length;
                    break;
                }
                Some(length) => {
                    kind = Kind::Escaped;
                    end += length + 2;
                }
                None => {
                    end = json.len();
                    break;
                }
            }
        }
        self.push(kind, start.min(end), end);
        *at = end + 1;
    }

    fn word(&mut self, json: &[u8], at: &mut usize) {
        let rest = &json[*at..];
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b' ' | b'\t' | b'\r' | b'\n');
        let length = rest.iter().position(ends).unwrap_or(rest.len()).max(1);
        let kind = match rest[0] {
            b't' => Kind::True,
            b'f' => Kind::False,
            b'n' => Kind::Null,
            _ => Kind::Number,
        };
        self.push(kind, *at, *at + length);
        *at += length;
    }
}

/// A place in a text; texts are far smaller than four gigabytes.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Node {
    /// The bytes of the value.
    pub(super) fn bytes<'a>(&self, json: &'a [u8]) -> &'a [u8] {
        json.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The bytes of the value with so many more on either side.
    pub(super) fn text<'a>(&self, json: &'a [u8], more: usize) -> &'a [u8] {
        json.get((self.start as usize).saturating_sub(more)..self.end as usize + more).unwrap_or_default()
    }

    /// The place after the value and all that it holds.
    pub(super) fn next(&self) -> usize {
        self.next as usize
    }
}
