//! Generated histories: Services come, change and go; nodes do; Azure throttles, refuses and loses answers;
//! somebody else writes between a read and a write; the controllers are killed. Whatever happens, it ends
//! well:
//!
//! * every Service has in the end what its last manifest asks for, or an event says why not, and a Service
//!   that cannot be served harms no other (convergence);
//! * controllers that start anew then write nothing (idempotence);
//! * what others made is as they left it, and nothing of ours is left when all Services are gone.
//!
//! A history is decided by its seed. A failure is shrunk to the fewest acts and features, and printed as the text
//! that [`kept`] reads: what was wrong once is tried again, whatever seeds come to mean.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use azure_types::ResourceId;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use testkit::World;
use testkit::types::{INSTANCES, LOAD_BALANCERS, PUBLIC_IPS, SCALE_SETS, SECURITY_GROUPS};

use crate::corpus::Expectations;
use crate::expectation::Expectation;
use crate::features::{self, FACTORS, Row};
use crate::stage::{Given, Stage};
use crate::{quietly, shrink, trial};

mod kept;
mod text;

pub use kept::{FOLDER, Kept, kept};

/// How many Services a history has at most.
const MAX_SERVICES: usize = 6;

/// How many public IPs others have for frontends of their own.
const THEIR_ADDRESSES: u64 = 4;

/// The share of factors that have a value that is not the usual one.
const UNUSUAL: f64 = 0.15;

/// What a change leaves as it is or draws evenly: of the usual values alone hardly a Service would keep two families.
const SELDOM_CHANGED: [&str; 2] = ["node-ports", "families"];

/// How often it stays.
const STAYS: f64 = 0.7;

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A Service comes, or changes to these features.
    Apply {
        /// Which.
        service: usize,
        /// Its features.
        row: Row,
    },
    /// A Service goes.
    Delete {
        /// Which.
        service: usize,
    },
    /// The scale set has so many machines from now on.
    Scale(u64),
    /// Requests of this type and method fare badly, as often as the number says.
    Trouble {
        /// Full resource type.
        kind: &'static str,
        /// HTTP method.
        method: &'static str,
        /// What becomes of them.
        what: Trouble,
        /// How many.
        times: u64,
    },
    /// Somebody else changes a tag of a shared resource.
    ForeignTag {
        /// Which.
        shared: Shared,
        /// The tag's value.
        value: u64,
    },
    /// Somebody else tags the public IPs that were made for Services.
    ForeignAddressTag(u64),
    /// Somebody else adds a part of their own to a shared resource: a backend pool, or a security rule.
    ForeignPart {
        /// Which.
        shared: Shared,
        /// What the part's name and place end with.
        number: u64,
    },
    /// Somebody else adds a frontend of their own to a load balancer, with a rule.
    ForeignFrontend {
        /// The internal one.
        internal: bool,
        /// What its name ends with, and its port.
        number: u64,
    },
    /// Somebody takes a rule of ours away while the controllers are restarted, who find out.
    Spoil {
        /// From which resource.
        shared: Shared,
    },
    /// The controllers are killed and started anew.
    Kill,
    /// Seconds pass.
    Wait(u64),
}

/// A resource that many Services share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// The public load balancer.
    LoadBalancer,
    /// The internal one.
    InternalLoadBalancer,
    /// The security group.
    SecurityGroup,
}

const SHARED: [Shared; 3] = [Shared::LoadBalancer, Shared::InternalLoadBalancer, Shared::SecurityGroup];

impl Shared {
    fn id(self, world: &World) -> ResourceId {
        match self {
            Self::LoadBalancer => world.load_balancer(),
            Self::InternalLoadBalancer => world.internal_load_balancer(),
            Self::SecurityGroup => world.security_group(),
        }
    }

    /// Where its rules stand.
    fn rules(self) -> &'static str {
        match self {
            Self::LoadBalancer | Self::InternalLoadBalancer => "loadBalancingRules",
            Self::SecurityGroup => "securityRules",
        }
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 429.
    Throttled,
    /// 400, of a kind that may pass.
    Refused,
    /// 403.
    Denied,
    /// 409: another operation is in progress.
    InProgress,
    /// 412: somebody else wrote between read and write.
    Overtaken,
    /// 500.
    Broken,
    /// Done, but nobody is told.
    AnswerLost,
    /// Never arrives.
    RequestLost,
    /// Accepted, and fails later.
    FailsLater,
    /// Accepted, and takes a minute.
    Slow,
}

