//! What a table says of a role of Azure's own.

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

/// What most roles may read and do besides.
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
