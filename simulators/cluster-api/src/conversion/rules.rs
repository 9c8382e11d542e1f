//! The differences between the versions, kind by kind.

use serde_json::{Value, json};

use super::values::{arguments, duration_seconds, failure_domains, go_duration, reference};
use crate::objects::{list, number, text};

/// How a value differs, apart from its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Unchanged.
    Same,
    /// A reference.
    Reference,
    /// A duration; a count of seconds in `v1beta2`.
    Seconds,
    /// Failure domains.
    FailureDomains,
    /// A reference to a Node, of which `v1beta2` has only the name.
    NodeReference,
    /// Arguments of a program.
    Arguments,
    /// Unhealthy conditions, with timeouts.
    Unhealthy,
    /// A member of `v1beta1` only: a control plane with a ready machine is ready.
    Ready,
}

/// A member that differs: its path in both versions, and how its value differs.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    old: String,
    new: String,
    how: How,
}

impl Rule {
    pub(super) fn from(&self, up: bool) -> &str {
        if up { &self.old } else { &self.new }
    }

    pub(super) fn to(&self, up: bool) -> &str {
        self.from(!up)
    }

    /// The value in the other version; `None` if it has no such value.
    pub(super) fn apply(&self, up: bool, value: Value, object: &Value) -> Option<Value> {
        if self.how == How::Ready {
            let ready = number(&object["status"]["deprecated"]["v1beta1"]["readyReplicas"]) > 0;
            return (!up && ready).then_some(Value::Bool(true));
        }
        if value.is_null() {
            return None;
        }
        Some(match self.how {
            How::Same | How::Ready => value,
            How::Reference => reference(up, &value, &object["metadata"]["namespace"]),
            How::Seconds if up => duration_seconds(text(&value))?.into(),
            How::Seconds => go_duration(number(&value)).into(),
            How::FailureDomains => failure_domains(up, &value),
            How::NodeReference if up => json!({"name": value["name"]}),
            How::NodeReference => json!({"apiVersion": "v1", "kind": "Node", "name": value["name"]}),
            How::Arguments => arguments(up, &value),
            How::Unhealthy => list(&value).iter().map(|one| unhealthy(up, one)).collect(),
        })
    }
}

fn unhealthy(up: bool, one: &Value) -> Value {
    let mut all = json!({"type": one["type"], "status": one["status"]});
    if up {
        all["timeoutSeconds"] = duration_seconds(text(&one["timeout"])).into();
    } else {
        all["timeout"] = go_duration(number(&one["timeoutSeconds"])).into();
    }
    all
}

/// Collects rules.
#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    fn add(&mut self, how: How, pairs: &[(&str, &str)]) -> &mut Self {
        self.under("", "", how, pairs)
    }

    /// Adds rules for members below these prefixes.
    fn under(&mut self, old: &str, new: &str, how: How, pairs: &[(&str, &str)]) -> &mut Self {
        let rule = |(a, b): &(&str, &str)| Rule { old: format!("{old}{a}"), new: format!("{new}{b}"), how };
        self.0.extend(pairs.iter().map(rule));
        self
    }

    /// Adds rules for conditions and failures, which are elsewhere in `v1beta2`.
    fn status(&mut self) -> &mut Self {
        self.add(
            How::Same,
            &[
                ("status.conditions", "status.deprecated.v1beta1.conditions"),
                ("status.failureReason", "status.deprecated.v1beta1.failureReason"),
                ("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
                ("status.v1beta2.conditions", "status.conditions"),
            ],
        )
    }

    fn counts(&mut self) -> &mut Self {
        self.add(
            How::Same,
            &[
                ("status.readyReplicas", "status.deprecated.v1beta1.readyReplicas"),
                ("status.availableReplicas", "status.deprecated.v1beta1.availableReplicas"),
                ("status.unavailableReplicas", "status.deprecated.v1beta1.unavailableReplicas"),
                ("status.updatedReplicas", "status.deprecated.v1beta1.updatedReplicas"),
                ("status.fullyLabeledReplicas", "status.deprecated.v1beta1.fullyLabeledReplicas"),
                ("status.v1beta2.readyReplicas", "status.readyReplicas"),
                ("status.v1beta2.availableReplicas", "status.availableReplicas"),
                ("status.v1beta2.upToDateReplicas", "status.upToDateReplicas"),
            ],
        )
    }

    /// Adds the rules for the `spec` of a machine, or of a template of machines, at a path.
    fn machine(&mut self, at: &str) -> &mut Self {
        self.references(
            at,
            &[("bootstrap.configRef", "bootstrap.configRef"), ("infrastructureRef", "infrastructureRef")],
        );
        self.timeouts(at, at)
    }

    fn references(&mut self, at: &str, pairs: &[(&str, &str)]) -> &mut Self {
        self.under(at, at, How::Reference, pairs)
    }

    fn timeouts(&mut self, old: &str, new: &str) -> &mut Self {
        self.under(
            old,
            new,
            How::Seconds,
            &[
                ("nodeDrainTimeout", "deletion.nodeDrainTimeoutSeconds"),
                ("nodeVolumeDetachTimeout", "deletion.nodeVolumeDetachTimeoutSeconds"),
                ("nodeDeletionTimeout", "deletion.nodeDeletionTimeoutSeconds"),
            ],
        )
    }

    /// Adds the rules for a KubeadmConfig's `spec` at a path.
    fn kubeadm(&mut self, at: &str) -> &mut Self {
        let arguments = [
            "clusterConfiguration.apiServer.extraArgs",
            "clusterConfiguration.controllerManager.extraArgs",
            "clusterConfiguration.scheduler.extraArgs",
            "clusterConfiguration.etcd.local.extraArgs",
            "initConfiguration.nodeRegistration.kubeletExtraArgs",
            "joinConfiguration.nodeRegistration.kubeletExtraArgs",
        ];
        self.under(at, at, How::Arguments, &arguments.map(|one| (one, one)));
        self.under(
            at,
            at,
            How::Seconds,
            &[(
                "clusterConfiguration.apiServer.timeoutForControlPlane",
                "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
            )],
        )
    }

    fn control_plane_template(&mut self, at: &str) -> &mut Self {
        self.under(
            at,
            at,
            How::Same,
            &[
                ("rolloutStrategy.type", "rollout.strategy.type"),
                ("rolloutStrategy.rollingUpdate", "rollout.strategy.rollingUpdate"),
                ("rolloutAfter", "rollout.after"),
                ("rolloutBefore", "rollout.before"),
                ("machineNamingStrategy", "machineNaming"),
                ("remediationStrategy.maxRetry", "remediation.maxRetry"),
            ],
        );
        self.under(
            at,
            at,
            How::Seconds,
            &[
                ("remediationStrategy.retryPeriod", "remediation.retryPeriodSeconds"),
                ("remediationStrategy.minHealthyPeriod", "remediation.minHealthyPeriodSeconds"),
            ],
        );
        self.kubeadm(&format!("{at}kubeadmConfigSpec."))
            .timeouts(&format!("{at}machineTemplate."), &format!("{at}machineTemplate.spec."))
    }
}

