//! The world of a neighbourhood: one Azure, two management clusters, initial resources of users, and the clusters.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_simulator::packet::{AlwaysHealthy, Network, Packet, Protocol, Source};
use azure_simulator::{Azure, Budgets, LatencyProfile};
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::KillSwitch;
use tokio::time::Instant;

use super::cluster_api;
use super::edit::{self, Edit};
use super::flavor::Flavor;
use super::ledger::{Ledger, Maker, id_in, references, steady};
use super::management::{LOCATION, Management, SUBSCRIPTION};
use super::member::{HUB, LABEL, Member, NAMESPACES, TEAM_GROUP, ZONE, ZONE_GROUP};

/// The polling interval.
const LOOK: Duration = Duration::from_secs(1);
/// A world is at rest after this time without activity: longer than the sync period, so that all objects have been
/// reconciled once more.
const QUIET: Duration = Duration::from_secs(700);
/// The time after which a world is assumed never to come to rest.
const MAX_UNREST: Duration = Duration::from_secs(6 * 3600);
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Kinds that move, owners before their dependents.
const MOVING: [&str; 14] = [
    "Cluster",
    "Secret",
    "AzureCluster",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "MachinePool",
    "AzureMachinePool",
    "AzureManagedMachinePool",
    "AzureASOManagedMachinePool",
    "Machine",
    "AzureMachine",
    "AzureMachinePoolMachine",
];
/// Kinds whose conditions report on Azure.
pub(super) const SPEAKING: [&str; 10] = [
    "AzureCluster",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
];

pub(super) struct Stage {
    pub(super) azure: Azure,
    pub(super) ledger: Ledger,
    pub(super) members: Vec<Member>,
    /// Whether a user created the group that clusters name.
    users_group: bool,
    managements: Vec<Management>,
    /// The version of each management cluster that the core has reconciled.
    looked_at: Vec<u64>,
    /// The management cluster of each existing cluster.
    pub(super) homes: Vec<Option<usize>>,
    /// IDs of the users' initial resources.
    found: BTreeSet<String>,
    /// The changes of a third party.
    pub(super) edits: Vec<String>,
    /// Resources whose ownership tags a third party changed.
    given_away: BTreeSet<ResourceId>,
    /// Whether a cluster has moved. There it may meet another one with the same claims.
    pub(super) moved: bool,
    /// Resources that stayed when their owner was deleted, because they are in use. Their owner can no longer be
    /// proven.
    pub(super) in_use: BTreeSet<ResourceId>,
}

impl Stage {
    pub(super) fn new(
        seed: u64,
        members: &[Member],
        users_group: bool,
        managements: usize,
        latency: LatencyProfile,
    ) -> Self {
        let managements: Vec<Management> =
            (0..managements).map(|number| Management::new(seed ^ (number as u64) << 32)).collect();
        let azure = Azure::new(azure_simulator::Options {
            seed,
            subscription: SUBSCRIPTION.to_owned(),
            region: LOCATION.to_owned(),
            latency,
            budgets: Some(Budgets::default()),
            start: managements.first().expect("there is one").kubernetes.now(),
            ..Default::default()
        });
        let mut stage = Self {
            azure,
            ledger: Ledger::default(),
            members: members.to_vec(),
            users_group,
            homes: vec![None; members.len()],
            looked_at: vec![0; managements.len()],
            managements,
            found: BTreeSet::new(),
            edits: Vec::new(),
            given_away: BTreeSet::new(),
            in_use: BTreeSet::new(),
            moved: false,
        };
        stage.furnish();
        for (number, member) in members.iter().enumerate() {
            for management in &stage.managements {
                for namespace in NAMESPACES {
                    management.namespace(namespace);
                }
                member.prepare(number, management);
            }
        }
        for number in 0..stage.managements.len() {
            stage.start(number, KillSwitch::never());
        }
        stage
    }

