//! Reading YAML 1.1 into JSON: the first document, with its fields in the order of their names.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
    str::Chars,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::gotext;

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Read {
    /// The document as JSON.
    pub(crate) json: Vec<u8>,
    /// Keys that stand in a map twice, in Go's words.
    pub(crate) repeated: Vec<String>,
}

/// What Go says of keys that stand in a map twice.
pub(crate) fn repeated_problem(repeated: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "))
}

#[derive(Clone, Debug)]
enum Node {
    /// JSON text.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// What an anchor names. It is held once, however many aliases and anchors around it there are.
    Anchored(Rc<Anchored>),
}

/// A node with a name, and what another of it would take.
#[derive(Debug)]
struct Anchored {
    node: Node,
    weight: Weight,
}

/// What a node takes when all of it is written out.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    nodes: usize,
    /// How deep lists and maps are nested in it.
    height: usize,
    /// About as many bytes of JSON.
    bytes: usize,
}

/// How much of a document may come from its aliases, as Go's reader has it: nearly all of one up to the first number of nodes, a tenth from the second on.
/// A small text must not become a huge object.
const ALIASED: (usize, usize) = (400_000, 4_000_000);
/// How many bytes of JSON may come from aliases: as many as a request may have. One long text has few nodes.
const ALIASED_BYTES: usize = 3 << 20;
/// How deep lists and maps may be nested.
const MAX_DEPTH: usize = 500;

/// Reads the first document. No document at all is null.
pub(crate) fn to_json(bytes: &[u8]) -> Result<Read, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.chars().any(is_control) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    let mut reader = Reader::new(text);
    let mut json = Vec::new();
    match reader.document()? {
        Some(node) => write(&node, &mut json),
        None => json.extend_from_slice(b"null"),
    }
    Ok(Read { json, repeated: reader.repeated })
}

