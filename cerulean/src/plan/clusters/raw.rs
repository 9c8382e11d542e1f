//! The plan of a cluster that Azure manages, declared as whole resources of Azure Service Operator: an
//! AzureASOManagedCluster, an AzureASOManagedControlPlane and its pools.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::azure_aso_managed::{AzureAsoManagedClusterSpec, AzureAsoManagedControlPlaneSpec, RawResource};
use capz_planner::pool::EXTERNAL_REPLICAS;
use capz_planner::raw::{
    ControlPlane, Placed, Pool, Record, ReplicasManager, Standing, count_of, goals, place, replicas_manager,
};
use capz_planner::{Action, Claimant, Observation, ObservedResources, Terminal};
use operator_resources::{Lookup, ObjectName};
use serde_json::{Map, Value};

use super::azure::Source;
use super::managed_objects::{Generation, Managed, NodePool};
use super::planner::Planner;
use super::report::ClustersPlan;
use crate::plan::values::{optional, spec_of, text, texts};

/// The annotation of a resource that names the Secret with its credential.
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
/// The Secret with the credential of a namespace, for resources that name none.
const OF_NAMESPACE: &str = "aso-credential";

/// What is known of other objects in the namespace.
struct KnownIds<'a> {
    objects: &'a [Value],
    namespace: &'a str,
    ids: HashMap<ObjectName, String>,
}

impl KnownIds<'_> {
    fn data(&self, kind: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let found = self.objects.iter().find(|object| {
            text(object, "/apiVersion") == "v1"
                && text(object, "/kind") == kind
                && text(object, "/metadata/name") == name
                && text(object, "/metadata/namespace") == self.namespace
        })?;
        let mut data = texts(found, "/data");
        if kind == "Secret" {
            let decoded = |text: &String| String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok();
            data = data.iter().filter_map(|(key, text)| Some((key.clone(), decoded(text)?))).collect();
            data.extend(texts(found, "/stringData"));
        }
        Some(data)
    }
}

impl Lookup for KnownIds<'_> {
    fn id(&self, object: &ObjectName) -> Option<String> {
        self.ids.get(object).cloned()
    }

    fn secret(&self, name: &str, key: &str) -> Option<String> {
        self.data("Secret", name)?.remove(key)
    }

    fn whole_secret(&self, name: &str) -> Option<Vec<(String, String)>> {
        Some(self.data("Secret", name)?.into_iter().collect())
    }

    fn config_map(&self, name: &str, key: &str) -> Option<String> {
        self.data("ConfigMap", name)?.remove(key)
    }
}

/// The resources of an object as they are to be, given the documents that Azure shows of a kind.
type Mutate<'m> = dyn Fn(&dyn Fn(&str) -> Option<Value>) -> Result<Vec<Value>, Terminal> + 'm;

/// The planning of one cluster.
struct Raw<'a> {
    planner: Planner<'a>,
    cluster: &'a str,
    known: KnownIds<'a>,
    subscription: Option<&'a str>,
    /// Resources, other than groups, that objects of this cluster have recorded: what lies in them is theirs.
    own: BTreeSet<ResourceId>,
}

