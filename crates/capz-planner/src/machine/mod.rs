//! From an AzureMachine to goals: one function for each kind of resource.

mod availability_set;
mod completion;
mod conditions;
mod found;
mod inbound_nat_rule;
mod memory;
mod names;
mod network_interface;
mod placement;
mod virtual_machine;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::Tags;
use capz_api::azure_machine::AzureMachineSpec;
use capz_api::machine::Image;
use capz_api::network::{PublicIp, roles};
use ownership::Ownership;

pub use completion::complete;
pub(crate) use completion::complete_first;
pub use conditions::{conditions, stopped};
pub use found::{Found, found};
pub(crate) use memory::applied_tags;
pub use memory::{TAGS, remembered};
pub use placement::{TRIED_ZONES, next_zone};

use crate::cluster;
use crate::extension::{Extension, extensions};
pub use crate::goal::GoalError;
pub use crate::making::Making;

use crate::goal::{Goal, OwnershipRule, Upkeep};
use crate::image::{self, ImageError};
use crate::observed::{Observed, Seen};
use crate::owner_tags::{Borne, OWNER_TAGS};
use crate::plan::failure_cause;
use crate::profile;
use crate::role_assignment;
use crate::scope::Scope;
use crate::service;
use crate::sku::capability;
use crate::tags;
use crate::terminal::{Reason, Terminal};

/// The label of Machines of a control plane.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Labels that name the group of a worker; the first one that exists counts.
const GROUP_LABELS: [&str; 2] = ["cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/set-name"];
/// The annotation of AzureMachines whose machine was created.
pub const MADE_ANNOTATION: (&str, &str) = ("cluster-api-provider-azure", "true");

/// The inputs from the Machine that owns the AzureMachine.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The version of Kubernetes.
    pub version: Option<&'a str>,
    /// The failure domain: a zone.
    pub failure_domain: Option<&'a str>,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// A machine: its AzureMachine after defaulting and [`complete`], and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct MachineScope<'a> {
    /// The cluster.
    pub cluster: Scope<'a>,
    /// The name of the AzureMachine.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureMachineSpec,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The Machine that owns it.
    pub owner: Owner<'a>,
    /// Names of the control plane's virtual machines that come before it, if it is one of them.
    pub earlier: &'a [String],
}

impl<'a> MachineScope<'a> {
    /// The name of the virtual machine.
    pub fn vm_name(&self) -> String {
        names::virtual_machine(self.name, self.spec)
    }

    /// The owner tags of its resources when they were last as desired.
    fn borne(&self) -> Borne {
        self.annotations.get(OWNER_TAGS).map_or(Borne::Nothing, |word| Borne::read(word))
    }

    /// The virtual machine.
    pub fn vm(&self) -> ResourceId {
        self.compute("virtualMachines", &self.vm_name())
    }

    /// Whether the object records a machine by its provider ID.
    fn has_provider_id(&self) -> bool {
        self.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty())
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
        self.chosen_zone().or_else(|| placement::tried_last(self))
    }

    /// The zone that its owner has chosen: the Machine's failure domain takes precedence.
    fn chosen_zone(&self) -> Option<&'a str> {
        let named = |zone: &&str| !zone.is_empty();
        self.owner.failure_domain.filter(named).or(self.spec.failure_domain.as_deref().filter(named))
    }

    /// The user's tags for it.
    pub fn additional_tags(&self) -> Tags {
        let cluster = &self.cluster;
        let own = self.spec.additional_tags.as_ref();
        profile::additional_tags(cluster.cluster, cluster.spec.additional_tags.as_ref(), own)
    }

    fn tags(&self, role: Option<&str>, name: &str) -> Tags {
        tags::build(
            self.cluster.cluster,
            self.cluster.id.unwrap_or_default(),
            &self.additional_tags(),
            role,
            Some(name),
        )
    }

    fn os_type(&self) -> Option<&'a str> {
        self.spec.os_disk.as_ref()?.os_type.as_deref()
    }

    fn compute(&self, kind: &str, name: &str) -> ResourceId {
        self.cluster.group().resource("Microsoft.Compute", kind, name)
    }

    fn interfaces(&self) -> Vec<ResourceId> {
        let (vm, count) = (self.vm_name(), self.spec.network_interfaces.as_ref().map_or(1, Vec::len).max(1));
        (0..count)
            .map(|index| self.cluster.in_group("networkInterfaces", &names::interface(&vm, index, count)))
            .collect()
    }

    fn disks(&self) -> Vec<ResourceId> {
        let vm = self.vm_name();
        let data = self.spec.data_disks.iter().flatten().map(|disk| profile::data_disk_name(&vm, disk));
        std::iter::once(names::os_disk(&vm)).chain(data).map(|name| self.compute("disks", &name)).collect()
    }

    fn public_ip(&self) -> Option<ResourceId> {
        let wanted = self.spec.allocate_public_ip == Some(true);
        wanted.then(|| self.cluster.public_ip(&names::public_ip(&self.vm_name())))
    }
}

