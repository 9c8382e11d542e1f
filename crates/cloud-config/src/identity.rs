//! The keys that say where a cluster's resources are. Another value would leave all of them behind, so a running program
//! keeps the value with which it started.

use crate::{CloudConfig, Problem, Remedy};

/// A key, and its effective value.
type IdentityKey = (&'static str, fn(&CloudConfig) -> &str);

impl CloudConfig {
    /// Whether both have the same effect: they differ at most in keys without effect.
    pub fn has_effect_of(&self, other: &Self) -> bool {
        let without_remarks = |config: &Self| Self { remarks: Vec::new(), ..config.clone() };
        without_remarks(self) == without_remarks(other)
    }

    /// The keys of `new` that say where the cluster's resources are and that differ from this configuration, with which
    /// a program runs. Resources in Azure are compared without regard to case.
    pub fn changed_identity(&self, new: &Self) -> Vec<Problem> {
        let keys: [IdentityKey; 8] = [
            ("cloud", |config| &config.cloud),
            ("resourceManagerEndpoint", |config| &config.resource_manager_endpoint),
            ("subscriptionId", |config| &config.subscription_id),
            ("networkResourceSubscriptionID", |config| config.network_subscription_id()),
            ("resourceGroup", |config| &config.resource_group),
            ("loadBalancerResourceGroup", |config| config.load_balancer_resource_group()),
            ("loadBalancerName", |config| &config.load_balancer_name),
            ("location", |config| &config.location),
        ];
        let changed = keys.iter().filter(|(_, value)| !value(self).eq_ignore_ascii_case(value(new)));
        let problem = |(key, value): &IdentityKey| {
            let reason = "a running program does not move to other resources";
            let former = value(self);
            let remedy = if former.is_empty() { Remedy::remove(key) } else { Remedy::set(key, former) };
            let note = ", or restart the program after a look at what --dry-run prints";
            Problem::new(*key, value(new), reason, remedy.note(note))
        };
        changed.map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NODE-290.
    #[test]
    fn node_290_a_running_program_stays_with_its_resources() {
        let config = |more: &str| {
            let text = format!("subscriptionId: s\nresourceGroup: Group\nlocation: westeurope\n{more}\n");
            CloudConfig::parse(&text).unwrap()
        };
        let running = config("aadClientSecret: a");
        for same in [
            "aadClientSecret: b",
            "tags: a=b",
            "networkResourceSubscriptionID: S",
            "loadBalancerResourceGroup: group",
            "tenantId: t",
            "securityGroupName: other",
        ] {
            assert_eq!(running.changed_identity(&config(same)), [], "{same}");
        }
        for (key, value) in [
            ("cloud", "AzureChinaCloud"),
            ("resourceManagerEndpoint", "https://x"),
            ("networkResourceSubscriptionID", "t"),
            ("loadBalancerResourceGroup", "other"),
            ("loadBalancerName", "other"),
        ] {
            let found = running.changed_identity(&config(&format!("{key}: {value}")));
            let [problem] = &found[..] else { panic!("{key}: {found:?}") };
            assert!(problem.to_string().starts_with(&format!("{key}={value}: ")), "{problem}");
        }
        let moved = CloudConfig::parse("subscriptionId: t\nresourceGroup: h\nlocation: eastus\n").unwrap();
        let found: Vec<String> =
            running.changed_identity(&moved).into_iter().map(|problem| problem.key).collect();
        let expected = [
            "subscriptionId",
            "networkResourceSubscriptionID",
            "resourceGroup",
            "loadBalancerResourceGroup",
            "location",
        ];
        assert_eq!(found, expected);
        assert!(
            running.changed_identity(&moved)[0].to_string().contains("set subscriptionId to s, or restart")
        );
    }

    #[test]
    fn a_key_without_effect_changes_nothing() {
        let config = |text: &str| CloudConfig::parse(text).unwrap();
        assert!(config("nsgCacheTTLInSeconds: 7").has_effect_of(&config("userAgent: ' '\nunknown: 1")));
        assert!(!config("aadClientSecret: a").has_effect_of(&config("aadClientSecret: b")));
    }
}
