//! What Kubernetes says its functions cost.

use super::{Argument, CHARACTER, CallCost, Estimator, PATTERN_CHARACTER, Range};
use crate::types::Type;

/// The longest regular expression behind a format of names.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;

impl Estimator<'_> {
    /// What Kubernetes says about its own functions.
    pub(super) fn library_cost(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        args: &[Argument<'_>],
    ) -> Option<CallCost> {
        let one = CallCost { cost: Range::exactly(1), size: None };
        let cost = |cost: Range| Some(CallCost { cost, size: None });
        let sized = |cost: Range, size: Range| Some(CallCost { cost, size: Some(size) });
        match (function, target, args) {
            ("check", ..) => cost(Range::exactly(350_000)),
            (
                "serviceAccount"
                | "path"
                | "group"
                | "resource"
                | "subresource"
                | "namespace"
                | "name"
                | "allowed"
                | "reason"
                | "error"
                | "errored"
                | "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast"
                | "format.named"
                | "sign"
                | "asInteger"
                | "isInteger"
                | "asApproximateFloat"
                | "isGreaterThan"
                | "isLessThan"
                | "compareTo"
                | "add"
                | "sub"
                | "major"
                | "minor"
                | "patch"
                | "getScheme"
                | "getHostname"
                | "getHost"
                | "getPort"
                | "getEscapedPath"
                | "getQuery",
                ..,
            ) => Some(one),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => match &target.of {
                Type::List(element) => {
                    let mut each = Range::exactly(1);
                    if matches!(**element, Type::String | Type::Bytes) {
                        each = each.plus(self.element_size(target).by(CHARACTER));
                    }
                    cost(target.size().times(each))
                }
                _ => cost(target.size().by(CHARACTER)),
            },
            ("url", _, [arg]) => cost(arg.size().by(CHARACTER)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                sized(target.size().by(CHARACTER), target.size())
            }
            ("replace", Some(target), [from, to, ..]) => {
                sized(target.size().by(2.0 * CHARACTER), replaced_size(target.size(), from.size(), to.size()))
            }
            ("split", Some(target), _) => {
                sized(target.size().by(2.0 * CHARACTER), Range { min: 0, max: target.size().max })
            }
            ("join", Some(target), _) => {
                let count = target.size();
                let mut size = Range::NOTHING;
                if matches!(target.of, Type::List(_)) {
                    size = count.times(self.element_size(target));
                }
                if let [separator, ..] = args {
                    let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.plus(separator.size().times(between));
                }
                sized(size.by(CHARACTER), size)
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let text = target.size().plus(Range::exactly(1)).by(CHARACTER);
                let pattern = pattern.size().by(PATTERN_CHARACTER);
                sized(text.times(pattern), Range { min: 0, max: target.size().max })
            }
            ("ip", Some(_), []) => Some(one),
            ("containsIP" | "containsCIDR", Some(_), [other, ..]) => {
                let bytes = Range { min: 4, max: 16 };
                let mut sum = bytes.plus(bytes).by(CHARACTER);
                if function == "containsCIDR" {
                    sum = sum.plus(bytes.by(CHARACTER)).plus(Range::exactly(1));
                }
                if overload.ends_with("_string") {
                    sum = sum.plus(other.size().by(CHARACTER));
                }
                cost(sum)
            }
            ("quantity" | "isQuantity" | "semver" | "isSemver", _, [arg, ..]) => cost(arg.size().by(CHARACTER)),
            ("validate", _, [arg, ..]) => cost(arg.size().by(CHARACTER).by(FORMAT_PATTERN * PATTERN_CHARACTER)),
            ("_==_", _, [left, right]) if left.of == right.of => equality_cost(left, right),
            _ => None,
        }
    }

    /// The size of the elements of a list.
    fn element_size(&self, list: &Argument<'_>) -> Range {
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".to_owned());
        }
        self.declared_size(&path).unwrap_or(Range::UNKNOWN)
    }
}

/// Sets are compared element by element.
pub(super) fn set_cost(overload: &str, args: &[Argument<'_>]) -> Option<CallCost> {
    let factor = match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => 1.0,
        "list_sets_equivalent_list" => 2.0,
        _ => return None,
    };
    let [left, right] = args else { return None };
    Some(CallCost { cost: left.size().times(right.size()).by(factor).plus(Range::exactly(1)), size: None })
}

/// Values of the libraries are compared in one step, texts by their characters.
fn equality_cost(left: &Argument<'_>, right: &Argument<'_>) -> Option<CallCost> {
    let one = Range::exactly(1);
    let cost = match &left.of {
        Type::Opaque(_) => one,
        Type::Struct(object) => match &*object.name {
            "kubernetes.NamedFormat" => Range { min: 1, max: FORMAT_NAME }.by(CHARACTER),
            "kubernetes.URL" => Range { min: 1, max: right.size.unwrap_or(one).max }.by(CHARACTER),
            name if name.starts_with("kubernetes.") => one,
            _ => return None,
        },
        _ => return None,
    };
    Some(CallCost { cost, size: None })
}

/// How long a text can be after a replacement.
fn replaced_size(text: Range, from: Range, to: Range) -> Range {
    let longest = if from.min == 0 {
        // Nothing is found between all characters.
        text.max.saturating_add(1).saturating_mul(to.max).saturating_add(text.max)
    } else if to.max <= from.min {
        text.max
    } else {
        divide_up(text.max, from.min).saturating_mul(to.max)
    };
    let shortest = if from.max == 0 {
        text.min.saturating_add(1).saturating_mul(to.min).saturating_add(text.min)
    } else if from.max <= to.min {
        text.min
    } else {
        divide_up(text.min, from.max).saturating_mul(to.min)
    };
    Range { min: shortest, max: longest }
}

fn divide_up(number: u64, by: u64) -> u64 {
    (number as f64 / by as f64).ceil() as u64
}
