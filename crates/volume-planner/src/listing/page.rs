//! Pages of a list. A token is the number of entries that earlier pages had.

use crate::model::error::{Refusal, Result};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its entries.
    pub entries: Vec<T>,
    /// The token of the next page; empty on the last one.
    pub next_token: String,
}

/// The page that begins at a token. A maximum of 0 means all entries. The list has to have the same order each time.
///
/// # Errors
/// The token is malformed or beyond the end, as after deletions, or the maximum is negative.
pub fn page<T>(list: Vec<T>, token: &str, max_entries: i32) -> Result<Page<T>> {
    let start = match token {
        "" => 0,
        token => token.parse().map_err(|_| Refusal::InvalidToken(token.to_owned()))?,
    };
    if start > list.len() {
        return Err(Refusal::InvalidToken(token.to_owned()));
    }
    let maximum = usize::try_from(max_entries).map_err(|_| Refusal::NegativePage(max_entries))?;
    let end = if maximum == 0 { list.len() } else { start.saturating_add(maximum).min(list.len()) };
    let next_token = if end < list.len() { end.to_string() } else { String::new() };
    Ok(Page { entries: list.into_iter().take(end).skip(start).collect(), next_token })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::error::Code;

    /// CSI-053. Section 3.17, FIX: the last page has an empty token, and a bad one is aborted.
    #[test]
    fn tokens_count_entries_and_end() {
        for (length, token, maximum, expected) in [
            (0, "", 0, Ok((0, ""))),
            (3, "", 0, Ok((3, ""))),
            (3, "", 2, Ok((2, "2"))),
            (3, "2", 2, Ok((1, ""))),
            (3, "3", 2, Ok((0, ""))),
            (3, "4", 2, Err(Code::Aborted)),
            (3, "-1", 2, Err(Code::Aborted)),
            (3, "invalid-token", 2, Err(Code::Aborted)),
            (3, "", -1, Err(Code::InvalidArgument)),
        ] {
            let found = page((0..length).collect(), token, maximum);
            let found = found.as_ref().map(|page| (page.entries.len(), page.next_token.as_str()));
            assert_eq!(found.map_err(|refusal| refusal.code()), expected, "{length} {token} {maximum}");
        }
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(length in 0_usize..50, maximum in 0_i32..20) {
            let (mut all, mut token) = (Vec::new(), String::new());
            loop {
                let next = page((0..length).collect(), &token, maximum).unwrap();
                all.extend(next.entries);
                token = next.next_token;
                if token.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(all, (0..length).collect::<Vec<_>>());
        }
    }
}
