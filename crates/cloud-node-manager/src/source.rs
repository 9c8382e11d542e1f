//! The machine that this program runs on, in the form that the controllers need.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use cloud::{
    Existence, Instance, LogicalTime, MachineEvent, MachineEventType, MachineEvents, Machines, Presence,
};
use imds::{Error, Imds, MachineFacts};
use k8s::{Node, NodeAddress, names};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The prefix of a provider ID.
const PROVIDER: &str = "azure://";

/// How many times, and at which interval, a machine's identity is read before that counts as a failure: a new machine
/// does not have it at once, and its node takes no pods meanwhile.
const MAX_ATTEMPTS: u32 = 20;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(50);

/// This machine.
#[derive(Debug)]
pub struct ThisMachine {
    imds: Imds,
    /// Its node name, in lower case.
    node: String,
    /// When the cached answers of `imds` were requested.
    read: Mutex<LogicalTime>,
}

impl ThisMachine {
    /// The machine of a metadata service, whose node has that name.
    pub fn new(imds: Imds, node: &str) -> Self {
        Self { imds, node: node.to_lowercase(), read: Mutex::new(LogicalTime::BEGINNING) }
    }

    async fn facts(&self, node: &Node, newer_than: LogicalTime) -> Result<MachineFacts, Error> {
        let mut read = self.read.lock().await;
        let max_age = if *read > newer_than { Duration::MAX } else { Duration::ZERO };
        let asked = LogicalTime::now();
        let facts = self.imds.describe(node.name(), max_age).await?;
        if max_age.is_zero() {
            *read = asked;
        }
        Ok(facts)
    }
}

#[async_trait]
impl Machines for ThisMachine {
    /// The machine that this runs on exists, and runs.
    async fn presence(&self, _: &Node, _: LogicalTime) -> Existence<Presence> {
        Existence::Present(Presence { shut_down: false })
    }

    async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance> {
        if node.name().to_lowercase() != self.node {
            return Existence::Unknown(format!(
                "this machine is {}, and the node {} is another one: correct --node-name, or set the variable NODE_NAME to \
                 the name of this machine (no credentials provided for Azure cloud provider, with which another machine \
                 could be asked for)",
                self.node,
                node.name()
            ));
        }
        let described = match node.spec.provider_id.is_empty() {
            true => identified(|| self.facts(node, newer_than)).await,
            false => self.facts(node, newer_than).await.map_err(|error| error.to_string()),
        };
        match described {
            Ok(facts) => Existence::Present(instance_of(facts, node.provided_node_ip())),
            Err(reason) => Existence::Unknown(reason),
        }
    }
}

#[async_trait]
impl MachineEvents for ThisMachine {
    async fn upcoming(&self) -> Result<Vec<MachineEvent>, String> {
        let events = self.imds.scheduled_events().await.map_err(|error| error.to_string())?;
        Ok(events.into_iter().map(event_of).collect())
    }

    async fn approve(&self, event: &str) -> Result<(), String> {
        self.imds.approve(event).await.map_err(|error| error.to_string())
    }
}

fn event_of(event: imds::ScheduledEvent) -> MachineEvent {
    let (event_type, name) = match event.event_type {
        imds::EventType::Freeze => (MachineEventType::Freeze, "Freeze".to_owned()),
        imds::EventType::Reboot => (MachineEventType::Reboot, "Reboot".to_owned()),
        imds::EventType::Redeploy => (MachineEventType::Redeploy, "Redeploy".to_owned()),
        imds::EventType::Preempt => (MachineEventType::Preempt, "Preempt".to_owned()),
        imds::EventType::Terminate => (MachineEventType::Terminate, "Terminate".to_owned()),
        imds::EventType::Other(name) => (MachineEventType::Other, name),
    };
    let imds::ScheduledEvent { id, is_shared, has_started, not_before, duration, description, .. } = event;
    MachineEvent { id, event_type, name, is_shared, has_started, not_before, duration, description }
}

/// Reads the machine's identity until it is known, for a second.
async fn identified<F>(mut ask: impl FnMut() -> F) -> Result<MachineFacts, String>
where
    F: Future<Output = Result<MachineFacts, Error>>,
{
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match ask().await {
            Ok(facts) => return Ok(facts),
            Err(error) => error,
        };
        if !is_of_identity(&error) {
            return Err(error.to_string());
        }
        // An answer may have taken a minute.
        let is_late = begun.elapsed() >= ATTEMPT_INTERVAL * MAX_ATTEMPTS;
        if attempts >= MAX_ATTEMPTS || is_late || is_throttled(&error) {
            return Err(format!("failed to set node provider id: {error}"));
        }
        tokio::time::sleep(ATTEMPT_INTERVAL).await;
    }
}

/// Whether the ID is unknown, and not a value derived from it.
fn is_of_identity(error: &Error) -> bool {
    use Error::{NoAnswer, NoCompute, NoNetwork, NoResourceId, Status, Unreadable};
    matches!(
        error,
        NoAnswer { .. } | Status { .. } | Unreadable { .. } | NoCompute | NoNetwork | NoResourceId
    )
}

fn is_throttled(error: &Error) -> bool {
    matches!(error, Error::Status { status, .. } if status.as_u16() == 429)
}

