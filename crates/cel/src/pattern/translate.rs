//! Go's syntax of regular expressions, written so that the `regex` crate reads the same.
//!
//! Classes such as `\d` are ASCII in Go. Brackets inside of classes, `&&`, a brace that begins no repetition and some escapes mean
//! themselves there, and a few things that the crate takes are errors.

use std::{iter::Peekable, str::CharIndices};

/// Go repeats nothing more often.
const MAX_REPEAT: u32 = 1000;

/// What may stand between `[:` and `:]`.
const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// A class that is not made of a few characters has about so many ranges.
const WIDE_CLASS: u64 = 700;
/// Upper and lower case of such a class are worked out by going through all its characters; that takes as long as so many ranges.
const WIDE_CLASS_FOLDED: u64 = 40_000;
/// Patterns with more ranges are refused before they are read.
const MAX_WEIGHT: u64 = 1 << 20;

/// An expression for the `regex` crate.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) text: String,
    /// About how many ranges of characters it has to be read into.
    pub(super) weight: u64,
}

/// The same expression for the `regex` crate, or what Go says of it.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let mut translator = Translator {
        pattern,
        rest: pattern.char_indices().peekable(),
        out: String::with_capacity(pattern.len() + 16),
        repeated: None,
        bare: true,
        wide: 0,
        folds: false,
    };
    translator.whole()?;
    let per_class = if translator.folds { WIDE_CLASS_FOLDED } else { WIDE_CLASS };
    let weight = translator.wide * per_class + pattern.len() as u64;
    if weight > MAX_WEIGHT {
        return Err(format!("expression too large: `{pattern}`"));
    }
    Ok(Translated { text: translator.out, weight })
}

struct Translator<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    out: String,
    /// Where the repetition begins that ended just now: it cannot be repeated itself.
    repeated: Option<usize>,
    /// Whether there is nothing yet that could be repeated.
    bare: bool,
    /// How many classes are not made of a few characters.
    wide: u64,
    /// Whether case is ignored anywhere.
    folds: bool,
}