const TROUBLES: [Trouble; 10] = [
    Trouble::Throttled,
    Trouble::Refused,
    Trouble::Denied,
    Trouble::InProgress,
    Trouble::Overtaken,
    Trouble::Broken,
    Trouble::AnswerLost,
    Trouble::RequestLost,
    Trouble::FailsLater,
    Trouble::Slow,
];

const METHODS: [&str; 3] = ["PUT", "GET", "DELETE"];

const KINDS: [&str; 5] = [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES];

impl Trouble {
    fn action(self) -> FaultAction {
        let fail = |status, code: &str| FaultAction::Fail {
            status,
            code: code.to_owned(),
            message: "An error of this test.".to_owned(),
        };
        match self {
            Self::Throttled => FaultAction::Throttle { retry_after: Some(7) },
            Self::Refused => fail(400, "NotWelcomeToday"),
            Self::Denied => fail(403, "AuthorizationFailed"),
            Self::InProgress => fail(409, "AnotherOperationInProgress"),
            Self::Overtaken => {
                FaultAction::Interfere { id: None, patch: json!({"tags": {"overtaken": "yes"}}) }
            }
            Self::Broken => fail(500, "InternalServerError"),
            Self::AnswerLost => FaultAction::DropAnswer,
            Self::RequestLost => FaultAction::DropRequest,
            Self::FailsLater => FaultAction::FailOperation {
                code: "InternalServerError".to_owned(),
                message: "An error of this test.".to_owned(),
            },
            Self::Slow => FaultAction::SlowOperation { ms: 60_000 },
        }
    }
}

/// A history.
#[derive(Debug, Clone)]
pub struct History {
    /// What everything random is drawn from.
    pub seed: u64,
    /// Whether Azure takes its time.
    pub typical_latency: bool,
    /// What happens.
    pub acts: Vec<Act>,
}

