//! Random YAML in odd styles.

use crate::yaml::Value;

/// Numbers from a seed; the same on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A value to be written.
    pub(super) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::String(self.pick(TEXTS).to_owned()),
            1 => Value::Int(self.below(100_000) as i64 - 500),
            2 => Value::Bool(self.chance(2)),
            3 => Value::String(format!("{}\n{}\n", self.pick(TEXTS).trim(), self.pick(WORDS))),
            4 => Value::List((0..self.below(3)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Map((0..self.below(3)).map(|number| (format!("k{number}"), self.value(depth - 1))).collect()),
        }
    }
}

/// Texts that need care when they are written.
const TEXTS: &[&str] = &[
    "plain",
    "two words",
    "true",
    "no",
    "~",
    "",
    " lead",
    "trail ",
    "a: b",
    "a #b",
    "#c",
    "- d",
    "it's",
    "say \"x\"",
    "1.5",
    "0x1F",
    "2026-11-16",
    "10:30",
    "&a",
    "*b",
    "!t",
    "%p",
    "@at",
    "`q`",
    "{f}",
    "[g]",
    "a,b",
    "tab\there",
    "grüße 😀",
    "null",
    "back\\slash",
    "?",
    "-",
    ":",
    "x:",
    "...",
    "--- x",
    "\u{7f}",
    "line\nbreak",
    "end\n\n",
    "\nfront",
    "<<",
    "=",
];

const WORDS: &[&str] = &["alpha", "beta", "gamma", "delta", "x1", "größe"];

/// Scalars as they may stand in a file, on one line.
const SCALARS: &[&str] = &[
    "plain",
    "two words",
    "'single'",
    "'it''s'",
    "\"double\"",
    "\"esc \\n \\u00fc\"",
    "12",
    "0x1F",
    "0o17",
    "0755",
    "1e3",
    "-3.25",
    "yes",
    "on",
    "~",
    "null",
    "true",
    "2026-11-16",
    "a:b",
    "x#y",
    "!!str 5",
    "!custom z",
    "\"\"",
    "''",
    "größe",
    "http://h:80/p?q=1",
];

/// A document whose root is a map.
pub(super) fn document(random: &mut Random) -> String {
    let mut writer =
        Writer { text: String::new(), step: 2 + random.below(3), wide: random.chance(2), anchors: random.chance(6) };
    if random.chance(4) {
        writer.text.push_str("# licence\n\n# about\n");
    }
    writer.map(random, 0, 3);
    let mut text = writer.text;
    if random.chance(5) {
        text.push_str("\n# the end\n");
    }
    // A text block at the very end means something else with a line break after it, so no edit there could be free of it.
    if random.chance(6) && !text.contains(['|', '>']) {
        text.truncate(text.trim_end().len());
    }
    if random.chance(8) { text.replace('\n', "\r\n") } else { text }
}

struct Writer {
    text: String,
    step: usize,
    wide: bool,
    anchors: bool,
}

impl Writer {
    fn indent(&mut self, column: usize) {
        self.text.extend(std::iter::repeat_n(' ', column));
    }

    fn trivia(&mut self, random: &mut Random, column: usize) {
        if random.chance(8) {
            self.text.push('\n');
        }
        if random.chance(8) {
            self.indent(column + random.below(3));
            self.text.push_str("# loose\n\n");
        }
        if random.chance(6) {
            self.indent(column);
            self.text.push_str("# of the next\n");
        }
    }

    fn line_end(&mut self, random: &mut Random) {
        match random.below(8) {
            0 => self.text.push_str("   # see"),
            1 => self.text.push_str(" #"),
            2 => self.text.push_str("  "),
            _ => {}
        }
        self.text.push('\n');
    }

    fn map(&mut self, random: &mut Random, column: usize, depth: usize) {
        for number in 0..1 + random.below(4) {
            if number > 0 {
                self.trivia(random, column);
                self.indent(column);
            }
            let word = random.pick(WORDS);
            match random.below(8) {
                0 => self.text.push_str(&format!("\"{word} {number}\":")),
                1 => self.text.push_str(&format!("'{word}{number}' :")),
                2 if self.anchors => self.text.push_str(&format!("{word}{number}: &{word}{number}{depth}{column}")),
                _ => self.text.push_str(&format!("{word}{number}:")),
            }
            self.value(random, column, depth, false);
        }
    }

    fn list(&mut self, random: &mut Random, column: usize, depth: usize) {
        for number in 0..1 + random.below(3) {
            if number > 0 {
                self.trivia(random, column);
                self.indent(column);
            }
            self.text.push('-');
            self.value(random, column, depth, true);
        }
    }

    /// A value after a colon or a dash.
    fn value(&mut self, random: &mut Random, column: usize, depth: usize, after_dash: bool) {
        match random.below(if depth == 0 { 6 } else { 10 }) {
            0 => self.line_end(random),
            1 => self.block_text(random, column),
            2 => {
                self.text.push(' ');
                self.flow(random, 2);
                self.line_end(random);
            }
            3 if !after_dash => {
                self.text.push_str(" plain text\n");
                self.indent(column + 1 + random.below(3));
                self.text.push_str("that runs on\n");
            }
            3..6 => {
                self.text.push(' ');
                self.text.push_str(random.pick(SCALARS));
                self.line_end(random);
            }
            6..8 => {
                let inner = if after_dash && random.chance(2) {
                    self.text.push(' ');
                    column + 2
                } else {
                    self.next_line(random, column + self.step)
                };
                self.map(random, inner, depth - 1);
            }
            _ => {
                let offset = if self.wide || after_dash { self.step } else { 0 };
                let inner = self.next_line(random, column + offset);
                self.list(random, inner, depth - 1);
            }
        }
    }

    fn next_line(&mut self, random: &mut Random, column: usize) -> usize {
        self.line_end(random);
        if random.chance(6) {
            self.indent(column);
            self.text.push_str("# of the first\n");
        }
        self.indent(column);
        column
    }

    fn block_text(&mut self, random: &mut Random, column: usize) {
        self.text.push_str(random.pick(&[" |", " |-", " |+", " >", " >-"]));
        self.line_end(random);
        for _ in 0..1 + random.below(3) {
            self.indent(column + self.step);
            self.text
                .push_str(random.pick(&["text: x", "# no comment", "- no list", "  deeper", "last "]).trim_start());
            self.text.push('\n');
            if random.chance(4) {
                self.text.push('\n');
            }
        }
    }

    fn flow(&mut self, random: &mut Random, depth: usize) {
        let is_map = random.chance(2);
        self.text.push(if is_map { '{' } else { '[' });
        for number in 0..random.below(4) {
            if number > 0 {
                self.text.push_str(random.pick(&[", ", ",", " , "]));
            }
            if is_map {
                self.text.push_str(&format!("f{number}: "));
            }
            if depth > 0 && random.chance(4) {
                self.flow(random, depth - 1);
            } else {
                self.text.push_str(random.pick(&["1", "word", "'q'", "\"d, e\"", "two words"]));
            }
        }
        self.text.push(if is_map { '}' } else { ']' });
    }
}
