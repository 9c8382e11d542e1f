//! Health probes ("Azure Load Balancer health probes").

use azure_types::ResourceId;
use serde_json::Value;

use super::balancer::Balancer;
use azure_engine::document::Object;
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Derived, Number, Text, Users, Word};
use azure_engine::types::member_table::Member;

pub(super) static MEMBERS: [Member; 9] = [
    Member::new("intervalInSeconds", Number(5, 2_147_483_646)).or(15),
    Member::new("loadBalancingRules", Users("loadBalancingRules")),
    Member::new("noHealthyBackendsBehavior", Word(&["AllProbedDown", "AllProbedUp"], true)),
    Member::new("numberOfProbes", Number(1, 2_147_483_646)).or(1),
    Member::new("port", Number(1, 65_535)).or(0),
    Member::new("probeThreshold", Number(1, 100)).or(1),
    Member::new("protocol", Word(&["Tcp", "Http", "Https"], true)),
    Member::new("provisioningState", Derived),
    Member::new("requestPath", Text),
];

/// Checks a probe.
pub(super) fn check(balancer: &Balancer<'_>, id: &ResourceId, properties: &mut Object) -> Result<()> {
    let is = |member: &str, word: &str| properties.get(member).is_some_and(|value| value == word);
    if balancer.sku == "Basic" {
        // Not available with sku Basic.
        Code::ours(400, "ProbePropertyNotSupportedForBasicSku").details_when(
            is("protocol", "Https") || is("noHealthyBackendsBehavior", "AllProbedUp"),
            format_args!("Probe {id} needs a load balancer with sku Standard."),
        )?;
    }
    // A slash in front may be missing: Azure's own example for load balancers has "healthcheck.aspx".
    let path = properties.get("requestPath").and_then(Value::as_str).unwrap_or_default();
    Code::ours(400, "ProbeRequestPathRequired").details_when(
        !is("protocol", "Tcp") && path.is_empty(),
        format_args!("Probe {id} with protocol Http or Https must have a requestPath."),
    )?;
    if balancer.sku == "Basic" {
        properties.remove("noHealthyBackendsBehavior");
    }
    Ok(())
}