impl History {
    /// The history of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let services = random.random_range(1..=MAX_SERVICES);
        let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
        let mut acts = Vec::new();
        for _ in 0..random.random_range(4..=20) {
            let service = random.random_range(0..services);
            acts.push(match random.random_range(0..100) {
                0..45 => {
                    let row = row(&mut random, rows.get(&service));
                    rows.insert(service, row.clone());
                    Act::Apply { service, row }
                }
                45..53 => {
                    rows.remove(&service);
                    Act::Delete { service }
                }
                53..58 => Act::Scale(random.random_range(1..=5)),
                58..78 => Act::Trouble {
                    kind: KINDS[random.random_range(0..KINDS.len())],
                    method: ["PUT", "PUT", "GET", "DELETE"][random.random_range(0..4)],
                    what: TROUBLES[random.random_range(0..TROUBLES.len())],
                    times: random.random_range(1..=3),
                },
                78..80 => {
                    let shared = SHARED[random.random_range(0..SHARED.len())];
                    Act::ForeignTag { shared, value: random.random_range(0..1000) }
                }
                80 => Act::ForeignAddressTag(random.random_range(0..1000)),
                81..83 => {
                    let shared = SHARED[random.random_range(0..SHARED.len())];
                    Act::ForeignPart { shared, number: random.random_range(0..100) }
                }
                83 => Act::ForeignFrontend {
                    internal: random.random(),
                    number: random.random_range(0..THEIR_ADDRESSES),
                },
                84..86 => Act::Spoil { shared: SHARED[random.random_range(0..SHARED.len())] },
                86..90 => Act::Kill,
                _ => Act::Wait([1, 3, 10, 60, 400][random.random_range(0..5)]),
            });
        }
        Self { seed, typical_latency: random.random_bool(0.3), acts }
    }

    /// What is wrong in the end; empty where all is well.
    pub fn complaints(&self) -> Vec<String> {
        quietly(async || self.run().await).unwrap_or_else(|panic| vec![panic])
    }

    /// The fewest acts and features with which something is still wrong.
    #[must_use]
    pub fn shrink(&self) -> Self {
        let with = |acts: &[Act]| Self { acts: acts.to_vec(), ..self.clone() };
        let fails = |acts: &[Act]| can_happen(acts) && !with(acts).complaints().is_empty();
        let mut acts = shrink::fewest(&self.acts, fails);
        for place in 0..acts.len() {
            let Act::Apply { service, row } = acts[place].clone() else { continue };
            let features = features::features(&row);
            let row_of = |features: &[String]| {
                let row = features::with_features(features.iter().map(String::as_str)).ok();
                row.filter(|row| features::is_possible(row) && !features::is_known(row))
            };
            let fewest = shrink::fewest(&features, |fewer| {
                let Some(row) = row_of(fewer) else { return false };
                let mut acts = acts.clone();
                acts[place] = Act::Apply { service, row };
                fails(&acts)
            });
            if let Some(row) = row_of(&fewest) {
                acts[place] = Act::Apply { service, row };
            }
        }
        with(&acts)
    }

    async fn run(&self) -> Vec<String> {
        let theirs = (0..THEIR_ADDRESSES).map(|number| Given::public_ip(&format!("theirs-{number}"), "IPv4"));
        let given: Vec<Given> = (0..MAX_SERVICES).flat_map(Self::kept_for).chain(theirs).collect();
        let latency =
            if self.typical_latency { LatencyProfile::typical() } else { LatencyProfile::instant() };
        let mut stage = Stage::set_in(World::builder().seed(self.seed).latency(latency), &given).await;
        let mut play = Play::default();
        for act in &self.acts {
            play.act(&mut stage, act).await;
        }
        stage.world.azure.clear_faults();
        stage.world.come_to_rest().await;
        let Play { mut expect, tags } = play;
        trial::fill_in(&stage, &mut expect);
        let mut complaints = trial::judge(&stage, &expect);
        complaints.extend(findings(&stage.world).await);
        complaints.extend(lost_tags(&stage.world, &tags));

        stage.world.azure.clear_journal();
        stage.world.restart().await;
        stage.world.come_to_rest().await;
        // What is refused is tried again.
        let again = stage
            .world
            .changes()
            .into_iter()
            .filter(|change| change.ends_with(" 200") || change.ends_with(" 201"));
        let again: Vec<String> = again.collect();
        if !again.is_empty() {
            complaints.push(format!("controllers that start anew write: {again:#?}"));
        }

        for key in expect.keys() {
            stage.world.delete(key);
        }
        stage.world.come_to_rest().await;
        for key in expect.keys().filter(|key| !stage.world.service(key).is_null()) {
            complaints.push(format!("{key} cannot be deleted: {:#?}", stage.world.events(key)));
        }
        complaints.extend(
            findings(&stage.world).await.into_iter().map(|text| format!("when all are gone: {text}")),
        );
        complaints
    }

    /// What Service `number` may ask for in Azure.
    fn kept_for(number: usize) -> Vec<Given> {
        let row = features::with_features(["public-ip=named", "prefix=yes"]);
        features::given(&row.unwrap_or_else(|_| features::usual()), number)
    }
}

async fn findings(world: &World) -> Vec<String> {
    world.check().await.iter().map(ToString::to_string).collect()
}

/// Tags of others on public IPs that did not stay. `tags` are by address.
fn lost_tags(world: &World, tags: &BTreeMap<String, String>) -> Vec<String> {
    let documents = world.azure.documents_of_type(PUBLIC_IPS);
    let lost = documents.iter().filter_map(|document| {
        let wanted = tags.get(document["properties"]["ipAddress"].as_str()?)?;
        let found = &document["tags"]["owner"];
        (found != wanted).then(|| format!("public IP {} lost a tag of others", document["name"]))
    });
    lost.collect()
}

/// A row that a Service may have, or may change to from another.
fn row(random: &mut SmallRng, before: Option<&Row>) -> Row {
    loop {
        let mut row = features::usual();
        for (place, factor) in FACTORS.iter().enumerate() {
            if random.random_bool(UNUSUAL) {
                row[place] = random.random_range(0..factor.values.len());
            }
        }
        // What is kept for it is in the cluster's group.
        if features::value(&row, "public-ip") != "own" {
            set(&mut row, "resource-group", 0);
        }
        for (before, factor) in before.into_iter().flat_map(|row| SELDOM_CHANGED.map(|factor| (row, factor)))
        {
            let place = place_of(factor);
            row[place] = if random.random_bool(STAYS) {
                before[place]
            } else {
                random.random_range(0..FACTORS[place].values.len())
            };
        }
        let mistakes = row.iter().enumerate().filter(|(f, v)| features::is_mistake(*f, **v)).count();
        let may_be = mistakes <= 1 && features::is_possible(&row) && !features::is_known(&row);
        if may_be && before.is_none_or(|before| may_become(before, &row)) {
            return row;
        }
    }
}

