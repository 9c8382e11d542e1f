//! Sets of machines: what their tags say of the ranges of addresses that pods on their nodes get.

use azure_types::Tags;

/// The tags of scale sets and availability sets that say how large the ranges of their nodes are, and the longest prefix.
const MASKS: [(&str, u8); 2] = [("kubernetesNodeCIDRMaskIPV4", 32), ("kubernetesNodeCIDRMaskIPV6", 128)];

/// How long the prefixes of a node's ranges are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskSizes {
    /// Of its IPv4 range.
    pub v4: u8,
    /// Of its IPv6 range.
    pub v6: u8,
}

impl Default for MaskSizes {
    /// Where no tag says otherwise: 256 addresses, and 2^64.
    fn default() -> Self {
        Self { v4: 24, v6: 64 }
    }
}

/// A tag that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tag {tag} of a set of machines is `{value}`: write a number from 1 to {longest}; until then /{instead} counts"
)]
pub struct MaskProblem {
    /// The tag.
    pub tag: &'static str,
    /// What it says.
    pub value: String,
    /// The longest prefix of its family.
    pub longest: u8,
    /// What counts in its place.
    pub instead: u8,
}

/// The masks of a set's nodes, by its tags; and what is wrong with these.
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
