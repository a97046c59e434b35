//! What nobody can guess: uids and the ends of generated names.

use crate::status::Status;

fn bytes<const N: usize>() -> Result<[u8; N], Status> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Status::internal_error(format!("no randomness: {error}")))?;
    Ok(bytes)
}

/// A new uid: a random UUID.
pub(crate) fn uid() -> Result<String, Status> {
    let mut bytes = bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut uid = String::with_capacity(36);
    for (place, byte) in bytes.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            uid.push('-');
        }
        uid.extend([byte >> 4, byte & 0x0f].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    }
    Ok(uid)
}

/// A number below a bound that is not zero.
pub(crate) fn below(bound: u32) -> Result<u32, Status> {
    Ok(u32::from_be_bytes(bytes::<4>()?) % bound)
}

/// Letters and digits that spell no words and are not mistaken for one another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Longest name that is generated, in bytes.
const LONGEST: usize = 63;

/// A name that begins like this.
pub(crate) fn name(prefix: &str) -> Result<String, Status> {
    const LENGTH: usize = 5;
    let mut end = prefix.len().min(LONGEST - LENGTH);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let suffix = bytes::<LENGTH>()?.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
    Ok(prefix[..end].chars().chain(suffix).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_uuid_of_version_four() {
        let uid = uid().unwrap();
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }

    #[test]
    fn a_generated_name_has_five_letters_more_and_is_never_too_long() {
        assert_eq!(name("web-").unwrap().len(), 9);
        assert_eq!(name(&"e".repeat(80)).unwrap().len(), 63);
        assert!(name(&"é".repeat(40)).unwrap().len() <= 63);
    }
}
