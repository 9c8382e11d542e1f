//! Whether a failure concerns one or all of the owners that share a resource.
//!
//! Only a statement about the caller or the shared resource itself proves that all are concerned. A refusal that names
//! another resource, or none, may be about the one owner that refers to that resource.

use azure_types::ResourceId;

/// The owners of a shared resource that a failure concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One or all: undetermined.
    Unclear,
    /// All.
    All,
}

/// Error codes about the caller or the subscription.
const ABOUT_CALLER: &[&str] = &[
    "InvalidAuthenticationTokenTenant",
    "MissingSubscriptionRegistration",
    "ReadOnlyDisabledSubscription",
    "SubscriptionNotFound",
];

/// The resource ids in a text, quoted or not: Azure names resources by their complete ids.
fn ids_in(text: &str) -> impl Iterator<Item = ResourceId> {
    let stops = |c: char| {
        c.is_whitespace() || matches!(c, '\'' | '"' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '`')
    };
    let words = text.split(stops).map(|word| word.trim_end_matches(['.', ':', '/']));
    let ids = words
        .filter(|word| word.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("/subscriptions/")));
    ids.filter_map(|word| ResourceId::parse(word).ok())
}

/// The scope of a client error, for the owners of `shared`, or else of the resource that the call was about.
pub(crate) fn of(error: &arm::Error, shared: Option<&ResourceId>) -> Scope {
    let Some(answer) = error.service() else {
        // A proxy that blocks one document answers with a page of its own.
        return if matches!(error, arm::Error::Malformed { .. }) { Scope::Unclear } else { Scope::All };
    };
    // One owner's part may cause a server error in each write, at once or when the operation ends.
    let is_fault = matches!(answer.status, 200 | 500);
    let is_about_caller = answer.status == 401
        || ABOUT_CALLER.iter().any(|code| error.has_code(code))
        || error.is_throttled()
        // A lost race is about the version of the document.
        || error.is_precondition_failed()
        || (error.is_transient() && !is_fault);
    if is_about_caller {
        return Scope::All;
    }
    let Some(resource) = shared.or(answer.resource.as_ref()) else { return Scope::Unclear };
    let text = error.full_text();
    let is_said_of_place = match answer.status {
        // The resource itself, or its group, does not exist.
        404 => {
            let group = resource.group_name().unwrap_or_default();
            let (name, group) = (resource.name().to_lowercase(), group.to_lowercase());
            let quoted = |word: &str| text.to_lowercase().contains(&format!("'{word}'"));
            let kind = resource.resource_type().to_lowercase();
            error.has_code("ResourceGroupNotFound") && quoted(&group) || quoted(&format!("{kind}/{name}"))
        }
        // The permission is missing, or the lock is set, on the resource itself or above it.
        403 | 409 if error.has_code("AuthorizationFailed") || error.has_code("ScopeLocked") => {
            let mut named = ids_in(&text).peekable();
            named.peek().is_some() && named.all(|id| resource == &id || resource.is_within(&id))
        }
        _ => false,
    };
    if is_said_of_place { Scope::All } else { Scope::Unclear }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arm::{Detail, ServiceError};

    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/rg";
    const PIP: &str = "/subscriptions/s/resourceGroups/ips/providers/Microsoft.Network/publicIPAddresses/web";

    fn error(status: u16, code: &str, message: &str, detail: &str) -> arm::Error {
        let lb = ResourceId::group("s", "rg").resource("Microsoft.Network", "loadBalancers", "kubernetes");
        arm::Error::Service(Arc::new(ServiceError {
            method: "PUT".into(),
            subject: "loadBalancers/kubernetes".into(),
            resource: Some(lb),
            status,
            code: code.into(),
            message: message.into(),
            target: None,
            details: vec![Detail { code: detail.into(), ..Detail::default() }],
            request_id: None,
            retry_after: None,
        }))
    }

    /// LB-462. All kinds of failures, each with the owners of the load balancer that it concerns.
    #[test]
    fn how_many_owners_each_kind_of_failure_concerns() {
        let own = format!("{GROUP}/providers/Microsoft.Network/loadBalancers/kubernetes");
        let over = |scope: &str| {
            format!(
                "The client 'c' with object id 'o' does not have authorization to perform action 'a/write' over \
                     scope '{scope}' or the scope is invalid."
            )
        };
        let linked = format!(
            "The client 'c' has permission to perform action 'a/write' on scope '{own}'; however, it does not have \
             permission to perform action(s) 'join/action' on the linked scope(s) '{PIP}' (respectively)."
        );
        let locked = |scope: &str| {
            format!(
                "The scope '{own}' cannot perform write operation because following scope(s) are locked: \
                     '{scope}'. Please remove the lock and try again."
            )
        };
        let gone = |what: &str| format!("{what} was not found.");
        let (all, unclear) = (Scope::All, Scope::Unclear);
        for (status, code, message, expected) in [
            (400, "InvalidRequestFormat", "m", unclear),
            (400, "ReadOnlyDisabledSubscription", "m", all),
            (401, "InvalidAuthenticationToken", "m", all),
            (403, "AuthorizationFailed", &*over(&own), all),
            (403, "AuthorizationFailed", &*over(GROUP), all),
            (403, "AuthorizationFailed", &*over(PIP), unclear),
            (403, "AuthorizationFailed", "no scope", unclear),
            (403, "LinkedAuthorizationFailed", &*linked, unclear),
            (403, "RequestDisallowedByPolicy", "m", unclear),
            (403, "SomethingNew", "m", unclear),
            (404, "ResourceGroupNotFound", &*gone("Resource group 'rg'"), all),
            (404, "ResourceGroupNotFound", &*gone("Resource group 'ips'"), unclear),
            (
                404,
                "ResourceNotFound",
                &*gone("The Resource 'Microsoft.Network/loadBalancers/kubernetes' under resource group 'rg'"),
                all,
            ),
            (
                404,
                "ResourceNotFound",
                &*gone("The Resource 'Microsoft.Network/publicIPAddresses/web' under resource group 'rg'"),
                unclear,
            ),
            (409, "ScopeLocked", &*locked(GROUP), all),
            (409, "ScopeLocked", &*locked(PIP), unclear),
            (409, "AnotherOperationInProgress", "m", unclear),
            (409, "Whatever", "m", unclear),
            (412, "PreconditionFailed", "m", all),
            (429, "TooManyRequests", "m", all),
            (429, "RetryableError", "m", unclear),
            (500, "InternalServerError", "m", unclear),
            (503, "ServiceUnavailable", "m", all),
            (200, "SubnetIsFull", "an operation that failed later", unclear),
            (200, "InternalServerError", "m", unclear),
            (200, "TooManyRequests", "m", all),
        ] {
            assert_eq!(of(&error(status, code, message, ""), None), expected, "{status} {code} {message}");
        }
        assert_eq!(of(&error(400, "Outer", "m", "SubscriptionNotFound"), None), all);
        let lost = arm::Error::Transport { subject: "s".into(), reason: "r".into() };
        assert_eq!(of(&lost, None), all);
        let page = arm::Error::Malformed { subject: "s".into(), reason: "r".into() };
        assert_eq!(of(&page, None), unclear);
        // A missing permission on a resource of one owner says nothing about the others.
        let of_pip = error(403, "AuthorizationFailed", &over(&own), "");
        let shared = ResourceId::group("s", "rg").resource("Microsoft.Network", "loadBalancers", "other");
        assert_eq!(of(&of_pip, Some(&shared)), unclear);
    }
}
