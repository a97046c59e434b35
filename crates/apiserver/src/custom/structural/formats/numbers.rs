//! Numbers that carry a check digit, and those that look alike.

use std::sync::LazyLock;

use regex::Regex;

/// The digits of a text; nothing if there is something else but spaces and dashes.
fn digits(text: &str) -> Option<Vec<u32>> {
    let kept = text.chars().filter(|character| !character.is_ascii_whitespace() && *character != '-');
    kept.map(|character| character.to_digit(10)).collect()
}

pub(super) fn is_isbn_10(text: &str) -> bool {
    let kept: String = text.chars().filter(|character| !character.is_ascii_whitespace() && *character != '-').collect();
    let (first, last) = kept.split_at(kept.len().saturating_sub(1));
    let last = if last == "X" { Some(10) } else { last.parse::<u32>().ok() };
    let (Some(first), Some(last)) = (digits(first).filter(|digits| digits.len() == 9), last) else { return false };
    let sum: u32 = first.iter().chain([&last]).zip(1..).map(|(digit, weight)| digit * weight).sum();
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn_13(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 13) else { return false };
    let sum: u32 = digits.iter().zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_credit_card(text: &str) -> bool {
    const PATTERN: &str = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$";
    static CARD: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("a sound pattern"));
    let Some(digits) = digits(text) else { return false };
    let joined: String = digits.iter().filter_map(|digit| char::from_digit(*digit, 10)).collect();
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let places = digits.iter().rev().enumerate();
    let sum: u32 = places.map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit }).sum();
    CARD.is_match(&joined) && sum.is_multiple_of(10)
}

pub(super) fn is_social_security(text: &str) -> bool {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").expect("a sound pattern"));
    NUMBER.is_match(text)
}
