//! Clones templates for new machines.

use serde_json::{Map, Value, json};

use crate::names::{CLONED_FROM_KIND, CLONED_FROM_NAME, CLUSTER_NAME};
use crate::objects::{GroupKind, Kind, annotation, name, reference_to, text};
use crate::round::{Action, Round};

/// A machine to create, with the objects that it refers to.
pub(crate) struct Plan<'a> {
    /// Name of the machine, and of its infrastructure and bootstrap objects.
    pub(crate) name: String,
    pub(crate) labels: Map<String, Value>,
    pub(crate) annotations: Map<String, Value>,
    /// The reference to the owner.
    pub(crate) owner: Value,
    /// The machine's `spec`, without references and the name of the cluster.
    pub(crate) spec: Value,
    /// The reference to the infrastructure's template.
    pub(crate) infrastructure: &'a Value,
    /// The bootstrap configuration: a template to clone, a `spec`, or nothing.
    pub(crate) bootstrap: Bootstrap<'a>,
}

/// Where a machine's bootstrap configuration comes from.
pub(crate) enum Bootstrap<'a> {
    /// A reference to a template.
    Template(&'a Value),
    /// The `spec` of a KubeadmConfig.
    Spec(Value),
    /// No bootstrap object: the machine names its data Secret.
    None,
}

/// Creates a machine and the objects that it refers to, or nothing but an error message if a template is missing.
pub(crate) fn make(round: &mut Round<'_>, plan: Plan<'_>) -> Result<(), String> {
    let cluster = round.cluster_name();
    let mut labels = plan.labels;
    labels.insert(CLUSTER_NAME.to_owned(), cluster.into());
    let metadata = |own: &Map<String, Value>| {
        json!({"namespace": round.namespace(), "name": plan.name, "labels": labels, "annotations": own,
            "ownerReferences": [plan.owner]})
    };
    let mut spec = plan.spec;
    let mut made = Vec::new();
    let (kind, infrastructure) = from_template(round, plan.infrastructure, metadata(&plan.annotations))?;
    spec["infrastructureRef"] = reference_to(&kind, &plan.name);
    made.push(Action::Create(kind, infrastructure));
    match plan.bootstrap {
        Bootstrap::Template(reference) => {
            let (kind, config) = from_template(round, reference, metadata(&plan.annotations))?;
            spec["bootstrap"] = json!({"configRef": reference_to(&kind, &plan.name)});
            made.push(Action::Create(kind, config));
        }
        Bootstrap::Spec(config) => {
            let kind = GroupKind::from(Kind::KubeadmConfig);
            spec["bootstrap"] = json!({"configRef": reference_to(&kind, &plan.name)});
            let config = json!({"apiVersion": Kind::KubeadmConfig.api_version(), "kind": kind.kind,
                "metadata": metadata(&plan.annotations), "spec": config});
            made.push(Action::Create(kind, config));
        }
        Bootstrap::None => {}
    }
    spec["clusterName"] = cluster.into();
    let machine = json!({"apiVersion": Kind::Machine.api_version(), "kind": "Machine",
        "metadata": metadata(&plan.annotations), "spec": spec});
    made.push(Action::Create(Kind::Machine.into(), machine));
    round.act(Action::InOrder(made));
    Ok(())
}

/// The message for a reference to a missing object.
pub(crate) fn does_not_exist(reference: &Value) -> String {
    format!("{} {} does not exist", text(&reference["kind"]), text(&reference["name"]))
}

/// The object that a template describes. `metadata` takes precedence over the template's own labels and annotations.
fn from_template(
    round: &Round<'_>,
    reference: &Value,
    mut metadata: Value,
) -> Result<(GroupKind, Value), String> {
    let (kind, template) = round.referred(reference).ok_or_else(|| does_not_exist(reference))?;
    let inner = &template["spec"]["template"];
    for member in ["labels", "annotations"] {
        let mut all = inner["metadata"][member].as_object().cloned().unwrap_or_default();
        all.extend(metadata[member].as_object().cloned().unwrap_or_default());
        metadata[member] = all.into();
    }
    metadata["annotations"][CLONED_FROM_NAME] = name(template).into();
    metadata["annotations"][CLONED_FROM_KIND] = kind.dotted().into();
    let made = GroupKind::new(&kind.group, kind.kind.strip_suffix("Template").unwrap_or(&kind.kind));
    let object = json!({"apiVersion": template["apiVersion"], "kind": made.kind, "metadata": metadata,
        "spec": inner["spec"]});
    Ok((made, object))
}

/// Whether an object was cloned from the template that the reference names.
pub(crate) fn is_clone_of(object: &Value, reference: &Value) -> bool {
    let kind = GroupKind::new(text(&reference["apiGroup"]), text(&reference["kind"]));
    annotation(object, CLONED_FROM_NAME) == reference["name"].as_str()
        && annotation(object, CLONED_FROM_KIND) == Some(kind.dotted().as_str())
}

/// Labels or annotations of a `template.metadata`.
pub(crate) fn members(metadata: &Value, member: &str) -> Map<String, Value> {
    metadata[member].as_object().cloned().unwrap_or_default()
}