/// Whether Kubernetes lets a Service become this: its first family stays, and so do node ports that it was given
/// and, as long as it is asked, the health check port.
fn may_become(before: &Row, after: &Row) -> bool {
    let value = features::value;
    let begins_with_v6 = |row| ["IPv6", "dual-IPv6-first"].contains(&value(row, "families"));
    let gives_up_ports = value(before, "node-ports") != "no" && value(after, "node-ports") == "no";
    let is_asked = |row| value(row, "policy") == "Local";
    let was_given = value(before, "health-check-port") == "none";
    let chooses_another =
        is_asked(before) && is_asked(after) && was_given && value(after, "health-check-port") != "none";
    begins_with_v6(before) == begins_with_v6(after) && !gives_up_ports && !chooses_another
}

/// Whether Kubernetes lets all of this happen.
fn can_happen(acts: &[Act]) -> bool {
    let mut rows: BTreeMap<usize, &Row> = BTreeMap::new();
    acts.iter().all(|act| match act {
        Act::Apply { service, row } => {
            rows.insert(*service, row).is_none_or(|before| may_become(before, row))
        }
        Act::Delete { service } => {
            rows.remove(service);
            true
        }
        _ => true,
    })
}

fn place_of(factor: &str) -> usize {
    FACTORS.iter().position(|known| known.name == factor).unwrap_or_default()
}

fn set(row: &mut Row, factor: &str, value: usize) {
    row[place_of(factor)] = value;
}

/// A history under way.
#[derive(Debug, Default)]
struct Play {
    expect: Expectations,
    /// The tag that somebody gave to a public IP, by its address: one that is made anew has another.
    tags: BTreeMap<String, String>,
}

impl Play {
    fn tag_addresses(&mut self, world: &World, value: u64) {
        for document in world.azure.documents_of_type(PUBLIC_IPS) {
            let address = document["properties"]["ipAddress"].as_str();
            let id = document["id"].as_str().and_then(|id| id.parse::<ResourceId>().ok());
            let is_made = !document["tags"]["k8s-azure-service"].is_null();
            let (Some(address), Some(id), true) = (address, id, is_made) else { continue };
            let tagged =
                world.azure.edit(&id, |document| document["tags"]["owner"] = value.to_string().into());
            // Azure may refuse it: while an operation runs, for example.
            if tagged.is_ok() {
                self.tags.insert(address.to_owned(), value.to_string());
            }
        }
    }

    async fn act(&mut self, stage: &mut Stage, act: &Act) {
        match act {
            Act::Apply { service, row } => self.apply(stage, *service, row).await,
            Act::Delete { service } => {
                let key = format!("pairs/s{service:03}");
                if self.expect.remove(&key).is_some() {
                    stage.world.delete(&key);
                }
            }
            Act::Scale(nodes) => {
                let set = stage.world.scale_set();
                // Azure may refuse it: while the load balancer is in a failed state, for example.
                let _refused = stage.world.azure.scale(&set, *nodes);
            }
            Act::Trouble { kind, method, what, times } => {
                let fault = Fault::new(what.action()).on_method(method).on_type(kind).times(*times);
                stage.world.azure.inject(fault);
            }
            Act::ForeignTag { shared, value } => {
                let id = shared.id(&stage.world);
                stage
                    .world
                    .edit_foreign(&id, |document| document["tags"]["owner"] = value.to_string().into());
            }
            Act::ForeignAddressTag(value) => self.tag_addresses(&stage.world, *value),
            Act::ForeignPart { shared: Shared::SecurityGroup, number } => {
                let rule = json!({"name": format!("theirs-{number}"), "properties": {
                    "priority": 200 + number, "access": "Allow", "direction": "Inbound", "protocol": "Icmp",
                    "sourceAddressPrefix": "192.0.2.0/24", "sourcePortRange": "*",
                    "destinationAddressPrefix": "*", "destinationPortRange": "*"}});
                let id = stage.world.security_group();
                stage.world.edit_foreign(&id, |document| add(document, "securityRules", rule));
            }
            Act::ForeignPart { shared, number } => {
                let pool = json!({"name": format!("theirs-{number}"), "properties": {}});
                let id = shared.id(&stage.world);
                stage.world.edit_foreign(&id, |document| add(document, "backendAddressPools", pool));
            }
            Act::ForeignFrontend { internal, number } => add_frontend(&stage.world, *internal, *number),
            Act::Spoil { shared } => {
                stage.world.stop().await;
                let world = &stage.world;
                // Azure may refuse it: while an operation runs, for example.
                let _refused = world
                    .azure
                    .edit(&shared.id(world), |document| take_one_of_ours(document, shared.rules()));
                stage.world.start();
            }
            Act::Kill => stage.world.restart().await,
            Act::Wait(seconds) => tokio::time::sleep(Duration::from_secs(*seconds)).await,
        }
    }

