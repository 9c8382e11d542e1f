//! Sets of machines: their tags with the sizes of the pod ranges of their nodes.

use std::collections::HashMap;

use azure_types::{ResourceId, Tags, VirtualMachine};
use k8s::Node;
use machine::{self as instance, ProviderId};

/// The tags of scale sets and availability sets with the mask sizes of their nodes' ranges, and the longest prefix.
const MASKS: [(&str, u8); 2] = [("kubernetesNodeCIDRMaskIPV4", 32), ("kubernetesNodeCIDRMaskIPV6", 128)];

/// The prefix lengths of a node's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskSizes {
    /// The length of its IPv4 prefix.
    pub v4: u8,
    /// The length of its IPv6 prefix.
    pub v6: u8,
}

impl Default for MaskSizes {
    /// The sizes without a tag: 256 addresses, and 2^64.
    fn default() -> Self {
        Self { v4: 24, v6: 64 }
    }
}

/// A tag with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tag {tag} of a set of machines is `{value}`: write a number from 1 to {longest}; until then /{instead} counts"
)]
pub struct MaskProblem {
    /// The tag.
    pub tag: &'static str,
    /// Its value.
    pub value: String,
    /// The longest prefix of its family.
    pub longest: u8,
    /// The value that is used instead.
    pub instead: u8,
}

/// The mask sizes of a set's nodes, by its tags, and the problems of these tags.
pub fn mask_sizes(tags: Option<&Tags>) -> (MaskSizes, Vec<MaskProblem>) {
    let default = MaskSizes::default();
    let mut problems = Vec::new();
    let mut size = |(tag, longest): (&'static str, u8), instead: u8| {
        let Some(value) = tags.and_then(|tags| tags.get(tag)) else { return instead };
        match value.parse() {
            Ok(size) if (1..=longest).contains(&size) => size,
            _ => {
                problems.push(MaskProblem { tag, value: value.clone(), longest, instead });
                instead
            }
        }
    };
    let [v4, v6] = MASKS;
    (MaskSizes { v4: size(v4, default.v4), v6: size(v6, default.v6) }, problems)
}

/// The sets of standalone virtual machines: availability sets and flexible scale sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineSets(HashMap<ResourceId, Option<String>>);

/// The set that a node's machine belongs to.
pub(crate) enum MachineSet {
    Named(String),
    /// It belongs to no set.
    Alone,
    /// Azure has not reported it yet.
    Unknown,
}

impl MachineSets {
    /// Reads the sets from the documents of virtual machines.
    pub fn new<'a>(machines: impl IntoIterator<Item = &'a VirtualMachine>) -> Self {
        let set_of = |machine: &VirtualMachine| {
            let properties = machine.properties.as_ref()?;
            let set =
                properties.virtual_machine_scale_set.as_ref().or(properties.availability_set.as_ref())?;
            Some(set.id.as_ref()?.name().to_owned())
        };
        Self(machines.into_iter().filter_map(|one| Some((one.id.clone()?, set_of(one)))).collect())
    }

    pub(crate) fn of(&self, node: &Node) -> MachineSet {
        match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(machine) => MachineSet::Named(machine.scale_set.name().to_owned()),
            ProviderId::Machine(id) => match self.0.get(&id) {
                Some(Some(set)) => MachineSet::Named(set.clone()),
                Some(None) => MachineSet::Alone,
                None => MachineSet::Unknown,
            },
            ProviderId::Unreadable | ProviderId::Other => MachineSet::Alone,
        }
    }
}
