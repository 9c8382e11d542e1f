//! The entry point: defaulting and validation of an object of any kind, as JSON. Webhooks, `cerulean plan` and tests
//! call it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::azure_machine_pool as pool;
use crate::azure_managed_cluster::{AzureManagedClusterSpec, AzureManagedClusterTemplateSpec};
use crate::azure_managed_control_plane as control_plane;
use crate::azure_managed_machine_pool as managed_pool;
use crate::context::{Context, Random};
use crate::crd::{GROUP, Kind, fill_required};
use crate::deprecated;
use crate::field_error::FieldErrors;
use crate::webhooks::{Task, Webhook};
use crate::{
    azure_aso_managed as raw, azure_cluster as cluster, azure_cluster_identity as identity,
    azure_machine as machine,
};

/// Why an object is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Denied {
    /// The kind does not exist.
    #[error("there is no kind {0:?} in infrastructure.cluster.x-k8s.io/v1beta1")]
    UnknownKind(String),
    /// A member has the wrong type; the text names it.
    #[error("{0}")]
    Unreadable(String),
    /// Values of the object are invalid: a response with status 422, and a cause for each.
    #[error("{}", .0.message())]
    Invalid(FieldErrors),
    /// Like [`Self::Invalid`], for kinds that are refused with a text only: a response with status 403.
    #[error("{}", .0.message())]
    Forbidden(FieldErrors),
}

impl Denied {
    /// The errors, each with its path.
    pub fn errors(&self) -> &[crate::FieldError] {
        match self {
            Self::Invalid(errors) | Self::Forbidden(errors) => &errors.0,
            Self::UnknownKind(_) | Self::Unreadable(_) => &[],
        }
    }

    /// The refusal of the object `name` of a kind, as a Kubernetes Status.
    pub fn status(&self, kind: &str, name: &str) -> Value {
        let (code, reason, message) = match self {
            Self::Invalid(errors) => {
                (422, "Invalid", format!("{kind}.{GROUP} \"{name}\" is invalid: {}", errors.message()))
            }
            Self::Forbidden(_) => (403, "Forbidden", self.to_string()),
            Self::UnknownKind(_) | Self::Unreadable(_) => (400, "BadRequest", self.to_string()),
        };
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        });
        if let Self::Invalid(errors) = self {
            let causes: Vec<Value> = errors.0.iter().map(cause).collect();
            status["details"] = json!({ "name": name, "group": GROUP, "kind": kind, "causes": causes });
        }
        status
    }
}

fn cause(error: &crate::FieldError) -> Value {
    json!({ "reason": error.cause(), "message": error.body(), "field": error.path.to_string() })
}

/// An admitted object.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The object, with defaults where the webhook sets defaults.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// The response of a webhook to an object that is created, or updated if `old` is its previous version. [`needs`] says
/// what [`Context`] must contain.
///
/// # Errors
/// The object is refused.
pub fn review(
    webhook: &Webhook,
    new: Value,
    old: Option<&Value>,
    context: &Context,
    random: &mut dyn Random,
) -> Result<Admitted, Denied> {
    // An update repeats no warnings.
    let warnings = if old.is_none() { deprecated::warnings(webhook, &new) } else { Vec::new() };
    let object = match webhook.task {
        Task::Default => complete(webhook.kind, new, old, context, random)?,
        Task::Validate => {
            validate(webhook.kind, &new, old, context)?;
            new
        }
    };
    Ok(Admitted { object, warnings })
}

/// The look-ups that the decision about an object needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Context::subscription`]: the role of the object's own identity gets it.
    pub subscription: bool,
    /// [`Context::pool_version`]: the object is a flexible scale set.
    pub pool_version: bool,
    /// [`Context::system_pools`]: the object is a System pool that goes, or becomes another one.
    pub system_pools: bool,
    /// [`Context::cluster_network`]: the object is a managed control plane with the label of its Cluster. It is judged
    /// once, when it gets the label.
    pub cluster_network: bool,
}

