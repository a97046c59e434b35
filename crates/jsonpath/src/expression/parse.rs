//! Reads expressions.

use serde_json::{Number, Value};

use super::Step;

/// Filters and unions are not nested deeper.
const MAX_DEPTH: usize = 16;

/// The steps of an expression.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    Parser { text, at: 0, steps: Vec::new(), depth: 0 }.steps()
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    steps: Vec<Step>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn steps(mut self) -> Result<Vec<Step>, String> {
        if self.depth > MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        loop {
            let rest = self.rest();
            if rest.starts_with("[?(") {
                self.filter()?;
                continue;
            }
            if rest.starts_with("..") {
                if self.steps.last() == Some(&Step::Descent) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                self.at += 2;
                self.steps.push(Step::Descent);
                if self.rest().starts_with(is_alphanumeric) {
                    self.field();
                }
                continue;
            }
            let Some(character) = rest.chars().next() else { return Ok(self.steps) };
            match character {
                // What stands behind the closing brace is another expression, or text.
                '}' => return Ok(self.steps),
                '\r' | '\n' => return Err("unclosed action".to_owned()),
                ' ' | '@' | '$' => self.at += 1,
                '[' => self.array()?,
                '"' | '\'' => self.quoted(character)?,
                '.' => {
                    self.at += 1;
                    self.field();
                }
                '+' | '-' | '0'..='9' => self.number()?,
                other if is_alphanumeric(other) => self.word(),
                other => return Err(format!("unrecognized character in action: U+{:04X} '{other}'", u32::from(other))),
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// A name up to what ends it; a backslash makes the next character part of it.
    fn field(&mut self) {
        let mut name = String::new();
        let mut characters = self.rest().char_indices();
        let mut end = self.rest().len();
        while let Some((at, character)) = characters.next() {
            if character == '\\' {
                name.extend(characters.next().map(|(_, next)| next));
            } else if is_terminator(character) {
                end = at;
                break;
            } else {
                name.push(character);
            }
        }
        let written = &self.rest()[..end];
        self.steps.push(if written == "*" { Step::Wildcard } else { Step::Field(name) });
        self.at += end;
    }

    fn word(&mut self) {
        let end = self.rest().find(is_terminator).unwrap_or(self.rest().len());
        let word = &self.rest()[..end];
        self.steps.push(match word {
            "true" => Step::Literal(true.into()),
            "false" => Step::Literal(false.into()),
            other => Step::Word(other.to_owned()),
        });
        self.at += end;
    }

    fn number(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let length = rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
        let text = &rest[..sign + length];
        let plain = text.strip_prefix('+').unwrap_or(text);
        let float = || plain.parse::<f64>().ok().and_then(Number::from_f64);
        let number = plain.parse::<i64>().ok().map(Number::from).or_else(float);
        let number = number.ok_or_else(|| format!("cannot parse number {text}"))?;
        self.steps.push(Step::Literal(Value::Number(number)));
        self.at += text.len();
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let end = (1..bytes.len()).find(|at| bytes[*at] == quote as u8 && bytes[*at - 1] != b'\\');
        let Some(end) = end.filter(|end| !rest[..*end].contains('\n')) else {
            return Err("unterminated quoted string".to_owned());
        };
        self.steps.push(Step::Literal(unquote(&rest[1..end])?.into()));
        self.at += end + 1;
        Ok(())
    }

    fn inner(&self, text: &str) -> Result<Vec<Step>, String> {
        Parser { text, at: 0, steps: Vec::new(), depth: self.depth + 1 }.steps()
    }

    fn array(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let end = rest.find(']').filter(|end| !rest[..*end].contains('\n')).ok_or("unterminated array")?;
        let text = match &rest[1..end] {
            "*" => ":",
            text => text,
        };
        self.at += end + 1;
        if text.contains(',') {
            let several: Result<Vec<_>, String> =
                text.split(',').map(|one| self.inner(&format!("[{}]", one.trim_matches(' ')))).collect();
            self.steps.push(Step::Union(several?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.is_empty() && !key.contains('\'')) {
            let steps = self.inner(&format!(".{key}"))?;
            self.steps.extend(steps);
            return Ok(());
        }
        self.steps.push(slice(text)?);
        Ok(())
    }

    fn filter(&mut self) -> Result<(), String> {
        let rest = &self.rest()[3..];
        let (mut quote, mut closed, mut before) = (None, false, ' ');
        let end = rest.char_indices().find(|(_, character)| {
            let here = std::mem::replace(&mut before, *character);
            match (*character, quote) {
                ('"' | '\'', None) => quote = Some(*character),
                (character, Some(open)) if character == open && here != '\\' => closed = true,
                (')', quote) => return quote.is_some() == closed,
                _ => {}
            }
            false
        });
        let end = end.map(|(at, _)| at).filter(|end| !rest[..*end].contains('\n')).ok_or("unterminated filter")?;
        if !rest[end + 1..].starts_with(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let text = &rest[..end];
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let compared = text.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let length = text[at..].find(|c| !is_operator(c))?;
            Some((&text[..at], &text[at..at + length], &text[at + length..]))
        });
        let step = match compared {
            Some((left, operator, right)) => {
                Step::Filter { left: self.inner(left)?, operator: operator.to_owned(), right: self.inner(right)? }
            }
            None => Step::Exists(self.inner(text)?),
        };
        self.steps.push(step);
        self.at += 3 + end + 2;
        Ok(())
    }
}

/// `1`, `1:3`, `:`, `::2`.
fn slice(text: &str) -> Result<Step, String> {
    let wrong = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(wrong());
    }
    let number = |text: Option<&&str>| match text.copied() {
        None | Some("") => Ok(None),
        Some(text) if text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse::<i64>().map(Some).map_err(|_| format!("array index {text} is not a number"))
        }
        Some(_) => Err(wrong()),
    };
    let single = parts.len() == 1;
    let (begin, end, step) = (number(parts.first())?, number(parts.get(1))?, number(parts.get(2))?);
    Ok(Step::Slice { begin, end, step, single })
}

fn unquote(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(same @ ('\\' | '"' | '\'')) => out.push(same),
            _ => return Err(format!("unquote string {text} error invalid syntax")),
        }
    }
    Ok(out)
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