/// The desired state of the node according to its machine. An address of another interface is used only if the kubelet
/// asks for it, because the others belong to other networks.
fn instance_of(facts: MachineFacts, asked: Option<&str>) -> Instance {
    let labels = [
        (names::LABEL_SUB_FAULT_DOMAIN, facts.sub_fault_domain),
        (names::LABEL_INTERCONNECT_GROUP, facts.interconnect_group),
    ];
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    let labels: BTreeMap<String, String> = labels
        .filter(|(key, value)| {
            let fits = is_label_value(value);
            if !fits {
                tracing::warn!(
                    label = key,
                    value,
                    "Azure's value is not a valid label value, it is left out"
                );
            }
            fits
        })
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let address = |one: imds::Address| NodeAddress { kind: one.kind.as_str().into(), address: one.address };
    let asked: Vec<&str> = asked.into_iter().flat_map(|asked| asked.split(',')).map(str::trim).collect();
    let others = facts.others.into_iter().filter(|other| asked.contains(&other.address.as_str()));
    Instance {
        provider_id: format!("{PROVIDER}{}", facts.resource_id),
        instance_type: facts.size,
        zone: facts.zone,
        region: facts.region,
        addresses: facts.addresses.into_iter().chain(others).map(address).collect(),
        labels,
    }
}

/// Whether Kubernetes accepts a text as the value of a label; with an invalid one it would refuse the whole write.
fn is_label_value(text: &str) -> bool {
    let is_alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && is_alphanumeric(text.as_bytes().first())
        && is_alphanumeric(text.as_bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> MachineFacts {
        MachineFacts {
            resource_id: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm1"
                .into(),
            size: "Standard_D2s_v5".into(),
            zone: "eastus-1".into(),
            region: "eastus".into(),
            addresses: vec![
                imds::Address { kind: imds::AddressKind::Hostname, address: "vm1".into() },
                imds::Address { kind: imds::AddressKind::InternalIp, address: "10.0.0.4".into() },
            ],
            others: vec![imds::Address { kind: imds::AddressKind::InternalIp, address: "10.1.0.4".into() }],
            sub_fault_domain: "3".into(),
            interconnect_group: "fast".into(),
        }
    }

    /// NODE-122
    #[tokio::test(start_paused = true)]
    async fn node_122_a_machine_that_does_not_know_its_id_yet_is_asked_for_a_second() {
        for (error, asked) in [
            (Error::NoResourceId, 20),
            (Error::NoCompute, 20),
            (Error::Zone { zone: "a".into(), reason: "no number".into() }, 1),
            (Error::NoAddress, 1),
        ] {
            let mut times = 0;
            let reason = identified(|| {
                times += 1;
                std::future::ready(Err(error.clone()))
            })
            .await
            .unwrap_err();
            assert_eq!(times, asked, "{reason}");
            assert_eq!(reason.starts_with("failed to set node provider id: "), asked > 1, "{reason}");
        }
        let mut times = 0;
        let begun = Instant::now();
        let known = identified(|| {
            times += 1;
            std::future::ready(if times < 4 { Err(Error::NoResourceId) } else { Ok(facts()) })
        });
        assert_eq!(known.await, Ok(facts()));
        assert_eq!(begun.elapsed(), ATTEMPT_INTERVAL * 3);
        let mut times = 0;
        let slow = identified(|| {
            times += 1;
            async {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Err(Error::NoResourceId)
            }
        });
        slow.await.unwrap_err();
        assert_eq!(times, 1, "a minute is long enough");
    }

    /// NODE-216
    #[test]
    fn node_216_labels_are_those_that_a_node_may_have() {
        let named = |group: &str| {
            let instance = instance_of(MachineFacts { interconnect_group: group.into(), ..facts() }, None);
            instance.labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        let sub_fault_domain = "topology.kubernetes.azure.com/sub-fault-domain=3".to_owned();
        let group = "topology.kubernetes.azure.com/interconnect-group=a-B_1.2".to_owned();
        assert_eq!(named("a-B_1.2"), [group, sub_fault_domain.clone()]);
        for wrong in ["", "-a", "a b", "a.", &"a".repeat(64)] {
            assert_eq!(named(wrong), std::slice::from_ref(&sub_fault_domain), "{wrong}");
        }
        let bare = instance_of(MachineFacts { sub_fault_domain: String::new(), ..facts() }, None);
        assert_eq!(bare.labels.len(), 1);
    }

    /// F6: a kubelet may ask for the address of another interface of its machine (`--node-ip`).
    #[test]
    fn an_address_of_another_interface_counts_where_the_kubelet_asks_for_it() {
        for (asked, has) in [
            (None, false),
            (Some("10.0.0.4"), false),
            (Some("10.1.0.4"), true),
            (Some("fd00::1, 10.1.0.4"), true),
        ] {
            let addresses = instance_of(facts(), asked).addresses;
            assert_eq!(addresses.iter().any(|one| one.address == "10.1.0.4"), has, "{asked:?}");
            assert!(addresses.iter().any(|one| one.address == "10.0.0.4"));
        }
    }

    /// F6: an event of an unknown type keeps Azure's name.
    #[test]
    fn an_unknown_event_has_the_name_that_azure_gives_it() {
        let event = event_of(imds::ScheduledEvent {
            id: "a".into(),
            event_type: imds::EventType::Other("Migrate".into()),
            is_shared: false,
            has_started: false,
            not_before: String::new(),
            duration: None,
            description: "New host.".into(),
        });
        assert_eq!((event.name.as_str(), event.description.as_str()), ("Migrate", "New host."));
    }
}
