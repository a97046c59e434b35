//! Names and uids that depend on nothing but what they stand for.

/// Letters and digits that spell no words and are not mistaken for each other.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// 27⁸ suffixes: with a thousand revisions of one child the chance that two share one is below one in 500,000, and then
/// the next is taken.
const LENGTH: usize = 8;

/// A short suffix for a name.
pub(crate) fn suffix(parts: &[&str]) -> String {
    let mut hash = digest(parts);
    let mut text = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        text.push(char::from(ALPHABET[(hash % 27) as usize]));
        hash /= 27;
    }
    text
}

/// A UUID (version 8: of one's own making).
pub(crate) fn uuid(parts: &[&str]) -> String {
    let bits = digest(parts) & !(0xf << 76) & !(0b11 << 62) | (0x8 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// FNV-1a with 128 bits; each part is followed by a byte that no text holds.
fn digest(parts: &[&str]) -> u128 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::{suffix, uuid};

    #[test]
    fn the_boundaries_between_parts_count() {
        assert_ne!(suffix(&["ab", "c"]), suffix(&["a", "bc"]));
        assert_ne!(uuid(&["ab", "c"]), uuid(&["a", "bc"]));
    }

    #[test]
    fn a_suffix_is_part_of_a_name_and_never_changes() {
        assert_eq!(suffix(&["n6", "IPAllocation", "{}"]), suffix(&["n6", "IPAllocation", "{}"]));
        assert!(suffix(&["x"]).bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        assert_eq!(suffix(&["x"]).len(), 8);
    }

    #[test]
    fn a_uuid_has_its_form() {
        let uuid = uuid(&["default", "req.nephio.org/v1alpha1.Interface.n6"]);
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "8");
        assert!("89ab".contains(&uuid[19..20]));
    }
}
