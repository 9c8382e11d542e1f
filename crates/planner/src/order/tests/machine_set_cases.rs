//! Cases of `docs/rules/nodes.md` about sets of machines.

use std::collections::BTreeMap;

use crate::machines::machine_set::{MaskSizes, mask_sizes};

/// NODE-067: a missing tag, or an invalid mask, means the default.
#[test]
fn node_067_the_masks_of_a_sets_nodes_are_in_its_tags() {
    const V4: &str = "kubernetesNodeCIDRMaskIPV4";
    const V6: &str = "kubernetesNodeCIDRMaskIPV6";
    for (tags, expected, problems) in [
        (vec![], (24, 64), 0),
        (vec![(V4, "25"), (V6, "80")], (25, 80), 0),
        (vec![(V4, "25")], (25, 64), 0),
        (vec![(V4, "abc"), (V6, "80")], (24, 80), 1),
        (vec![(V4, "0"), (V6, "129")], (24, 64), 2),
        (vec![(V4, "33"), (V6, "-1")], (24, 64), 2),
        (vec![("KubernetesNodeCidrMaskIpv4", "25")], (24, 64), 0),
    ] {
        let tags: BTreeMap<String, String> =
            tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let (masks, found) = mask_sizes(Some(&tags));
        assert_eq!(
            (masks, found.len()),
            (MaskSizes { v4: expected.0, v6: expected.1 }, problems),
            "{tags:?}"
        );
        assert!(found.iter().all(|problem| problem.to_string().contains(problem.tag)));
    }
    assert_eq!(mask_sizes(None), (MaskSizes::default(), Vec::new()));
}
