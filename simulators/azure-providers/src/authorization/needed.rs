//! The action that a request needs, and its scope ("Azure resource provider operations").

use azure_types::ResourceId;

use azure_engine::request::target::{Extension, Scope, Target};
use azure_engine::verbs::dispatch::Located;

/// The action that a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needed {
    /// Such as `Microsoft.Network/loadBalancers/write`.
    pub(super) action: String,
    /// Its scope.
    pub(super) scope: ResourceId,
    /// Whether a right on anything in the subscription suffices: operations lie in the subscription, also those on
    /// resources of a group that the caller has rights on.
    pub(super) anywhere: bool,
}

/// The action that a request needs; `None` for requests that every signed-in caller may make.
pub(super) fn needed(located: &Located, method: &str, path: &str) -> Option<Needed> {
    let Target::Within(subscription, scope) = &located.target else { return None };
    let subscription = ResourceId::subscription(subscription);
    let verb = match method {
        "GET" | "HEAD" => "read",
        "DELETE" => "delete",
        "POST" => "action",
        _ => "write",
    };
    let at = |scope: &ResourceId, what: &str| {
        Some(Needed { action: format!("{what}/{verb}"), scope: scope.clone(), anywhere: false })
    };
    let anywhere = |what: String| {
        Some(Needed { action: format!("{what}/{verb}"), scope: subscription.clone(), anywhere: true })
    };
    const GROUPS: &str = "Microsoft.Resources/subscriptions/resourceGroups";
    match scope {
        Scope::Subscription => at(&subscription, "Microsoft.Resources/subscriptions"),
        Scope::Locations => at(&subscription, "Microsoft.Resources/subscriptions/locations"),
        Scope::Groups => at(&subscription, GROUPS),
        Scope::Group(group) => at(&ResourceId::group(subscription.subscription_id(), group), GROUPS),
        Scope::Resources(None) => at(&subscription, "Microsoft.Resources/subscriptions/resources"),
        Scope::Resources(Some(group)) => {
            let group = ResourceId::group(subscription.subscription_id(), group);
            at(&group, &format!("{GROUPS}/resources"))
        }
        Scope::Providers | Scope::Provider(_) => {
            at(&subscription, "Microsoft.Resources/subscriptions/providers")
        }
        Scope::ProviderAction(namespace, action) => at(&subscription, &format!("{namespace}/{action}")),
        Scope::Operation(namespace, ..) => {
            let kind = path.trim_end_matches('/').rsplit('/').nth(1).unwrap_or("operations");
            anywhere(format!("{namespace}/locations/{kind}"))
        }
        Scope::GroupOperation(_) => anywhere("Microsoft.Resources/subscriptions/operationresults".into()),
        Scope::Resource(group, namespace, segments) => match &located.resolved {
            Some(resolved) => at(&resolved.named_id(), &resolved.full_type),
            None => {
                let scope = match group {
                    Some(group) => ResourceId::group(subscription.subscription_id(), group),
                    None => subscription.clone(),
                };
                at(&scope, &type_path(namespace, segments))
            }
        },
        Scope::Extension(extension) => match &located.resolved {
            Some(resolved) => at(&resolved.named_id(), &resolved.full_type),
            None => at(&lies_on(&subscription, extension), &type_path(&extension.by, &extension.below)),
        },
    }
}

fn type_path(namespace: &str, segments: &[String]) -> String {
    let types: Vec<&str> = segments.iter().step_by(2).map(String::as_str).collect();
    format!("{namespace}/{}", types.join("/"))
}

/// What an extension lies on.
fn lies_on(subscription: &ResourceId, extension: &Extension) -> ResourceId {
    let scope = match &extension.group {
        Some(group) => ResourceId::group(subscription.subscription_id(), group),
        None => subscription.clone(),
    };
    let mut pairs = extension.segments.chunks_exact(2);
    let top = match pairs.next() {
        Some([kind, name]) => scope.resource(&extension.namespace, kind, name),
        _ => scope,
    };
    pairs.fold(top, |id, pair| match pair {
        [kind, name] => id.child(kind, name),
        _ => id,
    })
}
