//! Validation of an AzureManagedMachinePool: of a new one, and of changes.

use azure_types::ResourceId;

use super::defaults::{LINUX, completed};
use super::deletion::{SYSTEM, check_others};
use super::immutable;
use super::node_validation::{check_kubelet, check_linux};
use super::types::AzureManagedMachinePoolSpec;
use crate::context::Context;
use crate::field_error::{Field, FieldErrors};
use crate::names::is_guid;
use crate::text::{is_set, text};

/// Labels with keys that begin so are AKS's own.
const AZURE_LABELS: &str = "kubernetes.azure.com";
/// The type of a public address prefix.
const PREFIXES: &str = "Microsoft.Network/publicIPPrefixes";

/// Validates the pool `name`; `old` is its previous version. An existing pool is not validated again: only its labels
/// and its immutable members are checked, and whether the cluster keeps a System pool.
pub fn validate(
    name: &str,
    new: &AzureManagedMachinePoolSpec,
    old: Option<&AzureManagedMachinePoolSpec>,
    context: &Context,
) -> FieldErrors {
    FieldErrors::of(|object| {
        let spec = object.child("spec");
        check(name, new, old, &spec);
        let is_system = |spec: &AzureManagedMachinePoolSpec| text(&spec.mode) == SYSTEM;
        if old.is_some_and(is_system) && !is_system(new) {
            check_others(name, "change its mode", context, &spec.child("mode"));
        }
    })
}

/// Validates what pools and templates of pools share.
pub(super) fn check(
    name: &str,
    new: &AzureManagedMachinePoolSpec,
    old: Option<&AzureManagedMachinePoolSpec>,
    spec: &Field<'_>,
) {
    check_labels(new, &spec.child("nodeLabels"));
    match old {
        Some(old) => immutable::check(new, &completed(name, old), spec),
        None => check_new(name, new, spec),
    }
}

fn check_new(name: &str, new: &AzureManagedMachinePoolSpec, spec: &Field<'_>) {
    if let Some(pods) = new.max_pods {
        let is_wrong = !(10..=250).contains(&pods);
        spec.child("maxPods").invalid_if(is_wrong, pods, "a node of AKS has room for 10 to 250 pods");
    }
    let is_linux = matches!(text(&new.os_type), "" | LINUX);
    spec.child("osType").forbidden_if(
        text(&new.mode) == SYSTEM && !is_linux,
        "a System pool runs Linux: set the mode to User, or osType to Linux",
    );
    check_name(name, new, is_linux, &spec.child("name"));
    check_prefix(new, spec);
    check_kubelet(new.kubelet_config.as_ref(), &spec.child("kubeletConfig"));
    check_linux(new.linux_os_config.as_ref(), new.kubelet_config.as_ref(), &spec.child("linuxOSConfig"));
    check_subnet(new.subnet_name.as_deref(), &spec.child("subnetName"));
}

/// AKS makes names of machines from the pool's, and Windows permits only short ones.
fn check_name(name: &str, new: &AzureManagedMachinePoolSpec, is_linux: bool, field: &Field<'_>) {
    let (pool, whose) = if is_set(&new.name) {
        (text(&new.name), "it")
    } else {
        (name, "spec.name is empty, so that the name of the object counts: it")
    };
    let (most, system) = if is_linux { (12, LINUX) } else { (6, "Windows") };
    field.invalid_if(
        pool.chars().count() > most,
        pool,
        format_args!("{whose} must have at most {most} characters in a pool with {system}"),
    );
    let begins = pool.is_empty() || pool.starts_with(|first: char| first.is_ascii_lowercase());
    field.invalid_if(!begins, pool, format_args!("{whose} must begin with a lower-case letter"));
    field.invalid_if(
        begins && !pool.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        pool,
        format_args!("{whose} must consist of lower-case letters and digits"),
    );
}

fn check_labels(new: &AzureManagedMachinePoolSpec, field: &Field<'_>) {
    for key in new.node_labels.iter().flatten().map(|(key, _)| key) {
        field.invalid_if(
            key.starts_with(AZURE_LABELS),
            key,
            format_args!("keys of labels must not begin with {AZURE_LABELS}: those are AKS's own"),
        );
    }
}

fn check_prefix(new: &AzureManagedMachinePoolSpec, spec: &Field<'_>) {
    let Some(prefix) = &new.node_public_ip_prefix_id else { return };
    // Azure accepts an id without its first slash, too.
    let id = ResourceId::parse(&format!("/{}", prefix.strip_prefix('/').unwrap_or(prefix)));
    let fits = id.is_ok_and(|id| {
        id.resource_type().eq_ignore_ascii_case(PREFIXES)
            && id.as_str().split('/').nth(2).is_some_and(is_guid)
            && id.as_str().split('/').count() == 9
    });
    spec.child("nodePublicIPPrefixID").invalid_if(
        !fits,
        prefix,
        format_args!(
            "must be the id of a public address prefix: \
             /subscriptions/ID/resourceGroups/NAME/providers/{PREFIXES}/NAME"
        ),
    );
    spec.child("enableNodePublicIP").invalid_if(
        new.enable_node_public_ip != Some(true),
        new.enable_node_public_ip,
        "must be true if nodePublicIPPrefixID is set: otherwise nodes have no public addresses",
    );
}

fn check_subnet(subnet: Option<&str>, field: &Field<'_>) {
    let Some(subnet) = subnet else { return };
    let ends = |c: char| c.is_ascii_alphanumeric();
    let fits = (2..=80).contains(&subnet.len())
        && subnet.starts_with(ends)
        && subnet.ends_with(ends)
        && subnet.chars().all(|c| ends(c) || matches!(c, '.' | '_' | '-'));
    field.invalid_if(
        !fits,
        subnet,
        "the name of a subnet has 2 to 80 characters: letters, digits, '.', '_' and '-', with a letter or digit at both \
         ends",
    );
}
