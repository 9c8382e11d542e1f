//! Two or three clusters in one Azure.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use azure_types::ResourceId;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::KillSwitch;

use super::act::{self, Act};
use super::cluster_api;
use super::member::Member;
use super::stage::{Stage, reasons};
use crate::property::Trial;

/// The maximum time for the deletion of a cluster.
const MAX_END: Duration = Duration::from_secs(3600);

/// Clusters that share an Azure, and the acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Neighbourhood {
    /// The seed of everything random.
    pub seed: u64,
    /// The latency of Azure's operations, in seconds.
    pub latency: u64,
    /// Whether a user created the group that clusters name.
    pub users_group: bool,
    /// The clusters.
    pub clusters: Vec<Member>,
    /// The acts.
    pub acts: Vec<Act>,
}

impl Trial for Neighbourhood {
    const NAME: &'static str = "cluster-neighbours";
    const LISTS: &'static [&'static str] = &["/acts"];
    const PLAINER: &'static [(&'static str, &'static str)] = &[
        (r#"{"pool": false}"#, "/clusters/*"),
        (r#"{"machines": 0}"#, "/clusters/*"),
        (r#"{"commonNames": false}"#, "/clusters/*"),
        (r#"{"commonMachines": false}"#, "/clusters/*"),
        (r#"{"network": "own"}"#, "/clusters/*"),
        (r#"{"apiServer": "public"}"#, "/clusters/*"),
    ];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut clusters = Vec::new();
        for _ in 0..if random.random_bool(0.3) { 3 } else { 2 } {
            let one = Member::draw(&mut random, &clusters);
            clusters.push(one);
        }
        let acts = act::draw(&mut random, clusters.len());
        let latency = [0, 0, 3][random.random_range(0..3)];
        Self { seed, latency, users_group: random.random_bool(0.5), clusters, acts }
    }

    async fn run(&self) -> Vec<String> {
        let latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(self.latency));
        let mut play = Play {
            stage: Stage::new(self.seed, &self.clusters, self.users_group, 2, latency),
            touched: vec![false; self.clusters.len()],
        };
        for act in &self.acts {
            play.act(act).await;
        }
        play.end(self.seed).await
    }
}

struct Play {
    stage: Stage,
    /// Clusters whose resources a third party has changed.
    touched: Vec<bool>,
}

impl Play {
    async fn act(&mut self, act: &Act) {
        let stage = &mut self.stage;
        match act {
            Act::Create { cluster } => stage.create(*cluster),
            Act::Delete { cluster } => stage.delete(*cluster),
            Act::Tag { cluster, value } => {
                let value = if *value == 0 { Value::Null } else { json!(value.to_string()) };
                stage.tag(*cluster, &value);
            }
            Act::Upgrade { cluster } => stage.upgrade(*cluster),
            Act::Scale { cluster } => stage.scale(*cluster),
            Act::Grow { cluster } => stage.grow(*cluster),
            Act::Shrink { cluster } => stage.shrink(*cluster),
            Act::Move { cluster } => stage.relocate(*cluster).await,
            Act::Cut { management, calls } => {
                stage.restart(*management, KillSwitch::after_call(*calls)).await
            }
            Act::Kill { management } => stage.restart(*management, KillSwitch::never()).await,
            Act::Edit { cluster, choice } => {
                self.touched[*cluster] |= stage.interfere(*cluster, *choice).is_some();
            }
            Act::Trouble { kind, times } => stage.azure.inject(kind.fault(*times)),
            Act::Wait { seconds } => stage.pass(Duration::from_secs(*seconds)).await,
        }
        self.stage.pass(Duration::ZERO).await;
    }

    async fn end(&mut self, seed: u64) -> Vec<String> {
        self.stage.azure.clear_faults();
        if let Err(unrest) = self.stage.rest().await {
            return vec![unrest];
        }
        let mut complaints = self.judge();
        let mut random = SmallRng::seed_from_u64(seed ^ 0xe4d);
        let mut order: Vec<usize> = (0..self.touched.len()).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, random.random_range(0..=place));
        }
        for cluster in order {
            if complaints.is_empty() {
                complaints.extend(self.delete(cluster).await);
            }
        }
        if complaints.is_empty() {
            complaints.extend(self.stage.remains());
        }
        complaints.extend(
            self.stage
                .edits
                .iter()
                .map(|edit| format!("(a third party {edit})"))
                .take(if complaints.is_empty() { 0 } else { 20 }),
        );
        complaints
    }

    /// The problems of a world at rest.
    fn judge(&self) -> Vec<String> {
        let stage = &self.stage;
        let mut complaints = stage.ledger.harm();
        let present: Vec<usize> = (0..stage.members.len()).filter(|it| self.is_wanted(*it)).collect();
        for cluster in &present {
            complaints.extend(self.judge_cluster(*cluster, &present));
        }
        // If two begin at the same moment, each may first create what the other needs, too.
        let meets = |it: &usize| present.iter().any(|other| self.has_met(*it, *other));
        if !present.is_empty()
            && present.iter().all(|it| !self.is_served(*it) && !self.touched[*it])
            && !present.iter().any(meets)
        {
            complaints.push(format!(
                "none of the clusters {present:?} is served: {:#?}",
                self.words_of(present[0])
            ));
        }
        complaints
    }

    /// Whether two clusters that declare the same names began at the same moment.
    fn has_met(&self, cluster: usize, other: usize) -> bool {
        let members = &self.stage.members;
        other != cluster
            && members[other].may_conflict_with(&members[cluster])
            && self.stage.ledger.began_together(cluster, other)
    }

    /// Whether a cluster exists, and should stay.
    fn is_wanted(&self, cluster: usize) -> bool {
        let member = &self.stage.members[cluster];
        let object =
            self.stage.home(cluster).and_then(|home| home.get("Cluster", &member.namespace, &member.name));
        object.is_some_and(|it| !cluster_api::is_ending(&it))
    }

    /// Whether the network of a cluster is ready, or the cluster itself if Azure manages it.
    fn is_served(&self, cluster: usize) -> bool {
        let served = self.stage.members[cluster].flavor.served();
        let all = self.stage.speakers(cluster);
        all.iter().any(|(kind, object)| *kind == served && object["status"]["ready"] == true)
    }

    fn words_of(&self, cluster: usize) -> Vec<String> {
        let mut words: Vec<String> =
            self.stage.speakers(cluster).iter().flat_map(|(_, object)| reasons(object)).collect();
        words.extend(self.stage.warnings(cluster));
        words
    }

    fn judge_cluster(&self, cluster: usize, present: &[usize]) -> Vec<String> {
        let stage = &self.stage;
        let member = &stage.members[cluster];
        let mut complaints = Vec::new();
        let is_rival = |other: &usize| *other != cluster && stage.members[*other].may_conflict_with(member);
        let has_rivals = present.iter().any(is_rival);
        if !stage.is_ready(cluster) {
            let words = self.words_of(cluster);
            // The zones that a network is linked with are not visible at the network: Azure reports a conflict when the
            // link is created.
            let meets_at_zone = words.iter().any(|words| words.contains("overlapping namespaces"));
            if words.is_empty() {
                let all = stage.speakers(cluster);
                let unready: Vec<String> = all
                    .iter()
                    .filter(|(_, it)| it["status"]["ready"] != true)
                    .map(|(kind, it)| format!("{kind} {}: {}", cluster_api::name_of(it), it["status"]))
                    .collect();
                complaints.push(format!("cluster {cluster} is not ready and says nothing: {unready:#?}"));
            } else if !has_rivals && !self.touched[cluster] && !meets_at_zone {
                complaints.push(format!("cluster {cluster} shares nothing and is not ready: {words:#?}"));
            }
            // Both networks of the peering must exist before it is created: only there do these clusters conflict.
            let meets_at_peering = words.iter().any(|words| words.contains("peering "))
                && present.iter().any(|it| *it != cluster && stage.members[*it].wants_peering_of(member));
            let meets_after_move =
                stage.moved && words.iter().any(|words| words.contains("comes first, which belongs to"));
            if !self.is_served(cluster)
                && !meets_after_move
                && !self.touched[cluster]
                && !meets_at_peering
                && !meets_at_zone
                && !present.iter().any(|it| self.has_met(cluster, *it))
                && !stage.ledger.has_raced(cluster)
            {
                // A group may have stayed from an earlier life of the cluster.
                let estate = stage.estate(cluster).into_iter().map(|(id, _)| id);
                let estate: Vec<String> =
                    estate.filter(|id| !stage.is_in_use(id)).map(|id| id.to_string()).collect();
                if !estate.is_empty() {
                    complaints.push(format!(
                        "cluster {cluster} is refused and has written nevertheless: {estate:#?} {words:#?}"
                    ));
                }
            }
        }
        if self.is_served(cluster) && !self.touched[cluster] {
            complaints.extend(self.judge_traffic(cluster));
        }
        complaints
    }

    /// Packets to a served cluster must arrive at its own control plane.
    fn judge_traffic(&self, cluster: usize) -> Option<String> {
        let stage = &self.stage;
        let is_managed = !stage.members[cluster].flavor.is_self_managed();
        let ready = |(kind, object): &(&str, Value)| {
            is_managed
                || *kind == "AzureMachine"
                    && object["status"]["ready"] == true
                    && object["metadata"]["labels"]["cluster.x-k8s.io/control-plane"].is_string()
        };
        let has_control_plane = stage.speakers(cluster).iter().any(ready);
        match stage.answers(cluster) {
            Ok(machine) => {
                let is_own = |id: &ResourceId| match is_managed {
                    true => id.as_str().eq_ignore_ascii_case(&machine),
                    false => id.name().eq_ignore_ascii_case(&machine),
                };
                let own = stage.estate(cluster).iter().any(|(id, _)| is_own(id));
                (!own).then(|| {
                    format!("at the endpoint of cluster {cluster} {machine} answers, which is not its own")
                })
            }
            Err(why) if has_control_plane => {
                Some(format!("no packet arrives at the endpoint of cluster {cluster}: {why}"))
            }
            Err(_) => None,
        }
    }

    /// A user deletes a cluster: nothing of it remains, and everything of the others.
    async fn delete(&mut self, cluster: usize) -> Vec<String> {
        if self.stage.home(cluster).is_none() {
            return self.leftovers(cluster);
        }
        let others: Vec<usize> =
            (0..self.touched.len()).filter(|other| *other != cluster && self.is_wanted(*other)).collect();
        let stage = &self.stage;
        // A cluster that is not ready changes its own resources, now that another may have been deleted.
        let look =
            |other: &usize| (*other, stage.is_ready(*other), stage.estate(*other), stage.answers(*other));
        let before: Vec<_> = others.iter().map(look).collect();
        self.stage.delete(cluster);
        let goes = |stage: &Stage| stage.homes[cluster].is_none();
        let mut gone = self.stage.until(MAX_END, goes).await;
        while !gone && self.stage.remove_what_was_given_away(&self.words_of(cluster)) {
            gone = self.stage.until(MAX_END, goes).await;
        }
        if !gone {
            let words = self.words_of(cluster);
            return vec![format!("cluster {cluster} does not go within {MAX_END:?}: {words:#?}")];
        }
        let mut complaints = self.stage.ledger.harm();
        for (other, was_ready, estate, answers) in before {
            let now = self.stage.estate(other);
            for (id, document) in estate {
                match now.iter().find(|(one, _)| *one == id) {
                    // A group that two created at the same moment may first belong to one and then to the other.
                    _ if self.stage.ledger.is_made_by_several(&id)
                        || self.stage.ledger.has_raced(cluster) && id.namespace().is_none() => {}
                    None => complaints.push(format!("{id} of cluster {other} went with cluster {cluster}")),
                    Some((_, after)) if was_ready && *after != document => complaints.push(format!(
                        "{id} of cluster {other} changed when cluster {cluster} went: {document} {after}"
                    )),
                    Some(_) => {}
                }
            }
            if answers.is_ok() && self.stage.answers(other) != answers {
                complaints.push(format!(
                    "cluster {other} was reached before cluster {cluster} went: {:?}",
                    self.stage.answers(other)
                ));
            }
        }
        complaints.extend(self.leftovers(cluster));
        complaints
    }

    /// The leftovers of a deleted cluster.
    fn leftovers(&self, cluster: usize) -> Vec<String> {
        let stage = &self.stage;
        let mut complaints = Vec::new();
        for (id, _) in stage.estate(cluster) {
            // A group that several created stays until the last of them is deleted.
            let may_stay = stage.is_in_use(&id) || stage.stays(&id) || stage.ledger.is_made_by_several(&id);
            if !may_stay {
                complaints.push(format!("cluster {cluster} is gone and leaves {id}"));
            }
        }
        complaints
    }
}