    async fn apply(&mut self, stage: &Stage, number: usize, row: &Row) {
        let name = format!("s{number:03}");
        let key = format!("pairs/{name}");
        let manifest = features::manifest(row, number, "pairs", &name);
        let before = stage.world.service(&key);
        let mut expectation = features::expectation(row, number, &key);
        if before.is_null() {
            let applied = stage.apply(std::slice::from_ref(&manifest)).await;
            if is_taken(&applied) {
                return;
            }
            applied.expect("the API takes the manifest");
        } else if self.expect.contains_key(&key) {
            let text = stage.fill_in(&replacement(&before, &manifest).to_string());
            let patch = serde_json::from_str(&text).expect("it is JSON");
            let changed = stage.world.kubernetes.merge("Service", "pairs", &name, &patch);
            let changed = changed.map_err(|error| format!("{error:?}"));
            if is_taken(&changed) {
                return;
            }
            changed.expect("the API takes the change");
            if matches!(expectation, Expectation::Refused { .. }) {
                expectation = Expectation::KeptAsItWas;
            }
        } else {
            // It is being deleted; whoever applies it now changes what goes.
            return;
        }
        if let Expectation::Served(served) = &mut expectation {
            served.after_trouble = true;
        }
        self.expect.insert(key, expectation);
    }
}

/// Whether the API refuses a chosen node port, because it has given it to another Service: nothing happens then.
fn is_taken<T>(answer: &Result<T, String>) -> bool {
    answer.as_ref().is_err_and(|error| error.contains("provided port is already allocated"))
}

/// Adds a part, if none of this name is there.
fn add(document: &mut Value, kind: &str, part: Value) {
    let Some(parts) = document["properties"][kind].as_array_mut() else { return };
    if !parts.iter().any(|there| there["name"] == part["name"]) {
        parts.push(part);
    }
}

/// Adds a frontend of others with a rule, if it is not there.
fn add_frontend(world: &World, internal: bool, number: u64) {
    let shared = if internal { Shared::InternalLoadBalancer } else { Shared::LoadBalancer };
    let (id, name) = (shared.id(world), format!("theirs-{number}"));
    let place = if internal {
        json!({"subnet": {"id": world.node_subnet()}, "privateIPAllocationMethod": "Dynamic"})
    } else {
        json!({"publicIPAddress": {"id": world.network("publicIPAddresses", &name)}})
    };
    let part = |kind: &str| json!({"id": format!("{id}/{kind}/{name}")});
    let rule = json!({"name": name, "properties": {
        "frontendIPConfiguration": part("frontendIPConfigurations"),
        "backendAddressPool": part("backendAddressPools"),
        "protocol": "Tcp", "frontendPort": 7000 + number, "backendPort": 7000 + number}});
    world.edit_foreign(&id, |document| {
        add(document, "frontendIPConfigurations", json!({"name": name, "properties": place}));
        add(document, "backendAddressPools", json!({"name": name, "properties": {}}));
        add(document, "loadBalancingRules", rule);
    });
}

