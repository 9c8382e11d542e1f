//! Names that Azure and DNS take.

/// What a name of a resource looks like, for errors.
pub(crate) const RESOURCE_NAME: &str =
    "it must consist of letters, digits, '-', '_' and '.' (the pattern is ^[-\\w\\._]+$)";
/// What a name of a resource group looks like, for errors.
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

/// Whether it is a name of a domain, in Kubernetes' sense: labels of lower-case letters, digits and `-` with dots between them.
pub(crate) fn is_dns_name(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Whether it is a GUID.
pub(crate) fn is_guid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()))
}
