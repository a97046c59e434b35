//! Base64 as fields of the format `byte` are read.

/// The bytes of a text in the alphabet that is safe in URLs, with padding. Line breaks are skipped.
pub(crate) fn decode_url_safe(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0_u32;
    let mut count = 0;
    let characters: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !characters.len().is_multiple_of(4) {
        return None;
    }
    let padding = characters.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    for byte in &characters[..characters.len() - padding] {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
