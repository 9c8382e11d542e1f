//! Declared faults: what the server shall do wrong, how often and to whom.

use std::time::Duration;

use crate::status::ApiError;

/// What happens to a request that a fault meets.
#[derive(Debug, Clone)]
pub enum Effect {
    /// The request is refused, before anything is done, with this HTTP status code and reason.
    Refuse {
        /// HTTP status code, such as 500.
        code: u16,
        /// `reason` of the Status object, such as `InternalError`.
        reason: String,
        /// `message` of the Status object.
        message: String,
        /// Seconds for the `Retry-After` header and `retryAfterSeconds`.
        retry_after: Option<u32>,
    },
    /// The request is served, this much later.
    Delay(Duration),
    /// The request is served, but the client hears 504 instead of the answer: it cannot know.
    LoseAnswer,
}

/// A fault: which requests it meets, how often, and its effect.
#[derive(Debug, Clone)]
pub struct Fault {
    verb: Option<String>,
    resource: Option<String>,
    name: Option<String>,
    times: u32,
    effect: Effect,
}

impl Fault {
    /// A fault that meets the next request of any kind, once.
    #[must_use]
    pub fn new(effect: Effect) -> Self {
        Self { verb: None, resource: None, name: None, times: 1, effect }
    }

    /// A fault that refuses with this HTTP status code, once, for any request.
    #[must_use]
    pub fn status(code: u16) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        let message = format!("injected fault: status {code}");
        Self::new(Effect::Refuse { code, reason: reason.to_owned(), message, retry_after: None })
    }

    /// Only for this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or
    /// `deletecollection`.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only for this resource, by its plural, with a slash before a subresource: `services`, `services/status`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only for objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Meets this many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    fn meets(&self, verb: &str, resource: &str, name: &str) -> bool {
        let fits =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        self.times > 0 && fits(&self.verb, verb) && fits(&self.resource, resource) && fits(&self.name, name)
    }
}

/// The faults that are still to happen, in the order of their declaration.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The effect for this request, if a fault meets it; counts it.
    pub(crate) fn take(&mut self, verb: &str, resource: &str, name: &str) -> Option<Effect> {
        let fault = self.0.iter_mut().find(|fault| fault.meets(verb, resource, name))?;
        fault.times -= 1;
        let effect = fault.effect.clone();
        self.0.retain(|fault| fault.times > 0);
        Some(effect)
    }
}

/// The error of a refusal.
pub(crate) fn refusal(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> ApiError {
    let error = ApiError::new(code, reason, message);
    match retry_after {
        Some(seconds) => error.retry_after(seconds),
        None => error,
    }
}
