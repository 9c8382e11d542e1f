//! Validation of an AzureMachinePool, at every write.

use serde_json::json;

use super::types::AzureMachinePoolSpec;
use crate::common::IntOrPercent;
use crate::context::{Context, Lookup};
use crate::field_error::{FieldErrors, Path};
use crate::immutable::{Fixed, Rule, check as check_rules, check_member};
use crate::machine::{
    check_diagnostics, check_image, check_os_disk, check_role, check_ssh_key, check_subnet_name,
    check_user_assigned,
};

/// The first version of Kubernetes whose cloud provider supports flexible scale sets.
const FLEXIBLE_SINCE: (u64, u64) = (1, 26);

/// Members that identify the scale set: with another value there would be a second one, and the first would be
/// abandoned.
const RULES: [Rule; 3] = [
    ("spec.location", Fixed::OnceSet),
    ("spec.providerID", Fixed::OnceSet),
    // The name of the scale set depends on it.
    ("spec.template.osDisk.osType", Fixed::OnceSet),
];
/// The mode of a pool that names none.
const UNIFORM: &str = "Uniform";

/// Validates a pool; `old` is its previous version.
pub fn validate(
    new: &AzureMachinePoolSpec,
    old: Option<&AzureMachinePoolSpec>,
    context: &Context,
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let spec = Path::new("spec");
    let path = spec.child("template");
    let default = super::types::AzureMachinePoolMachineTemplate::default();
    let template = new.template.as_ref().unwrap_or(&default);
    check_image(template.image.as_ref(), &path.child("image"), &mut errors);
    if let Some(minutes) = template.terminate_notification_timeout
        && !(5..=15).contains(&minutes)
    {
        errors.invalid(
            &path.child("terminateNotificationTimeout"),
            minutes,
            "Azure notifies a machine from 5 to 15 minutes before its end",
        );
    }
    check_ssh_key(template.ssh_public_key.as_deref(), &path.child("sshPublicKey"), &mut errors);
    check_user_assigned(
        new.identity.as_deref(),
        new.user_assigned_identities.as_deref(),
        &spec.child("userAssignedIdentities"),
        &mut errors,
    );
    check_diagnostics(template.diagnostics.as_ref(), &path.child("diagnostics"), &mut errors);
    check_version(new, context, &spec, &mut errors);
    check_strategy(new, &spec.child("strategy.rollingUpdate"), &mut errors);
    check_role(
        new.identity.as_deref(),
        new.system_assigned_identity_role.as_ref(),
        new.role_assignment_name.as_deref(),
        &spec,
        &mut errors,
    );
    if let Some(old) = old {
        check_rules(&RULES, &json!({ "spec": old }), &json!({ "spec": new }), &mut errors);
        let mode = |spec: &AzureMachinePoolSpec| {
            let mode = spec.orchestration_mode.as_deref().filter(|mode| !mode.is_empty());
            json!(mode.unwrap_or(UNIFORM))
        };
        let (before, now) = (mode(old), mode(new));
        check_member(&spec.child("orchestrationMode"), Fixed::Always, Some(&before), Some(&now), &mut errors);
    }
    check_role_stays(new, old, &spec, &mut errors);
    // An interface without a number of addresses has one; pools are validated at every write, and some were stored so.
    check_subnet_name(
        template.network_interfaces.as_deref(),
        template.subnet_name.as_deref(),
        &path,
        &mut errors,
    );
    check_os_disk(template.os_disk.as_ref(), &path.child("osDisk"), &mut errors);
    let before = old.and_then(|old| old.template.as_ref()?.disable_vm_bootstrap_extension);
    if before.is_some() && before != template.disable_vm_bootstrap_extension {
        errors.invalid(
            &path.child("disableVMBootstrapExtension"),
            json!(template.disable_vm_bootstrap_extension),
            "field is immutable",
        );
    }
    errors
}

/// Machines of a flexible scale set need a recent version of Kubernetes to become nodes.
fn check_version(new: &AzureMachinePoolSpec, context: &Context, path: &Path, errors: &mut FieldErrors) {
    if new.orchestration_mode.as_deref() != Some("Flexible") {
        return;
    }
    let path = path.child("orchestrationMode");
    let version = match &context.pool_version {
        Lookup::Found(version) => version.as_str(),
        Lookup::NotNeeded => return,
        Lookup::Failed(reason) => {
            errors.invalid(
                &path,
                "Flexible",
                format_args!("the version of the pool's MachinePool is unknown: {reason}"),
            );
            return;
        }
    };
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse::<u64>());
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= FLEXIBLE_SINCE => {}
        _ => errors.invalid(
            &path,
            "Flexible",
            format_args!("can be set to Flexible only if the MachinePool's version is v1.26.0 or later; it is {version:?}"),
        ),
    }
}

/// A pool that permits neither more nor fewer machines than desired could never replace one.
fn check_strategy(new: &AzureMachinePoolSpec, path: &Path, errors: &mut FieldErrors) {
    let Some(update) = new.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref()) else {
        return;
    };
    if update.max_surge == Some(IntOrPercent::Number(0))
        && update.max_unavailable == Some(IntOrPercent::Number(0))
    {
        errors.invalid(
            path,
            json!(update),
            "rolling update strategy MaxUnavailable must not be 0 if MaxSurge is 0: no machine could be replaced",
        );
    }
    for (member, value) in [("maxSurge", &update.max_surge), ("maxUnavailable", &update.max_unavailable)] {
        if let Some(value) = value
            && value.of(100, true).is_none()
        {
            errors.invalid(&path.child(member), json!(value), "it must be a number, or a share such as 20%");
        }
    }
}

/// An existing role assignment of a pool keeps its name.
fn check_role_stays(
    new: &AzureMachinePoolSpec,
    old: Option<&AzureMachinePoolSpec>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let name_of = |spec: &AzureMachinePoolSpec| {
        spec.system_assigned_identity_role.as_ref().and_then(|role| role.name.clone())
    };
    let Some(before) = old.and_then(name_of).filter(|name| !name.is_empty()) else { return };
    let now = name_of(new).filter(|name| !name.is_empty());
    if let Some(now) = now
        && now != before
    {
        errors.invalid(&path.child("systemAssignedIdentityRole.name"), now, "field is immutable");
    }
}
