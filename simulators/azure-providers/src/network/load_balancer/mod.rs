//! Load balancers (Azure REST reference, "Load Balancers").

pub(crate) mod backend_address;
pub(crate) mod backend_pool;
pub(crate) mod balancer;
pub(crate) mod frontend;
pub(crate) mod inbound_nat_pool;
pub(crate) mod inbound_nat_rule;
pub(crate) mod outbound_rule;
pub(crate) mod pool_members;
pub(crate) mod pool_membership;
pub(crate) mod probe;
pub(crate) mod rule;
pub(crate) mod rule_conflict;

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::{children::each_child, protocol::protocol, sku::sku};
use azure_engine::document::{Object, into_object, items, name, stored_reference, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, Action, AzureState, ChildCollection, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::store::reference::{Reference, is_of};
use azure_engine::types::member_table::Holds::{Anything, Children, Guid};
use azure_engine::types::member_table::{Member, pointers};
use backend_pool::{names, scale_set_using};
use balancer::Balancer;
use pool_members::members;

const TOO_MANY_RULES: Code = Code::ours(400, "LoadBalancerRuleCountLimitReached");
const TOO_MANY_FRONTENDS: Code = Code::ours(400, "LoadBalancerFrontendIPConfigurationCountLimitReached");
const TOO_MANY_OUTBOUND_RULES: Code = Code::ours(400, "LoadBalancerOutboundRuleCountLimitReached");
const POOL_OF_SCALE_SET: Code =
    Code::azures(400, "LoadBalancerBackendAddressPoolInUseByVirtualMachineScaleSet");
const NAT_POOL_OF_SCALE_SET: Code =
    Code::azures(400, "LoadBalancerInboundNatPoolInUseByVirtualMachineScaleSet");
const PROBE_OF_SCALE_SET: Code = Code::azures(400, "CannotRemoveRuleUsedByProbeUsedByVMSS");

const fn children(name: &'static str, writable: bool) -> ChildCollection {
    ChildCollection { name, writable, back_references: &[] }
}

/// The child collections in the order in which they are checked.
const COLLECTIONS: [ChildCollection; 7] = [
    children("frontendIPConfigurations", false),
    ChildCollection {
        back_references: &[("backendIPConfigurations", "ipConfigurations")],
        ..children("backendAddressPools", true)
    },
    children("probes", false),
    children("loadBalancingRules", false),
    children("inboundNatRules", true),
    children("inboundNatPools", false),
    children("outboundRules", false),
];

/// Checks one child by itself, or against what is stored.
type Check = fn(&Balancer<'_>, &ResourceId, &mut Object) -> Result<()>;

const CHECKS: [(&str, Check); 6] = [
    ("backendAddressPools", backend_pool::check),
    ("probes", probe::check),
    ("loadBalancingRules", rule::check),
    ("inboundNatRules", inbound_nat_rule::check),
    ("inboundNatPools", inbound_nat_pool::check),
    ("outboundRules", outbound_rule::check_alone),
];

pub(crate) struct LoadBalancers;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    child_collections: &COLLECTIONS,
    actions: &["migrateToIpBased", "backendAddressPools/*/queryInboundNatRulePortMapping"],
    immediate: true,
    ..protocol("Microsoft.Network/loadBalancers", "LoadBalancer")
};

static MEMBERS: [Member; 9] = [
    Member::new("backendAddressPools", Children(&backend_pool::MEMBERS)).or_empty(),
    Member::new("frontendIPConfigurations", Children(&frontend::MEMBERS)).or_empty(),
    Member::new("inboundNatPools", Children(&inbound_nat_pool::MEMBERS)).or_empty(),
    Member::new("inboundNatRules", Children(&inbound_nat_rule::MEMBERS)).or_empty(),
    Member::new("loadBalancingRules", Children(&rule::MEMBERS)).or_empty(),
    Member::new("outboundRules", Children(&outbound_rule::MEMBERS)).or_empty(),
    Member::new("probes", Children(&probe::MEMBERS)).or_empty(),
    Member::new("resourceGuid", Guid),
    Member::new("scope", Anything),
];

impl Shape for LoadBalancers {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    /// Returns each reference once: a rule names its pool in two members, and a pool its network with each address.
    fn references(&self, record: &Record) -> Vec<Reference> {
        let mut all = pointers(&MEMBERS, &record.id, &record.body);
        let mut seen = BTreeSet::new();
        all.retain(|one| seen.insert((one.from.clone(), one.to.clone())));
        all
    }
}

impl Writing for LoadBalancers {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let (id, old) = (proposal.id, proposal.old);
        let sku = sku(&mut proposal.body, &["Basic", "Standard"])?;
        let balancer = Balancer { azure, id, sku: &sku, old };
        check_sku(&balancer, &proposal)?;
        let mut properties = take_properties(&mut proposal.body);
        inbound_nat_pool::keep_generated(old, &mut properties);
        let mut promised = BTreeSet::new();
        let frontends = properties.get_mut("frontendIPConfigurations").and_then(Value::as_array_mut);
        for child in frontends.into_iter().flatten().filter_map(Value::as_object_mut) {
            frontend::check(&balancer, child, &mut promised)?;
        }
        for (collection, check) in CHECKS {
            for (child, properties) in each_child(id, &mut properties, collection) {
                check(&balancer, &child, properties)?;
            }
        }
        let properties = Value::Object(properties);
        check_own_children(id, &properties)?;
        check_counts(&balancer, &properties)?;
        check_rules_per_interface(&balancer, &properties)?;
        frontend::check_together(&balancer, items(&properties, "frontendIPConfigurations"))?;
        rule_conflict::check(&balancer, &properties)?;
        outbound_rule::check(&balancer, &properties)?;
        check_prefix_frontends(&balancer, &properties)?;
        if let Some(old) = old {
            check_removed(azure, old, &properties)?;
        }
        Ok(proposal.stored(into_object(properties)))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        // Interfaces leave the pools and rules that the write removes.
        for collection in ["backendAddressPools", "inboundNatRules"] {
            let path = format!("properties/{collection}");
            let left =
                azure.store.get(id).map_or_else(Default::default, |record| names(items(&record.body, &path)));
            for child in old.map_or(&[] as &[Value], |old| items(old, &path)) {
                if !left.contains(&name(child).to_ascii_lowercase()) {
                    azure.release(&id.child(collection, name(child)));
                }
            }
        }
        inbound_nat_pool::generate_rules(azure, id);
        inbound_nat_rule::assign_ports(azure, id);
    }

    fn after_referrers_changed(&self, azure: &mut AzureState, id: &ResourceId) {
        inbound_nat_pool::generate_rules(azure, id);
        inbound_nat_rule::assign_ports(azure, id);
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        let members: Vec<ResourceId> = azure.store.get(id).map_or_else(Vec::new, |record| {
            ["backendAddressPools", "inboundNatRules"]
                .iter()
                .flat_map(|collection| {
                    items(&record.body, &format!("properties/{collection}"))
                        .iter()
                        .map(|child| record.id.child(collection, name(child)))
                })
                .collect()
        });
        for member in members {
            azure.release(&member);
        }
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        for frontend in items(&record.body, "properties/frontendIPConfigurations") {
            frontend::check_unused(
                azure,
                &record.id,
                &record.id.child("frontendIPConfigurations", name(frontend)),
            )?;
        }
        for collection in USED_BY_MODELS {
            for child in items(&record.body, &format!("properties/{collection}")) {
                let child = record.id.child(collection, name(child));
                let Some(set) = scale_set_using(azure, &child) else { continue };
                return Err(Code::azures(400, "LoadBalancerInUseByVirtualMachineScaleSet").details(
                    format_args!(
                        "Cannot delete load balancer {} since its child resources {child} are in use by \
             virtual machine scale set {set}.",
                        record.id
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl Presenting for LoadBalancers {
    fn present_child(&self, azure: &AzureState, record: &Record, id: &ResourceId, properties: &mut Object) {
        if is_of(id, "/backendaddresspools/") {
            backend_pool::present(azure, record, id, properties);
        }
    }
}

impl Acting for LoadBalancers {
    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        let done = |answer: Value| Action {
            completion: Completion::Write,
            answer: Some(azure_engine::answer::Answer::ok(answer)),
        };
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        match action.split('/').collect::<Vec<_>>().as_slice() {
            [word] if is(word, "migrateToIpBased") => Some(backend_pool::migrate(azure, id, body).map(done)),
            [pools, pool, word]
                if is(pools, "backendAddressPools") && is(word, "queryInboundNatRulePortMapping") =>
            {
                let pool = id.child("backendAddressPools", pool);
                let record = azure.store.get(id)?;
                if azure.find_child(record, &pool).is_none() {
                    return Some(Err(Refusal::child_not_found(&pool)));
                }
                Some(backend_pool::port_mapping(azure, record, &pool, body).map(done))
            }
            _ => None,
        }
    }
}

/// The sku is fixed at creation; if the options retire sku Basic, no new balancer has it.
fn check_sku(balancer: &Balancer<'_>, proposal: &Proposal<'_>) -> Result<()> {
    let Balancer { id, sku, .. } = balancer;
    let old = |path: &str| proposal.old_member(path).and_then(Value::as_str);
    Code::ours(400, "LoadBalancerSkuCannotBeChanged").details_when(
        old("sku/name").is_some_and(|old| old != *sku),
        format_args!("The sku of load balancer {id} cannot be changed to {sku}."),
    )?;
    Code::ours(400, "BasicSkuLoadBalancerCreationNotSupported").details_when(
        proposal.old.is_none() && *sku == "Basic" && balancer.azure.options.basic_sku_retired,
        format_args!("Load balancer {id} cannot be created: sku Basic is retired. Use sku Standard."),
    )
}

/// Collections whose children the models of scale sets name.
const USED_BY_MODELS: [&str; 3] = ["backendAddressPools", "inboundNatPools", "probes"];

/// Rules lead from frontends to pools of their own balancer.
fn check_own_children(id: &ResourceId, properties: &Value) -> Result<()> {
    let rules: Vec<Member> = MEMBERS.iter().filter(|member| RULES.contains(&member.name)).copied().collect();
    let all = pointers(&rules, id, &json!({ "properties": properties }));
    match all.into_iter().find(|pointer| !pointer.to.is_within(id)) {
        Some(foreign) => Err(Refusal::invalid_reference(&foreign.to, &foreign.from)),
        None => Ok(()),
    }
}

const RULES: [&str; 4] = ["loadBalancingRules", "inboundNatRules", "inboundNatPools", "outboundRules"];

/// Limits on the parts of one balancer, and parts that need a frontend.
fn check_counts(balancer: &Balancer<'_>, properties: &Value) -> Result<()> {
    let count = |collection: &str| items(properties, collection).len() as u64;
    let basic = balancer.sku == "Basic";
    let rules = count("loadBalancingRules") + count("inboundNatRules");
    let of_sku = |standard: &'static str, basic_one: &'static str| if basic { basic_one } else { standard };
    for (count, limit, code, what) in [
        (
            rules,
            of_sku("network.rulesPerLoadBalancer", "network.rulesPerBasicLoadBalancer"),
            TOO_MANY_RULES,
            "load balancing and inbound NAT rules",
        ),
        (
            count("frontendIPConfigurations"),
            of_sku("network.frontendsPerLoadBalancer", "network.frontendsPerBasicLoadBalancer"),
            TOO_MANY_FRONTENDS,
            "frontend IP configurations",
        ),
        (
            count("outboundRules"),
            "network.outboundRulesPerLoadBalancer",
            TOO_MANY_OUTBOUND_RULES,
            "outbound rules",
        ),
    ] {
        let most = balancer.azure.limit(limit);
        if count > most {
            return Err(code.details(format_args!(
                "Load balancer {} cannot have more than {most} {what}; {count} were given.",
                balancer.id
            )));
        }
    }
    // Rules without a frontend are reported by the reference check, in more detail.
    Code::azures(400, "LoadBalancerWithoutFrontendIPCantHaveChildResources").details_when(
        count("frontendIPConfigurations") == 0 && count("probes") > 0,
        format_args!(
            "Load balancer {} has no frontend IP configurations and cannot have child resources \
             such as probes.",
            balancer.id
        ),
    )
}

/// The rules of a pool are rules of each network interface in it.
fn check_rules_per_interface(balancer: &Balancer<'_>, properties: &Value) -> Result<()> {
    let most = balancer.azure.limit("network.rulesPerInterface");
    let rules = backend_pool::rules_by_pool(properties);
    for pool in items(properties, "backendAddressPools") {
        let id = balancer.child("backendAddressPools", name(pool));
        if rules.get(&id.to_lower()).is_some_and(|count| *count > most)
            && let Some(member) = members(balancer.azure, &id).next()
        {
            return Err(pool_membership::too_many_rules(member, most));
        }
    }
    Ok(())
}

/// A frontend with a prefix is for outbound rules alone.
fn check_prefix_frontends(balancer: &Balancer<'_>, properties: &Value) -> Result<()> {
    for frontend in items(properties, "frontendIPConfigurations") {
        if text(frontend, "properties/publicIPPrefix/id").is_none() {
            continue;
        }
        let id = balancer.child("frontendIPConfigurations", name(frontend));
        let mut rules = ["loadBalancingRules", "inboundNatRules", "inboundNatPools"]
            .into_iter()
            .flat_map(|collection| items(properties, collection).iter().map(move |rule| (collection, rule)));
        let rule = rules.find(|(_, rule)| {
            stored_reference(rule, "properties/frontendIPConfiguration/id").as_ref() == Some(&id)
        });
        if let Some((collection, rule)) = rule {
            return Err(Code::ours(400, "FrontendIPConfigurationWithPublicIPPrefixIsForOutboundRules")
                .details(format_args!(
                    "{} references frontend {id}, which has a public IP prefix and can only be used by \
             outbound rules.",
                    balancer.child(collection, name(rule))
                )));
        }
    }
    Ok(())
}

/// Refuses to remove children that scale sets use.
fn check_removed(azure: &AzureState, old: &Record, properties: &Value) -> Result<()> {
    let remaining = |collection: &str| names(items(properties, collection));
    let left = remaining("frontendIPConfigurations");
    for child in items(&old.body, "properties/frontendIPConfigurations") {
        if !left.contains(&name(child).to_ascii_lowercase()) {
            frontend::check_unused(azure, &old.id, &old.id.child("frontendIPConfigurations", name(child)))?;
        }
    }
    for (collection, code, what) in [
        ("backendAddressPools", POOL_OF_SCALE_SET, "backend address pool"),
        ("inboundNatPools", NAT_POOL_OF_SCALE_SET, "inbound NAT pool"),
        ("probes", PROBE_OF_SCALE_SET, "probe"),
    ] {
        let left = remaining(collection);
        for child in items(&old.body, &format!("properties/{collection}")) {
            if text(child, "name").is_some_and(|name| left.contains(&name.to_ascii_lowercase())) {
                continue;
            }
            let child = old.id.child(collection, name(child));
            if let Some(set) = scale_set_using(azure, &child) {
                return Err(code.details(format_args!(
                        "Cannot remove {what} {child} from load balancer since it is in use by virtual machine scale set \
                         {set}."
                    )));
            }
        }
    }
    Ok(())
}
