//! From an AzureMachinePool to its scale set, and from its instances to what happens to them.
//!
//! ```text
//!  spec, image, bootstrap data ──▶ goals: the scale set, written only when its model or its size changes
//!  instances, objects          ──▶ sync: objects that are made, machines that go now
//!  state, replicas             ──▶ standing: conditions and readiness
//!  all of them                 ──▶ pending: whether another look at Azure is due, or events tell
//! ```

mod instance;
mod memory;
mod node;
mod numbers;
mod pending;
mod resize;
mod rival;
mod scale_set;
mod selection;
mod status;
mod sync;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::Tags;
use capz_api::azure_machine_pool::{AzureMachinePoolMachineTemplate, AzureMachinePoolSpec};
use capz_api::machine::{Image, default_interfaces};
use capz_api::network::roles;
use ownership::Ownership;
use serde_json::Value;

pub use instance::{Instance, end as instance_end, is_of as is_instance_of, labels as instance_labels};
pub use memory::EXTENSIONS;
pub use node::Node;
pub use numbers::{DeletePolicy, delete_policy, max_surge, max_unavailable};
pub use pending::{Pending, pending};
pub use resize::{Numbers, Resize, resize};
pub use rival::{Claim, rival};
pub use scale_set::{HASH_TAG, bootstrap_hash};
pub use selection::{PoolMachine, Wanted, select};
pub use status::{Standing, standing};
pub use sync::{Known, Sync, rollout_in_progress, sync};

use crate::goal::{Goal, GoalError};
use crate::image::{self, ImageError, WINDOWS};
use crate::kind::Kind;
pub use crate::making::Making;
use crate::observed::{Observed, Reading, Seen};
use crate::owner_tags::{Borne, OWNER_TAGS};
use crate::profile;
use crate::role_assignment;
use crate::scope::Scope;
use crate::service;
use crate::tags;

/// The annotation of MachinePools whose replicas are managed externally.
pub const EXTERNAL_REPLICAS: &str = "cluster.x-k8s.io/replicas-managed-by";
/// The annotation with the additional tags that were applied to the scale set.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vmss";
/// The longest name of a scale set with Windows: it is the prefix of the computer names.
const WINDOWS_NAME: usize = 9;

/// The inputs from the MachinePool that owns the pool.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The version of Kubernetes.
    pub version: Option<&'a str>,
    /// The desired number of machines.
    pub replicas: u32,
    /// Zones of the machines.
    pub failure_domains: &'a [String],
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
}

/// A pool: its AzureMachinePool after defaulting and [`complete`], and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct PoolScope<'a> {
    /// The cluster.
    pub cluster: Scope<'a>,
    /// The name of the AzureMachinePool.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureMachinePoolSpec,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The MachinePool that owns it.
    pub owner: Owner<'a>,
}

impl<'a> PoolScope<'a> {
    /// The name of the scale set, shortened for Windows.
    pub fn scale_set_name(&self) -> String {
        scale_set_name(self.name, self.os_type())
    }

