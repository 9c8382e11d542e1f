//! Network security groups.

use crate::common::Tags;
use crate::field_error::Field;
use crate::object::object;
use crate::text::is_set;

/// The default rules of a control plane's security group, unless another rule is for the same port: SSH and the API
/// server. The controller adds them.
pub const COMPLETED_RULES: [&str; 2] = ["allow_ssh", "allow_apiserver"];

object! {
    /// A network security group.
    SecurityGroup {
        /// The id of the group in Azure. Set by the controller.
        id: String,
        /// The name of the group.
        #[schemars(required)]
        name: String,
        /// Rules of the group.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        security_rules: Vec<SecurityRule>,
        /// Tags of the group.
        tags: Tags,
    }

    /// A network security group in a template: it has no name of its own.
    SecurityGroupClass {
        /// Rules of the group.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        security_rules: Vec<SecurityRule>,
        /// Tags of the group.
        tags: Tags,
    }

    /// A rule of a network security group.
    SecurityRule {
        /// Whether traffic is allowed or denied: Allow or Deny.
        #[schemars(extend("default" = "Allow", "enum" = ["Allow", "Deny"]))]
        action: String,
        /// A description, of at most 140 characters.
        #[schemars(required)]
        description: String,
        /// The destination: a range in CIDR notation, an address, `*`, or a service tag such as VirtualNetwork.
        destination: String,
        /// The destination ports: a port, a range, or `*`.
        destination_ports: String,
        /// The direction of the traffic: Inbound or Outbound.
        #[schemars(required, extend("enum" = ["Inbound", "Outbound"]))]
        direction: String,
        /// The name of the rule, unique within the group.
        #[schemars(required)]
        name: String,
        /// A number from 100 to 4096, unique within the group and direction. Rules with lower numbers are evaluated
        /// first.
        priority: i32,
        /// The protocol: Tcp, Udp, Icmp or `*`.
        #[schemars(required, extend("enum" = ["Tcp", "Udp", "Icmp", "*"]))]
        protocol: String,
        /// The source: a range in CIDR notation, an address, `*`, or a service tag such as Internet.
        source: String,
        /// The source ports: a port, a range, or `*`.
        source_ports: String,
        /// Several sources. Not together with source.
        sources: Vec<String>,
    }
}

/// Validates rules: priorities, and one of `source` and `sources`.
pub(crate) fn check_rules(rules: Option<&[SecurityRule]>, list: &Field<'_>) {
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let field = list.index(index);
        if let Some(priority) = rule.priority {
            let words = "security rule priorities should be between 100 and 4096";
            field.child("priority").invalid_if(!(100..=4096).contains(&priority), priority, words);
        }
        let sources = rule.sources.as_deref().unwrap_or_default();
        let has_both = is_set(&rule.source) && !sources.is_empty();
        let words = "security rules cannot have source and sources";
        field.child("sources").invalid_if(has_both, sources, words);
    }
}
