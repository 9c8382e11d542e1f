//! The members that Azure has published, or the operator has had, for the kinds.

/// Lines `<kind> <path in the document>`, in the order of their bytes; a list's items have its path, and `*` is a key of
/// the user's choice. From Azure's contract: `UPDATE_MEMBERS=1 cargo test -p operator-resources members`.
const MEMBERS: &str = include_str!("members.txt");

/// Whether a kind is known to have a member.
pub(crate) fn has_member(kind: &str, path: &str) -> bool {
    let wanted = format!("{kind} {path}");
    let mut rest = MEMBERS;
    // The line in the middle halves the rest.
    while !rest.is_empty() {
        let middle = rest.as_bytes()[..rest.len() / 2].iter().rposition(|byte| *byte == b'\n');
        let start = middle.map_or(0, |newline| newline + 1);
        let line = rest[start..].lines().next().unwrap_or_default();
        rest = match wanted.as_str().cmp(line) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => &rest[..start],
            std::cmp::Ordering::Greater => rest.get(start + line.len() + 1..).unwrap_or_default(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_and_nothing_else() {
        let lines: Vec<&str> = MEMBERS.lines().collect();
        assert!(lines.is_sorted());
        for line in lines {
            let (kind, path) = line.split_once(' ').unwrap();
            assert!(has_member(kind, path), "{line}");
            assert!(!has_member(kind, &format!("{path}x")), "{line}");
        }
        assert!(!has_member("", ""));
        assert!(!has_member("~", "~"));
    }
}
