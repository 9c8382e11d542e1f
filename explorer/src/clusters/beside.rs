//! Clusters and machines that Azure refuses, next to others.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::flavor::Flavor;
use super::member::Member;
use super::stage::{Stage, reasons};
use crate::property::Trial;
use crate::{failure, late_failure};

/// The maximum time for clusters without disturbances.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The duration of one operation of Azure.
const OPERATION: Duration = Duration::from_secs(3);
/// How much longer the good ones may take: one operation that is already running, with a poll before and after it.
const ONE_BATCH: Duration = Duration::from_secs(3 + 2);

/// How the bad ones are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// 400.
    Invalid,
    /// 403.
    Forbidden,
    /// 403 that names another resource.
    LinkedForbidden,
    /// 404.
    Missing,
    /// 409.
    Busy,
    /// 412.
    Stale,
    /// 429.
    Throttled,
    /// 500.
    Broken,
    /// 503.
    Unavailable,
    /// The operation fails.
    Failed,
    /// The operation is cancelled.
    Canceled,
    /// The operation never ends.
    Stalled,
    /// The answer is lost.
    Lost,
    /// Azure is not asked: the identity, or the credential, that a cluster names is missing.
    WithoutIdentity,
}

const REFUSALS: [Refusal; 14] = [
    Refusal::WithoutIdentity,
    Refusal::Invalid,
    Refusal::Forbidden,
    Refusal::LinkedForbidden,
    Refusal::Missing,
    Refusal::Busy,
    Refusal::Stale,
    Refusal::Throttled,
    Refusal::Broken,
    Refusal::Unavailable,
    Refusal::Failed,
    Refusal::Canceled,
    Refusal::Stalled,
    Refusal::Lost,
];

impl Refusal {
    /// Azure's failure, if it is asked.
    fn action(self) -> Option<FaultAction> {
        Some(match self {
            Self::WithoutIdentity => return None,
            Self::Invalid => failure(400, "InvalidRequestFormat"),
            Self::Forbidden => failure(403, "AuthorizationFailed"),
            Self::LinkedForbidden => failure(403, "LinkedAuthorizationFailed"),
            Self::Missing => failure(404, "ResourceNotFound"),
            Self::Busy => failure(409, "AnotherOperationInProgress"),
            Self::Stale => failure(412, "PreconditionFailed"),
            Self::Throttled => FaultAction::Throttle { retry_after: None },
            Self::Broken => failure(500, "InternalServerError"),
            Self::Unavailable => failure(503, "ServiceUnavailable"),
            Self::Failed => late_failure("AllocationFailed"),
            Self::Canceled => FaultAction::CancelOperation,
            Self::Stalled => FaultAction::StallOperation,
            Self::Lost => FaultAction::DropRequest,
        })
    }

    /// Whether it applies to reads as well as writes.
    fn strikes_reads(self) -> bool {
        matches!(self, Self::Forbidden | Self::Throttled | Self::Broken | Self::Unavailable | Self::Lost)
    }
}

/// A bad cluster or machine, and its refusal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Bad {
    /// How it is refused.
    pub refusal: Refusal,
    /// Whether reads are refused as well.
    #[serde(default)]
    pub reads: bool,
    /// Whether it is a machine, or a node pool, of the first good cluster; otherwise it is a cluster of its own.
    pub machine: bool,
    /// The declaration of a cluster of its own.
    #[serde(default, skip_serializing_if = "Flavor::is_self_managed")]
    pub flavor: Flavor,
}

/// Good and bad clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Beside {
    /// The seed of everything random.
    pub seed: u64,
    /// The number of good clusters, each with two machines, or two node pools.
    pub good: usize,
    /// The declarations of the first good clusters; the others are self-managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flavors: Vec<Flavor>,
    /// Whether the first of them has a pool.
    #[serde(default)]
    pub pool: bool,
    /// The bad ones.
    pub bad: Vec<Bad>,
}