/// The look-ups that the decision about an object of a kind needs, where `old` is its previous version. Most need none.
pub fn needs(kind: &str, object: &Value, old: Option<&Value>) -> Needs {
    let spec = &object["spec"];
    let is_machine = matches!(kind, "AzureMachine" | "AzureMachinePool");
    let is_control_plane = matches!(kind, "AzureManagedControlPlane" | "AzureManagedControlPlaneTemplate");
    let has_role = ["scope", "definitionID"].iter().all(|member| {
        spec["systemAssignedIdentityRole"][member].as_str().is_some_and(|text| !text.is_empty())
    });
    Needs {
        subscription: is_machine && spec["identity"] == "SystemAssigned" && !has_role,
        pool_version: kind == "AzureMachinePool" && spec["orchestrationMode"] == "Flexible",
        cluster_network: is_control_plane
            && cluster_of(object).is_some()
            && old.and_then(cluster_of).is_none(),
        system_pools: old.is_some_and(|old| needs_of_deletion(kind, old).system_pools)
            && spec["mode"] != managed_pool::SYSTEM,
    }
}

/// The look-ups that the decision about the deletion of an object needs.
pub fn needs_of_deletion(kind: &str, object: &Value) -> Needs {
    let system_pools = kind == "AzureManagedMachinePool" && managed_pool::may_be_last(object);
    Needs { system_pools, ..Needs::default() }
}

/// The Cluster of an object, by its label.
pub fn cluster_of(object: &Value) -> Option<&str> {
    object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"].as_str().filter(|name| !name.is_empty())
}

/// Whether a request only tries a topology: a dry run, of an object with Cluster API's annotation for that.
pub fn is_topology_dry_run(dry_run: bool, object: &Value) -> bool {
    dry_run && object["metadata"]["annotations"].get("topology.cluster.x-k8s.io/dry-run").is_some()
}

/// A new object with all defaults: [`complete`] without an older one.
///
/// # Errors
/// As for [`complete`].
pub fn set_defaults(
    kind: &str,
    object: Value,
    context: &Context,
    random: &mut dyn Random,
) -> Result<Value, Denied> {
    complete(kind, object, None, context, random)
}

/// The object with all defaults; `old` is its previous version. Applying a file twice changes nothing: values of
/// admission or a controller stay where the file does not set them. The API server has set the schema's defaults before
/// it calls a webhook; a caller without an API server calls [`fill_defaults`](crate::crd::fill_defaults) first.
///
/// # Errors
/// The kind is not ours, the object cannot be parsed, or it needs a look-up that failed.
pub fn complete(
    kind: &str,
    mut object: Value,
    old: Option<&Value>,
    context: &Context,
    random: &mut dyn Random,
) -> Result<Value, Denied> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match kind {
        "AzureCluster" => change(&mut object, old, |spec, old| {
            cluster::set_defaults(&name, spec, old, context.gates);
            Ok(())
        })?,
        "AzureClusterTemplate" => change(&mut object, None, |spec, _| {
            cluster::set_template_defaults(spec);
            Ok(())
        })?,
        "AzureMachine" => {
            change(&mut object, old, |spec, old| machine::set_defaults(spec, old, context, random))?
        }
        "AzureMachineTemplate" => change(&mut object, old, |spec, old| {
            machine::set_template_defaults(spec, old, random);
            Ok(())
        })?,
        "AzureMachinePool" => {
            change(&mut object, old, |spec, old| pool::set_defaults(spec, old, context, random))?
        }
        "AzureManagedMachinePool" => {
            change(&mut object, old, |spec, old| {
                managed_pool::set_defaults(&name, spec, old);
                Ok(())
            })?;
            managed_pool::label_mode(&mut object, "/spec/mode");
        }
        "AzureManagedMachinePoolTemplate" => {
            change(&mut object, None, |spec, _| {
                managed_pool::set_template_defaults(&name, spec);
                Ok(())
            })?;
            managed_pool::label_mode(&mut object, "/spec/template/spec/mode");
        }
        "AzureManagedControlPlane" => {
            let cluster = cluster_of(&object).map(str::to_owned);
            change(&mut object, old, |spec, old| {
                control_plane::set_defaults(&name, cluster.as_deref(), spec, old, random);
                Ok(())
            })?;
        }
        "AzureManagedControlPlaneTemplate" => change(&mut object, None, |spec, _| {
            control_plane::set_template_defaults(&name, spec);
            Ok(())
        })?,
        // These have no defaulting webhook.
        "AzureClusterIdentity"
        | "AzureMachinePoolMachine"
        | "AzureManagedCluster"
        | "AzureManagedClusterTemplate" => return Ok(object),
        kind if raw::KINDS.contains(&kind) => return Ok(object),
        other => return Err(Denied::UnknownKind(other.to_owned())),
    }
    fill_required(kind, &mut object);
    Ok(object)
}