/// The rules of a kind; `None` if it is not known.
pub(super) fn rules_of(kind: &str) -> Option<Vec<Rule>> {
    let mut rules = Rules::default();
    const READY: [(&str, &str); 2] = [
        ("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
        ("status.bootstrapReady", "status.initialization.bootstrapDataSecretCreated"),
    ];
    match kind {
        "Cluster" => rules
            .status()
            .references(
                "spec.",
                &[("infrastructureRef", "infrastructureRef"), ("controlPlaneRef", "controlPlaneRef")],
            )
            .add(How::FailureDomains, &[("status.failureDomains", "status.failureDomains")])
            .add(
                How::Same,
                &[
                    READY[0],
                    ("status.controlPlaneReady", "status.initialization.controlPlaneInitialized"),
                    ("status.v1beta2.controlPlane", "status.controlPlane"),
                    ("status.v1beta2.workers", "status.workers"),
                ],
            ),
        "Machine" => rules
            .status()
            .machine("spec.")
            .add(How::Same, &READY)
            .add(How::NodeReference, &[("status.nodeRef", "status.nodeRef")]),
        "MachineSet" => rules.status().counts().machine("spec.template.spec.").add(
            How::Same,
            &[
                ("spec.deletePolicy", "spec.deletion.order"),
                ("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
                ("spec.machineNamingStrategy", "spec.machineNaming"),
            ],
        ),
        "MachineDeployment" => rules.status().counts().machine("spec.template.spec.").add(
            How::Same,
            &[
                ("spec.strategy.rollingUpdate.deletePolicy", "spec.deletion.order"),
                ("spec.strategy.rollingUpdate", "spec.rollout.strategy.rollingUpdate"),
                ("spec.strategy.type", "spec.rollout.strategy.type"),
                ("spec.strategy.remediation", "spec.remediation"),
                ("spec.rolloutAfter", "spec.rollout.after"),
                ("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
                ("spec.machineNamingStrategy", "spec.machineNaming"),
            ],
        ),
        "MachinePool" => rules
            .status()
            .counts()
            .machine("spec.template.spec.")
            .add(How::Same, &READY)
            .add(How::Same, &[("spec.minReadySeconds", "spec.template.spec.minReadySeconds")]),
        "MachineHealthCheck" => rules
            .status()
            .add(How::Seconds, &[("spec.nodeStartupTimeout", "spec.checks.nodeStartupTimeoutSeconds")])
            .add(How::Unhealthy, &[("spec.unhealthyConditions", "spec.checks.unhealthyNodeConditions")])
            .add(
                How::Same,
                &[
                    ("spec.maxUnhealthy", "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo"),
                    ("spec.unhealthyRange", "spec.remediation.triggerIf.unhealthyInRange"),
                ],
            ),
        "KubeadmConfig" => rules
            .status()
            .kubeadm("spec.")
            .add(How::Same, &[("status.ready", "status.initialization.dataSecretCreated")]),
        "KubeadmConfigTemplate" => rules.kubeadm("spec.template.spec."),
        "KubeadmControlPlane" => rules
            .status()
            .counts()
            .control_plane_template("spec.")
            .references("spec.machineTemplate.", &[("infrastructureRef", "spec.infrastructureRef")])
            .add(How::Same, &[("status.initialized", "status.initialization.controlPlaneInitialized")])
            .add(How::Ready, &[("status.ready", "status.ready")]),
        "KubeadmControlPlaneTemplate" => rules.control_plane_template("spec.template.spec."),
        _ => return None,
    };
    Some(rules.0)
}