impl Trial for Beside {
    const NAME: &'static str = "cluster-refusals";
    const LISTS: &'static [&'static str] = &["/bad"];
    const PLAINER: &'static [(&'static str, &'static str)] =
        &[(r#"{"pool": false}"#, ""), (r#"{"good": 1}"#, "")];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let bad = |random: &mut SmallRng| {
            let refusal = REFUSALS[random.random_range(0..REFUSALS.len())];
            let reads = refusal.strikes_reads() && random.random_bool(0.4);
            let machine = random.random_bool(0.5) && refusal.action().is_some();
            Bad { refusal, reads, machine, flavor: Flavor::draw(random) }
        };
        let good = random.random_range(1..=2);
        let count = random.random_range(1..=3);
        Self {
            seed,
            good,
            flavors: (0..good).map(|_| Flavor::draw(&mut random)).collect(),
            pool: random.random_bool(0.3),
            bad: (0..count).map(|_| bad(&mut random)).collect(),
        }
    }

    async fn run(&self) -> Vec<String> {
        let alone = match self.time(&[]).await {
            Ok(time) => time,
            Err(why) => return vec![format!("alone: {why}")],
        };
        match self.time(&self.bad).await {
            Ok(time) if time <= alone + ONE_BATCH => Vec::new(),
            Ok(time) => vec![format!("good ones take {time:?} beside bad ones, and {alone:?} alone")],
            Err(why) => vec![format!("good ones take {alone:?} alone, and beside bad ones: {why}")],
        }
    }
}

impl Beside {
    /// The time that the good ones take.
    async fn time(&self, bad: &[Bad]) -> Result<Duration, String> {
        let mut members: Vec<Member> = (0..self.good).map(Member::alone).collect();
        for (member, flavor) in members.iter_mut().zip(&self.flavors) {
            member.flavor = *flavor;
        }
        members[0].pool = self.pool && members[0].flavor.is_self_managed();
        for (number, one) in bad.iter().enumerate().filter(|(_, one)| !one.machine) {
            members.push(Member {
                name: format!("bad-{number}"),
                flavor: one.flavor,
                ..Member::alone(number)
            });
        }
        let part = |number: usize| match members[0].flavor {
            Flavor::SelfManaged => format!("bad-machine-{number}"),
            Flavor::Aks | Flavor::AksAso => format!("bad-pool-{number}"),
        };
        let parts: Vec<String> = (0..bad.len()).map(part).collect();
        let latency = LatencyProfile::instant().with("*", "*", OPERATION);
        let mut stage = Stage::new(self.seed, &members, false, 1, latency);
        for (number, one) in bad.iter().enumerate() {
            let Some(action) = one.refusal.action() else { continue };
            let place = match (one.machine, members[0].flavor.is_self_managed()) {
                (true, true) => format!("*/{}*", parts[number]),
                (true, false) => format!("*/{}*", parts[number].replace('-', "")),
                (false, _) => format!("*/bad-{number}/*"),
            };
            let methods: &[&str] = if one.reads { &["PUT", "GET"] } else { &["PUT"] };
            for method in methods {
                let mut fault = Fault::new(action.clone()).on_method(method);
                fault.path = Some(place.clone());
                stage.azure.inject(fault);
            }
        }
        let clusters = bad.iter().filter(|one| !one.machine).enumerate();
        for (number, _) in clusters.filter(|(_, one)| one.refusal.action().is_none()) {
            stage.remove_identity(self.good + number);
        }
        let begin = Instant::now();
        for cluster in (0..members.len()).rev() {
            stage.create(cluster);
        }
        for (number, _) in bad.iter().enumerate().filter(|(_, one)| one.machine) {
            stage.add_part(0, &parts[number]);
        }
        let good = self.good;
        let done = |stage: &Stage| (0..good).all(|it| stage.are_ready(it, |name| !name.starts_with("bad-")));
        if stage.until(PATIENCE, done).await {
            return Ok(begin.elapsed());
        }
        let words: Vec<String> =
            (0..good).flat_map(|it| stage.speakers(it)).flat_map(|(_, object)| reasons(&object)).collect();
        Err(format!("they are not done within {PATIENCE:?}: {words:#?}"))
    }
}