/// Whether a character may not stand in a document, not even quoted.
fn is_control(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{feff}' => false,
        other => other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}'),
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// There if there is anything that looks like an escape that YAML 1.1 does not know.
    escapes: Option<Escapes<'a>>,
    anchors: HashMap<usize, Rc<Anchored>>,
    nodes: usize,
    /// Of these, those that came by an alias.
    aliased: usize,
    aliased_bytes: usize,
    repeated: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            parser: Parser::new_from_str(text),
            escapes: text.contains("\\/").then(|| Escapes { rest: text.chars(), passed: 0 }),
            anchors: HashMap::new(),
            nodes: 0,
            aliased: 0,
            aliased_bytes: 0,
            repeated: Vec::new(),
        }
    }

    fn event(&mut self) -> Result<(Event<'a>, usize), String> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let line = span.start.line();
                if let Some(escapes) = &mut self.escapes
                    && matches!(event, Event::Scalar(_, ScalarStyle::DoubleQuoted, ..))
                    && escapes.has_slash(span.start.index(), span.end.index())
                {
                    return Err(failure("found unknown escape character", line));
                }
                Ok((event, line))
            }
            Some(Err(error)) if error.info().ends_with("unknown anchor") => {
                Err(self.unknown_anchor(error.marker().index()))
            }
            Some(Err(error)) if error.info().ends_with("unexpected end of stream") => {
                Err(failure("found unexpected end of stream", self.text.matches('\n').count() + 1))
            }
            Some(Err(error)) => Err(failure(error.info(), error.marker().line())),
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    /// What is wrong with the alias at or before a character.
    fn unknown_anchor(&self, at: usize) -> String {
        let before: String = self.text.chars().take(at + 1).collect();
        let rest = before.rfind('*').map_or("", |start| &self.text[start + 1..]);
        let name = rest.split(|it: char| !it.is_alphanumeric() && it != '-' && it != '_').next().unwrap_or_default();
        format!("yaml: unknown anchor '{name}' referenced")
    }

    fn document(&mut self) -> Result<Option<Node>, String> {
        loop {
            match self.event()? {
                (Event::DocumentStart(_), _) => {
                    let event = self.event()?;
                    return self.node(event, 0).map(Some);
                }
                (Event::StreamEnd, _) => return Ok(None),
                _ => {}
            }
        }
    }

    fn node(&mut self, (event, line): (Event<'a>, usize), depth: usize) -> Result<Node, String> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(format!("yaml: line {line}: exceeded max depth of {MAX_DEPTH}"));
        }
        let (node, anchor) = match event {
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor).ok_or_else(|| format!("yaml: line {line}: unknown anchor"))?;
                let named = named.clone();
                self.count_again(named.weight, depth)?;
                return Ok(Node::Anchored(named));
            }
            Event::Scalar(text, style, anchor, tag) => (Node::Scalar(scalar(&text, style, tag.as_deref())?), anchor),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.event()? {
                        (Event::SequenceEnd, _) => break,
                        event => items.push(self.node(event, depth + 1)?),
                    }
                }
                (Node::List(items), anchor)
            }
            Event::MappingStart(anchor, _) => (Node::Map(self.map(depth)?), anchor),
            _ => (Node::Scalar("null".to_owned()), 0),
        };
        if anchor == 0 {
            return Ok(node);
        }
        let named = Rc::new(Anchored { weight: weigh(&node), node });
        self.anchors.insert(anchor, named.clone());
        Ok(Node::Anchored(named))
    }

    /// Counts what is there once more.
    fn count_again(&mut self, weight: Weight, depth: usize) -> Result<(), String> {
        self.nodes += weight.nodes;
        self.aliased += weight.nodes;
        self.aliased_bytes = self.aliased_bytes.saturating_add(weight.bytes);
        let too_large = self.aliased_bytes > ALIASED_BYTES || self.too_many_aliases();
        if too_large || depth + weight.height > MAX_DEPTH {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(())
    }

    fn too_many_aliases(&self) -> bool {
        let (few, many) = ALIASED;
        let grown = (self.nodes.clamp(few, many) - few) as f64 / (many - few) as f64;
        let allowed = 0.99 - 0.89 * grown;
        self.aliased > 100 && self.nodes > 1000 && self.aliased as f64 / self.nodes as f64 > allowed
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(String, Node)>, String> {
        let mut fields: Vec<(String, Node)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut merged = Vec::new();
        // What a merged map brings counts as set for what comes after it.
        let mut brought = HashSet::new();
        loop {
            let (key, key_line) = match self.event()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(text, style, _, tag), line) => (key(&text, style, tag.as_deref())?, line),
                event => {
                    let node = self.node(event, depth + 1)?;
                    return Err(format!("yaml: invalid map key: {}", gotext::source(&value_of(&node))));
                }
            };
            let event = self.event()?;
            // A block is where it is announced, not where its first line is.
            let block = matches!(event.0, Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..));
            let line = if block { key_line } else { event.1 };
            let value = self.node(event, depth + 1)?;
            let Some(key) = key else {
                let value = gotext::source(&value_of(&value));
                return Err(format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {value}"));
            };
            if key.text == "<<" && key.plain {
                keys_of(&value, &mut brought);
                merged.push(value);
                continue;
            }
            if places.contains_key(&key.text) || brought.contains(&key.text) {
                self.repeated.push(format!("line {line}: key {} already set in map", key.shown));
            }
            match places.get(&key.text) {
                Some(place) => fields[*place].1 = value,
                None => {
                    places.insert(key.text.clone(), fields.len());
                    fields.push((key.text, value));
                }
            }
        }
        for node in merged {
            self.merge(&mut fields, &mut places, node)?;
        }
        // The order decides which of several mistakes is named.
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(fields)
    }

    /// Adds the fields of a merged map that are not set.
    fn merge(
        &mut self,
        fields: &mut Vec<(String, Node)>,
        places: &mut HashMap<String, usize>,
        node: Node,
    ) -> Result<(), String> {
        match node {
            Node::Map(more) => {
                for (name, value) in more {
                    if !places.contains_key(&name) {
                        places.insert(name.clone(), fields.len());
                        fields.push((name, value));
                    }
                }
                Ok(())
            }
            Node::List(maps) => maps.into_iter().try_for_each(|map| self.merge(fields, places, map)),
            Node::Anchored(named) => {
                // Maps in each other that are all named and all merged would be held once for each of them.
                self.count_again(named.weight, 0)?;
                self.merge(fields, places, named.node.clone())
            }
            Node::Scalar(_) => Ok(()),
        }
    }
}

