//! The corpus as Services of one cluster: each entry in a namespace of its own, with its names (users' public IPs,
//! private addresses, DNS labels) made unique, too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::Context as _;
use explorer::corpus::{self, Entry, Expectations};
use explorer::expectation::{Expectation, Upstream};
use explorer::rule::IpFamily;
use explorer::stage::{InitialResource, common_resources};
use serde_json::Value;
use simulated_cluster::Shape;

use super::shapes::Kind;

/// An entry of the corpus, ready for one cluster with all others.
#[derive(Debug, Clone)]
pub struct Case {
    /// The entry's name, which is also its namespace.
    pub name: String,
    /// Its Services.
    pub objects: Vec<Value>,
    /// `namespace/name` of those Services, each with the number of its addresses.
    pub services: BTreeMap<String, usize>,
    /// The resources that it needs in Azure.
    pub given: Vec<InitialResource>,
    /// Consecutive changes of its Services after they are served.
    pub then: Vec<Change>,
    /// Whether a Service of it has an IPv6 address.
    needs_ipv6: bool,
    /// Whether it depends on machines, pools or load balancers.
    depends_on_cluster: bool,
    /// How the replaced program serves it differently.
    pub upstream: Option<Upstream>,
}

/// A change of a case's Services.
#[derive(Debug, Clone)]
pub struct Change {
    /// Merge patches by `namespace/name`.
    pub patches: BTreeMap<String, Value>,
    /// Services that are deleted.
    pub delete: Vec<String>,
    /// The Services that are served afterwards, among the changed ones, each with the number of its addresses.
    pub services: BTreeMap<String, usize>,
}

impl Case {
    /// Whether it is handed over in clusters of this kind.
    pub fn stands_in(&self, kind: Kind) -> bool {
        let families = kind.dual_stack || !self.needs_ipv6;
        families && (kind.whole || self.depends_on_cluster)
    }

    /// Why it is not handed over between the two programs in clusters of this kind.
    pub fn left_out(&self, kind: Kind) -> Option<&str> {
        let upstream = self.upstream.as_ref()?;
        let applies = upstream.clusters.as_ref().is_none_or(|word| kind.to_string().contains(word));
        applies.then_some(upstream.differs.as_str())
    }
}

/// Reads the corpus: the entries whose Services are all served, with `changes` until their deletion.
///
/// # Errors
/// The corpus cannot be read.
pub fn read(only: &str, changes: bool) -> anyhow::Result<Vec<Case>> {
    let mut entries = corpus::read(&corpus::folder()).map_err(anyhow::Error::msg)?;
    entries.retain(|entry| format!("{}/{}", entry.folder, entry.name).contains(only));
    // A chosen node port must not have been allocated to another Service before.
    entries.sort_by_key(|entry| !format!("{:?}", entry.objects).to_lowercase().contains("nodeport\""));
    let mut names = Names::default();
    let mut cases = Vec::new();
    for mut entry in entries {
        if !changes {
            entry.then.clear();
        }
        let is_served = |one: &Expectation| matches!(one, Expectation::Served(_));
        let after = entry.then.iter().flat_map(|change| change.expect.values());
        // A refused Service is retried again and again.
        let goes = |one: &Expectation| match one {
            Expectation::Served(served) => !served.warnings.iter().any(|text| text.contains("Failed")),
            other => matches!(other, Expectation::Released),
        };
        if entry.known.is_some() || !entry.expect.values().all(is_served) || !after.clone().all(goes) {
            continue;
        }
        cases.push(names.case(&entry).with_context(|| entry.name.clone())?);
    }
    Ok(cases)
}

/// Folders of entries that depend on the cluster; the others depend only on the Service.
const OF_CLUSTERS: [&str; 4] = ["families", "placement", "real", "together"];

/// The values that earlier entries use.
#[derive(Debug, Default)]
struct Names {
    addresses: BTreeSet<IpAddr>,
    labels: BTreeSet<String>,
}

/// Annotations whose values must be unique in a region or resource group.
const UNIQUE: [&str; 2] =
    ["service.beta.kubernetes.io/azure-dns-label-name", "service.beta.kubernetes.io/azure-pls-name"];

