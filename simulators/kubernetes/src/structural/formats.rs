//! Formats of texts (`format`), as far as the API server checks them.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;

/// Whether a text has a format. Formats that the API server does not know accept every text.
pub(super) fn fits(format: &str, text: &str) -> bool {
    // Formats are compared without their hyphens.
    match format.replace('-', "").as_str() {
        "datetime" => text.parse::<jiff::Timestamp>().is_ok() || is_date_time(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, length)| {
            let length = length.parse::<u8>();
            length.is_ok_and(|length| {
                address.parse::<Ipv4Addr>().is_ok_and(|_| length <= 32)
                    || address.parse::<Ipv6Addr>().is_ok_and(|_| length <= 128)
            })
        }),
        "mac" => is_mac(text),
        "hostname" => is_hostname(text),
        "email" => text.rsplit_once('@').is_some_and(|(who, at)| {
            !who.is_empty() && !at.is_empty() && !who.contains(char::is_whitespace) && is_hostname(at)
        }),
        "uri" => text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() || text.starts_with('/')),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        }
        _ => true,
    }
}

/// Go also accepts a date alone, and times without a zone.
fn is_date_time(text: &str) -> bool {
    text.parse::<jiff::civil::DateTime>().is_ok() && text.contains('T')
}

/// The format of `time.ParseDuration`, or one number and a unit in words.
fn is_duration(text: &str) -> bool {
    const UNITS: &[&str] = &["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    const WORDS: &[&str] =
        &["nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "d", "w"];
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, tail) = rest.split_at(number);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = unit.trim();
        let word = unit.trim_end_matches('s').to_lowercase();
        let known =
            UNITS.contains(&unit) || (parts == 0 && tail.is_empty() && WORDS.contains(&word.as_str()));
        if digits.parse::<f64>().is_err() || !known {
            return false;
        }
        parts += 1;
        rest = tail;
    }
    parts > 0
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let pairs = |parts: &[&str]| {
        parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    matches!(parts.len(), 6 | 8 | 20) && pairs(&parts)
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    !text.is_empty() && text.len() <= 255 && text.trim_end_matches('.').split('.').all(label)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let hyphens = text.chars().filter(|c| *c == '-').count();
    digits.len() == 32
        && hyphens <= 4
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
}
