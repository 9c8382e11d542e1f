//! `$filter` of lists, as far as clients of Resource Manager use it: clauses that must all hold.

use serde_json::Value;

/// The conditions on documents.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter(Vec<Clause>);

#[derive(Debug, PartialEq, Eq)]
struct Clause {
    member: String,
    test: Test,
    text: String,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Test {
    /// `displayName eq 'x'`
    Equals,
    /// `startswith(displayName,'x')`
    Begins,
    /// `servicePrincipalNames/any(c:c eq 'x')`
    Contains,
}

impl Filter {
    /// Reads a filter; `None` if it is invalid, or of a kind that is not simulated.
    pub(super) fn parse(text: &str) -> Option<Self> {
        conjuncts(text).into_iter().map(Clause::parse).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether a document meets the conditions. Graph compares texts without case.
    pub(super) fn holds(&self, document: &Value) -> bool {
        self.0.iter().all(|clause| clause.holds(document))
    }
}

impl Clause {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (member, test, quoted) = if let Some(inner) = text.strip_prefix("startswith(") {
            let (member, quoted) = inner.strip_suffix(')')?.split_once(',')?;
            (member, Test::Begins, quoted)
        } else if let Some((member, lambda)) = text.split_once("/any(") {
            let (variable, condition) = lambda.strip_suffix(')')?.split_once(':')?;
            let (left, quoted) = condition.split_once(" eq ")?;
            if left.trim() != variable.trim() {
                return None;
            }
            (member, Test::Contains, quoted)
        } else {
            let (member, quoted) = text.split_once(" eq ")?;
            (member, Test::Equals, quoted)
        };
        let member = member.trim();
        let is_name = !member.is_empty() && member.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let text = quoted.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        let is_text = !text.replace("''", "").contains('\'');
        let text = text.replace("''", "'").to_lowercase();
        (is_name && is_text).then(|| Self { member: member.to_owned(), test, text })
    }

    fn holds(&self, document: &Value) -> bool {
        let member = document.get(&self.member).unwrap_or(&Value::Null);
        let lower = |value: &Value| value.as_str().map(str::to_lowercase);
        match self.test {
            Test::Equals => lower(member).is_some_and(|text| text == self.text),
            Test::Begins => lower(member).is_some_and(|text| text.starts_with(&self.text)),
            Test::Contains => {
                member.as_array().into_iter().flatten().filter_map(lower).any(|text| text == self.text)
            }
        }
    }
}

/// The parts of a filter between the words `and`, outside of texts.
fn conjuncts(text: &str) -> Vec<&str> {
    const AND: &str = " and ";
    let (mut parts, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        quoted ^= letter == '\'';
        let rest = text.get(at..).unwrap_or_default();
        if !quoted && at >= begin && rest.starts_with(AND) {
            parts.extend(text.get(begin..at));
            begin = at + AND.len();
        }
    }
    parts.extend(text.get(begin..));
    parts
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use serde_json::json;

    #[test]
    fn filters_say_which_documents_they_mean() {
        let document = json!({ "displayName": "Bob's and Ann's", "servicePrincipalNames": ["one", "two"] });
        for (text, holds) in [
            ("displayName eq 'bob''s and ann''s'", true),
            ("displayName eq 'bob'", false),
            ("startswith(displayName,'Bob')", true),
            ("startswith(displayName,'nn')", false),
            ("servicePrincipalNames/any(c:c eq 'TWO')", true),
            ("servicePrincipalNames/any(c:c eq 'three')", false),
            ("servicePrincipalNames/any(c:c eq 'one') and startswith(displayName,'bob''s and')", true),
            ("servicePrincipalNames/any(c:c eq 'one') and displayName eq 'x'", false),
            ("userPrincipalName eq 'x'", false),
        ] {
            let found = Filter::parse(text).map(|filter| filter.holds(&document));
            assert_eq!(found, Some(holds), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_filter() {
        for text in [
            "",
            "displayName",
            "displayName eq bob",
            "displayName ne 'bob'",
            "endswith(displayName,'x')",
            "names/any(c:d eq 'x')",
            "displayName eq 'a' or displayName eq 'b'",
        ] {
            assert_eq!(Filter::parse(text), None, "{text}");
        }
    }
}
