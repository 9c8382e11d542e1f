//! The load balancers in front of a machine.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::compute::Machine;
use super::network::{configurations, interfaces};
use azure_engine::document::reading::Documents;
use azure_engine::document::{items, name, stored_reference, text};

/// Addresses in version 6 stand in brackets.
fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

/// One of the machine's configurations: its id, and its address.
struct Member {
    id: ResourceId,
    private: String,
}

/// The document, or `None` where the machine is behind no balancer.
pub(super) fn document(documents: &dyn Documents, machine: &Machine) -> Option<Value> {
    let members: Vec<Member> = interfaces(documents, machine)
        .iter()
        .flat_map(configurations)
        .filter_map(|ip| {
            let id = ResourceId::parse(text(ip, "id")?).ok()?;
            Some(Member { id, private: text(ip, "properties/privateIPAddress")?.to_owned() })
        })
        .collect();
    let (mut public, mut inbound, mut outbound) = (Vec::new(), Vec::new(), Vec::new());
    let mut behind = false;
    for balancer in documents.of_type("Microsoft.Network/loadBalancers") {
        if text(&balancer, "sku/name").is_none_or(|sku| sku.eq_ignore_ascii_case("Basic")) {
            continue;
        }
        let frontends = items(&balancer, "properties/frontendIPConfigurations");
        let addresses: Vec<(String, String, bool)> = frontends
            .iter()
            .filter_map(|frontend| {
                let (address, public) = frontend_address(documents, frontend)?;
                Some((text(frontend, "id")?.to_lowercase(), address, public))
            })
            .collect();
        let address = |rule: &Value| {
            let id = text(rule, "properties/frontendIPConfiguration/id")?.to_lowercase();
            addresses.iter().find(|(known, ..)| *known == id)
        };
        for member in &members {
            let pools = pools_of(&balancer, member);
            let mut add_public = |frontend: &str| {
                let entry = json!({
                    "frontendIpAddress": bracketed(frontend), "privateIpAddress": bracketed(&member.private),
                });
                if !public.contains(&entry) {
                    public.push(entry);
                }
            };
            behind |= !pools.is_empty();
            let same_family = |frontend: &str| frontend.contains(':') == member.private.contains(':');
            for rule in items(&balancer, "properties/loadBalancingRules") {
                let Some((_, frontend, is_public)) = address(rule).filter(|(_, a, _)| same_family(a)) else {
                    continue;
                };
                if !rule_pools(rule).iter().any(|pool| pools.contains(pool)) {
                    continue;
                }
                inbound.push(inbound_rule(rule, frontend, &member.private, "backendPort"));
                let outgoing = rule.pointer("/properties/disableOutboundSnat") != Some(&Value::Bool(true));
                if *is_public && outgoing {
                    add_public(frontend);
                }
            }
            for rule in items(&balancer, "properties/inboundNatRules") {
                let Some((_, frontend, _)) = address(rule) else { continue };
                let target = stored_reference(rule, "properties/backendIPConfiguration/id");
                if target.as_ref() == Some(&member.id) {
                    behind = true;
                    inbound.push(inbound_rule(rule, frontend, &member.private, "backendPort"));
                }
            }
            for rule in items(&balancer, "properties/outboundRules") {
                if !rule_pools(rule).iter().any(|pool| pools.contains(pool)) {
                    continue;
                }
                for named in items(rule, "properties/frontendIPConfigurations") {
                    let id = text(named, "id").unwrap_or_default().to_lowercase();
                    let found = addresses.iter().find(|(known, ..)| *known == id);
                    if let Some((_, frontend, _)) = found.filter(|(_, a, _)| same_family(a)) {
                        add_public(frontend);
                        outbound.push(json!({
                            "frontendIpAddress": bracketed(frontend),
                            "privateIpAddress": bracketed(&member.private),
                        }));
                    }
                }
            }
        }
    }
    behind.then(|| {
        json!({ "loadbalancer": {
            "publicIpAddresses": public, "inboundRules": inbound, "outboundRules": outbound,
        }})
    })
}

/// The address of a frontend, and whether it is a public one.
fn frontend_address(documents: &dyn Documents, frontend: &Value) -> Option<(String, bool)> {
    if let Some(public) = stored_reference(frontend, "properties/publicIPAddress/id") {
        let shown = documents.document(&public)?;
        return Some((text(&shown, "properties/ipAddress")?.to_owned(), true));
    }
    Some((text(frontend, "properties/privateIPAddress")?.to_owned(), false))
}

/// The pools of a balancer that a configuration is in, by lower-case id.
fn pools_of(balancer: &Value, member: &Member) -> Vec<String> {
    items(balancer, "properties/backendAddressPools")
        .iter()
        .filter(|pool| {
            let by_interface = items(pool, "properties/backendIPConfigurations")
                .iter()
                .any(|ip| stored_reference(ip, "id").as_ref() == Some(&member.id));
            let by_address = items(pool, "properties/loadBalancerBackendAddresses")
                .iter()
                .any(|address| text(address, "properties/ipAddress") == Some(&member.private));
            by_interface || by_address
        })
        .map(|pool| match text(pool, "id") {
            Some(id) => id.to_lowercase(),
            None => name(pool).to_lowercase(),
        })
        .collect()
}

/// The pools that a rule names, by lower-case id.
fn rule_pools(rule: &Value) -> Vec<String> {
    let several = items(rule, "properties/backendAddressPools").iter().filter_map(|pool| text(pool, "id"));
    let one = text(rule, "properties/backendAddressPool/id");
    several.chain(one).map(str::to_lowercase).collect()
}

fn inbound_rule(rule: &Value, frontend: &str, private: &str, port: &str) -> Value {
    let number = |member: &str| rule.pointer(&format!("/properties/{member}")).cloned().unwrap_or_default();
    json!({
        "frontendIpAddress": bracketed(frontend),
        "protocol": text(rule, "properties/protocol").unwrap_or_default().to_lowercase(),
        "frontendPort": number("frontendPort"),
        "backendIpAddress": bracketed(private),
        "backendPort": number(port),
    })
}
