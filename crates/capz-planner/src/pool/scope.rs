//! A pool: its AzureMachinePool, the MachinePool that owns it, and the names of its resources.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::Tags;
use capz_api::azure_machine_pool::{AzureMachinePoolMachineTemplate, AzureMachinePoolSpec};
use capz_api::machine::Image;
use ownership::Ownership;
use serde_json::{Value, json};

use super::instance::{self, Instance};
use super::memory::{self, EXTENSIONS};
use crate::document::text;
use crate::image::{self, ImageError, WINDOWS};
use crate::kind::Kind;
use crate::observed::Reading;
use crate::owner_tags::Borne;
use crate::scope::ClusterScope;
use crate::tags;

/// The annotation of MachinePools whose replicas are managed externally.
pub const EXTERNAL_REPLICAS: &str = "cluster.x-k8s.io/replicas-managed-by";
/// The annotation with the additional tags that were applied to the scale set.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vmss";
/// The longest name of a scale set with Windows: it is the prefix of the computer names.
const WINDOWS_NAME: usize = 9;

/// The inputs from the MachinePool that owns the pool.
#[derive(Debug, Clone, Copy)]
pub struct OwnerMachinePool<'a> {
    /// The version of Kubernetes.
    pub version: Option<&'a str>,
    /// The desired number of machines.
    pub replicas: u32,
    /// Zones of the machines.
    pub failure_domains: &'a [String],
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
}

/// A pool: its AzureMachinePool after defaulting and [`crate::pool::complete`], and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct PoolScope<'a> {
    /// The cluster.
    pub cluster: ClusterScope<'a>,
    /// The name of the AzureMachinePool.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureMachinePoolSpec,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The MachinePool that owns it.
    pub owner: OwnerMachinePool<'a>,
}

impl<'a> PoolScope<'a> {
    /// The name of the scale set, shortened for Windows.
    pub fn scale_set_name(&self) -> String {
        scale_set_name(self.name, self.os_type())
    }

    /// Whether a scale set with the pool's name is not known to be this cluster's: its tags name another cluster, or
    /// neither its tags name an owner nor does the object record it.
    pub fn is_foreign(&self, held: &Value) -> bool {
        match self.cluster.claimant().by_tags(held) {
            Ownership::Proven(_) => false,
            Ownership::Disputed(_) => true,
            Ownership::Unproven(_) | Ownership::Unknown => {
                !self.has_provider_id() || tags::owner_in(held, self.cluster.cluster).is_some()
            }
        }
    }

    /// Whether the object records a scale set by its provider ID.
    pub(super) fn has_provider_id(&self) -> bool {
        text(&self.spec.provider_id).is_some()
    }

    /// The scale set.
    pub fn scale_set(&self) -> ResourceId {
        self.cluster.compute("virtualMachineScaleSets", &self.scale_set_name())
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
        self.cluster.additional_tags(self.spec.additional_tags.as_ref())
    }

    /// The annotation [`TAGS`] once the tags are applied.
    pub fn remembered_tags(&self) -> String {
        json!(self.additional_tags()).to_string()
    }

    /// The annotation [`crate::OWNER_TAGS`] for this observed scale set.
    pub fn remembered_owner(&self, scale_set: &Value) -> Option<&'static str> {
        Borne::of(self.cluster.claimant(), scale_set).word()
    }

    /// The annotation [`EXTENSIONS`] for this observed scale set.
    pub fn remembered_extensions(&self, scale_set: &Value) -> Option<String> {
        let declared = self.template().and_then(|template| template.vm_extensions.as_deref());
        let declared =
            declared.into_iter().flatten().filter_map(|extension| extension.name.clone()).collect();
        memory::remembered(self.annotations.get(EXTENSIONS).map(String::as_str), &declared, scale_set)
    }

    pub(super) fn template(&self) -> Option<&'a AzureMachinePoolMachineTemplate> {
        self.spec.template.as_ref()
    }

    pub(super) fn os_type(&self) -> Option<&'a str> {
        self.template()?.os_disk.as_ref()?.os_type.as_deref()
    }
}

/// The name of the scale set of a pool with this name, shortened for Windows.
pub(super) fn scale_set_name(pool: &str, os_type: Option<&str>) -> String {
    match pool.get(pool.len().saturating_sub(5)..) {
        Some(end) if os_type == Some(WINDOWS) && pool.len() > WINDOWS_NAME => format!("win-{end}"),
        _ => pool.to_owned(),
    }
}
