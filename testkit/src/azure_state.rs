//! Azure's state, without irrelevant differences between two runs.

use std::collections::BTreeMap;

use azure_simulator::Azure;
use kubernetes_simulator::Kubernetes;
use serde_json::Value;

use crate::types;
use crate::world::World;

/// Members that say when or how often something was written.
const VOLATILE: [&str; 6] =
    ["etag", "resourceGuid", "timeCreated", "time", "provisioningTime", "LastOwnershipUpdateTime"];

/// All documents of an Azure, by ID. Etags, GUIDs and times are left out; allocated public addresses and the parts of
/// names that come from a Service's UID are replaced by words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureState(BTreeMap<String, String>);

impl World {
    /// The current state.
    pub fn azure_state(&self) -> AzureState {
        AzureState::of(&self.azure, &self.kubernetes)
    }
}

impl AzureState {
    /// The state of an Azure that serves this Kubernetes.
    pub fn of(azure: &Azure, kubernetes: &Kubernetes) -> Self {
        let services = kubernetes.list("Service");
        let mut words: Vec<(String, String)> = services
            .iter()
            .map(|service| {
                let mut name = format!("a{}", service.uid().replace('-', ""));
                name.truncate(32);
                (name, format!("<{}/{}>", service.namespace(), service.name()))
            })
            .collect();
        for ip in azure.documents_of_type(types::PUBLIC_IPS) {
            if let (Some(address), Some(name)) = (ip["properties"]["ipAddress"].as_str(), ip["name"].as_str())
            {
                words.push((format!("\"{address}\""), format!("\"<address of {name}>\"")));
            }
        }
        let documents = azure.documents().into_iter().map(|mut document| {
            normalise(&mut document);
            let id = document["id"].as_str().unwrap_or_default().to_owned();
            let text = serde_json::to_string_pretty(&document).expect("it is JSON");
            // Addresses first: their words contain names.
            let say = |text: String| words.iter().rev().fold(text, |text, (from, to)| text.replace(from, to));
            (say(id), say(text))
        });
        Self(documents.collect())
    }

    /// The lines in which another state differs; empty without a difference.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let ids = self.0.keys().chain(other.0.keys()).collect::<std::collections::BTreeSet<_>>();
        for id in ids {
            match (self.0.get(id), other.0.get(id)) {
                (Some(mine), Some(its)) if mine != its => {
                    found.push(format!("~ {id}"));
                    let lines = mine.lines().zip(its.lines()).filter(|(mine, its)| mine != its).take(6);
                    found.extend(lines.flat_map(|(mine, its)| [format!("  - {mine}"), format!("  + {its}")]));
                }
                (Some(_), None) => found.push(format!("- {id}")),
                (None, Some(_)) => found.push(format!("+ {id}")),
                _ => {}
            }
        }
        found
    }
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            members.values_mut().for_each(normalise);
        }
        Value::Array(items) => {
            items.iter_mut().for_each(normalise);
            // Azure's lists of named items are unordered.
            items.sort_by_key(ToString::to_string);
        }
        _ => {}
    }
}
