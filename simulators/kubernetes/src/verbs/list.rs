//! List: pages, resource versions, selections (Kubernetes: "API Concepts").

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::state::State;
use crate::conversion::{Pending, serve};
use crate::object::{Object, StoredText};
use crate::registry::Kind;
use crate::selector::Selection;
use crate::status::ApiError;

/// How `resourceVersion` is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    NotOlderThan,
    Exact,
}

/// The options of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    pub(crate) selection: Selection,
    pub(crate) limit: Option<usize>,
    pub(crate) token: Option<String>,
    /// `None` and zero for the newest state.
    pub(crate) version: Option<u64>,
    pub(crate) version_match: Option<VersionMatch>,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Object>>,
    pub(crate) version: u64,
    pub(crate) token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// The content of a `continue` token: the version of the first page (zero for the newest one) and the last returned
/// key.
#[derive(Serialize, Deserialize)]
struct Token {
    #[serde(rename = "rv")]
    version: u64,
    start: String,
}

impl Token {
    fn write(version: u64, start: &str) -> String {
        let token = Self { version, start: start.to_owned() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn read(text: &str) -> Result<Self, ApiError> {
        URL_SAFE_NO_PAD
            .decode(text)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| ApiError::bad_request("continue key is not valid: the token is malformed"))
    }
}

impl State {
    pub(crate) fn list(&mut self, kind: &Kind, options: &ListOptions) -> Result<Page, ApiError> {
        let current = self.store.version();
        let mut version = options.version.unwrap_or(0);
        if version > current {
            return Err(ApiError::version_too_large(version, current));
        }
        let mut exact = options.version_match == Some(VersionMatch::Exact)
            || (options.version_match.is_none() && version != 0 && options.limit.is_some());
        let mut after = String::new();
        if let Some(token) = &options.token {
            let token = Token::read(token)?;
            exact = token.version != 0;
            version = token.version;
            after = token.start;
        }
        let prefix = if kind.namespaced && !options.selection.namespace.is_empty() {
            format!("{}/", options.selection.namespace)
        } else {
            String::new()
        };
        let shelf = self.store.shelf(&kind.shelf);
        if !exact {
            return page(kind, options, current, shelf.range(&prefix, &after));
        }
        let unchanged = shelf.newest() <= version;
        let expired = || match &options.token {
            Some(_) => ApiError::continue_expired(Token::write(0, &after)),
            None => ApiError::expired(version, current),
        };
        if version < self.store.compacted() {
            return Err(expired());
        }
        if unchanged {
            let shelf = self.store.shelf(&kind.shelf);
            return page(kind, options, version, shelf.range(&prefix, &after));
        }
        let Some(snapshot) = self.store.shelf(&kind.shelf).at(version) else { return Err(expired()) };
        let items = snapshot
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && (after.is_empty() || ***key > *after))
            .map(|(_, kept)| kept);
        page(kind, options, version, items)
    }
}

fn page<'a>(
    kind: &Kind,
    options: &ListOptions,
    version: u64,
    candidates: impl Iterator<Item = &'a Arc<StoredText>>,
) -> Result<Page, ApiError> {
    let mut items = Vec::new();
    let mut pending = Pending::default();
    let mut last_key = "";
    let mut left = 0_usize;
    for kept in candidates {
        let full = options.limit.is_some_and(|limit| items.len() + pending.len() >= limit);
        if full && !options.selection.is_narrowed() {
            left += 1;
            continue;
        }
        let Some(served) = pending.note(serve(kind, &kept.open()))? else { continue };
        if !options.selection.matches(&served.for_one_look()) {
            continue;
        }
        if full {
            left += 1;
            break;
        }
        last_key = kept.key();
        items.push(served);
    }
    pending.settle()?;
    // With a selector the API server does not count the remaining objects.
    let remaining = (left > 0 && !options.selection.is_narrowed()).then_some(left);
    let token = (left > 0).then(|| Token::write(version, last_key));
    Ok(Page { items, version, token, remaining })
}