/// The characters that no scalar was yet looked for in. Scalars come in the order of the text, so that it is read once.
struct Escapes<'a> {
    rest: Chars<'a>,
    passed: usize,
}

impl Escapes<'_> {
    /// Whether there is an escaped slash, which came with YAML 1.2, from one character to another.
    fn has_slash(&mut self, start: usize, end: usize) -> bool {
        let before = start.saturating_sub(self.passed);
        let within = end.saturating_sub(start.max(self.passed));
        if within == 0 {
            return false;
        }
        self.passed += before + within;
        let mut escaped = false;
        let mut found = false;
        for character in self.rest.by_ref().skip(before).take(within) {
            found |= escaped && character == '/';
            escaped = !escaped && character == '\\';
        }
        found
    }
}

/// The keys of a map, or of the maps of a list.
fn keys_of(node: &Node, keys: &mut HashSet<String>) {
    match node {
        Node::Map(fields) => keys.extend(fields.iter().map(|(name, _)| name.clone())),
        Node::List(items) => items.iter().for_each(|item| keys_of(item, keys)),
        Node::Anchored(named) => keys_of(&named.node, keys),
        Node::Scalar(_) => {}
    }
}

fn value_of(node: &Node) -> serde_json::Value {
    let mut json = Vec::new();
    write(node, &mut json);
    serde_json::from_slice(&json).unwrap_or_default()
}

/// What a node takes. What is named in it was weighed before, so that nothing is looked at twice.
fn weigh(node: &Node) -> Weight {
    let around = |inner: &mut dyn Iterator<Item = (usize, &Node)>| {
        inner.fold(Weight { nodes: 1, height: 0, bytes: 2 }, |all, (bytes, node)| {
            let weight = weigh(node);
            Weight {
                nodes: all.nodes.saturating_add(weight.nodes),
                height: all.height.max(weight.height + 1),
                bytes: all.bytes.saturating_add(bytes + 1).saturating_add(weight.bytes),
            }
        })
    };
    match node {
        Node::Scalar(json) => Weight { nodes: 1, height: 0, bytes: json.len() },
        Node::List(items) => around(&mut items.iter().map(|item| (0, item))),
        Node::Map(fields) => around(&mut fields.iter().map(|(name, value)| (name.len() + 3, value))),
        Node::Anchored(named) => named.weight,
    }
}

/// A failure in Go's words. Go counts lines from zero where the grammar is broken, and does not name the first.
fn failure(info: &str, line: usize) -> String {
    let in_block = info.ends_with("is only valid inside a block");
    let grammar = info.starts_with("while parsing") && !info.contains("quoted scalar") || in_block;
    let shown = if grammar || line <= 1 { line.saturating_sub(1) } else { line };
    let place = if shown == 0 { String::new() } else { format!("line {shown}: ") };
    format!("yaml: {place}{}", words(info))
}

fn words(info: &str) -> &str {
    let within = |what: &str| info.strip_prefix(what).and_then(|rest| rest.split_once(", ")).map(|(_, rest)| rest);
    let info = within("while parsing").or_else(|| within("while scanning")).unwrap_or(info);
    if info.contains("tab") || info.starts_with("unexpected character: `") {
        "found character that cannot start any token"
    } else if info == "did not find expected hexadecimal number" {
        "did not find expected hexdecimal number"
    } else if info.ends_with("is only valid inside a block") {
        "did not find expected node content"
    } else if info.contains("mapping values") {
        "mapping values are not allowed in this context"
    } else {
        info
    }
}

