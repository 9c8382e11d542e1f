//! Validation of an AzureMachinePool, at every write.

use serde_json::json;

use super::types::AzureMachinePoolSpec;
use crate::common::IntOrPercent;
use crate::context::{Context, Lookup};
use crate::field_error::{Field, FieldErrors};
use crate::immutable::{Fixed, Rule, check as check_rules};
use crate::machine::{
    check_diagnostics, check_image, check_os_disk, check_role, check_ssh_key, check_subnet_name,
    check_user_assigned,
};

/// The first version of Kubernetes whose cloud provider supports flexible scale sets.
const FLEXIBLE_SINCE: (u64, u64) = (1, 26);

/// Members that identify the scale set: with another value there would be a second one, and the first would be
/// abandoned.
const RULES: [Rule; 4] = [
    ("location", Fixed::OnceSet),
    ("providerID", Fixed::OnceSet),
    // The name of the scale set depends on it.
    ("template.osDisk.osType", Fixed::OnceSet),
    // Machines with and without the extension would be of one model.
    ("template.disableVMBootstrapExtension", Fixed::OnceChosen),
];
/// The mode of a pool that names none.
const UNIFORM: &str = "Uniform";

/// Validates a pool; `old` is its previous version.
pub fn validate(
    new: &AzureMachinePoolSpec,
    old: Option<&AzureMachinePoolSpec>,
    context: &Context,
) -> FieldErrors {
    let template = new.template.clone().unwrap_or_default();
    FieldErrors::of(|object| {
        let spec = object.child("spec");
        let field = spec.child("template");
        check_image(template.image.as_ref(), &field.child("image"));
        if let Some(minutes) = template.terminate_notification_timeout {
            let words = "Azure notifies a machine from 5 to 15 minutes before its end";
            let is_wrong = !(5..=15).contains(&minutes);
            field.child("terminateNotificationTimeout").invalid_if(is_wrong, minutes, words);
        }
        check_ssh_key(template.ssh_public_key.as_deref(), &field.child("sshPublicKey"));
        check_user_assigned(new.identity.as_deref(), new.user_assigned_identities.as_deref(), &spec);
        check_diagnostics(template.diagnostics.as_ref(), &field.child("diagnostics"));
        check_version(new, context, &spec.child("orchestrationMode"));
        check_strategy(new, &spec.child("strategy.rollingUpdate"));
        let role = new.system_assigned_identity_role.as_ref();
        check_role(new.identity.as_deref(), role, new.role_assignment_name.as_deref(), &spec);
        if let Some(old) = old {
            check_rules(&RULES, &json!(old), &json!(new), &spec);
            let mode = |spec: &AzureMachinePoolSpec| {
                let mode = spec.orchestration_mode.as_deref().filter(|mode| !mode.is_empty());
                json!({ "orchestrationMode": mode.unwrap_or(UNIFORM) })
            };
            check_rules(&[("orchestrationMode", Fixed::Always)], &mode(old), &mode(new), &spec);
        }
        check_role_stays(new, old, &spec.child("systemAssignedIdentityRole.name"));
        // An interface without a number of addresses has one; pools are validated at every write, and some were stored
        // so.
        check_subnet_name(template.network_interfaces.as_deref(), template.subnet_name.as_deref(), &field);
        check_os_disk(template.os_disk.as_ref(), &field.child("osDisk"));
    })
}

/// Machines of a flexible scale set need a recent version of Kubernetes to become nodes.
fn check_version(new: &AzureMachinePoolSpec, context: &Context, mode: &Field<'_>) {
    if new.orchestration_mode.as_deref() != Some("Flexible") {
        return;
    }
    let version = match &context.pool_version {
        Lookup::Found(version) => version.as_str(),
        Lookup::NotNeeded => return,
        Lookup::Failed(reason) => {
            let words = format!("the version of the pool's MachinePool is unknown: {reason}");
            return mode.invalid("Flexible", words);
        }
    };
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse::<u64>());
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= FLEXIBLE_SINCE => {}
        _ => mode.invalid(
            "Flexible",
            format_args!("can be set to Flexible only if the MachinePool's version is v1.26.0 or later; it is {version:?}"),
        ),
    }
}

/// A pool that permits neither more nor fewer machines than desired could never replace one.
fn check_strategy(new: &AzureMachinePoolSpec, field: &Field<'_>) {
    let Some(update) = new.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref()) else {
        return;
    };
    let none = Some(IntOrPercent::Number(0));
    field.invalid_if(
        update.max_surge == none && update.max_unavailable == none,
        update,
        "rolling update strategy MaxUnavailable must not be 0 if MaxSurge is 0: no machine could be replaced",
    );
    for (member, value) in [("maxSurge", &update.max_surge), ("maxUnavailable", &update.max_unavailable)] {
        let is_wrong = value.as_ref().is_some_and(|value| value.of(100, true).is_none());
        field.child(member).invalid_if(is_wrong, value, "it must be a number, or a share such as 20%");
    }
}

/// An existing role assignment of a pool keeps its name.
fn check_role_stays(new: &AzureMachinePoolSpec, old: Option<&AzureMachinePoolSpec>, name: &Field<'_>) {
    let name_of = |spec: &AzureMachinePoolSpec| {
        let role = spec.system_assigned_identity_role.as_ref();
        role.and_then(|role| role.name.clone()).filter(|name| !name.is_empty())
    };
    if let (Some(before), Some(now)) = (old.and_then(name_of), name_of(new)) {
        name.invalid_if(now != before, now, "field is immutable");
    }
}
