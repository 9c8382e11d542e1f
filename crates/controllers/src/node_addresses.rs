//! The addresses of a node: those of the cloud, those that the kubelet requested, and those that are set.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s::{Node, NodeAddress, names};

const HOSTNAME: &str = "Hostname";

/// The kubelet requests an address that the machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to find kubelet node IP from cloud provider: annotation {} of node {node} asks for {requested:?}, which is not among the machine's addresses \
     ({available}); correct the kubelet's --node-ip",
    names::ANNOTATION_PROVIDED_NODE_IP
)]
pub struct ProvidedAddressMissing {
    /// The node.
    pub node: String,
    /// The requested address.
    pub requested: String,
    /// The machine's addresses, separated by commas.
    pub available: String,
}

/// The desired addresses of a node, from those of its machine.
///
/// An existing host name of the node stays if the cloud provides none. The addresses that the kubelet requested come
/// first, in its order; others of the same types are left out.
pub(crate) fn desired(
    node: &Node,
    cloud: &[NodeAddress],
) -> Result<Vec<NodeAddress>, ProvidedAddressMissing> {
    let mut addresses = cloud.to_vec();
    if !cloud.iter().any(|address| address.kind == HOSTNAME) {
        addresses.extend(node.status.addresses.iter().filter(|a| a.kind == HOSTNAME).cloned());
    }
    let Some(provided) = node.provided_node_ip().filter(|provided| !provided.is_empty()) else {
        return Ok(addresses);
    };
    let mut chosen: Vec<NodeAddress> = Vec::new();
    for requested in provided.split(',').map(str::trim) {
        let matching = requested.parse().ok().map(|requested| {
            addresses
                .iter()
                .filter(move |address| ip(&address.address) == Some(requested))
                .collect::<Vec<_>>()
        });
        match matching {
            Some(matching) if !matching.is_empty() => chosen.extend(matching.into_iter().cloned()),
            _ => {
                let available: Vec<_> = addresses.iter().map(|address| address.address.as_str()).collect();
                return Err(ProvidedAddressMissing {
                    node: node.name().to_owned(),
                    requested: requested.to_owned(),
                    available: available.join(", "),
                });
            }
        }
    }
    let matched = chosen.len();
    for address in addresses {
        if !chosen.iter().take(matched).any(|other| other.kind == address.kind) {
            chosen.push(address);
        }
    }
    Ok(chosen)
}

fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum AddressFamily {
    V4,
    V6,
    Name,
}

/// Whether two lists differ: in any address of any type and family, or in the order within one.
///
/// The order between types does not count, so that programs that list them differently do not overwrite each other.
/// Upstream keeps one address per type while comparing, and misses changes of others.
pub(crate) fn differ(old: &[NodeAddress], new: &[NodeAddress]) -> bool {
    grouped(old) != grouped(new)
}