/// Plans a cluster. `objects` are all objects in the manifests: Secrets and ConfigMaps are looked up in them.
///
/// # Errors
/// Azure cannot be read.
pub async fn plan(
    source: &Source,
    declared: &Managed,
    objects: &[Value],
    subscription: Option<&str>,
    plan: &mut ClustersPlan,
) -> anyhow::Result<()> {
    let namespace = text(&declared.control_plane, "/metadata/namespace");
    let mut raw = Raw {
        planner: Planner::new(source, plan),
        cluster: &declared.cluster,
        known: KnownIds { objects, namespace, ids: HashMap::new() },
        subscription,
        own: BTreeSet::new(),
    };
    let [of_cluster, of_control_plane, of_pool] = Generation::Resources.kinds();
    if let Some(infrastructure) = &declared.infrastructure {
        let spec: AzureAsoManagedClusterSpec = spec_of(infrastructure)?;
        let resources: Vec<Value> =
            spec.resources.into_iter().flatten().map(|it| Value::Object(it.0)).collect();
        raw.object(of_cluster, infrastructure, "", &|_| Ok(resources.clone())).await?;
    }
    let spec: AzureAsoManagedControlPlaneSpec = spec_of(&declared.control_plane)?;
    let resources = spec.resources.unwrap_or_default();
    let pools = |held: &dyn Fn(&str) -> Option<Value>| {
        let has_pools = held("ManagedCluster").is_some_and(|held| {
            held["properties"]["agentPoolProfiles"].as_array().is_some_and(|pools| !pools.is_empty())
        });
        if has_pools { Ok(Vec::new()) } else { profiles(&declared.pools) }
    };
    let mutate = |held: &dyn Fn(&str) -> Option<Value>| {
        let control_plane = ControlPlane {
            cluster: &declared.cluster,
            version: spec.version.as_deref(),
            service_ranges: &declared.services,
            pod_ranges: &declared.pods,
            pools: pools(held)?,
        };
        control_plane.mutated(&resources)
    };
    let is_new = raw.object(of_control_plane, &declared.control_plane, "", &mutate).await?;
    for pool in &declared.pools {
        let mutate = |held: &dyn Fn(&str) -> Option<Value>| {
            let count = held("ManagedClustersAgentPool").as_ref().and_then(count_of);
            Ok(mutated(pool, count)?.into_iter().map(Value::Object).collect())
        };
        let when = "once the cluster is there";
        let sections = raw.planner.plan.sections.len();
        raw.object(of_pool, &pool.object, when, &mutate).await?;
        if let Some(section) = raw.planner.plan.sections.get_mut(sections) {
            section.created_along = is_new;
        }
    }
    Ok(())
}

/// The node pools with which a managed cluster is created.
fn profiles(pools: &[NodePool]) -> Result<Vec<Map<String, Value>>, Terminal> {
    let mut all = Vec::new();
    for pool in pools {
        all.extend(Pool::of(&mutated(pool, None)?).cloned());
    }
    Ok(all)
}

/// The resources of a pool as they are to be. `count` is the number of machines that Azure shows.
fn mutated(pool: &NodePool, count: Option<i64>) -> Result<Vec<Map<String, Value>>, Terminal> {
    let resources = pool.object.pointer("/spec/resources").and_then(Value::as_array);
    let resources: Vec<RawResource> =
        resources.into_iter().flatten().filter_map(|it| Some(RawResource(it.as_object()?.clone()))).collect();
    let annotations = texts(&pool.owner, "/metadata/annotations");
    let annotation = annotations.get(EXTERNAL_REPLICAS).map(String::as_str);
    let is_external = match replicas_manager(&resources, annotation)? {
        ReplicasManager::Stays => annotation.is_some(),
        ReplicasManager::Aks => true,
        ReplicasManager::Nobody => false,
    };
    let version = optional(&pool.owner, "/spec/template/spec/version");
    let declared = Pool {
        version: version.as_deref(),
        replicas: pool.owner.pointer("/spec/replicas").and_then(Value::as_i64),
        decided_elsewhere: count.filter(|_| is_external),
    };
    declared.mutated(&resources)
}

