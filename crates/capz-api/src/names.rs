//! Names that Azure and DNS accept.

/// The form of a resource's name, for errors.
pub(crate) const RESOURCE_NAME: &str =
    "it must consist of letters, digits, '-', '_' and '.' (the pattern is ^[-\\w\\._]+$)";
/// The form of a resource group's name, for errors.
pub(crate) const GROUP_NAME: &str =
    "it must consist of letters, digits, '-', '_', '.', '(' and ')' (the pattern is ^[-\\w\\._\\(\\)]+$)";

/// Whether a resource in a group can have this name.
pub(crate) fn is_resource_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether a resource group can have this name.
pub(crate) fn is_group_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '(' | ')'))
}

/// Whether a private zone can have this name: labels of letters, digits, `-` and `_` separated by dots, of which none
/// begins with `-`. It may end with a dot, and is not an address.
pub(crate) fn is_dns_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    name.len() <= 253 && text.parse::<std::net::IpAddr>().is_err() && name.split('.').all(is_label)
}

/// Whether it is a GUID.
pub(crate) fn is_guid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Whether it consists of letters, digits and `-`, of which the first and the last are no `-`.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(|c| is_end(c) || c == '-')
}
