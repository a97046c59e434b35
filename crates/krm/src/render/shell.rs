//! Splits the text of an `exec` entry into words as a shell does, without any of its expansions.

/// The words, or what is wrong with the text.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '#' if word.is_none() => {
                // A comment ends with its line.
                if !chars.by_ref().any(|c| c == '\n') {
                    break;
                }
            }
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("a single quote is not closed".to_owned()),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(chars.next()),
                        Some(c) => word.push(c),
                        None => return Err("a double quote is not closed".to_owned()),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_at_blanks_and_joined_by_quotes() {
        assert_eq!(split(r#"a 'b c' "d \" e" f\ g"#).expect("balanced"), ["a", "b c", "d \" e", "f g"]);
        assert_eq!(split("a '' # rest").expect("balanced"), ["a", ""]);
        assert!(split("a 'b").is_err());
        assert!(split("a \"b").is_err());
        assert!(split("a\\").is_err());
    }
}
