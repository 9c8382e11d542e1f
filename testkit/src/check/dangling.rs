//! No leftovers of deleted Services and machines in Azure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_simulator::Azure;
use azure_types::ResourceId;
use serde_json::Value;

use super::services::{Services, id_of, is_of_a_service, key_of, list, published, text};
use crate::finding::Finding;
use crate::types;
use crate::world::World;

/// The tag with the Services of a public IP.
const SERVICE_TAG: &str = "k8s-azure-service";

/// The prefix of the names of our security rules.
const RULE_PREFIX: &str = "k8s-azure-lb";

pub(super) fn check(
    world: &World,
    azure: &Azure,
    services: &Services,
    refused: &BTreeSet<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for balancer in azure.documents_of_type(types::LOAD_BALANCERS) {
        load_balancer(azure, &balancer, services, &mut findings);
    }
    for address in azure.documents_of_type(types::PUBLIC_IPS) {
        public_ip(&address, services, refused, &mut findings);
    }
    security_group(world, azure, services, &mut findings);
    findings
}

fn load_balancer(azure: &Azure, document: &Value, services: &Services, findings: &mut Vec<Finding>) {
    let id = id_of(document);
    let mut frontends = BTreeSet::new();
    for frontend in list(document, "/properties/frontendIPConfigurations") {
        frontends.insert(text(&frontend["id"]).to_ascii_lowercase());
        let name = text(&frontend["name"]);
        if is_of_a_service(name) && services.by_base_name(name).is_none() {
            let (load_balancer, frontend) = (id.clone(), name.to_owned());
            findings.push(Finding::FrontendWithoutService { load_balancer, frontend });
        }
    }
    let mut probes_in_use = BTreeSet::new();
    for rule in list(document, "/properties/loadBalancingRules") {
        let properties = &rule["properties"];
        probes_in_use.insert(text(&properties["probe"]["id"]).to_ascii_lowercase());
        let name = text(&rule["name"]);
        let frontend = text(&properties["frontendIPConfiguration"]["id"]).to_ascii_lowercase();
        if is_of_a_service(name) && (services.by_base_name(name).is_none() || !frontends.contains(&frontend))
        {
            let (load_balancer, rule) = (id.clone(), name.to_owned());
            findings.push(Finding::RuleWithoutService { load_balancer, rule });
        }
    }
    for probe in list(document, "/properties/probes") {
        let name = text(&probe["name"]);
        let used = probes_in_use.contains(&text(&probe["id"]).to_ascii_lowercase());
        if is_of_a_service(name) && !used {
            let (load_balancer, probe) = (id.clone(), name.to_owned());
            findings.push(Finding::ProbeWithoutRule { load_balancer, probe });
        }
    }
    let machines = machine_addresses(azure);
    for pool in list(document, "/properties/backendAddressPools") {
        let without_machine =
            |member: &str| Finding::MemberWithoutMachine { pool: id_of(pool), member: member.to_owned() };
        for member in list(pool, "/properties/backendIPConfigurations") {
            let configuration = text(&member["id"]);
            if interface_of(configuration).is_none_or(|id| azure.document(&id).is_none()) {
                findings.push(without_machine(configuration));
            }
        }
        for member in list(pool, "/properties/loadBalancerBackendAddresses") {
            let address = text(&member["properties"]["ipAddress"]);
            if address.parse().is_ok_and(|address: IpAddr| !machines.contains(&address)) {
                findings.push(without_machine(address));
            }
        }
    }
}

/// The interface of an IP configuration.
fn interface_of(configuration: &str) -> Option<ResourceId> {
    let at = configuration.to_ascii_lowercase().rfind("/ipconfigurations/")?;
    configuration.get(..at)?.parse().ok()
}

/// The private addresses of all machines.
pub(super) fn machine_addresses(azure: &Azure) -> BTreeSet<IpAddr> {
    let kinds = [types::INTERFACES, types::INSTANCE_INTERFACES];
    let interfaces = kinds.into_iter().flat_map(|kind| azure.documents_of_type(kind));
    interfaces
        .flat_map(|interface| {
            let addresses = list(&interface, "/properties/ipConfigurations");
            let addresses = addresses.map(|c| text(&c["properties"]["privateIPAddress"]).parse());
            addresses.flatten().collect::<Vec<IpAddr>>()
        })
        .collect()
}

fn public_ip(document: &Value, services: &Services, refused: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    let tag = text(&document["tags"][SERVICE_TAG]);
    let address: Option<IpAddr> = text(&document["properties"]["ipAddress"]).parse().ok();
    for key in tag.split(',').map(str::trim).filter(|key| !key.is_empty()) {
        let used = services.get(key).is_some_and(|service| {
            // A refused Service keeps what it had, including a public IP that an earlier intent had begun.
            if refused.contains(&key_of(service)) {
                return true;
            }
            // A Service that could not be served yet, or not in one of its families, may hold an address already.
            let is_v6 = text(&document["properties"]["publicIPAddressVersion"]) == "IPv6";
            let asks = list(service, "/spec/ipFamilies").any(|family| (text(family) == "IPv6") == is_v6);
            let mut addresses = published(service).filter(|one| !asks || one.is_ipv6() == is_v6).peekable();
            addresses.peek().is_none() || addresses.any(|one| Some(one) == address)
        });
        if !used {
            let (public_ip, service) = (id_of(document), key.to_owned());
            findings.push(Finding::PublicIpWithoutService { public_ip, service });
        }
    }
}

fn security_group(world: &World, azure: &Azure, services: &Services, findings: &mut Vec<Finding>) {
    let Some(group) = azure.document(&world.security_group()) else { return };
    let mut known = machine_addresses(azure);
    for service in &services.0 {
        known.extend(published(service));
        let more =
            &service["metadata"]["annotations"]["service.beta.kubernetes.io/azure-additional-public-ips"];
        known.extend(text(more).split(',').filter_map(|item| item.trim().parse::<IpAddr>().ok()));
    }
    // A Service that could not be served yet may hold an address already.
    for public_ip in azure.documents_of_type(types::PUBLIC_IPS) {
        let tag = text(&public_ip["tags"][SERVICE_TAG]);
        if tag.split(',').any(|key| services.get(key.trim()).is_some()) {
            known.extend(text(&public_ip["properties"]["ipAddress"]).parse::<IpAddr>().ok());
        }
    }
    for rule in list(&group, "/properties/securityRules") {
        let (name, properties) = (text(&rule["name"]), &rule["properties"]);
        if !name.starts_with(RULE_PREFIX) {
            continue;
        }
        let many = list(properties, "/destinationAddressPrefixes");
        let one = properties.get("destinationAddressPrefix").into_iter();
        for destination in many.chain(one).map(text).filter(|prefix| !prefix.is_empty()) {
            if destination.parse().is_ok_and(|address: IpAddr| !known.contains(&address)) {
                let (rule, destination) = (name.to_owned(), destination.to_owned());
                findings.push(Finding::SecurityRuleWithoutDestination { rule, destination });
            }
        }
    }
    findings.extend(unserved(world, services));
}

/// Services without an address and without an event with the reason.
fn unserved(world: &World, services: &Services) -> impl Iterator<Item = Finding> {
    let silent = services.0.iter().filter(|service| published(service).next().is_none());
    silent.map(key_of).filter(|key| !world.is_refused(key)).map(|service| Finding::Unserved { service })
}
