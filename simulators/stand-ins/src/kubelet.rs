//! One kubelet: registration, Lease and status.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s::api::api::coordination::v1::Lease;
use k8s::api::api::core::v1::Node;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::api_error::has_code;
use crate::objects::seconds;
use crate::{Machine, Pace, WallClock};

/// `leaseDurationSeconds`: the kubelet's `nodeLeaseDurationSeconds`.
const LEASE_SECONDS: i32 = 40;
/// How often it writes its status when nothing changed: `nodeStatusReportFrequency`.
const STATUS_INTERVAL: Duration = Duration::from_secs(300);
/// How long it waits after a failed registration.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Namespace of the kubelets' Leases.
pub(crate) const LEASES: &str = "kube-node-lease";

pub(crate) struct Kubelet {
    pace: Pace,
    nodes: Api<Node>,
    leases: Api<Lease>,
    machine: Machine,
    clock: WallClock,
    /// The Lease as it was last read or written.
    lease: Option<Lease>,
    reported: Option<Instant>,
}

impl Kubelet {
    pub(crate) fn new(pace: Pace, client: kube::Client, machine: Machine, clock: WallClock) -> Kubelet {
        let nodes = Api::all(client.clone());
        let leases = Api::namespaced(client, LEASES);
        Kubelet { pace, nodes, leases, machine, clock, lease: None, reported: None }
    }

    pub(crate) async fn run(mut self) {
        let name = self.machine.name.clone();
        while let Err(error) = self.register().await {
            tracing::debug!(node = name, %error, "registering the node failed");
            sleep(RETRY_INTERVAL).await;
        }
        let mut ticks = interval(self.pace.heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.renew_lease().await {
                tracing::debug!(node = name, %error, "renewing the lease failed");
                self.lease = None;
            }
            if let Err(error) = self.report_status().await {
                tracing::debug!(node = name, %error, "reporting the status failed");
            }
        }
    }

    async fn register(&mut self) -> Result<(), kube::Error> {
        let node: Node = serde_json::from_value(self.node()).map_err(kube::Error::SerdeError)?;
        match self.nodes.create(&PostParams::default(), &node).await {
            Ok(_) => Ok(()),
            Err(error) if has_code(&error, 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn node(&self) -> Value {
        let machine = &self.machine;
        let mut labels: BTreeMap<&str, &str> = [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", machine.name.as_str()),
            ("kubernetes.io/os", "linux"),
        ]
        .into();
        labels.extend(machine.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        let now = (self.clock)();
        let mut status = self.status(None, now);
        status["addresses"] = self.addresses();
        let waits = json!({"key": k8s::names::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
        let mut taints: Vec<Value> = if machine.initialized { Vec::new() } else { vec![waits] };
        taints.extend(machine.taints.iter().map(|taint| json!(taint)));
        let mut spec = json!({"taints": taints});
        if !machine.provider_id.is_empty() {
            spec["providerID"] = machine.provider_id.as_str().into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": machine.name, "labels": labels},
            "spec": spec,
            "status": status,
        })
    }

    fn addresses(&self) -> Value {
        let internal =
            self.machine.internal_ips.iter().map(|ip| json!({"type": "InternalIP", "address": ip}));
        let host = std::iter::once(json!({"type": "Hostname", "address": self.machine.name}));
        internal.chain(host).collect()
    }

    /// The status that the kubelet reports. Where nothing changed, times of transition are those of `before`.
    fn status(&self, before: Option<&Node>, now: Timestamp) -> Value {
        let now = seconds(now);
        let known = before.and_then(|node| node.status.as_ref()?.conditions.as_deref()).unwrap_or_default();
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            let same = known.iter().find(|condition| condition.type_ == kind && condition.status == status);
            let since = same.and_then(|condition| condition.last_transition_time.as_ref());
            json!({
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since.map_or_else(|| now.clone(), |time| seconds(time.0)),
            })
        };
        let resources = json!({
            "cpu": self.machine.cpus.to_string(),
            "memory": format!("{}Mi", self.machine.memory_mib),
            "pods": "110",
        });
        json!({
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition(
                    "MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available",
                ),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition(
                    "PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available",
                ),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.0.0",
                "kernelVersion": "6.8.0-azure",
                "kubeProxyVersion": self.machine.kubelet_version,
                "kubeletVersion": self.machine.kubelet_version,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Stand-in Linux",
                "systemUUID": self.machine.system_uuid,
            },
        })
    }

    async fn renew_lease(&mut self) -> Result<(), kube::Error> {
        let name = self.machine.name.as_str();
        let mut lease = match self.lease.take() {
            Some(lease) => lease,
            None => match self.leases.get_opt(name).await? {
                Some(lease) => lease,
                None => Lease {
                    metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
                    spec: None,
                },
            },
        };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(name.to_owned());
        spec.lease_duration_seconds = Some(LEASE_SECONDS);
        spec.renew_time = Some(k8s::api::apimachinery::pkg::apis::meta::v1::MicroTime((self.clock)()));
        let written = if lease.metadata.resource_version.is_some() {
            self.leases.replace(name, &PostParams::default(), &lease).await?
        } else {
            lease.metadata.owner_references = self.owner().await?;
            self.leases.create(&PostParams::default(), &lease).await?
        };
        self.lease = Some(written);
        Ok(())
    }

    /// The owner of the Lease: where garbage is collected, it goes with its Node.
    async fn owner(
        &self,
    ) -> Result<Option<Vec<k8s::api::apimachinery::pkg::apis::meta::v1::OwnerReference>>, kube::Error> {
        let node = self.nodes.get_metadata_opt(&self.machine.name).await?;
        Ok(node.and_then(|node| node.metadata.uid).map(|uid| {
            vec![k8s::api::apimachinery::pkg::apis::meta::v1::OwnerReference {
                api_version: "v1".into(),
                kind: "Node".into(),
                name: self.machine.name.clone(),
                uid,
                ..Default::default()
            }]
        }))
    }

    /// Writes the status when it is due or differs from what the kubelet reports. A deleted Node is not created again
    /// as long as this kubelet runs.
    async fn report_status(&mut self) -> Result<(), kube::Error> {
        let Some(node) = self.nodes.get_opt(&self.machine.name).await? else { return Ok(()) };
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
        let ready = conditions
            .unwrap_or_default()
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let fresh = self.reported.is_some_and(|at| at.elapsed() < STATUS_INTERVAL);
        if ready && fresh {
            return Ok(());
        }
        let mut status = self.status(Some(&node), (self.clock)());
        // Once addresses are set, they belong to the cloud provider.
        let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref());
        if addresses.unwrap_or_default().is_empty() {
            status["addresses"] = self.addresses();
        }
        let patch = Patch::Strategic(json!({"status": status}));
        self.nodes.patch_status(&self.machine.name, &PatchParams::default(), &patch).await?;
        self.reported = Some(Instant::now());
        Ok(())
    }
}
