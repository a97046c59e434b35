//! The value of a string or of bytes as they are written in an expression.

/// The bytes that a quoted text stands for, prefix and quotes included. In a string every escape is a character, in bytes
/// `\x` and octal escapes are single bytes.
pub(super) fn unquote(text: &str, is_bytes: bool) -> Result<Vec<u8>, String> {
    let text = if is_bytes { text.get(1..).unwrap_or_default() } else { text };
    let (raw, quoted) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let width = if quoted.len() >= 6 && (quoted.starts_with("\"\"\"") || quoted.starts_with("'''")) { 3 } else { 1 };
    let body = quoted.get(width..quoted.len().saturating_sub(width)).unwrap_or_default();
    // Line breaks are the same on every system.
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    if raw || !body.contains('\\') {
        return Ok(body.into_bytes());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut characters = body.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            push(&mut out, character);
            continue;
        }
        let Some(mark) = characters.next() else {
            return Err("unable to unescape string, found '\\' as last character".into());
        };
        let digits = |characters: &mut std::str::Chars<'_>, count: usize, radix: u32, first: &str| {
            let digits: String = first.chars().chain(characters.by_ref().take(count)).collect();
            u32::from_str_radix(&digits, radix).map_err(|_| "unable to unescape string".to_owned())
        };
        match mark {
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            'x' | 'X' => byte_or_character(&mut out, digits(&mut characters, 2, 16, "")?, is_bytes)?,
            '0'..='3' => byte_or_character(&mut out, digits(&mut characters, 2, 8, &mark.to_string())?, is_bytes)?,
            'u' | 'U' if is_bytes => return Err("unable to unescape string".to_owned()),
            'u' => byte_or_character(&mut out, digits(&mut characters, 4, 16, "")?, false)?,
            'U' => byte_or_character(&mut out, digits(&mut characters, 8, 16, "")?, false)?,
            other => push(&mut out, other),
        }
    }
    Ok(out)
}

fn byte_or_character(out: &mut Vec<u8>, code: u32, is_bytes: bool) -> Result<(), String> {
    match (is_bytes, u8::try_from(code)) {
        (true, Ok(byte)) => out.push(byte),
        _ => push(out, char::from_u32(code).ok_or("invalid unicode code point")?),
    }
    Ok(())
}

fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
