//! `.krmignore`: which files and folders of a package are none of its business, in the notation of `.gitignore`. A folder
//! with a Kptfile is a package whatever it says.

/// The rules of the ignore files met so far on the way down.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignore {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// The folder of the ignore file, relative to the package, with a slash at its end unless empty.
    base: String,
    pattern: String,
    negated: bool,
    folders_only: bool,
    /// The pattern counts from the folder of the ignore file, not from any folder below.
    anchored: bool,
}

impl Ignore {
    /// The same with the rules of an ignore file in a folder of the package.
    pub(super) fn with_file(&self, folder: &str, text: &str) -> Self {
        let mut rules = self.rules.clone();
        rules.extend(text.lines().filter_map(|line| Rule::parse(folder, line)));
        Self { rules }
    }

    /// Whether a path of the package is ignored. The last rule that matches decides.
    pub(super) fn hides(&self, path: &str, is_folder: bool) -> bool {
        let matching = self.rules.iter().rev().find(|rule| rule.matches(path, is_folder));
        matching.is_some_and(|rule| !rule.negated)
    }
}

impl Rule {
    fn parse(folder: &str, line: &str) -> Option<Self> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (negated, pattern) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (folders_only, pattern) = pattern.strip_suffix('/').map_or((false, pattern), |rest| (true, rest));
        let anchored = pattern.contains('/');
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern).to_owned();
        let base = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Some(Self { base, pattern, negated, folders_only, anchored })
    }

    fn matches(&self, path: &str, is_folder: bool) -> bool {
        let Some(below) = path.strip_prefix(&self.base) else { return false };
        if self.folders_only && !is_folder {
            return false;
        }
        let subject = if self.anchored { below } else { below.rsplit('/').next().unwrap_or(below) };
        glob(self.pattern.as_bytes(), subject.as_bytes())
    }
}

/// Matches `*` and `?` within a name, `**` across names, and sets in brackets.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', b'/', rest @ ..] => {
            glob(rest, text) || text.iter().enumerate().any(|(at, &b)| b == b'/' && glob(rest, &text[at + 1..]))
        }
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let name = text.iter().position(|&b| b == b'/').unwrap_or(text.len());
            (0..=name).any(|at| glob(rest, &text[at..]))
        }
        [b'[', rest @ ..] => match set(rest, text.first().copied()) {
            Some((true, after)) => glob(after, &text[1..]),
            Some((false, _)) => false,
            None => text.first() == Some(&b'[') && glob(rest, &text[1..]),
        },
        [b'\\', literal, rest @ ..] => text.first() == Some(literal) && glob(rest, &text[1..]),
        [b'?', rest @ ..] => text.first().is_some_and(|&b| b != b'/') && glob(rest, &text[1..]),
        [literal, rest @ ..] => text.first() == Some(literal) && glob(rest, &text[1..]),
    }
}

/// Whether a set such as `a-z]` has a byte, and the pattern after it; `None` if the bracket is not closed.
fn set(pattern: &[u8], byte: Option<u8>) -> Option<(bool, &[u8])> {
    let close = pattern.iter().skip(1).position(|&b| b == b']')? + 1;
    let (members, after) = (&pattern[..close], &pattern[close + 1..]);
    let (negated, members) = match members {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, members),
    };
    let Some(byte) = byte.filter(|&b| b != b'/') else { return Some((false, after)) };
    let mut found = false;
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&b'-') && at + 2 < members.len() {
            found |= (members[at]..=members[at + 2]).contains(&byte);
            at += 3;
        } else {
            found |= members[at] == byte;
            at += 1;
        }
    }
    Some((found != negated, after))
}

#[cfg(test)]
mod tests {
    use super::Ignore;

    fn check(rules: &str, path: &str, is_folder: bool, hidden: bool) {
        let ignore = Ignore::default().with_file("", rules);
        assert_eq!(ignore.hides(path, is_folder), hidden, "{rules:?} {path}");
    }

    #[test]
    fn patterns_match_as_in_gitignore() {
        check("a.yaml", "x/a.yaml", false, true);
        check("/a.yaml", "x/a.yaml", false, false);
        check("*.yaml\n!a.yaml", "a.yaml", false, false);
        check("d/", "d", false, false);
        check("d/", "d", true, true);
        check("x/**/a.yaml", "x/y/z/a.yaml", false, true);
        check("x/*.yaml", "x/y/a.yaml", false, false);
        check("[a-c]?.yaml", "b1.yaml", false, true);
        check("# a.yaml", "a.yaml", false, false);
    }
}
