//! Load balancers (`spec/arm-wire.md`, 9.1).

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::Value;

use super::backend_pool::{names, scale_set_using};
use super::{API_VERSIONS, backend_pool, frontend, load_balancing_rule, probe, resource_guid, take_children};
use crate::engine::document::{
    Object, enumeration, into_object, items, known_members, name, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::{Concurrency, Kind, Nested, Proposal, Reference, Style};
use crate::engine::store::Record;
use crate::engine::world::World;

/// The child collections in the order in which they are checked.
const COLLECTIONS: [Nested; 7] = [
    Nested {
        collection: "frontendIPConfigurations",
        writable: false,
        back_references: &[
            ("loadBalancingRules", "loadBalancingRules"),
            ("inboundNatRules", "inboundNatRules"),
            ("inboundNatPools", "inboundNatPools"),
            ("outboundRules", "outboundRules"),
        ],
    },
    Nested {
        collection: "backendAddressPools",
        writable: true,
        back_references: &[
            ("loadBalancingRules", "loadBalancingRules"),
            ("outboundRules", "outboundRules"),
            ("inboundNatRules", "inboundNatRules"),
            ("backendIPConfigurations", "ipConfigurations"),
        ],
    },
    Nested {
        collection: "probes",
        writable: false,
        back_references: &[("loadBalancingRules", "loadBalancingRules")],
    },
    Nested { collection: "loadBalancingRules", writable: false, back_references: &[] },
    Nested { collection: "inboundNatRules", writable: true, back_references: &[] },
    Nested { collection: "inboundNatPools", writable: false, back_references: &[] },
    Nested { collection: "outboundRules", writable: false, back_references: &[] },
];

pub(super) struct LoadBalancers;

/// Reads and completes the sku of a network resource; gives its name.
pub(super) fn sku(body: &mut Object, allowed: &[&str]) -> Result<String, Refusal> {
    let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
    enumeration(&mut sku, "name", allowed, true)?;
    enumeration(&mut sku, "tier", &["Regional", "Global"], true)?;
    let name = sku.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    body.insert("sku".into(), Value::Object(sku));
    Ok(name)
}

impl Kind for LoadBalancers {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/loadBalancers"
    }

    fn noun(&self) -> &'static str {
        "LoadBalancer"
    }

    fn api_versions(&self) -> &'static [&'static str] {
        &API_VERSIONS
    }

    fn style(&self) -> Style {
        Style::Network
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Supersede
    }

    fn immediate(&self) -> bool {
        true
    }

    fn nested(&self) -> &'static [Nested] {
        &COLLECTIONS
    }

    fn write(&self, world: &World, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let sku = sku(&mut proposal.body, &["Basic", "Standard", "Gateway"])?;
        if proposal.old_member("sku/name").and_then(Value::as_str).is_some_and(|old| old != sku) {
            return Err(Refusal::network(
                400,
                "LoadBalancerSkuCannotBeChanged",
                format!("The sku of load balancer {id} cannot be changed to {sku}."),
            ));
        }
        let mut properties = take_properties(&mut proposal.body);
        let mut known = vec!["provisioningState", "resourceGuid", "scope"];
        known.extend(COLLECTIONS.map(|nested| nested.collection));
        known_members(&mut properties, &known, "LoadBalancer")?;
        strip(&mut properties, &["provisioningState", "resourceGuid"]);
        resource_guid(world, &proposal, &mut properties);
        let old = |collection: &str, child: &Object| {
            let name_of = child.get("name").and_then(Value::as_str).unwrap_or_default();
            let old = proposal.old.map(|old| items(&old.body, &format!("properties/{collection}")))?;
            old.iter().find(|item| name(item).eq_ignore_ascii_case(name_of))
        };
        let mut promised = BTreeSet::new();
        for nested in COLLECTIONS {
            let collection = nested.collection;
            let children = take_children(id, &mut properties, collection)?.unwrap_or_default();
            let children = children
                .into_iter()
                .map(|child| match collection {
                    "frontendIPConfigurations" => {
                        frontend::normalise(world, id, &sku, old(collection, &child), child, &mut promised)
                    }
                    "backendAddressPools" => {
                        backend_pool::normalise(world, id, old(collection, &child), child)
                    }
                    "probes" => probe::normalise(id, child),
                    "loadBalancingRules" => load_balancing_rule::normalise(id, child),
                    "inboundNatRules" => load_balancing_rule::normalise_nat_rule(id, child),
                    "inboundNatPools" => load_balancing_rule::normalise_nat_pool(id, child),
                    _ => load_balancing_rule::normalise_outbound(id, child),
                })
                .collect::<Result<Vec<Value>, Refusal>>()?;
            properties.insert(collection.into(), children.into());
        }
        check_public_ips(id, &properties)?;
        load_balancing_rule::check_conflicts(id, &sku, &properties)?;
        if let Some(old) = proposal.old {
            check_removed(world, old, &properties)?;
        }
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let mut all = Vec::new();
        for nested in COLLECTIONS {
            for child in items(&record.body, &format!("properties/{}", nested.collection)) {
                let id = record.id.child(nested.collection, name(child));
                all.extend(match nested.collection {
                    "frontendIPConfigurations" => frontend::references(&id, child),
                    "backendAddressPools" => backend_pool::references(&id, child),
                    _ => load_balancing_rule::rule_references(&id, child),
                });
            }
        }
        all
    }

    fn may_delete(&self, world: &World, record: &Record) -> Result<(), Refusal> {
        for frontend in items(&record.body, "properties/frontendIPConfigurations") {
            frontend::check_unused(
                world,
                &record.id,
                &record.id.child("frontendIPConfigurations", name(frontend)),
            )?;
        }
        for pool in items(&record.body, "properties/backendAddressPools") {
            let pool = record.id.child("backendAddressPools", name(pool));
            if let Some(set) = scale_set_using(world, &pool) {
                return Err(Refusal::network(
                    400,
                    "LoadBalancerInUseByVirtualMachineScaleSet",
                    format!(
                        "Cannot delete load balancer {} since its child resources {pool} are in use by virtual machine \
                         scale set {set}.",
                        record.id
                    ),
                ));
            }
        }
        Ok(())
    }

    fn present_nested(
        &self,
        world: &World,
        _record: &Record,
        collection: &str,
        id: &ResourceId,
        properties: &mut Object,
    ) {
        if collection == "backendAddressPools" {
            backend_pool::present(world, id, properties);
        }
    }
}

