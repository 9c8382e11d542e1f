//! A run in progress: carries out its acts, and checks their effects on others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::Azure;
use azure_simulator::packet::Network;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::World;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};
use tokio::time::sleep;

use super::case::{Act, Foreign, Neighbours};
use super::sharing::{self, Sharing};
use super::traffic;
use crate::ledger::{Hand, Ledger, Pen};
use crate::service_option::{self, SERVICES, ServiceOption};
use crate::single::{UNHURRIED, latest_is_refusal, rest};

/// Everything is at rest after this time without activity. It is longer than the time from the end of one operation to
/// the Service's next write: up to a poll of its public IP, and then three seconds for a document that another cluster
/// was writing.
const QUIET: Duration = Duration::from_secs(12);

/// The time without activity at the end: refused Services are retried by then.
const LONG_QUIET: Duration = Duration::from_secs(120);

/// A Service of a cluster.
type Key = (usize, &'static str);

/// A run in progress.
pub(super) struct Play {
    azure: Azure,
    sharing: Sharing,
    seed: u64,
    worlds: Vec<World>,
    ledger: Arc<Ledger>,
    /// What Services ask for.
    options: BTreeMap<Key, Vec<ServiceOption>>,
    /// Services that were reachable and were not changed since.
    steady: BTreeSet<Key>,
    complaints: Vec<String>,
}

impl Play {
    pub(super) async fn begin(trial: &Neighbours) -> Self {
        let Neighbours { seed, clusters, sharing, slow, .. } = trial;
        let azure = Sharing::azure(*seed, *slow);
        let shapes: Vec<_> = (0..*clusters).map(|cluster| sharing.shape(cluster, *clusters)).collect();
        for shape in &shapes {
            shape.lay_out(&azure).expect("the clusters' parts are sound");
            sharing::guard(&azure, shape);
        }
        let ledger = Ledger::open(&azure, shapes.clone());
        let config = sharing.config();
        let worlds: Vec<World> = shapes
            .into_iter()
            .enumerate()
            .map(|(cluster, shape)| {
                World::builder()
                    .in_azure(&azure)
                    .seed(seed.wrapping_mul(7).wrapping_add(cluster as u64 + 1))
                    .name(&sharing.name_of(cluster))
                    .shape(shape)
                    .config(&config)
                    .pod_range(&Sharing::pod_range(cluster))
                    .pace(UNHURRIED)
                    .tap(Arc::new(Pen::of(&ledger, cluster)))
                    .build()
            })
            .collect();
        let mut this = Self {
            azure,
            sharing: *sharing,
            seed: *seed,
            worlds,
            ledger,
            options: BTreeMap::new(),
            steady: BTreeSet::new(),
            complaints: Vec::new(),
        };
        for world in &mut this.worlds {
            world.start();
        }
        this.rest(QUIET).await;
        this
    }

    pub(super) async fn act(&mut self, act: &Act) {
        match act {
            Act::Apply { cluster, service, options } => self.apply(*cluster, SERVICES[*service], options),
            Act::Delete { cluster, service } => self.delete(*cluster, SERVICES[*service]),
            Act::Scale { cluster, nodes } => {
                let cluster = cluster % self.worlds.len();
                self.steady.retain(|(other, _)| *other != cluster);
                // Azure may refuse it while an operation is running.
                let _refused = self.azure.scale(&self.worlds[cluster].scale_set(), *nodes);
            }
            Act::Kill { cluster } => {
                let cluster = cluster % self.worlds.len();
                self.worlds[cluster].restart().await;
            }
            Act::TearDown { cluster } => self.tear_down(*cluster),
            Act::Foreign { what, number } => self.edit(*what, *number),
            Act::Wait { seconds } => sleep(Duration::from_secs(*seconds)).await,
            Act::Rest => {
                self.rest(QUIET).await;
                self.look(true);
            }
        }
        // The act has taken effect.
        sleep(Duration::from_millis(500)).await;
        self.look(false);
    }

    fn apply(&mut self, cluster: usize, key: &'static str, options: &[ServiceOption]) {
        let cluster = cluster % self.worlds.len();
        let world = &self.worlds[cluster];
        let static_address = self.sharing.static_address(cluster);
        let manifest = service_option::manifest(key, options, &world.shape.subscription, &static_address);
        let there = world.service(key);
        let (namespace, name) = key.split_once('/').expect("a Service is called namespace/name");
        if !there["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        if there.is_null() {
            world.create_in_namespace(manifest);
        } else {
            let mut annotations = manifest["metadata"]["annotations"].clone();
            for (key, _) in there["metadata"]["annotations"].as_object().into_iter().flatten() {
                if annotations[key].is_null() {
                    annotations[key] = Value::Null;
                }
            }
            let patch = json!({"metadata": {"annotations": annotations}, "spec": manifest["spec"]});
            world.kubernetes.merge("Service", namespace, name, &patch).expect("the change is sound");
        }
        self.steady.remove(&(cluster, key));
        self.options.insert((cluster, key), options.to_vec());
    }

    fn delete(&mut self, cluster: usize, key: &'static str) {
        let cluster = cluster % self.worlds.len();
        if self.options.remove(&(cluster, key)).is_some() {
            self.steady.remove(&(cluster, key));
            self.worlds[cluster].delete(key);
        }
    }

    fn tear_down(&mut self, cluster: usize) {
        for key in SERVICES {
            self.delete(cluster, key);
        }
    }

    /// Adds a part as a third party.
    fn edit(&mut self, what: Foreign, number: u64) {
        let kinds: &[&str] = match what {
            Foreign::Rule | Foreign::LikeOurs => &[SECURITY_GROUPS],
            Foreign::Tag => &[LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS],
            Foreign::Pool => &[LOAD_BALANCERS],
        };
        let documents = kinds.iter().flat_map(|kind| self.azure.documents_of_type(kind));
        let ids = documents.filter_map(|document| document["id"].as_str()?.parse::<ResourceId>().ok());
        let mut ids: Vec<ResourceId> = ids.collect();
        if ids.is_empty() {
            return;
        }
        let id = ids.swap_remove(usize::try_from(number).unwrap_or_default() % ids.len());
        let add = |document: &mut Value, kind: &str, part: Value| {
            let parts = &mut document["properties"][kind];
            if parts.is_null() {
                *parts = json!([]);
            }
            let Some(parts) = parts.as_array_mut() else { return };
            if !parts.iter().any(|there| there["name"] == part["name"]) {
                parts.push(part);
            }
        };
        let rule = |name: String, destination: &str| {
            json!({"name": name, "properties": {
                "priority": 3000 + number, "access": "Allow", "direction": "Inbound", "protocol": "Tcp",
                "sourceAddressPrefix": "192.0.2.0/24", "sourcePortRange": "*",
                "destinationAddressPrefix": destination, "destinationPortRange": "9999"}})
        };
        // Azure may refuse it while an operation is running.
        let _taken = self.ledger.edit(&id, |document| match what {
            Foreign::Rule => add(document, "securityRules", rule(format!("theirs-{number}"), "*")),
            Foreign::LikeOurs => {
                let name = format!("k8s-azure-lb_allow_IPv4_{number:032x}");
                add(document, "securityRules", rule(name, "198.18.0.9"));
            }
            Foreign::Tag => document["tags"][format!("theirs-{number}")] = "1".into(),
            Foreign::Pool => {
                add(
                    document,
                    "backendAddressPools",
                    json!({"name": format!("theirs-{number}"), "properties": {}}),
                );
            }
        });
    }

    /// Records which unchanged Services are no longer reachable. At rest all Services with an address are checked.
    fn look(&mut self, at_rest: bool) {
        // If two machines have the name of a node, it joins no pool before its provider ID is known, and the node
        // managers that set it do not run here.
        if self.options.is_empty() || (self.sharing.hosts && self.sharing.group) {
            return;
        }
        let network = Network::read(&self.azure);
        for ((cluster, key), options) in &self.options {
            let is_steady = self.steady.contains(&(*cluster, *key));
            if (!at_rest && !is_steady) || self.is_denied_by_another(*cluster, key, options) {
                continue;
            }
            let internal = service_option::is_internal(options);
            let is_refused = self.is_refused(*cluster, key);
            let lost =
                traffic::lost(&network, &self.worlds, *cluster, key, service_option::port(key), internal);
            if lost.is_empty() && !self.worlds[*cluster].addresses(key).is_empty() && !is_refused {
                self.steady.insert((*cluster, *key));
            } else if is_steady || !is_refused {
                self.steady.remove(&(*cluster, *key));
                let when = if at_rest { "at rest" } else { "meanwhile" };
                self.complaints.extend(lost.into_iter().map(|text| format!("{when}: {text}")));
            }
        }
    }

    /// Whether a Service shares an internal address with another Service of its cluster that denies all other clients,
    /// which applies to the address.
    fn is_denied_by_another(&self, cluster: usize, key: &str, options: &[ServiceOption]) -> bool {
        let shares = |options: &[ServiceOption]| options.contains(&ServiceOption::PrivateAddress);
        let mut others = self.options.iter().filter(|((of, other), _)| *of == cluster && *other != key);
        shares(options)
            && others.any(|(_, other)| shares(other) && other.contains(&ServiceOption::DenyOthers))
    }

    /// Whether the latest event of a Service says that its current state cannot be served.
    fn is_refused(&self, cluster: usize, key: &str) -> bool {
        latest_is_refusal(&self.worlds[cluster], key)
    }

    /// Ends the run: everything comes to rest, is restarted, and is torn down one cluster after the other.
    pub(super) async fn end(mut self) -> Vec<String> {
        self.rest(QUIET).await;
        let waits = |(cluster, key): &(usize, &str)| {
            self.worlds[*cluster].addresses(key).is_empty() || self.is_refused(*cluster, key)
        };
        if self.options.keys().any(waits) {
            self.rest(LONG_QUIET).await;
        }
        self.look(true);
        for ((cluster, key), options) in &self.options {
            let world = &self.worlds[*cluster];
            let is_contested = options.iter().any(|option| option.is_contested());
            if world.addresses(key).is_empty() && !(is_contested && self.is_refused(*cluster, key)) {
                let events = world.events(key);
                self.complaints
                    .push(format!("cluster {cluster}'s {key} {options:?} is not served: {events:#?}"));
            }
        }
        let count = self.worlds.len();
        let first = usize::try_from(self.seed).unwrap_or_default() % count;
        let before = self.ledger.writes(Hand::Cluster(first));
        self.worlds[first].restart().await;
        self.rest(QUIET).await;
        // Refused Services are retried then.
        let tries_again = self.options.keys().any(|(cluster, key)| self.is_refused(*cluster, key));
        let may_write = tries_again || self.has_two_labels_for_one_address(first);
        if !may_write && self.ledger.writes(Hand::Cluster(first)) != before {
            self.complaints.push(format!("cluster {first} writes when its controllers start anew"));
        }
        for cluster in (first..count).chain(0..first) {
            self.tear_down(cluster);
            self.rest(QUIET).await;
            self.gone(cluster);
            self.look(true);
        }
        self.complaints.extend(self.ledger.breaches());
        self.complaints
    }

    /// Whether two Services of a cluster want DNS labels at one user's public IP. It has no tag with the owner of the
    /// label, so the Service that was served last gets its label.
    fn has_two_labels_for_one_address(&self, cluster: usize) -> bool {
        let wants_both = |options: &&Vec<ServiceOption>| {
            [ServiceOption::KeptAddress, ServiceOption::Label].iter().all(|option| options.contains(option))
        };
        let own = self.options.iter().filter(|((of, _), _)| *of == cluster);
        own.filter(|(_, options)| wants_both(options)).count() > 1
    }

    /// Records the leftovers of a cluster that was torn down.
    fn gone(&mut self, cluster: usize) {
        for key in SERVICES {
            if !self.worlds[cluster].service(key).is_null() {
                let events = self.worlds[cluster].events(key);
                self.complaints.push(format!("cluster {cluster}'s {key} does not go: {events:#?}"));
            }
        }
        let used = self.ledger.by(Hand::Others).into_iter().map(|(id, ..)| id);
        let used: BTreeSet<String> = used.filter(|id| id.contains("/loadbalancers/")).collect();
        // Routes belong to the cluster's nodes, which stay.
        let of_services = self.ledger.by(Hand::Cluster(cluster)).into_iter();
        for (id, path, leaf) in of_services.filter(|(id, ..)| !id.contains("/routetables/")) {
            // A load balancer stays if it has additions by others, and with it the members of its pools.
            let is_used = used.iter().any(|used| id == *used || path.contains(&used.replace('/', "|")));
            // A DNS label that was set on a user's address stays with it (LB-111).
            let is_label =
                id.contains("/resourcegroups/kept/") && path.starts_with("/properties/dnsSettings");
            let hand = Hand::Cluster(cluster);
            if !is_used && !is_label && !self.ledger.is_rule_of_others(hand, &id, &path) {
                let value = leaf.value;
                self.complaints.push(format!("when cluster {cluster} is gone: {id} keeps {path} ({value})"));
            }
        }
    }

    /// Waits on virtual time until nothing has happened for this long.
    async fn rest(&self, quiet: Duration) {
        rest(&self.azure, &self.worlds, quiet).await;
    }
}
