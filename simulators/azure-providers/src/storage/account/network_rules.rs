//! The firewall of an account (`networkAcls`).

use azure_engine::document::{Object, enumeration, fill, items, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::super::words::{BAD_VALUE, bad_parameters};
use crate::network::service_connections;

const NO_SUBNET: Code = Code::azures(400, "NetworkAclsValidationFailure");

/// The service endpoints, one of which the subnet of a rule must have.
const SERVICES: [&str; 2] = ["Microsoft.Storage", "Microsoft.Storage.Global"];

/// Brings the rules into the form that is stored; an account without rules allows all traffic.
pub(super) fn normalise(azure: &AzureState, properties: &mut Object) -> Result<()> {
    let mut rules = match properties.remove("networkAcls") {
        None => Object::new(),
        Some(Value::Object(rules)) => rules,
        Some(_) => return Err(bad_parameters("networkAcls")),
    };
    enumeration(&mut rules, "defaultAction", &["Allow", "Deny"], true)?;
    fill(&mut rules, "bypass", "AzureServices");
    for (list, limit) in [
        ("ipRules", "storage.ipRulesPerAccount"),
        ("ipv6Rules", "storage.ipRulesPerAccount"),
        ("virtualNetworkRules", "storage.virtualNetworkRulesPerAccount"),
    ] {
        fill(&mut rules, list, json!([]));
        let most = azure.limit(limit);
        let Some(Value::Array(items)) = rules.get_mut(list) else {
            return Err(bad_parameters("networkAcls"));
        };
        Code::ours(400, "NetworkAclsTooManyRules").says_when(
            items.len() as u64 > most,
            format_args!("An account can have at most {most} {list}."),
        )?;
        for item in items {
            let Some(item) = item.as_object_mut() else { return Err(bad_parameters("networkAcls")) };
            fill(item, "action", "Allow");
            if list == "virtualNetworkRules" {
                check_subnet(azure, item)?;
            } else {
                check_addresses(item)?;
            }
        }
    }
    properties.insert("networkAcls".into(), Value::Object(rules));
    Ok(())
}

fn check_addresses(rule: &Object) -> Result<()> {
    let given = rule.get("value").and_then(Value::as_str).unwrap_or_default();
    let address = given.parse::<std::net::IpAddr>().is_ok();
    if address || given.parse::<ipnet::IpNet>().is_ok() {
        return Ok(());
    }
    Err(BAD_VALUE
        .says(format_args!("The value '{given}' is not allowed for property networkAcls.ipRule[*].value.")))
}

/// A subnet must exist here and have an endpoint for storage. Subnets of other subscriptions are not checked.
fn check_subnet(azure: &AzureState, rule: &mut Object) -> Result<()> {
    let given = rule.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Ok(id) = ResourceId::parse(&given) else {
        return Err(
            NO_SUBNET.says(format_args!("Validation of network acls failure: '{given}' is no subnet."))
        );
    };
    rule.insert("state".into(), "Succeeded".into());
    if azure.subscription(id.subscription_id()).is_none() {
        return Ok(());
    }
    let subnet = azure.document(&id).ok_or_else(|| {
        NO_SUBNET.says(format_args!(
            "Validation of network acls failure: SubnetsNotFound:The subnet {given} was not found."
        ))
    })?;
    let has = |item: &Value| text(item, "service").is_some_and(|service| SERVICES.contains(&service));
    Code::azures(400, "SubnetsHaveNoServiceEndpointsConfigured").says_when(
        !items(&subnet, "properties/serviceEndpoints").iter().any(has),
        format_args!(
            "Subnet {} of virtual network {} do not have ServiceEndpoints for Microsoft.Storage \
             resources configured. Add Microsoft.Storage to subnet's ServiceEndpoints collection \
             before trying to ACL Microsoft.Storage resources to these subnets.",
            id.name(),
            id.parent().unwrap_or_else(|| id.clone()),
        ),
    )
}

/// Whether any caller can reach an account. Requests have no known origin, so a rule or a private endpoint may let
/// every caller in.
pub(crate) fn is_reachable(azure: &AzureState, record: &Record) -> bool {
    let has = |list: &str| !items(&record.body, &format!("properties/networkAcls/{list}")).is_empty();
    let private = || !service_connections::list(azure, &record.id).is_empty();
    if text(&record.body, "properties/publicNetworkAccess") == Some("Disabled") {
        return private();
    }
    text(&record.body, "properties/networkAcls/defaultAction") != Some("Deny")
        || has("ipRules")
        || has("virtualNetworkRules")
        || private()
}