/// Two frontends of one balancer cannot have the same public IP.
fn check_public_ips(balancer: &ResourceId, properties: &Object) -> Result<(), Refusal> {
    let mut seen: std::collections::HashMap<String, ResourceId> = std::collections::HashMap::new();
    let frontends = properties.get("frontendIPConfigurations").and_then(Value::as_array);
    for item in frontends.into_iter().flatten() {
        let me = balancer.child("frontendIPConfigurations", name(item));
        let Some(public) = crate::engine::document::stored_reference(item, "properties/publicIPAddress/id")
        else {
            continue;
        };
        if let Some(other) = seen.insert(public.to_lower(), me.clone()) {
            return Err(frontend::public_ip_in_use(&me, &public, &other));
        }
    }
    Ok(())
}

/// What scale sets use stays.
fn check_removed(world: &World, old: &Record, properties: &Object) -> Result<(), Refusal> {
    let remaining = |collection: &str| {
        names(properties.get(collection).and_then(Value::as_array).map_or(&[], Vec::as_slice))
    };
    let left = remaining("frontendIPConfigurations");
    for child in items(&old.body, "properties/frontendIPConfigurations") {
        if !left.contains(&name(child).to_ascii_lowercase()) {
            frontend::check_unused(world, &old.id, &old.id.child("frontendIPConfigurations", name(child)))?;
        }
    }
    for (collection, code, what) in [
        (
            "backendAddressPools",
            "LoadBalancerBackendAddressPoolInUseByVirtualMachineScaleSet",
            "backend address pool",
        ),
        ("inboundNatPools", "LoadBalancerInboundNatPoolInUseByVirtualMachineScaleSet", "inbound NAT pool"),
        ("probes", "CannotRemoveRuleUsedByProbeUsedByVMSS", "probe"),
    ] {
        let left = remaining(collection);
        for child in items(&old.body, &format!("properties/{collection}")) {
            if text(child, "name").is_some_and(|name| left.contains(&name.to_ascii_lowercase())) {
                continue;
            }
            let child = old.id.child(collection, name(child));
            if let Some(set) = scale_set_using(world, &child) {
                return Err(Refusal::network(
                    400,
                    code,
                    format!(
                        "Cannot remove {what} {child} from load balancer since it is in use by virtual machine scale set \
                         {set}."
                    ),
                ));
            }
        }
    }
    Ok(())
}