fn write(node: &Node, out: &mut Vec<u8>) {
    match node {
        Node::Scalar(json) => out.extend_from_slice(json.as_bytes()),
        Node::Anchored(named) => write(&named.node, out),
        Node::List(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Node::Map(fields) => {
            out.push(b'{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(quoted(name).as_bytes());
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A scalar as JSON.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<String, String> {
    match tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str()) {
        Some("str") => return Ok(quoted(text)),
        Some("binary") => {
            let packed: String = text.split_whitespace().collect();
            let bytes =
                STANDARD.decode(packed).map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
            return Ok(quoted(&String::from_utf8_lossy(&bytes)));
        }
        Some("null") => return Ok("null".to_owned()),
        Some(wanted @ ("int" | "float" | "bool")) => {
            return match (plain(text), wanted) {
                (Plain::Number(number), "int" | "float") => Ok(number),
                (Plain::Bool(value), "bool") => Ok(value.to_string()),
                _ => Err(format!("yaml: cannot decode !!str `{text}` as a !!{wanted}")),
            };
        }
        _ => {}
    }
    if style != ScalarStyle::Plain {
        return Ok(quoted(text));
    }
    if let Some(value) = unbounded(text) {
        return Err(format!("json: unsupported value: {value}"));
    }
    Ok(match plain(text) {
        Plain::Null => "null".to_owned(),
        Plain::Bool(value) => value.to_string(),
        Plain::Number(number) => number,
        Plain::Text => quoted(text),
    })
}

/// A number that JSON has no form for, in Go's words.
fn unbounded(text: &str) -> Option<&'static str> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some("+Inf"),
        "-.inf" | "-.Inf" | "-.INF" => Some("-Inf"),
        ".nan" | ".NaN" | ".NAN" => Some("NaN"),
        _ => None,
    }
}

/// A key of a map.
struct Key {
    text: String,
    /// As messages show it: what is no text is not quoted.
    shown: String,
    plain: bool,
}

/// A key of a map; none if it is null.
fn key(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Option<Key>, String> {
    let json = scalar(text, style, tag)?;
    if json == "null" {
        return Ok(None);
    }
    let plain = style == ScalarStyle::Plain;
    let text = serde_json::from_str::<String>(&json).unwrap_or_else(|_| json.clone());
    Ok(Some(Key { text, shown: json, plain }))
}

/// What a plain word means in YAML 1.1.
#[derive(Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    /// A number, as JSON writes it.
    Number(String),
    Text,
}

pub(super) fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Plain::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Plain::Bool(false),
        _ => number(text).map_or(Plain::Text, Plain::Number),
    }
}

