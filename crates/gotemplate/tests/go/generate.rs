//! Makes templates from a seed: most of them nearly right, some of them broken on purpose.

use std::collections::BTreeMap;

pub(crate) struct Generator {
    state: u64,
    /// How many more nested things the template at hand may hold.
    room: u32,
}

const KEYS: [&str; 8] = ["clusterName", "region", "empty", "num", "uni", "html", "multi", "é"];

const TEXTS: [&str; 16] = [
    "a",
    " ",
    "\n",
    " \n\t ",
    "x y",
    "{",
    "}",
    "}}",
    "{ {",
    "é界",
    "%s",
    "\"'",
    "-",
    "\r\n",
    "https://x/",
    "\u{a0}\u{2028}",
];

const STRINGS: [&str; 26] = [
    r#""a""#,
    r#""""#,
    r#""region""#,
    r#""missing""#,
    r#""virgo""#,
    r#""é\u754c""#,
    r#""\xff\x00""#,
    r#""q\"x""#,
    r#""\t\a\\""#,
    r#""<a href='x'>&=""#,
    "`raw`",
    "`a\\nb`",
    "`a\nb`",
    "`\r`",
    r#""\377\U0001F600""#,
    r#""\u2028\ufeff""#,
    r#""a b/c?d~e+""#,
    r#""\xe2\x98""#,
    r#""\q""#,
    r#""\'""#,
    r#""\ud800""#,
    r#""\400""#,
    r#""unclosed"#,
    "`unclosed",
    "\"a\nb\"",
    r#""%d%%""#,
];

const SMALL_NUMBERS: [&str; 20] = [
    "0", "1", "2", "3", "-1", "+2", "0x3", "0b11", "'a'", "'\\n'", "'é'", "1.5", "-0.0", "1e0", "2i", "1-2i", "07",
    "0o7", "-0x3", "1_0",
];

/// Only for arguments whose result cannot become a range.
const NUMBERS: [&str; 52] = [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "0xffffffffffffffff",
    "1e400",
    "1e-400",
    "1e21",
    "1e20",
    "123456789.0",
    "1e6",
    "100000.0",
    "0.0001",
    "0.00001",
    "1e-7",
    "3.14159265358979",
    "2.5",
    "0.5",
    "-1.5",
    "1e100",
    "5e-324",
    "1.7976931348623157e308",
    "0x1p-2",
    "0x1.8p1",
    "0x1.8",
    "0x1p",
    "-0xe",
    "0xE",
    "1_000",
    "1__0",
    "1_",
    "08",
    "08.5",
    "1.",
    ".5",
    "1.5.6",
    "1e",
    "1p3",
    "0x",
    "0b12",
    "1a",
    "1+2i",
    "1e3-2.5i",
    "0x1+2i",
    "1+i",
    "0b1+2i",
    "1_0i",
    "0x1p2i",
    "''",
    "'ab'",
    "'\\''",
    "'\\x41'",
];

const FUNCTIONS: [&str; 21] = [
    "and", "or", "not", "len", "index", "slice", "print", "println", "printf", "html", "js", "urlquery", "call", "eq",
    "ne", "lt", "le", "gt", "ge", "nofunc", "é",
];

const PRINTERS: [&str; 6] = ["print", "println", "html", "js", "urlquery", "eq"];