    /// Creates the users' initial resources: a hub, a zone, and sometimes the group that clusters name.
    fn furnish(&mut self) {
        let hub = ResourceId::group(SUBSCRIPTION, HUB);
        let network = hub.resource("Microsoft.Network", "virtualNetworks", HUB);
        let guard = hub.resource("Microsoft.Network", "networkSecurityGroups", "guard-of-hub");
        let rule = json!({ "name": "api-server", "properties": { "priority": 100, "direction": "Inbound", "access": "Allow",
            "protocol": "Tcp", "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*",
            "destinationPortRange": "6443" } });
        let guarded = json!({ "location": LOCATION, "properties": { "securityRules": [rule] } });
        let subnet = |name: &str, prefix: &str| {
            json!({ "name": name, "properties": { "addressPrefix": prefix,
                "networkSecurityGroup": { "id": guard.as_str() } } })
        };
        let properties = json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/12"] },
            "subnets": [subnet("cp", "10.0.0.0/16"), subnet("nodes", "10.1.0.0/16")] });
        let group = json!({ "location": LOCATION });
        let dns = ResourceId::group(SUBSCRIPTION, ZONE_GROUP);
        let zone = dns.resource("Microsoft.Network", "privateDnsZones", ZONE);
        self.put(&hub, group.clone());
        self.put(&guard, guarded);
        self.put(&network, json!({ "location": LOCATION, "properties": properties }));
        self.put(&dns, group.clone());
        self.put(&zone, json!({ "location": "global" }));
        if self.users_group {
            self.put(&ResourceId::group(SUBSCRIPTION, TEAM_GROUP), group);
        }
        let made: Vec<ResourceId> = self.azure.documents().iter().map(id_in).collect();
        made.iter().for_each(|id| self.ledger.others_made(id));
        self.found = made.iter().map(ResourceId::to_lower).collect();
    }

    fn put(&self, id: &ResourceId, document: Value) {
        self.azure.put(id, document).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
    }

    pub(super) fn start(&mut self, number: usize, cut: KillSwitch) {
        let count = self.managements.len();
        self.managements[number % count].start(&self.azure, &self.ledger, cut);
    }

    pub(super) async fn restart(&mut self, number: usize, cut: KillSwitch) {
        let count = self.managements.len();
        self.managements[number % count].kill().await;
        self.start(number, cut);
    }

    /// The management cluster of a cluster.
    pub(super) fn home(&self, cluster: usize) -> Option<&Management> {
        self.homes[cluster].map(|home| &self.managements[home])
    }

    pub(super) fn create(&mut self, cluster: usize) {
        let member = &self.members[cluster];
        let home = member.management % self.managements.len();
        let management = &self.managements[home];
        if self.homes[cluster].is_some()
            || management.get("Cluster", &member.namespace, &member.name).is_some()
        {
            return;
        }
        member.create(cluster, self.users_group, management);
        self.homes[cluster] = Some(home);
    }

    /// Deletes the identity, or the credential, that a cluster names.
    pub(super) fn remove_identity(&self, cluster: usize) {
        let member = &self.members[cluster];
        for management in &self.managements {
            let (kind, name) = match member.flavor {
                Flavor::SelfManaged | Flavor::Aks => ("AzureClusterIdentity", member.identity(cluster)),
                Flavor::AksAso => ("Secret", member.credential(cluster)),
            };
            management.delete(kind, &member.namespace, &name);
        }
    }

    pub(super) fn delete(&mut self, cluster: usize) {
        self.in_use.extend(self.shared_of(cluster));
        let member = &self.members[cluster];
        if let Some(management) = self.home(cluster) {
            management.delete("Cluster", &member.namespace, &member.name);
        }
    }

    /// Gives a cluster a tag, or takes it away.
    pub(super) fn tag(&self, cluster: usize, value: &Value) {
        self.change(cluster, &self.members[cluster].tag_of_control_plane(cluster, value));
    }

    /// Upgrades a cluster that Azure manages.
    pub(super) fn upgrade(&self, cluster: usize) {
        if !self.members[cluster].flavor.is_self_managed() {
            self.change(cluster, &Member::upgrade_of_control_plane());
        }
    }

    /// Merges a patch into the object that declares a cluster, unless it is being deleted.
    fn change(&self, cluster: usize, patch: &Value) {
        let member = &self.members[cluster];
        let kind = member.flavor.served();
        if let Some(management) = self.home(cluster)
            && management
                .get(kind, &member.namespace, &member.name)
                .is_some_and(|it| !cluster_api::is_ending(&it))
        {
            management.merge(kind, &member.namespace, &member.name, patch);
        }
    }

    /// The machines of a cluster outside of pools, or its node pools, by name.
    fn parts(&self, cluster: usize) -> Vec<Value> {
        let member = &self.members[cluster];
        let Some(management) = self.home(cluster) else { return Vec::new() };
        let mine = |it: &Value| {
            it["spec"]["clusterName"] == member.name.as_str()
                && !it["metadata"]["labels"]["of-pool"].is_string()
        };
        management.list(member.flavor.part(), &member.namespace).into_iter().filter(mine).collect()
    }

    pub(super) fn grow(&self, cluster: usize) {
        let member = &self.members[cluster];
        let Some(management) = self.home(cluster) else { return };
        let ends = management
            .get("Cluster", &member.namespace, &member.name)
            .is_none_or(|it| cluster_api::is_ending(&it));
        if !ends && self.parts(cluster).len() < 3 {
            let free = (1..9).find(|part| {
                management.get(member.flavor.part(), &member.namespace, &member.part_name(*part)).is_none()
            });
            if let Some(part) = free {
                member.create_part(cluster, part, management);
            }
        }
    }

    /// The newest pool of a cluster gets one more machine, at most three.
    pub(super) fn scale(&self, cluster: usize) {
        let member = &self.members[cluster];
        let Some(management) = self.home(cluster) else { return };
        let mine =
            |it: &Value| it["spec"]["clusterName"] == member.name.as_str() && !cluster_api::is_ending(it);
        let pools: Vec<Value> =
            management.list("MachinePool", &member.namespace).into_iter().filter(mine).collect();
        if let Some(pool) = pools.last() {
            let replicas = pool["spec"]["replicas"].as_u64().unwrap_or_default() + 1;
            let patch = json!({ "spec": { "replicas": replicas.min(3) } });
            management.merge("MachinePool", &member.namespace, &cluster_api::name_of(pool), &patch);
        }
    }

    pub(super) fn shrink(&self, cluster: usize) {
        let member = &self.members[cluster];
        let mut parts = self.parts(cluster);
        parts.retain(|part| member.may_lose(&cluster_api::name_of(part)));
        if let (Some(management), Some(last)) = (self.home(cluster), parts.last()) {
            management.delete(member.flavor.part(), &member.namespace, &cluster_api::name_of(last));
        }
    }

    /// Moves a cluster to the other management cluster, as `clusterctl move` does: it is paused, created again without
    /// status, and removed from the first one. Does nothing if it is being deleted, or if its objects cannot be moved
    /// within a minute.
    pub(super) async fn relocate(&mut self, cluster: usize) {
        let member = self.members[cluster].clone();
        let (name, namespace) = (member.name.as_str(), member.namespace.as_str());
        let Some(from) = self.homes[cluster] else { return };
        let to = (from + 1) % self.managements.len();
        let ends = |stage: &Self| {
            let all = stage.objects_of(from, &member);
            all.is_empty() || all.iter().any(|(_, object)| cluster_api::is_ending(object))
        };
        if from == to || ends(self) || self.managements[to].get("Cluster", namespace, name).is_some() {
            return;
        }
        // An existing object of the same name would be mistaken for the moved one.
        let meets = |(kind, object): &(&str, Value)| {
            self.managements[to].get(kind, namespace, &cluster_api::name_of(object)).is_some()
        };
        if self.objects_of(from, &member).iter().any(meets) {
            return;
        }
        self.managements[from].merge("Cluster", namespace, name, &json!({ "spec": { "paused": true } }));
        let begin = Instant::now();
        let is_blocked = |stage: &Self| {
            stage
                .objects_of(from, &member)
                .iter()
                .any(|(_, it)| !it["metadata"]["annotations"][BLOCK_MOVE].is_null())
        };
        while is_blocked(self) && begin.elapsed() < Duration::from_secs(60) {
            self.pass(LOOK).await;
        }
        if is_blocked(self) || ends(self) {
            self.managements[from].merge("Cluster", namespace, name, &json!({ "spec": { "paused": null } }));
            return;
        }
        self.carry(&member, from, to);
        self.homes[cluster] = Some(to);
        self.moved = true;
        self.managements[to].merge("Cluster", namespace, name, &json!({ "spec": { "paused": null } }));
    }

    fn carry(&self, member: &Member, from: usize, to: usize) {
        let objects = self.objects_of(from, member);
        let mut uids: Vec<(String, String)> = Vec::new();
        for (_, object) in &objects {
            let mut copy = object.clone();
            copy.as_object_mut().expect("it is an object").remove("status");
            let metadata = copy["metadata"].as_object_mut().expect("it has metadata");
            metadata.retain(|key, _| {
                ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"]
                    .contains(&key.as_str())
            });
            let mut text = copy.to_string();
            for (old, new) in &uids {
                text = text.replace(old, new);
            }
            let made = self.managements[to].create(serde_json::from_str(&text).expect("it is JSON"));
            uids.push((uid_of(object), made.uid().to_owned()));
        }
        for (kind, object) in objects.iter().rev() {
            let (management, name) = (&self.managements[from], cluster_api::name_of(object));
            let none = json!({ "metadata": { "finalizers": null } });
            management.merge(kind, &member.namespace, &name, &none);
            management.delete(kind, &member.namespace, &name);
        }
    }

    fn objects_of(&self, home: usize, member: &Member) -> Vec<(&'static str, Value)> {
        let mine = |object: &Value| object["metadata"]["labels"][LABEL] == member.name.as_str();
        let of_kind = |kind: &'static str| {
            let all = self.managements[home].list(kind, &member.namespace).into_iter().filter(mine);
            all.map(move |object| (kind, object))
        };
        MOVING
            .iter()
            .flat_map(|kind| of_kind(kind))
            .filter(|(kind, object)| *kind != "Secret" || is_users(object))
            .collect()
    }

    /// Objects of a cluster whose conditions report on Azure.
    pub(super) fn speakers(&self, cluster: usize) -> Vec<(&'static str, Value)> {
        let Some(home) = self.homes[cluster] else { return Vec::new() };
        let all = self.objects_of(home, &self.members[cluster]);
        all.into_iter().filter(|(kind, _)| SPEAKING.contains(kind)).collect()
    }

    /// A third party changes something that a cluster created. Returns the change, if Azure accepts it.
    pub(super) fn interfere(&mut self, cluster: usize, choice: u64) -> Option<(ResourceId, Edit)> {
        let choices: Vec<(ResourceId, Edit)> = self
            .ledger
            .asked_by(cluster)
            .into_iter()
            .flat_map(|(id, asked)| edit::all(&asked).into_iter().map(move |edit| (id.clone(), edit)))
            .collect();
        let count = choices.len() as u64;
        let (id, edit) = choices.into_iter().nth(usize::try_from(choice.checked_rem(count)?).ok()?)?;
        self.do_edit(&id, &edit).then_some((id, edit))
    }

    /// Applies a change. Returns whether Azure accepted it.
    pub(super) fn do_edit(&mut self, id: &ResourceId, edit: &Edit) -> bool {
        let done = if *edit == Edit::Delete {
            // A group is deleted with all its resources: a third party does not do that to a group that several
            // clusters share.
            let done = id.namespace().is_some() && self.azure.delete(id).is_ok();
            if done && self.azure.document(id).is_none() {
                self.ledger.went(id);
            }
            done
        } else {
            let mut changed = false;
            let result = self.azure.edit(id, |document| changed = edit.apply(document));
            result.is_ok() && changed
        };
        if done {
            self.edits.push(edit.words(id));
            if edit.is_of_owner() {
                self.given_away.insert(id.clone());
            }
        }
        done
    }

    /// A user deletes resources with changed ownership that a cluster names as the reason why its deletion does not
    /// finish. Returns whether there were any.
    pub(super) fn remove_what_was_given_away(&mut self, reasons: &[String]) -> bool {
        let is_named = |id: &ResourceId| reasons.iter().any(|words| words.contains(id.as_str()));
        // A machine is blocked by what blocks its interface.
        let uses_named = |id: &ResourceId| {
            let mut used = Vec::new();
            references(&self.azure.document(id).unwrap_or_default(), &mut used);
            used.iter().any(|id| is_interface(id) && is_named(id))
        };
        let is_meant = |id: &&ResourceId| is_named(id) || uses_named(id);
        let named: Vec<ResourceId> = self.given_away.iter().filter(is_meant).cloned().collect();
        let mut is_any = false;
        for id in named {
            // Resources that Azure created for it, such as the disk of a machine, are left to that user as well, and so
            // is its interface.
            let Some(document) = self.azure.document(&id) else { continue };
            let mut used = Vec::new();
            references(&document, &mut used);
            if self.azure.delete(&id).is_ok() {
                self.ledger.went(&id);
                let is_left = |id: &ResourceId| self.ledger.maker(id).is_none() || is_interface(id);
                self.given_away.extend(used.into_iter().filter(is_left));
                is_any = true;
            }
        }
        is_any
    }

    /// Lets time pass. Managers whose connection broke are killed and started again, and the core reconciles.
    pub(super) async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            for number in 0..self.managements.len() {
                assert!(!self.managements[number].has_ended(), "the manager has ended");
                if self.managements[number].is_cut_off() {
                    self.restart(number, KillSwitch::never()).await;
                }
                // The core has nothing to do without a change.
                let version = self.managements[number].kubernetes.resource_version();
                if self.looked_at[number] != version {
                    self.looked_at[number] = version;
                    for namespace in NAMESPACES {
                        cluster_api::look(&self.managements[number], namespace);
                    }
                }
            }
            for cluster in 0..self.members.len() {
                let member = &self.members[cluster];
                let gone = |home: &Management| home.get("Cluster", &member.namespace, &member.name).is_none();
                if self.home(cluster).is_some_and(gone) {
                    self.in_use.extend(self.shared_of(cluster));
                    self.homes[cluster] = None;
                }
            }
            let now = Instant::now();
            if now >= end {
                return;
            }
            tokio::time::sleep_until(end.min(now + LOOK)).await;
        }
    }

    /// Waits until there is no more activity.
    ///
    /// # Errors
    /// The activity does not end.
    pub(super) async fn rest(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        let (mut signs, mut versions) = (self.signs(), self.versions());
        let mut since = begin;
        while since.elapsed() < QUIET {
            if begin.elapsed() > MAX_UNREST {
                let tail = self.azure.journal_tail(12);
                let tail: Vec<String> = tail
                    .entries
                    .iter()
                    .map(|entry| format!("{} {} {}", entry.method, entry.path, entry.status))
                    .collect();
                return Err(format!("the world does not come to rest; the last calls: {tail:#?}"));
            }
            self.pass(if since.elapsed() < Duration::from_secs(30) { LOOK } else { 10 * LOOK }).await;
            let now = self.versions();
            let is_same = now == versions || self.signs() == signs;
            versions = now;
            if !is_same || self.azure.running_operations() > 0 {
                (signs, since) = (self.signs(), Instant::now());
            }
        }
        Ok(())
    }

    /// Values that change with every action of a cluster: writes to Azure, and versions of objects.
    fn signs(&self) -> (usize, Vec<u64>) {
        let objects = self.managements.iter().flat_map(|management| {
            SPEAKING
                .iter()
                .chain(&["Cluster", "Machine"])
                .flat_map(move |kind| management.kubernetes.list(kind))
        });
        (self.ledger.all_writes(), objects.map(|object| object.version()).collect())
    }

    /// Values that change with every activity.
    fn versions(&self) -> (usize, Vec<u64>) {
        let versions = self.managements.iter().map(|it| it.kubernetes.resource_version());
        (self.ledger.all_writes(), versions.collect())
    }

    /// Waits until a condition holds; returns whether it did within `patience`.
    pub(super) async fn until(&mut self, patience: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let begin = Instant::now();
        while !holds(self) {
            if begin.elapsed() > patience {
                return false;
            }
            self.pass(LOOK).await;
        }
        true
    }

    /// Whether all parts of a cluster are ready.
    pub(super) fn is_ready(&self, cluster: usize) -> bool {
        let all = self.speakers(cluster);
        !all.is_empty() && all.iter().all(|(_, object)| object["status"]["ready"] == true)
    }

    /// Whether all objects of a cluster with accepted names are ready.
    pub(super) fn are_ready(&self, cluster: usize, takes: impl Fn(&str) -> bool) -> bool {
        let all = self.speakers(cluster);
        let mut taken = all.iter().filter(|(_, object)| takes(&cluster_api::name_of(object))).peekable();
        taken.peek().is_some() && taken.all(|(_, object)| object["status"]["ready"] == true)
    }

    /// Adds a worker, or a node pool, of this name to a cluster. Azure's name of a pool has no hyphens.
    pub(super) fn add_part(&self, cluster: usize, name: &str) {
        let Some(management) = self.home(cluster) else { return };
        let member = &self.members[cluster];
        if member.flavor.is_self_managed() {
            member.create_named_machine(name, false, management);
        } else {
            member.create_named_node_pool(cluster, name, &name.replace('-', ""), "User", management);
        }
    }

    /// Missing resources of others, and leftovers of clusters, after all clusters are deleted.
    pub(super) fn remains(&self) -> Vec<String> {
        let now: BTreeSet<String> = self.azure.documents().iter().map(|it| id_in(it).to_lower()).collect();
        let is_users = |id: &&String| {
            let id = ResourceId::parse(id).expect("ids are sound");
            self.ledger.maker(&id) == Some(Maker::Others)
        };
        let stays = |id: &&String| {
            let id = ResourceId::parse(id).expect("ids are sound");
            self.stays(&id) || self.is_in_use(&id)
        };
        let left = now
            .difference(&self.found)
            .filter(|id| !is_users(id) && !stays(id))
            .map(|id| format!("{id} is left"));
        let lost = self.found.difference(&now).map(|id| format!("{id}, which a user made, is gone"));
        left.chain(lost).collect()
    }

    /// Whether a resource stays after its cluster is deleted: a resource whose ownership tags a third party changed,
    /// its group, its children, and the resources that it uses, which Azure does not delete. Half of a peering with a
    /// network that was given away has no other proof of ownership than that network.
    pub(super) fn stays(&self, id: &ResourceId) -> bool {
        let mut held: Vec<ResourceId> = self.given_away.iter().cloned().collect();
        let mut next = 0;
        // A resource that stays keeps the resources that it uses and its parents, recursively.
        while let Some(one) = held.get(next).cloned() {
            next += 1;
            let mut ids = Vec::new();
            references(&self.azure.document(&one).unwrap_or_default(), &mut ids);
            ids.extend(one.parent());
            ids.retain(|id| id.namespace().is_some() && !held.contains(id));
            held.extend(ids);
        }
        let is_held = |held: &ResourceId| held == id || held.is_within(id) || id.is_within(held);
        let is_peering = id
            .resource_type()
            .eq_ignore_ascii_case("Microsoft.Network/virtualNetworks/virtualNetworkPeerings");
        let leads_there = || is_peering && self.given_away.iter().any(|given| self.refers(id, given));
        held.iter().any(is_held) || leads_there()
    }

    /// Whether the document of a resource refers to another one.
    fn refers(&self, from: &ResourceId, to: &ResourceId) -> bool {
        let mut ids = Vec::new();
        references(&self.azure.document(from).unwrap_or_default(), &mut ids);
        ids.contains(to)
    }

    /// The resources that a cluster created, by ID, without what Azure derives.
    pub(super) fn estate(&self, cluster: usize) -> Vec<(ResourceId, Value)> {
        let all = self.ledger.made_by(cluster, &self.azure);
        all.into_iter().map(|document| (id_in(&document), steady(document))).collect()
    }

    /// Whether a resource stayed because others use it. A zone that stays keeps its first record.
    pub(super) fn is_in_use(&self, id: &ResourceId) -> bool {
        let is_first_record = id.resource_type().to_ascii_uppercase().ends_with("/SOA");
        self.in_use.contains(id) || is_first_record && id.parent().is_some_and(|it| self.in_use.contains(&it))
    }

    /// The resources of a cluster that others use: groups, and zones.
    fn shared_of(&self, cluster: usize) -> Vec<ResourceId> {
        let others = (0..self.members.len()).filter(|other| *other != cluster);
        let others: Vec<_> = others.flat_map(|other| self.estate(other)).collect();
        let is_shared = |own: &ResourceId| others.iter().any(|(id, _)| id != own && id.is_within(own));
        self.estate(cluster).into_iter().map(|(id, _)| id).filter(is_shared).collect()
    }

    /// The machine that answers at the endpoint of a cluster, for an allowed client, or why no packet arrives. For a
    /// cluster that Azure manages, the ID of the one with this endpoint.
    pub(super) fn answers(&self, cluster: usize) -> Result<String, String> {
        let member = &self.members[cluster];
        let home = self.home(cluster).ok_or("it is not there")?;
        if !member.flavor.is_self_managed() {
            return self.managed_cluster_at(&member.endpoint(home));
        }
        let object = home.get("AzureCluster", &member.namespace, &member.name).ok_or("it is not there")?;
        let host = object["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap_or_default().to_owned();
        let (address, source) = self.resolve(cluster, &host)?;
        let packet = Packet::new(source, address, 6443, Protocol::Tcp);
        let verdict = Network::read(&self.azure).trace(&AlwaysHealthy, &packet);
        verdict
            .node()
            .filter(|_| verdict.arrives)
            .map(str::to_owned)
            .ok_or_else(|| verdict.sentence().to_owned())
    }

    /// The managed cluster with this endpoint.
    fn managed_cluster_at(&self, host: &str) -> Result<String, String> {
        let all = self.azure.documents_of_type("Microsoft.ContainerService/managedClusters");
        let has = |it: &&Value| ["fqdn", "privateFQDN"].iter().any(|name| it["properties"][name] == host);
        let found = all.iter().find(has).ok_or_else(|| format!("no cluster has the endpoint {host}"))?;
        Ok(id_in(found).to_string())
    }

    fn resolve(&self, cluster: usize, host: &str) -> Result<(std::net::IpAddr, Source), String> {
        let stranger = Source::internet(std::net::IpAddr::from([203, 0, 113, 7]));
        for ip in self.azure.documents_of_type("Microsoft.Network/publicIPAddresses") {
            if ip["properties"]["dnsSettings"]["fqdn"] == host {
                let text = ip["properties"]["ipAddress"].as_str().unwrap_or_default();
                return Ok((text.parse().map_err(|_| format!("{host} has no address"))?, stranger));
            }
        }
        let estate = self.ledger.made_by(cluster, &self.azure);
        let network =
            estate.iter().map(id_in).find(|id| id.resource_type() == "Microsoft.Network/virtualNetworks");
        let hub = ResourceId::group(SUBSCRIPTION, HUB).resource("Microsoft.Network", "virtualNetworks", HUB);
        let network = network.unwrap_or(hub);
        let (name, zone) = host.split_once('.').ok_or("it has no endpoint")?;
        // The zone that is linked with the cluster's network.
        let links = self.azure.documents_of_type("Microsoft.Network/privateDnsZones/virtualNetworkLinks");
        let linked = links.iter().find(|link| {
            let id = id_in(link);
            let to = link["properties"]["virtualNetwork"]["id"].as_str().unwrap_or_default();
            id.parent().is_some_and(|parent| parent.name().eq_ignore_ascii_case(zone))
                && network.as_str().eq_ignore_ascii_case(to)
        });
        let zone = linked
            .and_then(|link| id_in(link).parent())
            .ok_or(format!("{host} is not known in {network}"))?;
        let record =
            self.azure.document(&zone.child("A", name)).ok_or(format!("{zone} has no record {name}"))?;
        let address = record["properties"]["aRecords"][0]["ipv4Address"].as_str().unwrap_or_default();
        let address = address.parse().map_err(|_| format!("the record {name} of {zone} has no address"))?;
        // A host of the control planes' subnet.
        let second = u8::try_from(self.members[cluster].second_octet(cluster)).expect("clusters are few");
        let inside = std::net::IpAddr::from([10, second, 200, 200]);
        Ok((address, Source::virtual_network(network.as_str(), inside)))
    }

    /// The messages of warnings about the objects of a cluster.
    pub(super) fn warnings(&self, cluster: usize) -> Vec<String> {
        let Some(home) = self.home(cluster) else { return Vec::new() };
        let namespace = &self.members[cluster].namespace;
        let all = self.speakers(cluster);
        all.iter()
            .flat_map(|(kind, object)| home.warnings(kind, namespace, &cluster_api::name_of(object)))
            .collect()
    }
}

/// Whether a Secret was created by a user, not by a controller.
fn is_users(secret: &Value) -> bool {
    cluster_api::name_of(secret).ends_with("-data")
}

fn is_interface(id: &ResourceId) -> bool {
    id.resource_type().eq_ignore_ascii_case("Microsoft.Network/networkInterfaces")
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The reasons in conditions of an object that are not true.
pub(super) fn reasons(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let fails =
        |it: &&Value| it["status"] == "False" && it["message"].as_str().is_some_and(|text| !text.is_empty());
    conditions.iter().filter(fails).map(|it| format!("{}: {}", it["type"], it["message"])).collect()
}
