//! The rules for names, labels and their texts when something breaks them.

/// What is wrong with a name that may have dots, as most objects' names.
pub(crate) fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 253);
    if !is_subdomain(name) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// What is wrong with a name that is one segment of a path, as the names of roles.
pub(crate) fn path_segment_problems(name: &str) -> Vec<String> {
    if let "." | ".." = name {
        return vec![format!("may not be '{name}'")];
    }
    path_prefix_problems(name)
}

/// What is wrong with the beginning of a name that is one segment of a path.
pub(crate) fn path_prefix_problems(name: &str) -> Vec<String> {
    let found = ["/", "%"].into_iter().filter(|part| name.contains(part));
    found.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with the key of a label or annotation.
pub(crate) fn qualified_name_problems(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let mut problems = Vec::new();
    let local = match parts.as_slice() {
        [local] => *local,
        [prefix, local] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            *local
        }
        _ => {
            let prefixed = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED}{prefixed}")];
        }
    };
    if local.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else {
        problems.extend(too_long(local, 63).into_iter().map(|problem| format!("name part {problem}")));
    }
    if !is_qualified(local) {
        problems.push(format!("name part {QUALIFIED}"));
    }
    problems
}

/// What is wrong with the value of a label.
pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = too_long(value, 63);
    if !value.is_empty() && !is_qualified(value) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} characters")] } else { Vec::new() }
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// Whether this is a DNS label, whatever its length.
fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_qualified(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.bytes().all(inner) && edge(name.bytes().next()) && edge(name.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_have_no_problems() {
        assert!(["a", "a.b-c", "123"].iter().all(|name| subdomain_problems(name).is_empty()));
        assert!(["A_b:c", "x"].iter().all(|name| path_segment_problems(name).is_empty()));
        assert!(["app", "ex.io/My_name", "1"].iter().all(|name| qualified_name_problems(name).is_empty()));
        assert!(["", "a_B.c"].iter().all(|value| label_value_problems(value).is_empty()));
    }

    #[test]
    fn problems_are_told_one_by_one() {
        assert_eq!(path_segment_problems(".."), ["may not be '..'"]);
        assert_eq!(path_segment_problems("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(qualified_name_problems("/k"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name_problems("a/").len(), 2);
        assert_eq!(qualified_name_problems("a/b/c").len(), 1);
        assert_eq!(label_value_problems(&"v".repeat(64)), ["must be no more than 63 characters"]);
    }
}