impl Raw<'_> {
    /// Plans an object. Returns whether a managed cluster is created.
    async fn object(
        &mut self,
        kind: &'static str,
        object: &Value,
        when: &str,
        mutate: &Mutate<'_>,
    ) -> anyhow::Result<bool> {
        let resources = match mutate(&|_| None) {
            Ok(resources) => resources,
            Err(why) => return Ok(self.refuse(object, why)),
        };
        let subscription = match self.subscription_of(&resources) {
            Ok(subscription) => subscription,
            Err(why) => return Ok(self.refuse(object, why)),
        };
        let placed = match place(&resources, self.known.namespace, &subscription, &self.known) {
            Ok(placed) => placed,
            Err(why) => return Ok(self.refuse(object, why)),
        };
        let mut record = Record::of(&texts(object, "/metadata/annotations"));
        if let Some(why) = self.stranger(&placed, &record).await? {
            return Ok(self.refuse(object, why));
        }
        record.0.extend(placed.iter().filter_map(|it| Some((it.id()?.clone(), it.recorded()))));
        let around = record.0.iter().filter(|(_, it)| it.is_managed && it.kind != "ResourceGroup");
        self.own.extend(around.map(|(id, _)| id.clone()));

        let kept = BTreeSet::new();
        let claimant = Claimant {
            kind,
            namespace: self.known.namespace,
            name: text(object, "/metadata/name"),
            cluster: self.cluster,
            id: None,
            marked_only: false,
            kept: &kept,
        };
        let mut placed = placed;
        let known = &self.known;
        let wanted = |observed: &ObservedResources| {
            let held = |kind: &str| {
                let resource = placed.iter().find(|it| it.resource.kind.kind == kind)?;
                match observed.get(resource.id()?) {
                    Observation::Present(held) => Some(held.clone()),
                    Observation::Absent | Observation::Unknown => None,
                }
            };
            let resources = mutate(&held).map_err(|why| why.to_string())?;
            placed =
                place(&resources, known.namespace, &subscription, known).map_err(|why| why.to_string())?;
            Ok(goals(&placed, &record))
        };
        let section = self.planner.foresee(claimant, object, when, wanted).await?;
        let mut is_new = false;
        if let Some(section) = section {
            section.waits = placed.iter().filter_map(waiting).collect();
            is_new = section.outlook.steps().any(|it| {
                it.step.action == Action::Create
                    && it.step.target.resource_type() == "Microsoft.ContainerService/managedClusters"
            });
        }
        for it in &placed {
            if let Some(id) = it.id() {
                self.known.ids.insert(it.resource.object(), id.to_string());
            }
        }
        Ok(is_new)
    }

    fn refuse(&mut self, object: &Value, why: impl ToString) -> bool {
        self.planner.plan.refuse(object, why.to_string());
        false
    }

    /// The subscription in the Secret with the credential, or the default.
    fn subscription_of(&self, resources: &[Value]) -> Result<String, String> {
        let named =
            |object: &Value| object["metadata"]["annotations"][CREDENTIAL].as_str().map(str::to_owned);
        let secret = resources.iter().find_map(named).unwrap_or_else(|| OF_NAMESPACE.to_owned());
        let own = self.known.secret(&secret, "AZURE_SUBSCRIPTION_ID").map(|text| text.trim().to_owned());
        own.filter(|id| !id.is_empty()).or_else(|| self.subscription.map(str::to_owned)).ok_or_else(|| {
            format!(
                "no subscription is known: add Secret {}/{secret} with AZURE_SUBSCRIPTION_ID to the manifests, or set \
                 AZURE_SUBSCRIPTION_ID",
                self.known.namespace
            )
        })
    }

    /// Why a resource that exists already, and that the object has not recorded, is not taken.
    async fn stranger(&mut self, placed: &[Placed], record: &Record) -> anyhow::Result<Option<String>> {
        let unread = goals(placed, &Record::default());
        self.planner.read(&unread).await?;
        let found = placed.iter().filter(|it| !it.may_exist()).find_map(|it| {
            let id = it.id()?;
            let is_own = record.has(id) || self.own.iter().any(|around| id != around && id.is_within(around));
            let is_there = matches!(self.planner.preview.observed.get(id), Observation::Present(_));
            (is_there && !is_own).then(|| it.not_taken(id))
        });
        Ok(found)
    }
}

/// What a resource waits for, in words.
fn waiting(placed: &Placed) -> Option<String> {
    let Standing::Awaits(awaited) = &placed.standing else { return None };
    let names: Vec<String> = awaited.iter().map(ToString::to_string).collect();
    Some(format!("{} waits for {}, which no manifest has", placed.resource.object(), names.join(", ")))
}