const MUTATIONS: [&str; 34] = [
    "{",
    "}",
    "{{",
    "}}",
    "(",
    ")",
    "\"",
    "'",
    "`",
    "|",
    ".",
    "$",
    "$x",
    ":=",
    "=",
    ",",
    " ",
    "\n",
    "-",
    "+",
    "{{end}}",
    "{{else}}",
    "/*",
    "*/",
    "\\",
    "@",
    "é",
    "\u{1}",
    "{{- ",
    " -}}",
    "nil",
    "{{break}}",
    "%",
    "_",
];

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, room: 0 }
    }

    pub(crate) fn data(&mut self) -> BTreeMap<String, String> {
        let values = [
            "virgo",
            "us-east-1",
            "",
            "0042",
            "žluťoučký 界",
            "<a href='x'>&",
            "l1\nl2",
            "\u{feff}\u{7f}",
            "a\\b\"c`",
            "💥",
        ];
        let mut data = BTreeMap::new();
        for key in KEYS {
            if !self.one_in(12) {
                data.insert(key.to_owned(), self.pick(&values).to_owned());
            }
        }
        data
    }

    pub(crate) fn template(&mut self) -> String {
        self.room = 6;
        let mut text = self.list();
        if self.one_in(6) {
            text = self.mutated(text);
        }
        text
    }

    /// Splitmix64: every seed gives a fair sequence.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    fn pick<'s>(&mut self, from: &[&'s str]) -> &'s str {
        from[self.below(from.len() as u64) as usize]
    }

    fn repeat(&mut self, most: u64, separator: &str, mut make: impl FnMut(&mut Self) -> String) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| make(self)).collect::<Vec<_>>().join(separator)
    }

    fn mutated(&mut self, text: String) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(2) {
            let at = self.below(chars.len() as u64 + 1) as usize;
            match self.below(3) {
                0 if at < chars.len() => drop(chars.remove(at)),
                1 if at < chars.len() => {
                    let end = (at + 1 + self.below(4) as usize).min(chars.len());
                    chars.drain(at..end);
                }
                _ => drop(chars.splice(at..at, self.pick(&MUTATIONS).chars())),
            }
        }
        chars.into_iter().collect()
    }

    fn list(&mut self) -> String {
        self.repeat(3, "", |generator| match generator.below(5) {
            0 | 1 => generator.pick(&TEXTS).to_owned(),
            _ => generator.node(),
        })
    }

    fn node(&mut self) -> String {
        if self.room == 0 {
            return self.action(".");
        }
        self.room -= 1;
        match self.below(16) {
            0 | 1 => self.branch("if"),
            2 | 3 => self.branch("with"),
            4 | 5 => self.range(),
            6 => self.definition(),
            7 => {
                let name = self.template_name();
                let pipe = self.pipe();
                let body = self.list();
                let end = self.action("end");
                self.action(&format!("block {name} {pipe}")) + &body + &end
            }
            8 => {
                let name = self.template_name();
                let pipe = if self.one_in(3) { String::new() } else { self.pipe() };
                self.action(&format!("template {name} {pipe}"))
            }
            9 => self.comment(),
            10 => self.declaration(),
            11 if self.one_in(4) => self.stray(),
            _ => {
                let pipe = self.pipe();
                self.action(&pipe)
            }
        }
    }

    fn action(&mut self, inner: &str) -> String {
        let open = if self.one_in(5) { "{{- " } else { self.pick(&["{{", "{{", "{{ ", "{{\n", "{{-"]) };
        // A minus that sticks to what follows is no trim marker; often enough it makes a broken number.
        let open = if open == "{{-" && !self.one_in(6) { "{{" } else { open };
        let close = self.pick(&["}}", "}}", "}}", " }}", " -}}", "  -}}", "\n}}"]);
        format!("{open}{inner}{close}")
    }

    fn branch(&mut self, word: &str) -> String {
        let assigned = self.assigned();
        let pipe = self.pipe();
        let mut text = self.action(&format!("{word} {assigned}{pipe}")) + &self.list();
        for _ in 0..self.below(3) {
            let otherwise = match self.below(5) {
                0 => {
                    let pipe = self.pipe();
                    format!("else {word} {pipe}")
                }
                1 if self.one_in(4) => "else if true".to_owned(),
                _ => "else".to_owned(),
            };
            text += &self.action(&otherwise);
            text += &self.list();
            if !self.one_in(10) && otherwise == "else" {
                break;
            }
        }
        text + &self.action("end")
    }

    fn range(&mut self) -> String {
        let variables =
            self.pick(&["", "", "$x := ", "$k, $v := ", "$k,$v := ", "$x = ", "$k, $v = ", "$k, ", "$a, $b, $c := "]);
        let over = match self.below(4) {
            0 | 1 => self.pick(&[".", "$", ".", "3", "(index \"\\x03\" 0)", "0", "-1", "$x", "nil"]).to_owned(),
            _ => self.pipe(),
        };
        let mut text = self.action(&format!("range {variables}{over}"));
        text += &self.repeat(3, "", |generator| match generator.below(6) {
            0 => generator.action("."),
            1 => generator
                .pick(&[
                    "{{$k}}={{$v}};",
                    "{{$x}},",
                    "{{if eq . \"b\"}}{{break}}{{end}}",
                    "{{if .}}{{continue}}{{end}}",
                ])
                .to_owned(),
            2 => generator.pick(&["{{break}}", "{{continue}}", "{{ break }}", "{{continue 1}}"]).to_owned(),
            _ => generator.list(),
        });
        if self.one_in(4) {
            text += &self.action("else");
            text += &self.list();
        }
        text + &self.action("end")
    }

    fn definition(&mut self) -> String {
        let name = self.template_name();
        let body = self.list();
        let end = self.action("end");
        self.action(&format!("define {name}")) + &body + &end
    }

    fn template_name(&mut self) -> &'static str {
        match self.below(12) {
            0 => self.pick(&["\"t\"", "", "x", "3", "\"\\q\"", "\"none\"", "nil", "\"\\xff\""]),
            _ => self.pick(&["\"T1\"", "\"T2\"", "`T1`", "\"B\""]),
        }
    }

    fn comment(&mut self) -> String {
        self.pick(&[
            "{{/* c */}}",
            "{{- /* c */ -}}",
            "{{/* a\nb */}}",
            "{{- /* c */}}",
            "{{/* c */ -}}",
            "{{/**/}}",
            "{{/* }} */}}",
            "{{/* open }}",
            "{{ /* bad */ }}",
            "{{/* c */ .}}",
        ])
        .to_owned()
    }

    fn stray(&mut self) -> String {
        self.pick(&[
            "{{end}}",
            "{{else}}",
            "{{break}}",
            "{{continue}}",
            "{{}}",
            "{{ }}",
            "{{define}}",
            "{{template}}",
            "{{if}}",
            "{{",
            "{{.",
            "{{(",
            "{{nil}}",
        ])
        .to_owned()
    }

    fn declaration(&mut self) -> String {
        let assigned = self.pick(&["$x := ", "$y := ", "$x = ", "$y:= ", "$x=", "$é := ", "$x, $y := "]);
        let pipe = self.pipe();
        self.action(&format!("{assigned}{pipe}"))
    }

    fn assigned(&mut self) -> &'static str {
        if self.one_in(4) { self.pick(&["$x := ", "$y := ", "$x = "]) } else { "" }
    }

    fn pipe(&mut self) -> String {
        let mut text = self.command(true);
        for _ in 0..self.below(3).saturating_sub(self.below(2)) {
            text += self.pick(&["|", " | ", " |", "| "]);
            text += &self.command(false);
        }
        if self.one_in(40) {
            text += " |";
        }
        text
    }

    fn command(&mut self, first: bool) -> String {
        if first && self.one_in(2) {
            let mut text = self.term();
            if self.one_in(15) {
                text += &format!(" {}", self.term());
            }
            return text;
        }
        if self.one_in(5) {
            return self.formatted();
        }
        if self.one_in(6) {
            let function = self.pick(&PRINTERS);
            let arguments = self.repeat(3, " ", |generator| {
                if generator.one_in(2) { generator.pick(&NUMBERS).to_owned() } else { generator.term() }
            });
            return format!("{function} {arguments}");
        }
        // The last two do not exist.
        let known = if self.one_in(30) { 21 } else { 19 };
        let function = self.pick(&FUNCTIONS[..known]);
        let most = if matches!(function, "not" | "len") { 1 } else { 3 };
        let mut text = function.to_owned();
        if matches!(function, "index" | "slice") && !self.one_in(4) {
            text += self.pick(&[" .", " .uni", " $.region", " \"abc\"", " `é`"]);
        }
        for _ in 0..self.below(most + 1) {
            text += &format!(" {}", self.term());
        }
        text
    }

    /// A call of printf with as many values as verbs, more or less.
    fn formatted(&mut self) -> String {
        let mut format = String::new();
        let mut values = String::new();
        for _ in 0..=self.below(2) {
            format += self.pick(&["", "", " ", "a", "é", "%%", "|"]);
            format += &self.verb();
            if !self.one_in(8) {
                let value = if self.one_in(3) { self.pick(&NUMBERS).to_owned() } else { self.term() };
                values += &format!(" {value}");
            }
        }
        format!("printf \"{format}\"{values}")
    }

    fn verb(&mut self) -> String {
        let mut verb = "%".to_owned();
        for _ in 0..self.below(3) {
            verb += self.pick(&["", "+", "-", "#", "0", " "]);
        }
        if self.one_in(12) {
            verb += self.pick(&["[1]", "[2]", "[3]", "[0]", "[x]", "[", "[]", "[-1]", "[99999999]"]);
        }
        verb += self.pick(&["", "", "", "1", "5", "12", "*", "30"]);
        verb += self.pick(&["", "", "", ".0", ".1", ".3", ".", ".20", ".*", ".[1]*"]);
        if self.one_in(20) {
            verb += self.pick(&["[1]", "[2]", "[1", "[5]"]);
        }
        verb + self.pick(&[
            "v", "v", "s", "s", "q", "q", "d", "d", "x", "X", "t", "T", "f", "F", "e", "E", "g", "G", "b", "o", "O",
            "c", "U", "z", "!", "w", "é", "", "\\xff", "%",
        ])
    }

    fn term(&mut self) -> String {
        match self.below(14) {
            0..=3 => {
                let mut text = format!(".{}", self.pick(&KEYS));
                if self.one_in(12) {
                    text += self.pick(&[".foo", ".clusterName.x", ".", ".1"]);
                }
                text
            }
            4 => self
                .pick(&[".missing", ".nope", "$.region", "$.nope", "$x", "$y.z", "$é", "$.clusterName.a"])
                .to_owned(),
            5 => self.pick(&[".", "$", ".", "nil", "true", "false"]).to_owned(),
            // From the nineteenth on they are broken.
            6 | 7 => {
                let sound = if self.one_in(6) { STRINGS.len() } else { 18 };
                self.pick(&STRINGS[..sound]).to_owned()
            }
            8 | 9 => self.pick(&SMALL_NUMBERS).to_owned(),
            10 if self.one_in(4) => self
                .pick(&[
                    "print",
                    "len",
                    "html",
                    "or",
                    "print.foo",
                    "\"a\".b",
                    "nil.x",
                    "true.x",
                    "(nil)",
                    "()",
                    "(or nil)",
                ])
                .to_owned(),
            10 => "(index \"a\" 0)".to_owned(),
            _ if self.room == 0 => ".".to_owned(),
            _ => {
                self.room -= 1;
                let declared = if self.one_in(10) { self.pick(&["$x := ", "$y = "]) } else { "" };
                let field = if self.one_in(8) { self.pick(&[".foo", ".region", ".clusterName.x"]) } else { "" };
                format!("({declared}{}){field}", self.pipe())
            }
        }
    }
}
