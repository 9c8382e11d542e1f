//! Invariants of every world at rest.
//!
//! The checker reads a copy of Azure, so that its reads are not in the journal, use no budget and meet no declared
//! fault. It shares no code with the planner: a Service's intent is read from its manifest ([`asked`]), and the packet
//! oracle shows the result. Only the last check asks the provider itself, whether it would still write something.

mod asked;
mod dangling;
mod finding;
pub(crate) mod foreign;
mod plan;
mod traffic;

use azure_simulator::Azure;
use serde_json::Value;

pub use finding::Finding;

use crate::World;

impl World {
    /// All current violations. A world that is not at rest can have findings.
    pub async fn check(&self) -> Vec<Finding> {
        let azure = self.copy_of_azure();
        let services = Services::of(self);
        let (planned, refused) = plan::check(self, &azure, &services).await;
        let mut findings = dangling::check(self, &azure, &services, &refused);
        findings.extend(self.foreign.check(&azure));
        findings.extend(planned);
        findings.extend(traffic::check(self, &azure, &services, &refused));
        findings
    }

    /// The same resources in an Azure that answers at once, without faults, budgets and actors.
    pub(crate) fn copy_of_azure(&self) -> Azure {
        let options = azure_simulator::Options { budgets: None, ..self.azure.options().clone() };
        let copy = Azure::new(options);
        copy.restore(self.azure.save().expect("it can be saved")).expect("it can be taken up");
        copy.clear_faults();
        copy.set_actors(Vec::new());
        copy.set_budgets(None);
        copy.set_latency(azure_simulator::LatencyProfile::instant());
        copy.set_consistency(azure_simulator::Consistency::default());
        copy
    }
}

/// The Services that should be served.
struct Services(Vec<Value>);

impl Services {
    fn of(world: &World) -> Self {
        let all = world.kubernetes.list("Service").into_iter().map(|service| service.value().clone());
        Self(all.filter(wants_load_balancer).collect())
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|service| key_of(service).eq_ignore_ascii_case(key))
    }

    /// The Service with this prefix of resource names.
    fn by_base_name(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|service| name.starts_with(&base_name(service)))
    }
}

fn wants_load_balancer(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer"
        && service["spec"]["loadBalancerClass"].is_null()
        && service["metadata"]["deletionTimestamp"].is_null()
}

fn key_of(service: &Value) -> String {
    format!("{}/{}", text(&service["metadata"]["namespace"]), text(&service["metadata"]["name"]))
}

/// The prefix of the names of a Service's frontends, rules and probes.
fn base_name(service: &Value) -> String {
    let mut name = format!("a{}", text(&service["metadata"]["uid"]).replace('-', ""));
    name.truncate(32);
    name
}

/// Whether a name starts like those of a Service's resources: `a` and 31 hexadecimal digits.
fn is_of_a_service(name: &str) -> bool {
    let digits = name.strip_prefix('a').and_then(|rest| rest.get(..31));
    digits.is_some_and(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()))
}

/// The addresses in a Service's status.
fn published(service: &Value) -> impl Iterator<Item = std::net::IpAddr> {
    let entries = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|entry| text(&entry["ip"]).parse().ok())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn id_of(document: &Value) -> azure_types::ResourceId {
    text(&document["id"]).parse().expect("documents have ids")
}
