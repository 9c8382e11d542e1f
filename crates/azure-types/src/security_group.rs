//! Network security groups (Azure REST reference, "Network Security Groups").

use crate::document::{SubResource, Word, document, part, resource};
use crate::member_interfaces::MemberInterfaces;

resource! {
    /// A network security group.
    SecurityGroup {
        /// Its rules.
        properties: SecurityGroupProperties,
    }
}

document! {
    /// The rules of a security group.
    SecurityGroupProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The rules that were written.
        security_rules: Vec<SecurityRule>,
        /// The subnets that it guards, as Azure says.
        subnets: Vec<SubResource>,
        /// The interfaces that it guards, one for each machine; read-only, owned by the interfaces: never written.
        #[serde(skip_serializing)]
        network_interfaces: MemberInterfaces,
    }
}

part! {
    /// One rule of a security group.
    SecurityRule {
        /// What the rule decides.
        properties: SecurityRuleProperties,
    }
}

document! {
    /// What a security rule decides. Of a singular member and its plural only one is in use.
    SecurityRuleProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// A remark for people.
        description: String,
        /// `Tcp`, `Udp`, `Icmp`, `Esp`, `Ah` or `*`.
        protocol: Word,
        /// `Allow` or `Deny`.
        access: Word,
        /// `Inbound` or `Outbound`.
        direction: Word,
        /// 100 to 4096; the lowest number decides.
        priority: i32,
        /// The source port or range, or `*`.
        source_port_range: String,
        /// Several source ports or ranges.
        source_port_ranges: Vec<String>,
        /// The destination port or range, or `*`.
        destination_port_range: String,
        /// Several destination ports or ranges.
        destination_port_ranges: Vec<String>,
        /// The source address, prefix, service tag or `*`.
        source_address_prefix: String,
        /// Several source addresses or prefixes.
        source_address_prefixes: Vec<String>,
        /// The destination address, prefix, service tag or `*`.
        destination_address_prefix: String,
        /// Several destination addresses or prefixes.
        destination_address_prefixes: Vec<String>,
        /// Source groups of interfaces.
        source_application_security_groups: Vec<SubResource>,
        /// Destination groups of interfaces.
        destination_application_security_groups: Vec<SubResource>,
    }
}
