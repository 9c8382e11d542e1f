//! The network interfaces that are members of a backend pool.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::document::SubResource;
use crate::resource_id::ResourceId;

/// The number of IP configurations of network interfaces in a pool, and the resource groups of their interfaces.
///
/// A pool shows the ID of each, some three hundred letters for each of thousands of machines. They are read-only, and
/// membership is read from the machines, so the IDs are not needed and not kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberInterfaces {
    count: usize,
    /// The resource groups of interfaces that are resources of their own; those of a scale set's instances are parts of
    /// the set.
    groups: Vec<ResourceId>,
    /// Over all IDs, independent of their order and case.
    print: u64,
}

impl MemberInterfaces {
    /// The number of members.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A fingerprint of the members: it changes if another configuration is a member, and does not depend on the order.
    pub fn fingerprint(&self) -> u64 {
        self.print
    }

    /// Whether some members belong to interfaces of this resource group that are resources of their own.
    pub fn has_some_of(&self, group: &ResourceId) -> bool {
        self.groups.contains(group)
    }

    fn add(&mut self, configuration: &ResourceId) {
        self.count += 1;
        let mut hasher = DefaultHasher::new();
        configuration.to_lower().hash(&mut hasher);
        self.print = self.print.wrapping_add(hasher.finish());
        if self.groups.iter().any(|group| is_own(configuration, group)) {
            return;
        }
        let interface = configuration.parent().filter(is_of_network);
        self.groups.extend(interface.and_then(|interface| interface.parent()));
    }
}

fn is_of_network(id: &ResourceId) -> bool {
    id.namespace().is_some_and(|namespace| namespace.eq_ignore_ascii_case("Microsoft.Network"))
}

fn is_own(configuration: &ResourceId, group: &ResourceId) -> bool {
    configuration.is_within(group) && is_of_network(configuration)
}

impl<'de> Deserialize<'de> for MemberInterfaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct References;

        impl<'de> Visitor<'de> for References {
            type Value = MemberInterfaces;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of references to IP configurations")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<MemberInterfaces, A::Error> {
                let mut members = MemberInterfaces::default();
                while let Some(reference) = list.next_element::<SubResource>()? {
                    match &reference.id {
                        Some(configuration) => members.add(configuration),
                        None => members.count += 1,
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_seq(References)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// NODE-264: thousands of members are reduced to a number and their resource groups.
    #[test]
    fn node_264_members_are_counted_and_their_groups_known() {
        let group = |name: &str| ResourceId::group("s", name);
        let own = |name: &str, number: u32| {
            let interface =
                group(name).resource("Microsoft.Network", "networkInterfaces", &format!("nic-{number}"));
            json!({"id": interface.child("ipConfigurations", "ip").to_string()})
        };
        let of_instance = group("sets")
            .resource("Microsoft.Compute", "virtualMachineScaleSets", "ss")
            .child("virtualMachines", "0")
            .child("networkInterfaces", "nic")
            .child("ipConfigurations", "ip");
        let list = json!([own("one", 1), own("ONE", 2), own("two", 1), {"id": of_instance.to_string()}]);
        let members: MemberInterfaces = serde_json::from_value(list).unwrap();
        assert_eq!((members.len(), members.is_empty()), (4, false));
        assert!(members.has_some_of(&group("one")) && members.has_some_of(&group("TWO")));
        assert!(!members.has_some_of(&group("sets")) && !members.has_some_of(&group("on")));
        let none: MemberInterfaces = serde_json::from_value(json!([])).unwrap();
        assert!(none.is_empty() && !none.has_some_of(&group("one")));
    }
}
