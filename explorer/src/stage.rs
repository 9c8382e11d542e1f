//! The world in which entries are tried, and its initial resources.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};
use simulated_cluster::manifests;
use testkit::{AzureState, World, WorldBuilder};
use tokio::time::Instant;

use crate::corpus::{Expectations, key_of};
use crate::expectation::Expectation;
use crate::judge;
use crate::preview;

/// A second resource group, for public IPs that are kept elsewhere.
pub const OTHER_GROUP: &str = "other";

/// An entry is judged after this time without activity: Azure answers at once here, and our programs wait longer only
/// with an event.
const MIN_QUIET: Duration = Duration::from_secs(8);

/// After this time the world is judged even if it is not at rest.
const MAX_WAIT: Duration = Duration::from_secs(400);

/// A resource in Azure before an entry is applied.
#[derive(Debug, Clone)]
pub struct InitialResource {
    /// Its resource group; by default the cluster's.
    pub group: Option<&'static str>,
    /// The last part of its type, of `Microsoft.Network`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The document.
    pub document: Value,
}

impl InitialResource {
    /// A user's public IP.
    pub fn public_ip(name: &str, version: &str) -> Self {
        let document = json!({"location": "westeurope", "sku": {"name": "Standard"}, "tags": {"owner": "somebody"},
            "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version}});
        Self { group: None, kind: "publicIPAddresses", name: name.to_owned(), document }
    }

    /// A public IP prefix.
    pub fn prefix(name: &str, version: &str, length: u8) -> Self {
        let document = json!({"location": "westeurope", "sku": {"name": "Standard"},
            "properties": {"prefixLength": length, "publicIPAddressVersion": version}});
        Self { group: None, kind: "publicIPPrefixes", name: name.to_owned(), document }
    }

    /// The same in another resource group.
    #[must_use]
    pub fn in_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    fn id(&self, world: &World) -> ResourceId {
        let group = self.group.unwrap_or(&world.shape.resource_group);
        ResourceId::group(&world.shape.subscription, group).resource(
            "Microsoft.Network",
            self.kind,
            &self.name,
        )
    }
}

/// The initial resources in Azure for every entry (also listed in `tests/corpus/services/README.md`).
pub fn common_resources() -> Vec<InitialResource> {
    vec![
        InitialResource::public_ip("kept-a", "IPv4"),
        InitialResource::public_ip("kept-b", "IPv4"),
        InitialResource::public_ip("kept-six", "IPv6"),
        InitialResource::public_ip("elsewhere", "IPv4").in_group(OTHER_GROUP),
        InitialResource::prefix("prefix-four", "IPv4", 28),
        InitialResource::prefix("prefix-six", "IPv6", 124),
    ]
}

/// A world with initial resources and two Services that stay, so that both load balancers and their pools exist before
/// an entry is applied: all later writes are for the entry alone.
pub struct Stage {
    /// The world.
    pub world: World,
    baseline: AzureState,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl Stage {
    /// Creates everything and waits until it is at rest.
    pub async fn set(more: &[InitialResource]) -> Self {
        Self::set_in(World::builder(), more).await
    }

    /// The same in a world of this kind.
    pub async fn set_in(builder: WorldBuilder, more: &[InitialResource]) -> Self {
        let second = ["10.241.0.0/16", "fd00:10:240:1::/64"];
        let mut world =
            builder.dual_stack().subnet("second", &second).subnet("only-ipv4", &["10.242.0.0/16"]).build();
        let group = ResourceId::group(&world.shape.subscription, OTHER_GROUP);
        world.azure.put(&group, json!({"location": "westeurope"})).expect("the group can be made");
        for resource in common_resources().iter().chain(more) {
            let put = world.azure.put(&resource.id(&world), resource.document.clone());
            put.unwrap_or_else(|refusal| panic!("{} {}: {refusal:?}", resource.kind, resource.name));
        }
        world.start();
        for (name, internal) in [("outside", "false"), ("inside", "true")] {
            let keeper = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"namespace": "keepers", "name": name, "annotations": {
                    "service.beta.kubernetes.io/azure-load-balancer-internal": internal}},
                "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 9000}],
                    "ipFamilyPolicy": "RequireDualStack"},
            });
            apply(&world, &[keeper]).await.expect("the keepers are sound");
        }
        world.settle().await;
        let baseline = world.azure_state();
        Self { world, baseline }
    }

    /// Applies objects as users do, and creates their namespaces.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn apply(&self, objects: &[Value]) -> Result<(), String> {
        let text = serde_json::to_string(objects).map_err(|error| error.to_string())?;
        let objects = serde_json::from_str::<Vec<Value>>(&self.fill_in(&text)).map_err(|e| e.to_string())?;
        apply(&self.world, &objects).await
    }

    /// Replaces `<address of NAME>` and `<id of NAME>` by their values in this world.
    pub fn fill_in(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for kind in ["publicIPAddresses", "publicIPPrefixes"] {
            for document in self.world.azure.documents_of_type(&format!("Microsoft.Network/{kind}")) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let name = text(&document["name"]);
                filled = filled.replace(&format!("<id of {name}>"), &text(&document["id"]));
                let address = text(&document["properties"]["ipAddress"]);
                filled = filled.replace(&format!("<address of {name}>"), &address);
            }
        }
        filled
    }

    /// Waits on virtual time until every Service is decided and there is no more activity.
    pub async fn rest(&self, expectations: &Expectations) {
        let begin = Instant::now();
        let mut quiet_since = begin;
        let mut seen = self.signs();
        while begin.elapsed() < MAX_WAIT {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.signs();
            if now != seen || self.world.azure.running_operations() > 0 {
                (seen, quiet_since) = (now, Instant::now());
            }
            if quiet_since.elapsed() >= MIN_QUIET
                && expectations.iter().all(|(key, what)| self.is_decided(key, what))
            {
                return;
            }
        }
    }

    fn is_decided(&self, key: &str, expectation: &Expectation) -> bool {
        match expectation {
            Expectation::Served(_) => !judge::addresses(&self.world.service(key)).is_empty(),
            Expectation::Refused { .. } | Expectation::KeptAsItWas => {
                let events = judge::events(&self.world, &self.world.service(key));
                events.iter().any(|event| event.contains("SyncLoadBalancerFailed"))
            }
            Expectation::Untouched => true,
            Expectation::Released => !judge::has_finalizer(&self.world.service(key)),
        }
    }

    fn signs(&self) -> (u64, u64, Vec<(String, u64)>) {
        let counts = self.world.azure.journal_after(u64::MAX).counts;
        let services = self.world.kubernetes.list("Service");
        let services =
            services.iter().map(|service| (service.name().to_owned(), service.version())).collect();
        (counts.writes, counts.deletes, services)
    }

    /// Deletes Services and waits until they and all their resources are deleted; returns what is left, and the steps
    /// of the preview before. Differences in the resources named in `stays_changed` are accepted.
    pub async fn clear(&mut self, objects: &[Value], stays_changed: &[String]) -> (Vec<String>, Vec<String>) {
        self.world.stop().await;
        let keys: Vec<String> =
            objects.iter().filter(|object| object["kind"] == "Service").map(key_of).collect();
        for key in &keys {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            // An object that the API server refused does not exist.
            let _refused = self.world.kubernetes.delete("Service", namespace, name);
        }
        let planned = preview::planned(&self.world).await;
        self.world.azure.clear_journal();
        self.world.start();
        let begin = Instant::now();
        while keys.iter().any(|key| !self.world.service(key).is_null()) && begin.elapsed() < MAX_WAIT {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.rest(&BTreeMap::new()).await;
        let mut complaints: Vec<String> = Vec::new();
        for key in keys.iter().filter(|key| !self.world.service(key).is_null()) {
            complaints.push(format!("{key} cannot be deleted: {:#?}", self.world.events(key)));
        }
        let now = self.world.azure_state();
        let mut excused = false;
        let mut left = self.baseline.differences(&now);
        left.retain(|line| {
            if !line.starts_with(' ') {
                excused = stays_changed.iter().any(|name| line.ends_with(&format!("/{name}")));
            }
            !excused
        });
        if !stays_changed.is_empty() {
            self.baseline = now;
        }
        if !left.is_empty() {
            complaints.push(format!("deletion leaves this behind:\n{}", left.join("\n")));
        }
        (complaints, planned)
    }
}

/// Applies objects as `kubectl apply --server-side` does; missing namespaces are created.
async fn apply(world: &World, objects: &[Value]) -> Result<(), String> {
    for object in objects {
        world.create_namespace(object["metadata"]["namespace"].as_str().unwrap_or("default"));
    }
    manifests::apply(&world.client, objects).await.map(drop).map_err(|error| error.to_string())
}
