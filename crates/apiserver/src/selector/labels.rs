//! Label selectors: `app=web,tier in (front,back),!legacy,weight>5`.

use orrery_store::{Labels, Requirement, Selector};
use serde_json::Value;

use crate::{
    format::{label_value, qualified_name},
    gotext::quote,
};

/// A label selector: what the store's index answers, and comparisons of numbers, which it does not know.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSelector {
    /// The part the store can answer.
    pub(crate) indexed: Selector,
    comparisons: Vec<Comparison>,
}

/// The value of a label as a number, greater or less than a bound.
#[derive(Clone, Debug)]
struct Comparison {
    key: String,
    greater: bool,
    bound: i64,
}

impl LabelSelector {
    /// Reads a selector.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut parsed = Parsed::default();
        parser.requirements(&mut parsed)?;
        Ok(Self { indexed: Selector::all_of(parsed.requirements), comparisons: parsed.comparisons })
    }

    /// Reads a selector as objects have them, with `matchLabels` and `matchExpressions`; `None` if it is none.
    pub(crate) fn from_object(selector: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            requirements.push(Requirement::In(key.clone(), vec![text(value)?]));
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = text(&expression["key"])?;
            let values = expression["values"].as_array().into_iter().flatten().map(text).collect::<Option<Vec<_>>>()?;
            requirements.push(match expression["operator"].as_str()? {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => return None,
            });
        }
        Some(Self { indexed: Selector::all_of(requirements), comparisons: Vec::new() })
    }

    /// Whether everything matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.indexed.is_everything() && self.comparisons.is_empty()
    }

    /// Whether these labels match.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.indexed.matches(labels) && self.compares(labels)
    }

    /// Whether there is more to check than the store does.
    pub(crate) fn has_comparisons(&self) -> bool {
        !self.comparisons.is_empty()
    }

    fn compares(&self, labels: &Labels) -> bool {
        self.comparisons.iter().all(|comparison| {
            let number = labels.get(&comparison.key).and_then(|value| value.parse::<i64>().ok());
            number.is_some_and(
                |number| if comparison.greater { number > comparison.bound } else { number < comparison.bound },
            )
        })
    }
}

#[derive(Default)]
struct Parsed {
    requirements: Vec<Requirement>,
    comparisons: Vec<Comparison>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word; `in` and `notin` are words too where a word may stand.
    Word(String),
    /// One of the signs.
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

/// The signs, longer ones before their beginnings.
const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest.find(|next: char| is_space(next) || "=!(),<>".contains(next)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn look(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.look().clone();
        self.at += 1;
        token
    }

    fn requirements(&mut self, parsed: &mut Parsed) -> Result<(), String> {
        loop {
            match self.look() {
                Token::End => return Ok(()),
                Token::Word(_) | Token::Sign("!") => {
                    self.requirement(parsed).map_err(|problem| format!("unable to parse requirement: {problem}"))?;
                }
                other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
            }
            match self.take() {
                Token::End => return Ok(()),
                Token::Sign(",") => match self.look() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self, parsed: &mut Parsed) -> Result<(), String> {
        let absent = *self.look() == Token::Sign("!");
        if absent {
            self.at += 1;
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        check("<nil>", &key, &qualified_name(&key))?;
        if absent {
            parsed.requirements.push(Requirement::Absent(key));
            return Ok(());
        }
        if let Token::End | Token::Sign(",") = self.look() {
            parsed.requirements.push(Requirement::Exists(key));
            return Ok(());
        }
        let operator = self.take();
        let values = match operator.text() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => vec![self.exact_value()?],
            found => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        if let ">" | "<" = operator.text() {
            let bound = values[0].parse().map_err(|_| {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                format!("values[0]: Invalid value: {}: {why}", quote(&values[0]))
            });
            check_values(&key, &values)?;
            parsed.comparisons.push(Comparison { key, greater: operator.text() == ">", bound: bound? });
            return Ok(());
        }
        check_values(&key, &values)?;
        parsed.requirements.push(match operator.text() {
            "!=" | "notin" => Requirement::NotIn(key, values),
            _ => Requirement::In(key, values),
        });
        Ok(())
    }

    /// The values in parentheses, sorted, each once. Nothing between two commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = match self.look() {
            Token::Sign(")") => {
                self.at += 1;
                vec![String::new()]
            }
            Token::Word(_) | Token::Sign(",") => self.value_list()?,
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        };
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.push(value);
                    match self.look() {
                        Token::Sign(",") => {}
                        Token::Sign(")") => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Sign(",") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.look() {
                        Token::Sign(")") => {
                            values.push(String::new());
                            break;
                        }
                        Token::Sign(",") => {
                            self.at += 1;
                            values.push(String::new());
                        }
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
        self.at += 1;
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if let Token::End | Token::Sign(",") = self.look() {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}

fn check_values(key: &str, values: &[String]) -> Result<(), String> {
    let mut values = values.iter().enumerate();
    values.try_for_each(|(index, value)| check(&format!("values[{index}][{key}]"), value, &label_value(value)))
}

fn check(path: &str, value: &str, problems: &[String]) -> Result<(), String> {
    match problems {
        [] => Ok(()),
        _ => Err(format!("{path}: Invalid value: {}: {}", quote(value), problems.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let got = LabelSelector::parse(text).map(|selector| {
            let comparisons = selector.comparisons.iter();
            let mut parts: Vec<String> =
                selector.indexed.requirements().iter().map(|requirement| format!("{requirement:?}")).collect();
            parts.extend(
                comparisons.map(|it| format!("{} {} {}", it.key, if it.greater { ">" } else { "<" }, it.bound)),
            );
            parts.join(" & ")
        });
        assert_eq!(got.unwrap_or_else(|problem| problem), expected, "{text}");
    }

    #[test]
    fn selectors() {
        check("", "");
        check(
            "app=web, tier!=x ,!old,new",
            r#"In("app", ["web"]) & NotIn("tier", ["x"]) & Absent("old") & Exists("new")"#,
        );
        check("a in (b,a,,b),c notin ()", r#"In("a", ["", "a", "b"]) & NotIn("c", [""])"#);
        check("in=in,a=", r#"In("in", ["in"]) & In("a", [""])"#);
        check("a>5,b<6", "a > 5 & b < 6");
    }

    #[test]
    fn refusals() {
        check("=", "found '=', expected: !, identifier, or 'end of string'");
        check("!", "unable to parse requirement: found '', expected: identifier");
        check("a,", "found '', expected: identifier after ','");
        check("a in (b", "unable to parse requirement: found '', expected: ',' or ')'");
        check("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        check("!a=b", "found '=', expected: ',' or 'end of string'");
        check("/a=b", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty");
        let integer = "for 'Gt', 'Lt' operators, the value must be an integer";
        check("a>b", &format!("unable to parse requirement: values[0]: Invalid value: \"b\": {integer}"));
    }
}