/// The goals of the machine. Goals that depend on values from Azure, such as the machine's own identity, are added once
/// these are known.
///
/// # Errors
/// Azure would refuse the machine, it is gone, or a resource is in its way.
pub fn goals(
    scope: &MachineScope<'_>,
    making: &Making<'_>,
    observed: &Observed,
) -> Result<Vec<Goal>, GoalError> {
    let vm = scope.vm();
    if !matches!(observed.see(&vm), Seen::Present(held) if is_unknown_here(scope, held))
        && let Some(remains) = placement::remains(scope, observed)
    {
        return Ok(remains);
    }
    match observed.see(&vm) {
        Seen::Absent => {
            if let Some(id) = scope.spec.provider_id.as_deref().filter(|id| !id.is_empty()) {
                let message = format!("VM with provider id {id:?} has been deleted");
                return Err(Terminal { reason: Reason::UpdateError, message }.into());
            }
            virtual_machine::check(scope, making)?;
        }
        Seen::Present(held) if is_unknown_here(scope, held) => {
            let words = scope.cluster.claimant().foreign("virtual machine", vm.name(), held);
            return Err(GoalError::NotNow(words));
        }
        Seen::Present(held) if !scope.has_provider_id() => {
            // It is not created again: its first cause is reported for as long as it exists.
            if let Some(cause) = failure_cause(held) {
                let message = format!("virtual machine {} failed to create. err: {cause}", vm.name());
                return Err(Terminal::create(message).into());
            }
        }
        Seen::Present(_) | Seen::Unknown => {}
    }
    let mut goals = Vec::new();
    if scope.public_ip().is_some() {
        let (name, cluster) = (names::public_ip(&scope.vm_name()), scope.cluster);
        let edge = cluster.extended_location();
        goals.push(cluster::public_ip_goal(cluster, &name, &PublicIp::default(), cluster.zones, edge));
    }
    goals.extend(inbound_nat_rule::goal(scope, observed)?);
    goals.extend(network_interface::goals(scope, making, observed)?);
    goals.extend(availability_set::goal(scope, making)?);
    goals.push(virtual_machine::goal(scope, making)?);
    let role = scope.spec.system_assigned_identity_role.as_ref();
    goals.extend(role_assignment::goal(&vm, scope.spec.identity.as_deref(), role, observed)?);
    goals.extend(extension_goals(scope, making));
    let applied = applied_tags(scope.annotations.get(TAGS));
    let borne = scope.borne();
    for goal in &mut goals {
        goal.without_tags(&applied);
        // Other machines use the availability set, too, and it may be older.
        if *goal.service != service::AVAILABILITY_SET {
            goal.borne = borne;
        }
    }
    Ok(goals)
}

/// Whether there is a machine of this name that is not known to be this cluster's: it bears another cluster's ID, or
/// neither its tags name an owner nor does the object record it.
fn is_unknown_here(scope: &MachineScope<'_>, held: &serde_json::Value) -> bool {
    match scope.cluster.claimant().by_tags(held) {
        Ownership::Proven(_) => false,
        Ownership::Disputed(_) => true,
        Ownership::Unproven(_) | Ownership::Unknown => !scope.has_provider_id(),
    }
}

/// Why the machine in `spec.providerID` cannot be deleted, and what to do. A provider ID is no proof: any user can
/// write it.
pub fn unproven_end(scope: &MachineScope<'_>, observed: &Observed) -> Option<String> {
    let vm = scope.vm();
    let (Seen::Present(held), true) = (observed.see(&vm), scope.has_provider_id()) else { return None };
    unproven(scope.cluster, "virtual machine", vm.name(), held)
}