/// A number as YAML 1.1 spells it: with underscores, in hexadecimal, octal and binary too.
fn number(text: &str) -> Option<String> {
    let bare = text.replace('_', "");
    let (sign, digits) = match bare.strip_prefix(['+', '-']) {
        Some(digits) => (if bare.starts_with('-') { "-" } else { "" }, digits),
        None => ("", bare.as_str()),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let prefixed = [("0x", 16), ("0b", 2), ("0o", 8)].into_iter();
    for (prefix, radix) in prefixed {
        if let Some(rest) = digits.strip_prefix(prefix) {
            return u64::from_str_radix(rest, radix).ok().map(|number| format!("{sign}{number}"));
        }
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return u64::from_str_radix(digits, 8).ok().map(|number| format!("{sign}{number}"));
        }
        return Some(format!("{sign}{digits}"));
    }
    let float = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let value: f64 = if float { digits.parse().ok()? } else { return None };
    // What is too large to be held is text.
    value.is_finite().then(|| format!("{sign}{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, json: &str) {
        let got = to_json(yaml.as_bytes()).map(|read| String::from_utf8(read.json).unwrap());
        assert_eq!(got.as_deref(), Ok(json), "{yaml}");
    }

    #[test]
    fn words_mean_what_they_mean_in_yaml_1_1() {
        check(
            "k: y\nj: 'y'\ni: 0x1F\nh: 010\ng: 2024-01-02\nf: ~\ne: 1_000\nd: 1.50",
            r#"{"d":1.5,"e":1000,"f":null,"g":"2024-01-02","h":8,"i":31,"j":"y","k":true}"#,
        );
        check("k: !!binary aGk=\n1: x\ntrue: z", r#"{"1":"x","k":"hi","true":"z"}"#);
        check("a: &l {x: 1}\nb: *l\nc:\n  <<: *l\n  z: 2", r#"{"a":{"x":1},"b":{"x":1},"c":{"x":1,"z":2}}"#);
    }

    #[test]
    fn what_is_no_yaml_is_told_in_the_words_of_go() {
        for (yaml, problem) in [
            ("a: 1\nb: {k: .inf}\n", "json: unsupported value: +Inf"),
            ("a: 1\nb: {k: @a}\n", "yaml: line 2: found character that cannot start any token"),
            ("a: 1\nb: {k: - a}\n", "yaml: line 1: did not find expected node content"),
            ("a: 1\nb: \"\\q\"\n", "yaml: line 2: found unknown escape character"),
            ("a: 1\nb: \"x\n", "yaml: line 3: found unexpected end of stream"),
        ] {
            assert_eq!(to_json(yaml.as_bytes()).map(|read| read.json), Err(problem.to_owned()), "{yaml}");
        }
    }

    #[test]
    fn only_the_first_document_counts() {
        check("a: 1\n---\nb: 2\n", r#"{"a":1}"#);
        check("# nothing\n", "null");
        check("", "null");
    }

    #[test]
    fn a_key_that_is_there_twice_is_noted_and_the_last_one_counts() {
        let read = to_json(b"a: 1\na: 2\n").unwrap();
        assert_eq!(read.json, br#"{"a":2}"#);
        assert_eq!(read.repeated, ["line 2: key \"a\" already set in map"]);
        let read = to_json(b"a: 1\na:\n  b: 2\n").unwrap();
        assert_eq!(read.repeated, ["line 3: key \"a\" already set in map"]);
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(",")));
        }
        assert!(to_json(bomb.as_bytes()).is_err());
        assert!(to_json("[".repeat(100_000).as_bytes()).is_err());
    }

    fn refused_for_its_aliases(yaml: &str) {
        assert_eq!(to_json(yaml.as_bytes()).unwrap_err(), "yaml: document contains excessive aliasing");
    }

    #[test]
    fn what_is_named_is_held_once() {
        let open: String = (0..200).map(|level| format!("&a{level} [")).collect();
        let text = format!("{open}1,2,3{}", "]".repeat(200));
        let mut reader = Reader::new(&text);
        let document = reader.document().unwrap();
        assert_eq!(reader.anchors.len(), 200);
        for named in reader.anchors.values() {
            // The reader has it and the document has it.
            assert_eq!(Rc::strong_count(named), 2);
        }
        assert!(
            matches!(document, Some(Node::Anchored(named)) if named.weight.height == 200 && named.weight.nodes == 203)
        );
    }

    #[test]
    fn maps_that_are_named_and_merged_into_each_other_do_not_multiply() {
        let nested = |levels: usize| {
            let fields: String = (0..4000).map(|number| format!("f{number}: 1, ")).collect();
            let open: String = (0..levels).map(|level| format!("{{<<: &a{level} ")).collect();
            format!("{open}{{{fields}}}{}", "}".repeat(levels))
        };
        assert!(to_json(nested(2).as_bytes()).is_ok());
        refused_for_its_aliases(&nested(200));
    }

    #[test]
    fn a_long_text_is_not_repeated_without_end() {
        let repeated = |times: usize| format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; times].join(", "));
        assert!(to_json(repeated(20).as_bytes()).is_ok());
        refused_for_its_aliases(&repeated(50));
    }

    #[test]
    fn an_escaped_slash_is_refused_wherever_it_stands_in_a_scalar_and_nowhere_else() {
        let refused = |yaml: &str| to_json(yaml.as_bytes()).is_err_and(|why| why.ends_with("unknown escape character"));
        for yaml in [
            r#""\/""#,
            r#"- "é"
- "ü\\\/""#,
            r#"{"ä\/": 1}"#,
            r#"{é: "ok", ü: "x\/"}"#,
        ] {
            assert!(refused(yaml), "{yaml}");
        }
        check("# \\/ é\n- \"ü\"\n- '\\/'\n- \\/\n- \"\\\\/\"", r#"["ü","\\/","\\/","\\/"]"#);
    }
}
