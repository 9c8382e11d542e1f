//! Rules for names, label keys and values, with kube-apiserver's messages.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
    start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
    regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  \
    or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn lower_alphanumeric(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Whether `text` is `inner` characters that start and end with `edge` characters.
fn shaped(text: &str, edge: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&edge) && text.ends_with(&edge) && text.chars().all(|c| edge(c) || inner(c))
}

fn at_most(text: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit { Ok(()) } else { Err(format!("must be no more than {limit} characters")) }
}

pub(crate) fn dns_label(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    if shaped(text, lower_alphanumeric, |c| c == '-') {
        Ok(())
    } else if dns_subdomain(text).is_ok() {
        Err("must not contain dots".into())
    } else {
        Err(LABEL.into())
    }
}

pub(crate) fn dns_1035_label(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    let first = text.starts_with(|c: char| c.is_ascii_lowercase());
    if first && shaped(text, lower_alphanumeric, |c| c == '-') { Ok(()) } else { Err(LABEL_1035.into()) }
}

pub(crate) fn dns_subdomain(text: &str) -> Result<(), String> {
    at_most(text, 253)?;
    if text.split('.').all(|part| shaped(part, lower_alphanumeric, |c| c == '-')) {
        Ok(())
    } else {
        Err(SUBDOMAIN.into())
    }
}

pub(crate) fn path_segment(text: &str) -> Result<(), String> {
    if text == "." || text == ".." {
        return Err(format!("may not be '{text}'"));
    }
    match text.chars().find(|c| matches!(c, '/' | '%')) {
        Some(c) => Err(format!("may not contain '{c}'")),
        None => Ok(()),
    }
}

/// A label or annotation key, a taint key, a finalizer: `prefix.example.com/name` or `name`.
pub(crate) fn qualified_name(text: &str) -> Result<(), String> {
    let name = match text.split_once('/') {
        Some(("", _)) => return Err("prefix part must be non-empty".into()),
        Some((prefix, name)) => {
            dns_subdomain(prefix).map_err(|why| format!("prefix part {why}"))?;
            name
        }
        None => text,
    };
    if name.is_empty() {
        return Err("name part must be non-empty".into());
    }
    at_most(name, 63).map_err(|why| format!("name part {why}"))?;
    if shaped(name, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.')) {
        Ok(())
    } else {
        Err(NAME_PART.into())
    }
}

pub(crate) fn label_value(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    if text.is_empty() || shaped(text, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.')) {
        Ok(())
    } else {
        Err(LABEL_VALUE.into())
    }
}

/// Validates names of container ports: IANA service names.
pub(crate) fn port_name(name: &str) -> Result<(), &'static str> {
    if name.len() > 15 {
        return Err("must be no more than 15 characters");
    }
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Err("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.contains(|c: char| c.is_ascii_lowercase()) {
        return Err("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        return Err("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Err("must not begin or end with a hyphen");
    }
    Ok(())
}

/// Whether a text is an address range such as `10.0.0.0/16`.
pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Some(bits) = bits.parse::<u8>().ok().filter(|_| !bits.starts_with('+')) else { return false };
    match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => bits <= 32,
        Ok(std::net::IpAddr::V6(_)) => bits <= 128,
        Err(_) => false,
    }
}
