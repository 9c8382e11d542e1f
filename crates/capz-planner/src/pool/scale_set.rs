//! The scale set of a pool. It is written as a whole once; afterwards only changes of its model or its size are
//! written; its tags are enforced.

use capz_api::Tags;
use capz_api::machine::NetworkInterface;
use serde_json::{Value, json};

use super::instance::Instance;
use super::memory::{self, EXTENSIONS};
use super::numbers::max_surge;
use super::resize::{Numbers, Resize, resize};
use super::scope::{PoolScope, TAGS};
use crate::cluster::pool_name;
use crate::compare::Withdrawn;
use crate::extension::extensions;
use crate::goal::{Goal, GoalError, Upkeep};
use crate::machine::applied_tags;
use crate::machine_inputs::MachineInputs;
use crate::observed::{Observation, ObservedResources};
use crate::owner_tags::Borne;
use crate::scope::reference;
use crate::sku::capability;
use crate::terminal::Terminal;
use crate::{image, profile, service, size_check};

/// The tag with a hash of the bootstrap data, which Azure does not show.
pub const HASH_TAG: &str = "capz-custom-data-hash";
const ROLE: &str = "node";
/// Members that others can change, and that do not cause a write.
const CHANGEABLE: [&str; 5] = [
    "/properties/overprovision",
    "/properties/upgradePolicy",
    "/properties/virtualMachineProfile/networkProfile",
    "/properties/virtualMachineProfile/securityProfile",
    "/properties/virtualMachineProfile/diagnosticsProfile",
];

/// The hash of the bootstrap data.
pub fn bootstrap_hash(bootstrap: &cloud_config::Secret) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bootstrap.reveal().as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn goal(
    scope: &PoolScope<'_>,
    inputs: &MachineInputs,
    observed: &ObservedResources,
    instances: Option<&[Instance]>,
) -> Result<Goal, GoalError> {
    let id = scope.scale_set();
    let hash = bootstrap_hash(&inputs.bootstrap);
    let wanted = tags_of(scope, &hash);
    let mut document = document(scope, inputs, &wanted)?;
    let Observation::Present(held) = observed.get(&id) else {
        if observed.get(&id) == Observation::Absent {
            check(scope, inputs)?;
        }
        return Ok(Goal::new(id, &service::SCALE_SET, document));
    };
    if scope.is_foreign(held) {
        return Err(GoalError::NotNow(scope.cluster.claimant().foreign("scale set", id.name(), held)));
    }
    let mut withdrawn = Vec::new();
    let reported =
        Goal::new(id.clone(), &service::SCALE_SET, document.clone()).reporting(&CHANGEABLE).reported;
    let goal = |document: Value, upkeep: Upkeep, withdrawn: Vec<Withdrawn>| {
        let goal = Goal::new(id.clone(), &service::SCALE_SET, document).held_to(upkeep);
        let mut goal = Goal { reported: reported.clone(), ..goal.without(withdrawn) };
        goal.without_tags(&applied_tags(scope.annotations.get(TAGS)));
        goal.borne = Borne::recorded(scope.annotations);
        goal
    };
    let held_hash = held["tags"][HASH_TAG].as_str();
    let Some(instances) = instances else {
        return Ok(goal(tags_only(scope, held_hash), Upkeep::Members(&["tags"]), withdrawn));
    };
    let numbers = Numbers {
        bootstrap_changed: held_hash != Some(hash.as_str()),
        ..numbers(scope, held, &document, instances)
    };
    let capacity = match resize(numbers) {
        // The hash is that of the set's data: it is not written by itself.
        Resize::Nothing => {
            return Ok(goal(tags_only(scope, held_hash), Upkeep::Members(&["tags"]), withdrawn));
        }
        Resize::Capacity(capacity) => {
            document["properties"] = json!({});
            Some(capacity)
        }
        Resize::Model(capacity) => {
            check(scope, inputs)?;
            let memory = scope.annotations.get(EXTENSIONS).map(String::as_str);
            withdrawn.extend(memory::withdrawn(memory, id.name(), &document, held));
            capacity
        }
    };
    if let Some(sku) = document["sku"].as_object_mut() {
        sku.remove("capacity");
        sku.extend(capacity.map(|capacity| ("capacity".to_owned(), json!(capacity))));
    }
    Ok(goal(document, Upkeep::Always, withdrawn))
}