fn change<T: DeserializeOwned + Serialize>(
    object: &mut Value,
    old: Option<&Value>,
    complete: impl FnOnce(&mut T, Option<&T>) -> Result<(), FieldErrors>,
) -> Result<(), Denied> {
    let mut spec: T = spec_of(object)?;
    // An older object that cannot be parsed is ignored.
    let old: Option<T> = old.and_then(|old| spec_of(old).ok());
    complete(&mut spec, old.as_ref()).map_err(Denied::Invalid)?;
    object["spec"] = serde_json::to_value(&spec).map_err(|error| Denied::Unreadable(error.to_string()))?;
    Ok(())
}

fn spec_of<T: DeserializeOwned>(object: &Value) -> Result<T, Denied> {
    let spec = object.get("spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    serde_path_to_error::deserialize(spec).map_err(|error| {
        let member = error.path().to_string();
        let place = if member == "." { "spec".to_owned() } else { format!("spec.{member}") };
        Denied::Unreadable(format!("{place}: {}", error.inner()))
    })
}

/// Validates an object; `old` is its previous version.
///
/// # Errors
/// The object is invalid.
pub fn validate(kind: &str, new: &Value, old: Option<&Value>, context: &Context) -> Result<(), Denied> {
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    let errors = match kind {
        "AzureCluster" => judge(new, old, |new, old| cluster::validate(name, new, old, context.gates))?,
        "AzureClusterTemplate" => {
            judge(new, old, |new, old| cluster::validate_template(new, old, context.gates))?
        }
        "AzureClusterIdentity" => judge(new, old, identity::validate)?,
        "AzureMachine" => judge(new, old, machine::validate)?,
        "AzureMachineTemplate" => judge(new, old, |new, old| machine::validate_template(new, old, context))?,
        "AzureMachinePool" => judge(new, old, |new, old| pool::validate(new, old, context))?,
        "AzureMachinePoolMachine" => judge(new, old, pool::validate_instance)?,
        "AzureManagedMachinePool" => {
            judge(new, old, |new, old| managed_pool::validate(name, new, old, context))?
        }
        "AzureManagedMachinePoolTemplate" => {
            judge(new, old, |new, old| managed_pool::validate_template(name, new, old))?
        }
        "AzureManagedControlPlane" => {
            let upgraded =
                old.and_then(|old| old["status"]["autoUpgradeVersion"].as_str()).unwrap_or_default();
            judge(new, old, |new, old| control_plane::validate(name, new, old, upgraded, context))?
        }
        "AzureManagedControlPlaneTemplate" => {
            judge(new, old, |new, old| control_plane::validate_template(name, new, old, context))?
        }
        // All of these are valid whose members have the right types.
        "AzureManagedCluster" => judge(new, old, |_: &AzureManagedClusterSpec, _| FieldErrors::default())?,
        "AzureManagedClusterTemplate" => {
            judge(new, old, |_: &AzureManagedClusterTemplateSpec, _| FieldErrors::default())?
        }
        kind if raw::KINDS.contains(&kind) => raw::validate(kind, old.is_none(), context.gates),
        other => return Err(Denied::UnknownKind(other.to_owned())),
    };
    if errors.is_empty() {
        return Ok(());
    }
    let text_alone = Kind::named(kind).is_some_and(|kind| kind.is_refused_by_text(old.is_some()));
    Err(if text_alone { Denied::Forbidden(errors) } else { Denied::Invalid(errors) })
}

/// Validates the deletion of an object. [`needs_of_deletion`] says what [`Context`] must contain.
///
/// # Errors
/// The object cannot be deleted, because others depend on it.
pub fn validate_deletion(kind: &str, object: &Value, context: &Context) -> Result<(), Denied> {
    if !needs_of_deletion(kind, object).system_pools {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let errors = managed_pool::validate_deletion(name, context);
    if errors.is_empty() { Ok(()) } else { Err(Denied::Forbidden(errors)) }
}

fn judge<T: DeserializeOwned>(
    new: &Value,
    old: Option<&Value>,
    judge: impl FnOnce(&T, Option<&T>) -> FieldErrors,
) -> Result<FieldErrors, Denied> {
    let new = spec_of(new)?;
    let old = old.map(spec_of).transpose()?;
    Ok(judge(&new, old.as_ref()))
}