    /// Whether a scale set with the pool's name is not known to be this cluster's: its tags name another cluster, or
    /// neither its tags name an owner nor does the object record it.
    pub fn is_foreign(&self, held: &Value) -> bool {
        let made = self.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty());
        match self.cluster.claimant().by_tags(held) {
            Ownership::Proven(_) => false,
            Ownership::Disputed(_) => true,
            Ownership::Unproven(_) | Ownership::Unknown => {
                !made || tags::owner_in(held, self.cluster.cluster).is_some()
            }
        }
    }

    /// The scale set.
    pub fn scale_set(&self) -> ResourceId {
        self.cluster.group().resource("Microsoft.Compute", "virtualMachineScaleSets", &self.scale_set_name())
    }

    /// Whether the instances are virtual machines of their own.
    pub fn is_flexible(&self) -> bool {
        self.spec.orchestration_mode.as_deref() == Some("Flexible")
    }

    /// The one list that shows all its instances. Machines of flexible sets are among the others of their group.
    pub fn instances_reading(&self) -> Reading {
        let (group, resource_type) = if self.is_flexible() {
            (self.cluster.group(), "Microsoft.Compute/virtualMachines")
        } else {
            (self.scale_set(), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines")
        };
        let api_version = Kind::of(&self.scale_set().child("virtualMachines", "")).api_version;
        Reading::List { group, resource_type, api_version }
    }

    /// The instances that this list shows.
    pub fn read_instances(&self, documents: &[Value]) -> Vec<Instance> {
        let (set, flexible) = (self.scale_set(), self.is_flexible());
        documents
            .iter()
            .filter(|document| !flexible || instance::is_of(document, &set))
            .filter_map(|document| Instance::read(document, flexible))
            .collect()
    }

    /// Whether the replicas are managed externally, by an autoscaler of Azure's.
    pub fn has_external_replicas(&self) -> bool {
        self.owner.annotations.get(EXTERNAL_REPLICAS).is_some_and(|value| value != "false")
    }

    /// The image of the machines.
    ///
    /// # Errors
    /// No image is declared and there is no default for their version of Kubernetes.
    pub fn image(&self) -> Result<Image, ImageError> {
        let declared = self.template().and_then(|template| template.image.as_ref());
        image::choose(declared, self.os_type(), self.owner.version, self.annotations)
    }

    /// The user's tags for the scale set.
    pub fn additional_tags(&self) -> Tags {
        let cluster = &self.cluster;
        let own = self.spec.additional_tags.as_ref();
        profile::additional_tags(cluster.cluster, cluster.spec.additional_tags.as_ref(), own)
    }

    /// The annotation [`TAGS`] once the tags are applied.
    pub fn remembered_tags(&self) -> String {
        serde_json::json!(self.additional_tags()).to_string()
    }

    /// The annotation [`OWNER_TAGS`] for this observed scale set.
    pub fn remembered_owner(&self, scale_set: &Value) -> Option<&'static str> {
        Borne::of(self.cluster.claimant(), scale_set).word()
    }

    /// The owner tags of its scale set when it was last as desired.
    fn borne(&self) -> Borne {
        self.annotations.get(OWNER_TAGS).map_or(Borne::Nothing, |word| Borne::read(word))
    }

    /// The annotation [`EXTENSIONS`] for this observed scale set.
    pub fn remembered_extensions(&self, scale_set: &Value) -> Option<String> {
        let declared = self.template().and_then(|template| template.vm_extensions.as_deref());
        let declared =
            declared.into_iter().flatten().filter_map(|extension| extension.name.clone()).collect();
        memory::remembered(self.annotations.get(EXTENSIONS).map(String::as_str), &declared, scale_set)
    }

    fn template(&self) -> Option<&'a AzureMachinePoolMachineTemplate> {
        self.spec.template.as_ref()
    }

    fn os_type(&self) -> Option<&'a str> {
        self.template()?.os_disk.as_ref()?.os_type.as_deref()
    }
}

/// The name of the scale set of a pool with this name, shortened for Windows.
fn scale_set_name(pool: &str, os_type: Option<&str>) -> String {
    match pool.get(pool.len().saturating_sub(5)..) {
        Some(end) if os_type == Some(WINDOWS) && pool.len() > WINDOWS_NAME => format!("win-{end}"),
        _ => pool.to_owned(),
    }
}

/// Completes the network interfaces of a pool's machines, and the subnet of the first one.
///
/// # Errors
/// The subnet is not named, and there is not exactly one candidate.
pub fn complete(spec: &mut AzureMachinePoolSpec, cluster: Scope<'_>) -> Result<(), String> {
    let template = spec.template.get_or_insert_default();
    default_interfaces(
        &mut template.network_interfaces,
        &mut template.subnet_name,
        &mut template.accelerated_networking,
    );
    crate::machine::complete_first(template.network_interfaces.as_deref_mut(), cluster, roles::NODE)
}

/// The goals of the pool. `instances` are all instances of the scale set; without them no decision that depends on them
/// is made.
///
/// # Errors
/// Azure would refuse the scale set.
pub fn goals(
    scope: &PoolScope<'_>,
    making: &Making<'_>,
    observed: &Observed,
    instances: Option<&[Instance]>,
) -> Result<Vec<Goal>, GoalError> {
    let mut goals = vec![scale_set::goal(scope, making, observed, instances)?];
    let role = scope.spec.system_assigned_identity_role.as_ref();
    let id = scope.scale_set();
    goals.extend(role_assignment::goal(&id, scope.spec.identity.as_deref(), role, observed)?);
    Ok(goals)
}

/// Why the scale set in `spec.providerID` cannot be deleted, and what to do. A provider ID is no proof: any user can
/// write it.
pub fn unproven_end(scope: &PoolScope<'_>, observed: &Observed) -> Option<String> {
    let made = scope.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty());
    let id = scope.scale_set();
    let (Seen::Present(held), true) = (observed.see(&id), made) else { return None };
    crate::machine::unproven(scope.cluster, "scale set", id.name(), held)
}

/// The goals of the pool's deletion. Its instances are deleted with it.
pub fn ends(scope: &PoolScope<'_>) -> Vec<Goal> {
    vec![Goal::gone(scope.scale_set(), &service::SCALE_SET)]
}
