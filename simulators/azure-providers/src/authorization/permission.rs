//! What a role allows ("Understand Azure role definitions").

use azure_engine::document::items;
use azure_engine::glob::matches;
use serde_json::Value;

/// Whether a member of `permissions` lists an action.
fn lists(permission: &Value, member: &str, action: &str) -> bool {
    items(permission, member).iter().filter_map(Value::as_str).any(|listed| stands_for(listed, action))
}

/// `*` stands for anything, and a whole segment for none, too: "Managed Identity Operator" lists
/// `userAssignedIdentities/*/assign/action`, and assigns identities.
fn stands_for(listed: &str, action: &str) -> bool {
    matches(listed, action) || listed.contains("/*/") && matches(&listed.replace("/*/", "/"), action)
}

/// Whether a role's `permissions` allow an action. `members` are the list of what is allowed and that of what is
/// excepted.
///
/// What one permission excepts another one may allow.
pub(super) fn allow(permissions: &[Value], members: (&str, &str), action: &str) -> bool {
    let (allowed, excepted) = members;
    permissions
        .iter()
        .any(|permission| lists(permission, allowed, action) && !lists(permission, excepted, action))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::allow;

    #[test]
    fn what_is_excepted_is_not_allowed_unless_elsewhere() {
        let first = json!({ "actions": ["Microsoft.Network/*", "*/read", "N/things/*/look/action"], "notActions": ["*/delete", "N/secrets/*"] });
        let second = json!({ "actions": ["N/secrets/list/action"] });
        let members = ("actions", "notActions");
        for (action, expected) in [
            ("microsoft.network/loadBalancers/write", true),
            ("Microsoft.Network/loadBalancers/delete", false),
            ("Microsoft.Compute/disks/read", true),
            ("Microsoft.Compute/disks/write", false),
            ("N/secrets/read", false),
            ("N/things/sub/look/action", true),
            ("N/things/look/action", true),
            ("N/things/look", false),
            ("N/secrets/list/action", true),
        ] {
            assert_eq!(allow(&[first.clone(), second.clone()], members, action), expected, "{action}");
        }
        assert!(!allow(&[first], ("dataActions", "notDataActions"), "Microsoft.Network/x/read"));
    }
}
