//! API versions: valid ones, and members that older ones do not show.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;

/// The first API version of Resource Manager.
const FIRST: Date = jiff::civil::date(2014, 4, 1);

/// How many days before their date versions may be used: our choice.
const MAX_DAYS_AHEAD: i64 = 366;

/// Whether a version is valid: a date since the first version, not too far ahead of the simulated clock, perhaps with
/// one of Azure's suffixes.
pub(crate) fn known(version: &str, now: Timestamp) -> bool {
    let (date, suffix) = version.split_at_checked(10).unwrap_or((version, ""));
    let digits = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let Some(date) = date.parse::<Date>().ok().filter(|_| digits) else { return false };
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let last = today.checked_add(jiff::Span::new().days(MAX_DAYS_AHEAD)).unwrap_or(Date::MAX);
    let suffixes = ["", "-preview", "-alpha", "-beta", "-rc", "-privatepreview"];
    FIRST <= date && date <= last && suffixes.contains(&suffix)
}

/// A member that was added with a version: answers to older ones do not have it.
pub struct Since {
    /// Full types, with wildcards.
    pub of: &'static str,
    /// Its path in the document.
    pub member: &'static str,
    /// The first version that has it.
    pub version: &'static str,
}

/// Removes a member by path, from each item of the lists on the way.
pub(crate) fn remove(document: &mut Value, path: &str) {
    if let Value::Array(items) = document {
        return items.iter_mut().for_each(|item| remove(item, path));
    }
    match path.split_once('/') {
        None => drop(document.as_object_mut().and_then(|object| object.remove(path))),
        Some((first, rest)) => {
            if let Some(inner) = document.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn versions_are_dates_of_their_time() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for (version, expected) in [
            ("2025-05-01", true),
            ("2014-04-01-preview", true),
            ("2026-12-31", true),
            ("2027-02-01", false),
            ("2014-03-31", false),
            ("1999-01-01", false),
            ("2025-02-30", false),
            ("2025-13-01", false),
            ("2025-05-01-final", false),
            ("2025-5-1", false),
            ("2025/05/01", false),
            ("20250501", false),
            ("+002025-05-01", false),
            ("latest", false),
            ("", false),
            ("2025-05-0\u{663}", false),
        ] {
            assert_eq!(known(version, now), expected, "{version}");
        }
    }
}