/// Takes the first rule away that was made for a Service of the history.
fn take_one_of_ours(document: &mut Value, kind: &str) {
    let Some(parts) = document["properties"][kind].as_array_mut() else { return };
    let is_ours = |part: &Value| {
        let name = part["name"].as_str().unwrap_or_default();
        name.starts_with("k8s-azure-lb_allow") || name.starts_with('a')
    };
    if let Some(at) = parts.iter().position(is_ours) {
        parts.remove(at);
    }
}

/// The merge patch that makes a Service what a manifest says: what the manifest does not name goes.
fn replacement(before: &Value, manifest: &Value) -> Value {
    let mut annotations = manifest["metadata"]["annotations"].clone();
    for key in before["metadata"]["annotations"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if annotations[key].is_null() {
            annotations[key] = Value::Null;
        }
    }
    let mut spec = manifest["spec"].clone();
    let usual = [
        ("externalTrafficPolicy", json!("Cluster")),
        ("sessionAffinity", json!("None")),
        ("allocateLoadBalancerNodePorts", json!(true)),
    ];
    for (member, value) in usual {
        if spec[member].is_null() {
            spec[member] = value;
        }
    }
    for member in ["loadBalancerSourceRanges", "loadBalancerIP"] {
        if spec[member].is_null() {
            spec[member] = Value::Null;
        }
    }
    json!({"metadata": {"annotations": annotations}, "spec": spec})
}

/// A failure, ready to be shown.
#[derive(Debug)]
pub struct Failure {
    /// The history, shrunk.
    pub history: History,
    /// What is wrong with it.
    pub complaints: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.history)?;
        for complaint in &self.complaints {
            writeln!(f, "=> {complaint}")?;
        }
        writeln!(f, "to see it again: cargo xtask explore --rounds 1 --seed {}", self.history.seed)?;
        write!(f, "to keep it: put the lines above the first `=>` into {FOLDER}/NAME.txt")
    }
}

/// Runs the history of a seed.
///
/// # Errors
/// What is wrong with it, shrunk.
pub fn explore(seed: u64) -> Result<(), Box<Failure>> {
    let history = History::of(seed);
    if history.complaints().is_empty() {
        return Ok(());
    }
    let history = history.shrink();
    let complaints = history.complaints();
    Err(Box::new(Failure { history, complaints }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_a_history() {
        let told = |seed| History::of(seed).acts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn histories_change_families_and_node_ports_as_kubernetes_lets_them() {
        let mut changes = BTreeMap::new();
        for seed in 0..300 {
            let acts = History::of(seed).acts;
            assert!(can_happen(&acts), "seed {seed}");
            let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
            for act in acts {
                let (service, row) = match act {
                    Act::Apply { service, row } => (service, row),
                    Act::Delete { service } => {
                        rows.remove(&service);
                        continue;
                    }
                    _ => continue,
                };
                let Some(before) = rows.insert(service, row.clone()) else { continue };
                for factor in ["node-ports", "families", "health-check-port"] {
                    let values = (features::value(&before, factor), features::value(&row, factor));
                    *changes.entry(values).or_insert(0) += 1;
                }
            }
        }
        for change in [("IPv4", "dual"), ("dual", "IPv4"), ("IPv6", "dual-IPv6-first"), ("yes", "chosen")] {
            assert!(changes.contains_key(&change), "{change:?} is never tried: {changes:?}");
        }
        let row = |features: &str| features::with_features(features.split(' ')).unwrap();
        assert!(!may_become(&row("families=IPv4"), &row("families=dual-IPv6-first")));
        assert!(!may_become(&row("node-ports=chosen"), &row("node-ports=no")));
        assert!(!may_become(&row("policy=Local"), &row("policy=Local health-check-port=chosen")));
    }

    #[test]
    fn what_a_manifest_no_longer_says_goes() {
        let before =
            json!({"metadata": {"annotations": {"a": "1", "b": "2"}}, "spec": {"loadBalancerIP": "x"}});
        let manifest = json!({"metadata": {"annotations": {"b": "3"}}, "spec": {"ports": []}});
        let patch = replacement(&before, &manifest);
        assert_eq!(patch["metadata"]["annotations"], json!({"a": null, "b": "3"}));
        assert_eq!(patch["spec"].get("loadBalancerIP"), Some(&Value::Null));
    }
}