fn grouped(addresses: &[NodeAddress]) -> BTreeMap<(&str, AddressFamily), Vec<&str>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for address in addresses {
        let family = match ip(&address.address) {
            Some(IpAddr::V4(_)) => AddressFamily::V4,
            Some(IpAddr::V6(_)) => AddressFamily::V6,
            None => AddressFamily::Name,
        };
        groups.entry((address.kind.as_str(), family)).or_default().push(address.address.as_str());
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn list(addresses: Pairs<'_>) -> Vec<NodeAddress> {
        (addresses.iter())
            .map(|(kind, address)| NodeAddress { kind: (*kind).into(), address: (*address).to_owned() })
            .collect()
    }

    fn node(provided: Option<&str>, existing: &[(&str, &str)]) -> Node {
        let mut node: Node = serde_json::from_value(json!({"metadata": {"name": "n1"}})).unwrap();
        node.status.addresses = list(existing);
        if let Some(provided) = provided {
            let annotation = (names::ANNOTATION_PROVIDED_NODE_IP.to_owned(), provided.to_owned());
            node.metadata.annotations = Some([annotation].into());
        }
        node
    }

    #[test]
    fn the_cloud_is_believed_and_a_host_name_is_kept() {
        let cloud = list(&[("InternalIP", "10.0.0.4"), ("Hostname", "vm1")]);
        assert_eq!(desired(&node(None, &[("Hostname", "old")]), &cloud), Ok(cloud.clone()));
        let bare = list(&[("InternalIP", "10.0.0.4")]);
        let with_name = list(&[("InternalIP", "10.0.0.4"), ("Hostname", "old")]);
        let existing = [("Hostname", "old"), ("InternalIP", "10.0.0.9")];
        assert_eq!(desired(&node(None, &existing), &bare), Ok(with_name));
    }

    /// NODE-117
    #[test]
    fn node_117_every_address_that_the_kubelet_asks_for_must_be_the_machines() {
        let cloud = list(&[("InternalIP", "10.0.0.1"), ("InternalIP", "fd47:e6c4::5")]);
        for accepted in ["", "10.0.0.1", "10.0.0.1,fd47:e6c4::5", " 10.0.0.1 , fd47:e6c4::5 "] {
            assert!(desired(&node(Some(accepted), &[]), &cloud).is_ok(), "{accepted}");
        }
        for refused in ["10.0.0.1,fd47:e6c4::6", "10.0.0.1,10.0.0.2", "10.0.0.2"] {
            let error = desired(&node(Some(refused), &[]), &cloud).unwrap_err().to_string();
            assert!(error.starts_with("failed to find kubelet node IP from cloud provider"), "{error}");
        }
    }

    #[test]
    fn provided_addresses_come_first_and_displace_their_type() {
        let cloud = list(&[
            ("InternalIP", "10.0.0.4"),
            ("InternalIP", "10.0.0.5"),
            ("InternalIP", "fd00::5"),
            ("Hostname", "vm1"),
            ("ExternalIP", "20.0.0.1"),
        ]);
        let rows: [(&str, Pairs<'_>); 3] = [
            ("10.0.0.5", &[("InternalIP", "10.0.0.5"), ("Hostname", "vm1"), ("ExternalIP", "20.0.0.1")]),
            (
                "fd00:0::5, 10.0.0.4",
                &[
                    ("InternalIP", "fd00::5"),
                    ("InternalIP", "10.0.0.4"),
                    ("Hostname", "vm1"),
                    ("ExternalIP", "20.0.0.1"),
                ],
            ),
            (
                "20.0.0.1",
                &[
                    ("ExternalIP", "20.0.0.1"),
                    ("InternalIP", "10.0.0.4"),
                    ("InternalIP", "10.0.0.5"),
                    ("InternalIP", "fd00::5"),
                    ("Hostname", "vm1"),
                ],
            ),
        ];
        for (provided, expected) in rows {
            assert_eq!(desired(&node(Some(provided), &[]), &cloud), Ok(list(expected)), "{provided}");
        }
        for missing in ["10.0.0.6", "10.0.0.4,fd00::6", "10.0.0.4,", "vm1"] {
            let error = desired(&node(Some(missing), &[]), &cloud).unwrap_err().to_string();
            assert!(error.contains("n1") && error.contains("10.0.0.4, 10.0.0.5"), "{error}");
        }
    }

    /// NODE-121
    #[test]
    fn node_121_changes_are_seen_by_type_and_family() {
        let old = [("InternalIP", "10.0.0.4"), ("InternalIP", "fd00::4"), ("Hostname", "vm1")];
        let rows: [(&str, Pairs<'_>, bool); 6] = [
            ("same", &old, false),
            (
                "types in another order",
                &[("Hostname", "vm1"), ("InternalIP", "10.0.0.4"), ("InternalIP", "fd00::4")],
                false,
            ),
            (
                "first of two of a type",
                &[("InternalIP", "10.0.0.5"), ("InternalIP", "fd00::4"), ("Hostname", "vm1")],
                true,
            ),
            (
                "one of the other family",
                &[("InternalIP", "10.0.0.4"), ("InternalIP", "fd00::5"), ("Hostname", "vm1")],
                true,
            ),
            ("one fewer", &old[..2], true),
            ("name", &[old[0], old[1], ("Hostname", "vm2")], true),
        ];
        for (name, new, expected) in rows {
            assert_eq!(differ(&list(&old), &list(new)), expected, "{name}");
        }
        let two = |a, b| list(&[("InternalIP", a), ("InternalIP", b)]);
        assert!(differ(&two("10.0.0.4", "10.0.0.5"), &two("10.0.0.5", "10.0.0.4")), "the first one is used");
    }
}
