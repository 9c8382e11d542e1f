//! The order of a group's versions (Kubernetes: "Version priority").

use std::cmp::Reverse;

/// The sort key of a version: stable versions before beta before alpha, greater numbers first, other names last, by
/// name.
pub(crate) type Priority = (u8, Reverse<u64>, Reverse<u64>, String);

/// The priority of a version: the smallest comes first.
pub(crate) fn priority(version: &str) -> Priority {
    let other = || (3, Reverse(0), Reverse(0), version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let Ok(major) = major.parse::<u64>() else { return other() };
    let (stability, minor) = match rest {
        "" => return (0, Reverse(major), Reverse(0), String::new()),
        rest if rest.starts_with("beta") => (1, &rest["beta".len()..]),
        rest if rest.starts_with("alpha") => (2, &rest["alpha".len()..]),
        _ => return other(),
    };
    match minor.parse::<u64>() {
        Ok(minor) => (stability, Reverse(major), Reverse(minor), String::new()),
        Err(_) => other(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_as_the_documentation_orders_them() {
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1gamma",
        ];
        let mut shuffled = ordered;
        shuffled.reverse();
        shuffled.sort_by_key(|version| priority(version));
        assert_eq!(shuffled, ordered);
    }
}