/// Why a resource in `spec.providerID` cannot be deleted, and what to do; `None` if it is proven to be the cluster's,
/// or another cluster's.
pub(crate) fn unproven(
    cluster: Scope<'_>,
    noun: &str,
    name: &str,
    held: &serde_json::Value,
) -> Option<String> {
    if cluster.marked_only {
        return None;
    }
    let Ownership::Unproven(lacks) = cluster.claimant().by_tags(held) else { return None };
    Some(format!(
        "{noun} {name} is named by spec.providerID, but it is not proven to be this cluster's, and is left alone: {lacks}. Give it \
         that tag if it is to be deleted, or delete it by hand"
    ))
}

/// The goals of the machine's deletion. The deletion does not wait for the machine's workload; the resources created
/// for it follow. Disks bear no tag of ours: they are ours if we created the machine, as the object records, or an
/// interface for it.
pub fn ends(scope: &MachineScope<'_>, observed: &Observed) -> Vec<Goal> {
    let (interfaces, mut disks, public_ip) = (scope.interfaces(), scope.disks(), scope.public_ip());
    let (mut rule, set) = (inbound_nat_rule::id(scope), availability_set::id(scope));
    // Resources without tags follow the machine: another cluster's machine keeps its own.
    if matches!(observed.see(&scope.vm()), Seen::Present(held) if !scope.cluster.claimant().owns(held)) {
        disks.clear();
        rule = None;
    }
    let marked_only = scope.cluster.marked_only;
    if marked_only {
        rule = None;
    }
    // Where another cluster has the same name, the object's record is no mark in Azure; the interface bears one.
    let made = !marked_only
        && scope.has_provider_id()
        && scope.annotations.get(MADE_ANNOTATION.0).is_some_and(|made| made == MADE_ANNOTATION.1);
    let disk = |id: ResourceId| {
        let goal = Goal::gone(id, &service::DISKS);
        match interfaces.first() {
            // The interface stays until the disks are deleted, because it proves their owner.
            Some(first) if !made => goal.owned(OwnershipRule::Inside(first.clone())).after([first.clone()]),
            _ => goal.owned(OwnershipRule::ByName("the virtual machine that the AzureMachine has made")),
        }
    };
    let before: Vec<ResourceId> = interfaces.iter().chain(&disks).chain(&set).cloned().collect();
    let mut goals = vec![Goal::gone(scope.vm(), &service::VIRTUAL_MACHINE).forced().after(before)];
    goals.extend(disks.into_iter().map(disk));
    goals.extend(set.map(|id| Goal {
        kept_while_used: Some("/properties/virtualMachines"),
        ..Goal::gone(id, &service::AVAILABILITY_SET)
    }));
    goals.extend(interfaces.into_iter().map(|id| {
        let before = rule.iter().chain(&public_ip).cloned();
        Goal::gone(id, &service::INTERFACES).after(before)
    }));
    goals.extend(
        rule.map(|id| Goal::gone(id, &service::INBOUND_NAT_RULES).owned(inbound_nat_rule::OWNERSHIP)),
    );
    goals.extend(public_ip.map(|id| Goal::gone(id, &service::PUBLIC_IPS)));
    goals
}

/// Extensions, each after the previous one: Azure installs one at a time.
fn extension_goals(scope: &MachineScope<'_>, making: &Making<'_>) -> Vec<Goal> {
    let spec = scope.spec;
    if spec.disable_extension_operations == Some(true) {
        return Vec::new();
    }
    let arm = making.size.capability(capability::ARCHITECTURE) == Some("Arm64");
    let declared = extensions(
        spec.vm_extensions.as_deref(),
        spec.disable_vm_bootstrap_extension,
        scope.os_type(),
        scope.cluster.spec.azure_environment.as_deref(),
        arm,
    );
    let mut goals: Vec<Goal> = Vec::new();
    for Extension { name, properties } in declared {
        let document = crate::document::without_nulls(serde_json::json!({
            "location": scope.cluster.location(),
            "properties": properties,
        }));
        let before = goals.last().map(|goal| goal.id.clone());
        goals.push(
            Goal::new(scope.vm().child("extensions", &name), &service::EXTENSIONS, document)
                .owned(OwnershipRule::ByName("the virtual machine in which it lies"))
                .held_to(Upkeep::SingleTry)
                .after(before),
        );
    }
    goals
}
