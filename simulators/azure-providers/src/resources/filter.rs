//! The `$filter` of ARM's own lists: comparisons of a few fields, joined by `and` and `or`.

use serde_json::Value;

use azure_engine::document::members;
use azure_engine::refusal::{Code, Result};

/// Most nested parentheses: each level is a call of the parser on the stack.
const MAX_DEPTH: usize = 16;

/// The condition of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    /// `field eq 'value'`
    Is(String, String),
    /// `field ne 'value'`
    IsNot(String, String),
    /// `substringof('value', field)`
    Holds(String, String),
    /// `startswith(field, 'value')`
    Begins(String, String),
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Mark(char),
}

impl Filter {
    /// Reads a filter.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let tokens = tokens(text);
        let parsed = tokens.and_then(|tokens| {
            let mut rest = tokens.as_slice();
            let filter = any(&mut rest, 0)?;
            rest.is_empty().then_some(filter)
        });
        parsed.ok_or_else(|| {
            Code::azures(400, "InvalidFilterInQueryString")
                .says(format_args!("Invalid $filter '{text}' specified in the query string."))
        })
    }

    /// Whether a document with these tags matches. `field` gives the values of the other fields. A requested name and
    /// value must be of one tag.
    pub(crate) fn admits(&self, tags: Option<&Value>, field: &dyn Fn(&str) -> Option<String>) -> bool {
        let mut pairs: Vec<(Option<&str>, Option<&str>)> = tags
            .into_iter()
            .flat_map(members)
            .map(|(name, value)| (Some(name.as_str()), value.as_str()))
            .collect();
        if pairs.is_empty() {
            pairs.push((None, None));
        }
        pairs.into_iter().any(|(name, value)| {
            self.holds(&|asked| match asked {
                "tagname" => name.map(str::to_owned),
                "tagvalue" => value.map(str::to_owned),
                other => field(other),
            })
        })
    }

    fn holds(&self, field: &dyn Fn(&str) -> Option<String>) -> bool {
        let found = |name: &String| field(name).map(|value| value.to_lowercase());
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(field)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(field)),
            Self::Is(name, value) => found(name).is_some_and(|found| found == *value),
            Self::IsNot(name, value) => found(name).is_none_or(|found| found != *value),
            Self::Holds(name, value) => found(name).is_some_and(|found| found.contains(value)),
            Self::Begins(name, value) => found(name).is_some_and(|found| found.starts_with(value)),
        }
    }
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => {}
            '(' | ')' | ',' => found.push(Token::Mark(letter)),
            '\'' => {
                let mut value = String::new();
                loop {
                    match letters.next()? {
                        // A quote within a text is written twice.
                        '\'' if letters.next_if_eq(&'\'').is_some() => value.push('\''),
                        '\'' => break,
                        other => value.push(other),
                    }
                }
                found.push(Token::Text(value.to_lowercase()));
            }
            first if first.is_alphanumeric() => {
                let mut word = String::from(first);
                while let Some(next) =
                    letters.next_if(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_'))
                {
                    word.push(next);
                }
                found.push(Token::Word(word.to_lowercase()));
            }
            _ => return None,
        }
    }
    Some(found)
}

fn any(rest: &mut &[Token], depth: usize) -> Option<Filter> {
    let mut parts = vec![all(rest, depth)?];
    while take_word(rest, "or") {
        parts.push(all(rest, depth)?);
    }
    Some(if parts.len() == 1 { parts.pop()? } else { Filter::Any(parts) })
}

fn all(rest: &mut &[Token], depth: usize) -> Option<Filter> {
    let mut parts = vec![one(rest, depth)?];
    while take_word(rest, "and") {
        parts.push(one(rest, depth)?);
    }
    Some(if parts.len() == 1 { parts.pop()? } else { Filter::All(parts) })
}

fn one(rest: &mut &[Token], depth: usize) -> Option<Filter> {
    use Token::{Mark, Text, Word};
    let (filter, behind) = match *rest {
        [Mark('('), behind @ ..] if depth < MAX_DEPTH => {
            *rest = behind;
            let filter = any(rest, depth + 1)?;
            let [Mark(')'), behind @ ..] = *rest else { return None };
            (filter, behind)
        }
        [Word(word), Mark('('), Text(value), Mark(','), Word(field), Mark(')'), behind @ ..]
            if word == "substringof" =>
        {
            (Filter::Holds(field.clone(), value.clone()), behind)
        }
        [Word(word), Mark('('), Word(field), Mark(','), Text(value), Mark(')'), behind @ ..]
            if word == "startswith" =>
        {
            (Filter::Begins(field.clone(), value.clone()), behind)
        }
        [Word(field), Word(word), Text(value), behind @ ..] if word == "eq" => {
            (Filter::Is(field.clone(), value.clone()), behind)
        }
        [Word(field), Word(word), Text(value), behind @ ..] if word == "ne" => {
            (Filter::IsNot(field.clone(), value.clone()), behind)
        }
        _ => return None,
    };
    *rest = behind;
    Some(filter)
}

fn take_word(rest: &mut &[Token], wanted: &str) -> bool {
    match *rest {
        [Token::Word(word), behind @ ..] if word == wanted => {
            *rest = behind;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn filters_are_read_and_judged() {
        let tags = json!({ "team": "blue", "It's": "x" });
        let field = |name: &str| (name == "resourcetype").then(|| "N/disks".to_owned());
        for (text, fits) in [
            ("tagName eq 'Team' and tagValue eq 'Blue'", true),
            ("tagName eq 'team' and tagValue eq 'x'", false),
            ("tagName eq 'it''s'", true),
            ("resourceType eq 'n/disks'", true),
            ("resourceType ne 'n/disks'", false),
            ("resourceType eq 'other' or (tagName eq 'team' and tagValue ne 'red')", true),
            ("substringof('DISK', resourceType)", true),
            ("startswith(tagName, 'te')", true),
            ("absent eq 'x'", false),
        ] {
            let filter = Filter::parse(text).unwrap();
            assert_eq!(filter.admits(Some(&tags), &field), fits, "{text}");
        }
        let deep = "(".repeat(10_000);
        for text in [
            "",
            "tagName",
            "tagName eq",
            "tagName eq 'a",
            "tagName eq 'a' and",
            "(a eq 'b'",
            &deep,
            "a eq 'b')",
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
    }
}