fn check(scope: &PoolScope<'_>, inputs: &MachineInputs) -> Result<(), Terminal> {
    let Some(template) = scope.template() else {
        return Err(Terminal::create("spec.template is missing"));
    };
    let zones = scope.owner.failure_domains;
    size_check::check_pool(template, &inputs.size, zones, scope.cluster.location(), &inputs.skus)
}

/// The observed and the declared set, in numbers. `document` is the declared one.
fn numbers(scope: &PoolScope<'_>, held: &Value, document: &Value, instances: &[Instance]) -> Numbers {
    let count = |which: &dyn Fn(&Instance) -> bool| {
        let counted = instances.iter().filter(|instance| !instance.is_leaving() && which(instance)).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    };
    let desired = scope.owner.replicas;
    Numbers {
        capacity: held["sku"]["capacity"].as_u64().and_then(|it| it.try_into().ok()).unwrap_or_default(),
        instances: count(&|_| true),
        latest: count(&|instance| instance.has_latest_model(held)),
        model_changed: has_other_model(held, document),
        bootstrap_changed: false,
        desired,
        surge: max_surge(scope.spec, desired),
        external: scope.has_external_replicas(),
    }
}

/// Whether the image, the zones or the size differ.
fn has_other_model(held: &Value, wanted: &Value) -> bool {
    let image = "/properties/virtualMachineProfile/storageProfile/imageReference";
    let image_of = |document: &Value| document.pointer(image).cloned().unwrap_or_default();
    let size = |document: &Value| document["sku"]["name"].as_str().unwrap_or_default().to_lowercase();
    let zones = |document: &Value| {
        let mut zones: Vec<&str> =
            document["zones"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        zones.sort_unstable();
        zones.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    !image::is_same(&image_of(held), &image_of(wanted))
        || size(held) != size(wanted)
        || zones(held) != zones(wanted)
}

fn tags_of(scope: &PoolScope<'_>, hash: &str) -> Tags {
    let name = scope.scale_set_name();
    let mut tags = scope.cluster.tags_with(scope.additional_tags(), Some(ROLE), Some(&name));
    tags.insert(HASH_TAG.to_owned(), hash.to_owned());
    tags
}

/// Only the tags, with the hash as it is.
fn tags_only(scope: &PoolScope<'_>, hash: Option<&str>) -> Value {
    let mut tags = tags_of(scope, hash.unwrap_or_default());
    if hash.is_none() {
        tags.remove(HASH_TAG);
    }
    json!({ "tags": tags })
}

fn document(scope: &PoolScope<'_>, inputs: &MachineInputs, tags: &Tags) -> Result<Value, Terminal> {
    let (spec, cluster, name) = (scope.spec, &scope.cluster, scope.scale_set_name());
    let default = Default::default();
    let template = scope.template().unwrap_or(&default);
    let image = image::reference(&inputs.image).map_err(|error| Terminal::create(error.to_string()))?;
    let os_type = scope.os_type();
    let mut system = profile::os_profile(
        os_type,
        template.ssh_public_key.as_deref(),
        &inputs.bootstrap,
        &inputs.password,
    )?;
    system["computerNamePrefix"] = json!(name);
    // Data disks of scale sets have no security profile for confidential machines.
    let without_profile = |mut disk: Value| {
        if let Some(managed) = disk["managedDisk"].as_object_mut() {
            managed.remove("securityProfile");
        }
        disk
    };
    let data_disks: Vec<Value> = profile::data_disks(template.data_disks.as_deref(), &name, false)
        .into_iter()
        .map(without_profile)
        .collect();
    let arm = inputs.size.capability(capability::ARCHITECTURE) == Some("Arm64");
    let extensions: Vec<Value> = extensions(
        template.vm_extensions.as_deref(),
        template.disable_vm_bootstrap_extension,
        os_type,
        cluster.spec.azure_environment.as_deref(),
        arm,
    )
    .into_iter()
    .map(|extension| json!({ "name": extension.name, "properties": extension.properties }))
    .collect();
    let encrypts = template.security_profile.as_ref().map(|profile| profile.encryption_at_host);
    let notice = template.terminate_notification_timeout;
    let flexible = scope.is_flexible();
    let mut machines = json!({
        "osProfile": system,
        "storageProfile": {
            "imageReference": image,
            "osDisk": without_profile(profile::os_disk(template.os_disk.as_ref(), None)),
            "dataDisks": data_disks,
        },
        "securityProfile": encrypts.map(|encrypts| json!({ "encryptionAtHost": encrypts })),
        "diagnosticsProfile": profile::diagnostics(template.diagnostics.as_ref()),
        "networkProfile": {
            "networkApiVersion": flexible.then_some("2020-11-01"),
            "networkInterfaceConfigurations": interfaces(scope, inputs, &name),
        },
        "extensionProfile": { "extensions": extensions },
        "scheduledEventsProfile": notice.map(|minutes| json!({
            "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": format!("PT{minutes}M") },
        })),
    });
    if let Some(machines) = machines.as_object_mut() {
        machines.extend(profile::spot(template.spot_vm_options.as_ref()).unwrap_or_default());
    }
    let zones = scope.owner.failure_domains;
    let domains = spec.platform_fault_domain_count.or(flexible.then_some(1));
    Ok(json!({
        "location": spec.location.as_deref().unwrap_or_else(|| cluster.location()),
        "sku": { "name": template.vm_size, "tier": "Standard", "capacity": scope.owner.replicas },
        "zones": (!zones.is_empty()).then_some(zones),
        "plan": image::plan(&inputs.image),
        "identity": profile::identity(spec.identity.as_deref(), spec.user_assigned_identities.as_deref()),
        "tags": tags,
        "properties": {
            "orchestrationMode": if flexible { "Flexible" } else { "Uniform" },
            "singlePlacementGroup": false,
            "overprovision": (!flexible).then_some(false),
            "upgradePolicy": (!flexible).then(|| json!({ "mode": "Manual" })),
            "platformFaultDomainCount": domains,
            // Machines in one zone are always balanced.
            "zoneBalance": spec.zone_balance.filter(|_| zones.len() > 1),
            "additionalCapabilities": profile::capabilities(
                template.additional_capabilities.as_ref(),
                template.data_disks.as_deref(),
            ),
            "virtualMachineProfile": machines,
        },
    }))
}

fn interfaces(scope: &PoolScope<'_>, inputs: &MachineInputs, name: &str) -> Vec<Value> {
    let declared = scope.template().and_then(|template| template.network_interfaces.as_deref());
    let declared = declared.unwrap_or_default();
    let fast = declared.first().and_then(|first| first.accelerated_networking);
    let fast = fast.unwrap_or_else(|| inputs.size.can(capability::ACCELERATED_NETWORKING));
    declared
        .iter()
        .enumerate()
        .map(|(index, interface)| {
            json!({
                "name": format!("{name}-nic-{index}"),
                "properties": {
                    "primary": (index == 0).then_some(true),
                    "enableIPForwarding": true,
                    "enableAcceleratedNetworking": interface.accelerated_networking.unwrap_or(fast),
                    "ipConfigurations": configurations(scope, interface, index == 0),
                },
            })
        })
        .collect()
}

fn configurations(scope: &PoolScope<'_>, interface: &NetworkInterface, first: bool) -> Vec<Value> {
    let cluster = &scope.cluster;
    let subnet = reference(&cluster.subnet(interface.subnet_name.as_deref().unwrap_or_default()));
    let balancer = cluster.node_outbound_balancer().filter(|_| first);
    let pools =
        balancer.map(|it| [reference(&cluster.pool(it.name.as_deref().unwrap_or_default(), &pool_name(it)))]);
    let mut configurations: Vec<Value> = (0..interface.private_ip_configs.unwrap_or(1))
        .map(|index| {
            json!({
                "name": format!("ipConfig{index}"),
                "properties": {
                    "primary": (index == 0).then_some(true),
                    "privateIPAddressVersion": "IPv4",
                    "subnet": subnet,
                    "loadBalancerBackendAddressPools": pools.as_ref().filter(|_| index == 0),
                },
            })
        })
        .collect();
    if cluster.has_ipv6() {
        configurations.push(json!({
            "name": "ipConfigv6",
            "properties": { "primary": false, "privateIPAddressVersion": "IPv6", "subnet": subnet },
        }));
    }
    configurations
}
