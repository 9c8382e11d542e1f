//! The front door: defaulting and validation of an object of any kind, as JSON. Webhooks, `cerulean plan` and tests call it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::azure_machine_pool as pool;
use crate::context::{Context, Random};
use crate::crd;
use crate::field_error::FieldErrors;
use crate::{azure_cluster as cluster, azure_cluster_identity as identity, azure_machine as machine};

/// Why an object is not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Denied {
    /// There is no such kind.
    #[error("there is no kind {0:?} in infrastructure.cluster.x-k8s.io/v1beta1")]
    UnknownKind(String),
    /// The object cannot be read.
    #[error("the specification cannot be read: {0}")]
    Unreadable(String),
    /// Values of the object are wrong: an answer with status 422, and a cause for each.
    #[error("{}", .0.message())]
    Invalid(FieldErrors),
    /// The same for kinds that are refused with a text alone: an answer with status 403.
    #[error("{}", .0.message())]
    Forbidden(FieldErrors),
}

impl Denied {
    /// What is wrong, place by place.
    pub fn errors(&self) -> &[crate::FieldError] {
        match self {
            Self::Invalid(errors) | Self::Forbidden(errors) => &errors.0,
            Self::UnknownKind(_) | Self::Unreadable(_) => &[],
        }
    }
}

/// The object with everything that it did not say. The API server has filled in the schema's defaults before it asks a
/// webhook; who calls without one calls [`crd::fill_defaults`] first.
///
/// # Errors
/// The object is of no kind of ours, cannot be read, or needs what could not be found out.
pub fn set_defaults(
    kind: &str,
    mut object: Value,
    context: &Context,
    random: &mut dyn Random,
) -> Result<Value, Denied> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match kind {
        "AzureCluster" => change(&mut object, |spec| {
            cluster::set_defaults(&name, spec, context.gates);
            Ok(())
        })?,
        "AzureClusterTemplate" => change(&mut object, |spec| {
            cluster::set_template_defaults(spec);
            Ok(())
        })?,
        "AzureMachine" => change(&mut object, |spec| machine::set_defaults(spec, context, random))?,
        "AzureMachineTemplate" => change(&mut object, |spec| {
            machine::set_template_defaults(spec, random);
            Ok(())
        })?,
        "AzureMachinePool" => change(&mut object, |spec| pool::set_defaults(spec, context, random))?,
        "AzureClusterIdentity" | "AzureMachinePoolMachine" => {}
        other => return Err(Denied::UnknownKind(other.to_owned())),
    }
    Ok(object)
}

fn change<T: DeserializeOwned + Serialize>(
    object: &mut Value,
    complete: impl FnOnce(&mut T) -> Result<(), FieldErrors>,
) -> Result<(), Denied> {
    let mut spec: T = spec_of(object)?;
    complete(&mut spec).map_err(Denied::Invalid)?;
    object["spec"] = serde_json::to_value(&spec).map_err(|error| Denied::Unreadable(error.to_string()))?;
    Ok(())
}

fn spec_of<T: DeserializeOwned>(object: &Value) -> Result<T, Denied> {
    let spec = object.get("spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    serde_json::from_value(spec).map_err(|error| Denied::Unreadable(error.to_string()))
}

/// Whether an object is taken, where `old` is what it was.
///
/// # Errors
/// It is not.
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
        other => return Err(Denied::UnknownKind(other.to_owned())),
    };
    if errors.is_empty() {
        return Ok(());
    }
    let text_alone = crd::KINDS.iter().any(|known| known.name == kind && known.refused_by_text);
    Err(if text_alone { Denied::Forbidden(errors) } else { Denied::Invalid(errors) })
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
