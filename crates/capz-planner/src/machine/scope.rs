//! A machine: its AzureMachine, the Machine that owns it, and the names of its resources.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::Tags;
use capz_api::azure_machine::AzureMachineSpec;
use capz_api::machine::Image;
use capz_api::network::roles;
use ownership::Ownership;
use serde_json::Value;

use super::names;
use crate::document::text;
use crate::image::{self, ImageError};
use crate::profile;
use crate::scope::ClusterScope;

/// The annotation of AzureMachines with the zones that were tried, the latest one last: `"1,3"`.
pub const TRIED_ZONES: &str = "sigs.k8s.io/cluster-api-provider-azure-tried-zones";
/// The label of Machines of a control plane.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Labels that name the group of a worker; the first one that exists counts.
pub(super) const GROUP_LABELS: [&str; 2] = ["cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/set-name"];
/// The annotation of AzureMachines whose machine was created.
pub const MADE_ANNOTATION: (&str, &str) = ("cluster-api-provider-azure", "true");

/// The inputs from the Machine that owns the AzureMachine.
#[derive(Debug, Clone, Copy)]
pub struct OwnerMachine<'a> {
    /// The version of Kubernetes.
    pub version: Option<&'a str>,
    /// The failure domain: a zone.
    pub failure_domain: Option<&'a str>,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// A machine: its AzureMachine after defaulting and [`crate::machine::complete`], and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct MachineScope<'a> {
    /// The cluster.
    pub cluster: ClusterScope<'a>,
    /// The name of the AzureMachine.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureMachineSpec,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The Machine that owns it.
    pub owner: OwnerMachine<'a>,
    /// Names of the control plane's virtual machines that come before it, if it is one of them.
    pub earlier: &'a [String],
}

impl<'a> MachineScope<'a> {
    /// The name of the virtual machine.
    pub fn vm_name(&self) -> String {
        names::virtual_machine(self.name, self.spec)
    }

    /// The virtual machine.
    pub fn vm(&self) -> ResourceId {
        self.cluster.compute("virtualMachines", &self.vm_name())
    }

    /// Whether the object records a machine by its provider ID.
    pub(super) fn has_provider_id(&self) -> bool {
        text(&self.spec.provider_id).is_some()
    }

    /// Whether it is a machine of the control plane.
    pub fn is_control_plane(&self) -> bool {
        self.owner.labels.contains_key(CONTROL_PLANE_LABEL)
    }

    /// Its role, which is also that of its subnets, and is in its tags.
    pub fn role(&self) -> &'static str {
        if self.is_control_plane() { roles::CONTROL_PLANE } else { roles::NODE }
    }

    /// Its image.
    ///
    /// # Errors
    /// No image is declared and there is no default for its version of Kubernetes.
    pub fn image(&self) -> Result<Image, ImageError> {
        image::choose(self.spec.image.as_ref(), self.os_type(), self.owner.version, self.annotations)
    }

    /// Its zone: the chosen one, otherwise one that is tried because others lack capacity.
    pub fn zone(&self) -> Option<&'a str> {
        self.chosen_zone().or_else(|| self.tried_zones().last())
    }

    /// The zones in which it was tried because others lack capacity, the latest one last.
    pub(super) fn tried_zones(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let all = self.annotations.get(TRIED_ZONES).map_or("", String::as_str);
        all.split(',').filter(|zone| !zone.is_empty())
    }

    /// The zone that its owner has chosen: the Machine's failure domain takes precedence.
    pub(super) fn chosen_zone(&self) -> Option<&'a str> {
        self.owner.failure_domain.filter(|zone| !zone.is_empty()).or(text(&self.spec.failure_domain))
    }

    /// The user's tags for it.
    pub fn additional_tags(&self) -> Tags {
        self.cluster.additional_tags(self.spec.additional_tags.as_ref())
    }

    pub(super) fn tags(&self, role: Option<&str>, name: &str) -> Tags {
        self.cluster.tags_with(self.additional_tags(), role, Some(name))
    }

    pub(super) fn os_type(&self) -> Option<&'a str> {
        self.spec.os_disk.as_ref()?.os_type.as_deref()
    }

    pub(super) fn interfaces(&self) -> Vec<ResourceId> {
        let (vm, count) = (self.vm_name(), self.spec.network_interfaces.as_ref().map_or(1, Vec::len).max(1));
        (0..count)
            .map(|index| self.cluster.in_group("networkInterfaces", &names::interface(&vm, index, count)))
            .collect()
    }

    pub(super) fn disks(&self) -> Vec<ResourceId> {
        let vm = self.vm_name();
        let data = self.spec.data_disks.iter().flatten().map(|disk| profile::data_disk_name(&vm, disk));
        let names = std::iter::once(names::os_disk(&vm)).chain(data);
        names.map(|name| self.cluster.compute("disks", &name)).collect()
    }

    pub(super) fn public_ip(&self) -> Option<ResourceId> {
        let wanted = self.spec.allocate_public_ip == Some(true);
        wanted.then(|| self.cluster.public_ip(&names::public_ip(&self.vm_name())))
    }

    /// Whether there is a machine of this name that is not known to be this cluster's: it bears another cluster's ID, or
    /// neither its tags name an owner nor does the object record it.
    pub(super) fn is_foreign(&self, held: &Value) -> bool {
        match self.cluster.claimant().by_tags(held) {
            Ownership::Proven(_) => false,
            Ownership::Disputed(_) => true,
            Ownership::Unproven(_) | Ownership::Unknown => !self.has_provider_id(),
        }
    }
}
