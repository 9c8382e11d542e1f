//! The entries of the tables of built-in roles.

pub(super) struct Role {
    pub(super) guid: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) actions: &'static [&'static str],
    pub(super) not_actions: &'static [&'static str],
    pub(super) data_actions: &'static [&'static str],
    pub(super) not_data_actions: &'static [&'static str],
}

pub(super) const fn role(guid: &'static str, name: &'static str, description: &'static str) -> Role {
    Role { guid, name, description, actions: &[], not_actions: &[], data_actions: &[], not_data_actions: &[] }
}

/// Actions that most roles have in common.
macro_rules! usual {
    ($($action:literal),* $(,)?) => {
        &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Insights/alertRules/*",
            "Microsoft.Resources/deployments/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Support/*",
            $($action),*
        ]
    };
}

pub(super) use usual;
