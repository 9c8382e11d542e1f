//! Health probes ("Azure Load Balancer health probes").

use serde_json::Value;

use super::balancer::Balancer;
use crate::network::shared::checks::bounded;
use azure_engine::document::{Object, enumeration, known_members, strip, take_properties};
use azure_engine::error::{Code, Refusal};

const NOT_OF_BASIC: Code = Code::ours(400, "ProbePropertyNotSupportedForBasicSku");
const NO_PATH: Code = Code::ours(400, "ProbeRequestPathRequired");

const MEMBERS: [&str; 9] = [
    "intervalInSeconds",
    "loadBalancingRules",
    "noHealthyBackendsBehavior",
    "numberOfProbes",
    "port",
    "probeThreshold",
    "protocol",
    "provisioningState",
    "requestPath",
];

/// Checks a probe and fills its defaults.
pub(crate) fn normalise(balancer: &Balancer<'_>, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "Probe")?;
    strip(&mut properties, &["provisioningState", "loadBalancingRules"]);
    let id = balancer.child("probes", &child);
    enumeration(&mut properties, "protocol", &["Tcp", "Http", "Https"], true)?;
    bounded(&mut properties, "port", 1..=65_535, Some(0), &id)?;
    bounded(&mut properties, "intervalInSeconds", 5..=2_147_483_646, Some(15), &id)?;
    bounded(&mut properties, "numberOfProbes", 1..=2_147_483_646, Some(1), &id)?;
    bounded(&mut properties, "probeThreshold", 1..=100, Some(1), &id)?;
    enumeration(&mut properties, "noHealthyBackendsBehavior", &["AllProbedDown", "AllProbedUp"], true)?;
    if balancer.sku == "Basic" {
        // What sku Basic does not have.
        let https = properties.get("protocol").and_then(Value::as_str) == Some("Https");
        let up = properties.get("noHealthyBackendsBehavior").and_then(Value::as_str) == Some("AllProbedUp");
        NOT_OF_BASIC
            .details_when(https || up, format_args!("Probe {id} needs a load balancer with sku Standard."))?;
        properties.remove("noHealthyBackendsBehavior");
    }
    // A slash in front may be missing: Azure's own example for load balancers has "healthcheck.aspx".
    let path = properties.get("requestPath").and_then(Value::as_str).unwrap_or_default();
    NO_PATH.details_when(
        properties.get("protocol").and_then(Value::as_str) != Some("Tcp") && path.is_empty(),
        format_args!("Probe {id} with protocol Http or Https must have a requestPath."),
    )?;
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}
