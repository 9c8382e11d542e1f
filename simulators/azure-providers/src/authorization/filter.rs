//! `$filter` of lists of roles and assignments ("List Azure role assignments using the REST API").

use azure_engine::refusal::{Code, Result};

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term<'a> {
    /// At the scope or above it.
    AtScope,
    /// At the scope, above it or below it.
    AtScopeAndBelow,
    /// A member that is equal to a text. `assignedTo('…')` selects the principal of that id.
    Is(&'a str, &'a str),
}

/// Reads conditions that are joined by `and`. `members` are those that can be compared.
pub(super) fn parse<'a>(filter: &'a str, members: &[&'static str]) -> Result<Vec<Term<'a>>> {
    let refuse =
        || Code::ours(400, "UnsupportedQuery").says(format_args!("The filter '{filter}' is not supported."));
    let mut terms = Vec::new();
    let lower = filter.to_ascii_lowercase();
    let mut start = 0;
    while start < filter.len() {
        let end = lower[start..].find(" and ").map_or(filter.len(), |at| start + at);
        let term = filter.get(start..end).unwrap_or_default().trim();
        terms.push(read(term, members).ok_or_else(refuse)?);
        start = end + " and ".len();
    }
    Ok(terms)
}

fn read<'a>(term: &'a str, members: &[&'static str]) -> Option<Term<'a>> {
    if let Some(inner) = term.strip_suffix(')') {
        let (function, argument) = inner.split_once('(')?;
        return match function.trim().to_ascii_lowercase().as_str() {
            "atscope" if argument.trim().is_empty() => Some(Term::AtScope),
            "atscopeandbelow" if argument.trim().is_empty() => Some(Term::AtScopeAndBelow),
            "assignedto" if members.contains(&"principalId") => {
                Some(Term::Is("principalId", quoted(argument.trim())))
            }
            _ => None,
        };
    }
    let (member, rest) = term.split_once(' ')?;
    let (equals, text) = rest.trim_start().split_once(' ')?;
    let known = members.iter().find(|known| known.eq_ignore_ascii_case(member))?;
    equals.eq_ignore_ascii_case("eq").then(|| Term::Is(known, quoted(text.trim())))
}

/// A text with or without its quotes.
fn quoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{Term, parse};

    #[test]
    fn conditions_are_joined_by_and() {
        let members = ["principalId", "roleName"];
        for (filter, expected) in [
            ("", Some(vec![])),
            ("atScope()", Some(vec![Term::AtScope])),
            ("atScope() and assignedTo('p')", Some(vec![Term::AtScope, Term::Is("principalId", "p")])),
            ("principalid EQ p", Some(vec![Term::Is("principalId", "p")])),
            (
                "roleName eq 'Virtual Machine Contributor'",
                Some(vec![Term::Is("roleName", "Virtual Machine Contributor")]),
            ),
            (
                "roleName eq 'a' And atScopeAndBelow()",
                Some(vec![Term::Is("roleName", "a"), Term::AtScopeAndBelow]),
            ),
            ("color eq 'red'", None),
            ("atScope(x)", None),
            ("principalId ne 'p'", None),
        ] {
            assert_eq!(parse(filter, &members).ok(), expected, "{filter}");
        }
    }
}
