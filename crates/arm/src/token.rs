//! The tokens of one credential: renewed early, and used until they expire if the authority does not answer.

use std::collections::HashMap;
use std::time::Duration;

use clock::Clock;
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Error;

/// A token is renewed if it is valid for less than this. The library renews its own at the same time.
const EARLY_RENEWAL: Duration = Duration::from_secs(5 * 60);
/// After a failed renewal, a token that is still valid is used for this long before the next attempt.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(30);

/// A rejected token that is younger than this is not replaced: the next one would be rejected as well, and the
/// authority must not be asked for each call.
const MIN_REJECTED_AGE: Duration = Duration::from_secs(30);

/// The tokens of one credential, by scope.
pub(crate) struct Tokens {
    clock: Clock,
    by_scope: Mutex<HashMap<String, ScopeTokens>>,
    /// Held by the one call that asks the authority.
    pub(crate) renewal: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ScopeTokens {
    token: Option<Token>,
    failed: Option<(Instant, Error)>,
}

struct Token {
    header: HeaderValue,
    /// Since 1970.
    expires: Duration,
    came: Instant,
}

/// The token for a call, without asking the authority.
pub(crate) enum CachedToken {
    /// A token that is valid for a while.
    Fresh(HeaderValue),
    /// A token that is valid, but should be renewed now.
    Ageing(HeaderValue),
    /// Nothing.
    Nothing,
}

impl Tokens {
    /// Creates an empty cache. `clock` is the one by which the source of the tokens dates them.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, by_scope: Mutex::default(), renewal: tokio::sync::Mutex::default() }
    }

    /// The token for a scope.
    pub(crate) fn cached(&self, scope: &str) -> CachedToken {
        let known = self.by_scope.lock();
        let Some(ScopeTokens { token: Some(token), failed }) = known.get(scope) else {
            return CachedToken::Nothing;
        };
        let left = token.expires.saturating_sub(self.clock.since_1970());
        if left.is_zero() {
            return CachedToken::Nothing;
        }
        let tried = failed.as_ref().is_some_and(|(at, _)| at.elapsed() < RENEWAL_INTERVAL);
        let header = token.header.clone();
        if left > EARLY_RENEWAL || tried { CachedToken::Fresh(header) } else { CachedToken::Ageing(header) }
    }

    /// How long the token for a scope is still valid, if there is one.
    pub(crate) fn left(&self, scope: &str) -> Option<Duration> {
        let known = self.by_scope.lock();
        Some(known.get(scope)?.token.as_ref()?.expires.saturating_sub(self.clock.since_1970()))
    }

    /// Why the authority issued no token, if a request has failed since then.
    pub(crate) fn failed_since(&self, scope: &str, since: Instant) -> Option<Error> {
        let known = self.by_scope.lock();
        let (at, error) = known.get(scope)?.failed.as_ref()?;
        (*at > since).then(|| error.clone())
    }

    /// Records the authority's answer.
    pub(crate) fn note(&self, scope: &str, answer: &Result<(HeaderValue, Duration), Error>) {
        let mut known = self.by_scope.lock();
        let entry = known.entry(scope.to_owned()).or_default();
        match answer {
            Ok((header, expires)) => {
                let token = Token { header: header.clone(), expires: *expires, came: Instant::now() };
                *entry = ScopeTokens { token: Some(token), failed: None };
            }
            Err(error) => entry.failed = Some((Instant::now(), error.clone())),
        }
    }

    /// Drops a rejected token. Returns whether the call can be sent again: with another token that has arrived
    /// meanwhile, or with a new one.
    pub(crate) fn reject(&self, scope: &str, rejected: &HeaderValue) -> bool {
        let mut known = self.by_scope.lock();
        let Some(entry) = known.get_mut(scope) else { return true };
        match &entry.token {
            Some(token) if token.header == *rejected => {
                let is_old = token.came.elapsed() >= MIN_REJECTED_AGE;
                if is_old {
                    entry.token = None;
                }
                is_old
            }
            _ => true,
        }
    }
}