impl Translator<'_> {
    fn whole(&mut self) -> Result<(), String> {
        while let Some((at, character)) = self.rest.next() {
            let repeated = self.repeated.take();
            let bare = std::mem::take(&mut self.bare);
            match character {
                '\\' => self.escape(at)?,
                '[' => self.class(at)?,
                '(' => self.group(at)?,
                '*' | '+' | '?' if bare => {
                    return Err(format!("missing argument to repetition operator: `{character}`"));
                }
                '*' | '+' | '?' => self.repetition(at, 1, repeated)?,
                '{' => match self.counted(at)? {
                    Some(length) if bare => {
                        let operator = &self.pattern[at..at + length];
                        return Err(format!("missing argument to repetition operator: `{operator}`"));
                    }
                    Some(length) => self.repetition(at, length, repeated)?,
                    None => self.out.push_str("\\{"),
                },
                '|' => {
                    self.bare = true;
                    self.out.push('|');
                }
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    /// An operator that repeats what stands before it, of a length in bytes, and the question mark behind it.
    fn repetition(&mut self, at: usize, length: usize, repeated: Option<usize>) -> Result<(), String> {
        let mut end = at + length;
        self.skip_to(end);
        if self.rest.next_if(|(_, next)| *next == '?').is_some() {
            end += 1;
        }
        if let Some(begin) = repeated {
            return Err(format!("invalid nested repetition operator: `{}`", &self.pattern[begin..end]));
        }
        self.out.push_str(&self.pattern[at..end]);
        self.repeated = Some(at);
        Ok(())
    }

    /// The length of `{n}`, `{n,}` or `{n,m}`; nothing if the brace means itself.
    fn counted(&self, at: usize) -> Result<Option<usize>, String> {
        let text = &self.pattern[at + 1..];
        let Some(end) = text.find('}') else { return Ok(None) };
        let inner = &text[..end];
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        let is_number = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && !(text.len() > 1 && text.starts_with('0'))
        };
        if !is_number(low) || !high.is_none_or(|high| high.is_empty() || is_number(high)) {
            return Ok(None);
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= MAX_REPEAT);
        let low = number(low);
        let high = high.filter(|high| !high.is_empty()).map_or(Some(MAX_REPEAT), number);
        match (low, high) {
            (Some(low), Some(high)) if low <= high => Ok(Some(end + 2)),
            _ => Err(format!("invalid repeat count: `{{{inner}}}`")),
        }
    }

    /// A group: those that look around are not in the language, nor are all flags.
    fn group(&mut self, at: usize) -> Result<(), String> {
        self.out.push('(');
        self.bare = true;
        let text = &self.pattern[at..];
        let Some(inner) = text.strip_prefix("(?") else { return Ok(()) };
        self.rest.next();
        self.out.push('?');
        if inner.starts_with("P<") || (inner.starts_with('<') && !inner.starts_with("<=") && !inner.starts_with("<!")) {
            let end = inner.find('>').map_or(self.pattern.len(), |end| at + 2 + end + 1);
            self.out.push_str(&self.pattern[at + 2..end]);
            self.skip_to(end);
            return Ok(());
        }
        let flags = inner.find(|c: char| !matches!(c, 'i' | 'm' | 's' | 'U' | '-')).unwrap_or(inner.len());
        match inner[flags..].chars().next() {
            Some(':' | ')') => {
                let end = at + 2 + flags + 1;
                self.folds |= inner[..flags].contains('i');
                self.out.push_str(&self.pattern[at + 2..end]);
                self.skip_to(end);
                Ok(())
            }
            Some(other) => {
                let end = at + 2 + flags + other.len_utf8();
                Err(format!("invalid or unsupported Perl syntax: `{}`", &self.pattern[at..end]))
            }
            None => Err(format!("missing argument to repetition operator: `{}`", "?")),
        }
    }

    fn escape(&mut self, at: usize) -> Result<(), String> {
        let Some((begin, character)) = self.rest.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match character {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            's' => self.out.push_str("[\\t\\n\\f\\r ]"),
            'S' => self.out.push_str("[^\\t\\n\\f\\r ]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'b' => self.out.push_str("(?-u:\\b)"),
            'B' | 'A' | 'z' => self.copy(at, begin + 1),
            'Q' => self.literal(begin + 1),
            'p' | 'P' => self.property(at),
            other => self.character(at, other)?,
        }
        Ok(())
    }

    /// What stands between `\Q` and `\E`, or up to the end.
    fn literal(&mut self, begin: usize) {
        let text = &self.pattern[begin..];
        let length = text.find("\\E").unwrap_or(text.len());
        self.out.push_str(&regex::escape(&text[..length]));
        let end = begin + (length + 2).min(text.len());
        self.skip_to(end);
    }

    /// A property of characters: one letter, or a name in braces.
    fn property(&mut self, at: usize) {
        self.wide += 1;
        let text = &self.pattern[at + 2..];
        let length = if text.starts_with('{') { text.find('}').map_or(text.len(), |end| end + 1) } else { 1 };
        let end = (at + 2 + length).min(self.pattern.len());
        let end = (end..=self.pattern.len()).find(|end| self.pattern.is_char_boundary(*end)).unwrap_or(end);
        let negated = self.pattern[at..end].strip_prefix("\\p{^").map(|name| format!("\\P{{{name}"));
        match negated {
            Some(negated) => self.out.push_str(&negated),
            None => self.out.push_str(&self.pattern[at..end]),
        }
        self.skip_to(end);
    }

    /// An escape that stands for one character.
    fn character(&mut self, at: usize, character: char) -> Result<(), String> {
        match character {
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.copy(at, at + 2),
            'x' => {
                let text = &self.pattern[at + 2..];
                let length = match text.strip_prefix('{') {
                    Some(inner) => inner.find('}').map_or(0, |end| end + 2),
                    None => 2,
                };
                let digits = text.get(..length).unwrap_or_default().trim_matches(['{', '}']);
                let number = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                let Some(number) = number.filter(|_| !digits.starts_with('+')) else {
                    return Err(self.invalid_escape(at, at + 2));
                };
                self.push(number);
                let end = at + 2 + length;
                self.skip_to(end);
            }
            '0'..='7' => {
                let mut digits = character.to_string();
                while digits.len() < 3 {
                    let Some((_, digit)) = self.rest.next_if(|(_, next)| matches!(next, '0'..='7')) else { break };
                    digits.push(digit);
                }
                // A single digit that is not zero would refer back, which the language cannot.
                if digits.len() == 1 && character != '0' {
                    return Err(self.invalid_escape(at, at + 2));
                }
                let number = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
                self.push(number.unwrap_or_default());
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => self.push(other),
            other => return Err(self.invalid_escape(at, at + 1 + other.len_utf8())),
        }
        Ok(())
    }

    fn invalid_escape(&self, begin: usize, end: usize) -> String {
        format!("invalid escape sequence: `{}`", self.pattern.get(begin..end).unwrap_or("\\"))
    }

    /// A character that means itself.
    fn push(&mut self, character: char) {
        let mut buffer = [0; 4];
        self.out.push_str(&regex::escape(character.encode_utf8(&mut buffer)));
    }

    /// Leaves out what stands before a position, in bytes.
    fn skip_to(&mut self, end: usize) {
        while self.rest.peek().is_some_and(|(next, _)| *next < end) {
            self.rest.next();
        }
    }

    fn copy(&mut self, begin: usize, end: usize) {
        self.out.push_str(&self.pattern[begin..end]);
    }

    fn class(&mut self, begin: usize) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if(|(_, next)| *next == '^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        // The character before, and whether a dash behind it makes it the begin of a range.
        let mut before: Option<(usize, char)> = None;
        let mut ranging = false;
        while let Some((at, character)) = self.rest.next() {
            let is_range = character == '-' && before.is_some() && !ranging && !self.pattern[at + 1..].starts_with(']');
            if !is_range && !matches!(character, '[' | '\\') {
                if let Some((begin, _)) = before.filter(|(_, low)| ranging && *low > character) {
                    let end = at + character.len_utf8();
                    return Err(format!("invalid character class range: `{}`", &self.pattern[begin..end]));
                }
                before = if ranging { None } else { Some((at, character)) };
                ranging = false;
            } else if is_range {
                ranging = true;
            } else {
                (before, ranging) = (None, false);
            }
            match character {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' => self.named_class(at)?,
                '\\' => match self.rest.peek().map(|(_, next)| *next) {
                    Some('b' | 'B' | 'A' | 'z' | 'Q' | 'C') => return Err(self.invalid_escape(at, at + 2)),
                    next => {
                        // Such a character can begin or end a range of very many.
                        self.wide += u64::from(matches!(next, Some('x' | 'D' | 'S' | 'W')));
                        self.escape(at)?;
                    }
                },
                // Twice in a row, these would be operators.
                '&' | '~' | '-' if self.pattern[at + 1..].starts_with(character) && character != '-' => {
                    self.push(character)
                }
                '-' if self.pattern[..at].ends_with('-') => self.push('-'),
                ']' => self.push(']'),
                other => {
                    self.wide += u64::from(!other.is_ascii());
                    self.out.push(other);
                }
            }
            first = false;
        }
        Err(format!("missing closing ]: `{}`", &self.pattern[begin..]))
    }

    /// `[:alpha:]` inside of a class; any other bracket means itself.
    fn named_class(&mut self, at: usize) -> Result<(), String> {
        let text = &self.pattern[at..];
        let Some(end) = text.strip_prefix("[:").and_then(|inner| inner.find(":]")) else {
            self.out.push_str("\\[");
            return Ok(());
        };
        let end = at + end + 4;
        let name = &self.pattern[at..end];
        let class = name.trim_matches(['[', ':', ']', '^']);
        if !NAMED_CLASSES.contains(&class) {
            return Err(format!("invalid character class range: `{name}`"));
        }
        self.out.push_str(name);
        self.skip_to(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text)
    }

    #[test]
    fn classes_are_ascii() {
        assert!(matches(r"^\d+$", "123"));
        assert!(!matches(r"^\d+$", "\u{661}"), "Arabic digits");
        assert!(!matches(r"^\w$", "\u{e9}"));
        assert!(!matches(r"^\s$", "\u{a0}"));
        assert!(matches(r"^[\w-]+$", "a-b"));
        assert!(!matches(r"^[\d.]+$", "\u{661}"));
        assert!(matches(r"^\pL$", "\u{e9}") && matches(r"^\p{^Greek}$", "a"));
    }

    #[test]
    fn what_means_itself_in_go_does_here() {
        assert!(matches(r"^a{$", "a{") && matches(r"^{}$", "{}") && matches(r"^a{,3}$", "a{,3}"));
        assert!(matches(r"^[[a]$", "[") && matches(r"^[a&&b]$", "&") && matches(r"^[a~~]$", "~"));
        assert!(matches(r"^[+--]$", ",") && !matches(r"^[+--]$", "."));
        assert!(matches(r"^\Qa.b\E+$", "a.bb") && !matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^\<\>\-$", "<>-") && matches(r"^\x41\x{1F600}\101$", "A\u{1F600}A"));
        assert!(matches(r"^[]a]$", "]") && matches(r"^[^]a]$", "b"));
        assert!(matches(r"^[[:alpha:]]$", "x"));
    }

    #[test]
    fn errors_are_those_of_go() {
        for (pattern, said) in [
            ("[", "missing closing ]: `[`"),
            ("a[b", "missing closing ]: `[b`"),
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<!x)", "invalid or unsupported Perl syntax: `(?<`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            ("\\", "trailing backslash at end of expression: ``"),
            ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
            ("[b-a]", "invalid character class range: `b-a`"),
        ] {
            let error = compile(pattern).err().unwrap_or_default();
            assert_eq!(error, format!("error parsing regexp: {said}"), "{pattern}");
        }
    }
}