impl Names {
    fn case(&mut self, entry: &Entry) -> anyhow::Result<Case> {
        let patches: Vec<_> = entry.then.iter().map(|change| &change.patches).collect();
        let mut text = serde_json::to_string(&(&entry.objects, patches))?;
        let mut given = Vec::new();
        for mut one in common_resources() {
            if one.kind == "publicIPAddresses" {
                let own = format!("{}-{}", one.name, entry.name);
                let replaced =
                    text.replace(&one.name, &own).replace(&one.name.to_uppercase(), &own.to_uppercase());
                if replaced == text {
                    continue;
                }
                text = replaced;
                one.name = own;
            }
            given.push(one);
        }
        let (mut objects, mut patches): (Vec<Value>, Vec<BTreeMap<String, Value>>) =
            serde_json::from_str(&text)?;
        objects.retain(|object| object["kind"] == "Service");
        let mut own = BTreeMap::new();
        for object in &mut objects {
            self.make_own(object, &mut own);
            object["metadata"]["namespace"] = entry.name.as_str().into();
        }
        for patch in patches.iter_mut().flat_map(BTreeMap::values_mut) {
            self.make_own(patch, &mut own);
        }
        // A Service of an entry is identified by its name alone; the namespace is the entry's.
        let here = |key: &String| format!("{}/{}", entry.name, key.rsplit('/').next().unwrap_or_default());
        let served = |expect: &Expectations| -> BTreeMap<String, usize> {
            let addresses = expect.iter().filter_map(|(key, one)| match one {
                Expectation::Served(served) => Some((here(key), served.families.len())),
                _ => None,
            });
            addresses.collect()
        };
        let is_v6 =
            |one: &Expectation| matches!(one, Expectation::Served(s) if s.families.contains(&IpFamily::V6));
        let all = entry.expect.values().chain(entry.then.iter().flat_map(|change| change.expect.values()));
        let needs_ipv6 = all.into_iter().any(is_v6);
        let then = patches.into_iter().zip(&entry.then).map(|(patches, change)| Change {
            patches: patches.into_iter().map(|(key, patch)| (here(&key), patch)).collect(),
            delete: change.delete.iter().map(here).collect(),
            services: served(&change.expect),
        });
        Ok(Case {
            name: entry.name.clone(),
            objects,
            services: served(&entry.expect),
            given,
            then: then.collect(),
            needs_ipv6,
            depends_on_cluster: OF_CLUSTERS.contains(&entry.folder.as_str()) || entry.name.contains("local"),
            upstream: entry.upstream.clone(),
        })
    }

    /// Replaces addresses and names that an earlier entry uses; `own` contains those of this entry.
    fn make_own(&mut self, value: &mut Value, own: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    match member.as_str() {
                        Some(label) if !label.is_empty() && UNIQUE.contains(&key.as_str()) => {
                            let new =
                                own.entry(label.to_owned()).or_insert_with(|| self.label(label)).clone();
                            *member = new.into();
                        }
                        _ => self.make_own(member, own),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.make_own(item, own)),
            Value::String(text) => {
                if let Ok(address) = text.parse()
                    && is_of_the_network(address)
                {
                    let new = own.entry(text.clone()).or_insert_with(|| self.address(address).to_string());
                    text.clone_from(new);
                }
            }
            _ => {}
        }
    }

    fn address(&mut self, mut address: IpAddr) -> IpAddr {
        while !self.addresses.insert(address) {
            address = match address {
                IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) + 1).into()),
                IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) + 1).into()),
            };
        }
        address
    }

    fn label(&mut self, label: &str) -> String {
        let mut new = label.to_owned();
        let mut number = 1;
        while !self.labels.insert(new.clone()) {
            number += 1;
            new = format!("{label}-{number}");
        }
        new
    }
}

fn is_of_the_network(address: IpAddr) -> bool {
    let within = |network: &str| {
        let (first, length) = network.split_once('/').unwrap_or((network, "0"));
        let bits: u32 = length.parse().unwrap_or_default();
        match (first.parse(), address) {
            (Ok(IpAddr::V4(first)), IpAddr::V4(v4)) => {
                (u32::from(first) ^ u32::from(v4)).leading_zeros() >= bits
            }
            (Ok(IpAddr::V6(first)), IpAddr::V6(v6)) => {
                (u128::from(first) ^ u128::from(v6)).leading_zeros() >= bits
            }
            _ => false,
        }
    };
    within(Shape::NETWORK_V4) || within(Shape::NETWORK_V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_entries_want_the_same() {
        let cases = read("", true).unwrap();
        let mut seen = BTreeSet::new();
        for case in &cases {
            let mut given: Vec<&str> = case.given.iter().map(|one| one.name.as_str()).collect();
            given.retain(|name| !name.starts_with("prefix-"));
            for name in given {
                assert!(seen.insert(name.to_owned()), "{name} is there twice");
            }
        }
        assert!(cases.len() > 200);
        let label = serde_json::json!({UNIQUE[0]: "", UNIQUE[1]: "link"});
        let mut names = Names::default();
        for expected in [label.clone(), serde_json::json!({UNIQUE[0]: "", UNIQUE[1]: "link-2"})] {
            let mut own = label.clone();
            names.make_own(&mut own, &mut BTreeMap::new());
            assert_eq!(own, expected);
        }
        let mut value = serde_json::json!({"a": "10.240.8.8", "b": ["10.240.8.8", "10.240.99.0/24"]});
        names.make_own(&mut value, &mut BTreeMap::new());
        names.make_own(&mut value, &mut BTreeMap::new());
        assert_eq!(value, serde_json::json!({"a": "10.240.8.9", "b": ["10.240.8.9", "10.240.99.0/24"]}));
    }
}
