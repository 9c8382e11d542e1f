//! Security rules, written and default ("Azure network security groups overview").

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use azure_engine::document::{
    Object, enumeration, fill, integer, items, known_members, name, references, stored_reference, strip,
    take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::reference::Reference;

const WRONG_PORTS: Code = Code::azures(400, "SecurityRuleInvalidPortRange");
const WRONG_PREFIX: Code = Code::azures(400, "SecurityRuleInvalidAddressPrefix");
const TWO_FAMILIES: Code =
    Code::azures(400, "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies");
const OVERLAP: Code = Code::azures(400, "OverlappingSubnetsNotPermittedInSecurityRule");
const CONFLICT: Code = Code::azures(400, "SecurityRuleConflict");
const MISSING: Code = Code::ours(400, "SecurityRuleParameterMissing");
const UNSUPPORTED: Code = Code::azures(400, "SecurityRuleParameterContainsUnsupportedValue");
const WRONG_PRIORITY: Code = Code::azures(400, "SecurityRuleInvalidPriority");

/// Members that name application security groups in the place of addresses.
const GROUPS: [&str; 2] = ["sourceApplicationSecurityGroups", "destinationApplicationSecurityGroups"];

const MEMBERS: [&str; 17] = [
    "access",
    "description",
    "destinationAddressPrefix",
    "destinationAddressPrefixes",
    "destinationApplicationSecurityGroups",
    "destinationPortRange",
    "destinationPortRanges",
    "direction",
    "priority",
    "protocol",
    "provisioningState",
    "sourceAddressPrefix",
    "sourceAddressPrefixes",
    "sourceApplicationSecurityGroups",
    "sourcePortRange",
    "sourcePortRanges",
    "resourceGuid",
];

/// Service tags without a region; those of Azure services may carry one, as in `Storage.WestUS` ("Virtual
/// network service tags").
const TAGS: [&str; 101] = [
    "ActionGroup",
    "ApiManagement",
    "AppConfiguration",
    "AppService",
    "AppServiceManagement",
    "ApplicationInsightsAvailability",
    "AutonomousDevelopmentPlatform",
    "AzureActiveDirectory",
    "AzureActiveDirectoryDomainServices",
    "AzureAdvancedThreatProtection",
    "AzureArcInfrastructure",
    "AzureAttestation",
    "AzureBackup",
    "AzureBotService",
    "AzureCloud",
    "AzureCognitiveSearch",
    "AzureConnectors",
    "AzureContainerAppsService",
    "AzureContainerRegistry",
    "AzureCosmosDB",
    "AzureDataExplorerManagement",
    "AzureDataLake",
    "AzureDatabricks",
    "AzureDevOps",
    "AzureDevSpaces",
    "AzureDeviceUpdate",
    "AzureDigitalTwins",
    "AzureEventGrid",
    "AzureFrontDoor",
    "AzureHealthcareAPIs",
    "AzureInformationProtection",
    "AzureIoTHub",
    "AzureKeyVault",
    "AzureLoadBalancer",
    "AzureLoadTestingInstanceManagement",
    "AzureMachineLearning",
    "AzureMachineLearningInference",
    "AzureManagedGrafana",
    "AzureMonitor",
    "AzureMonitorForSAP",
    "AzureOpenDatasets",
    "AzurePlatformDNS",
    "AzurePlatformIMDS",
    "AzurePlatformLKM",
    "AzureResourceManager",
    "AzureSecurityCenter",
    "AzureSentinel",
    "AzureSignalR",
    "AzureSiteRecovery",
    "AzureSphere",
    "AzureSpringCloud",
    "AzureStack",
    "AzureTrafficManager",
    "AzureUpdateDelivery",
    "AzureVideoAnalyzerForMedia",
    "AzureWebPubSub",
    "BatchNodeManagement",
    "ChaosStudio",
    "CognitiveServicesFrontend",
    "CognitiveServicesManagement",
    "DataFactory",
    "DataFactoryManagement",
    "Dynamics365BusinessCentral",
    "Dynamics365ForMarketingEmail",
    "EOPExternalPublishedIPs",
    "EventHub",
    "GatewayManager",
    "GuestAndHybridManagement",
    "HDInsight",
    "Internet",
    "KustoAnalytics",
    "LogicApps",
    "LogicAppsManagement",
    "M365ManagementActivityApi",
    "M365ManagementActivityApiWebhook",
    "Marketplace",
    "MicrosoftAzureFluidRelay",
    "MicrosoftCloudAppSecurity",
    "MicrosoftContainerRegistry",
    "MicrosoftDefenderForEndpoint",
    "MicrosoftPurviewPolicyDistribution",
    "OneDsCollector",
    "PowerBI",
    "PowerPlatformInfra",
    "PowerPlatformPlex",
    "PowerQueryOnline",
    "SCCservice",
    "Scuba",
    "SecurityCopilot",
    "SerialConsole",
    "ServiceBus",
    "ServiceFabric",
    "Sql",
    "SqlManagement",
    "Storage",
    "StorageMover",
    "StorageSyncService",
    "VideoIndexer",
    "VirtualNetwork",
    "WindowsAdminCenter",
    "WindowsVirtualDesktop",
];

/// What the four places of a rule may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Addresses,
    Ports,
}

/// Checks one rule and fills its defaults.
pub(crate) fn normalise(group: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "SecurityRule")?;
    strip(&mut properties, &["provisioningState", "resourceGuid"]);
    let id = group.child("securityRules", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(&mut properties, "protocol", &["*", "Tcp", "Udp", "Icmp", "Esp", "Ah"], false)?;
    enumeration(&mut properties, "access", &["Allow", "Deny"], false)?;
    enumeration(&mut properties, "direction", &["Inbound", "Outbound"], false)?;
    for member in ["protocol", "access", "direction", "priority"] {
        MISSING.details_when(
            properties.get(member).is_none(),
            format_args!(
                "Required security rule parameters are missing for security rule with Id: {id} ({member})."
            ),
        )?;
    }
    let priority = integer(&properties, "priority")?.unwrap_or_default();
    WRONG_PRIORITY.details_when(!(100..=4096).contains(&priority), format_args!(
                "Security rule has invalid Priority. Value provided: {priority} Allowed range 100-4096. Rule: {id}."
            ))?;
    properties.insert("priority".into(), priority.into());
    for member in GROUPS {
        if references(&mut properties, member)?.is_empty() {
            properties.remove(member);
        }
    }
    for (single, plural, part, groups) in [
        ("sourcePortRange", "sourcePortRanges", Part::Ports, None),
        ("destinationPortRange", "destinationPortRanges", Part::Ports, None),
        (
            "sourceAddressPrefix",
            "sourceAddressPrefixes",
            Part::Addresses,
            Some("sourceApplicationSecurityGroups"),
        ),
        (
            "destinationAddressPrefix",
            "destinationAddressPrefixes",
            Part::Addresses,
            Some("destinationApplicationSecurityGroups"),
        ),
    ] {
        let grouped =
            groups.is_some_and(|groups| !items(&Value::Object(properties.clone()), groups).is_empty());
        check_part(&mut properties, single, plural, part, grouped, &id)?;
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// The application security groups that a stored rule names.
pub(crate) fn references_of(id: &ResourceId, rule: &Value) -> Vec<Reference> {
    GROUPS
        .iter()
        .flat_map(|member| items(rule, &format!("properties/{member}")))
        .filter_map(|item| Some(Reference::uses(id, stored_reference(item, "id")?)))
        .collect()
}

fn check_part(
    properties: &mut Object,
    single: &str,
    plural: &str,
    part: Part,
    grouped: bool,
    id: &ResourceId,
) -> Result<(), Refusal> {
    fill(properties, plural, json!([]));
    if properties.get(single).and_then(Value::as_str) == Some("") {
        properties.remove(single);
    }
    let many: Vec<String> = match properties.get(plural) {
        Some(Value::Array(values)) => {
            values.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect()
        }
        _ => return Err(Refusal::bad_format(format!("Member '{plural}' must be an array."))),
    };
    let one = properties.get(single).and_then(Value::as_str);
    let wrong = |why: String| Err(UNSUPPORTED.details(format_args!("Security rule {id}: {why}.")));
    match (one, many.is_empty()) {
        (Some(_), false) => return wrong(format!("{single} and {plural} cannot both be specified")),
        (None, true) if !grouped => {
            return Err(MISSING.details(format_args!(
                "Required security rule parameters are missing for security rule with Id: {id} ({single})."
            )));
        }
        _ => {}
    }
    for value in one.into_iter().chain(many.iter().map(String::as_str)) {
        let fine = match part {
            Part::Ports => is_port_range(value),
            Part::Addresses => is_prefix(value),
        };
        if !fine {
            let code = match part {
                Part::Ports => WRONG_PORTS,
                Part::Addresses => WRONG_PREFIX,
            };
            let what = if part == Part::Ports { "Port range" } else { "Address prefix" };
            return Err(
                code.details(format_args!("Security rule {id} has invalid {what}. Value provided: {value}."))
            );
        }
    }
    match part {
        Part::Ports => Ok(()),
        Part::Addresses => check_prefix_list(plural, &many, id),
    }
}

/// Several prefixes in one place are of one family, apart from each other, and no tags.
fn check_prefix_list(member: &str, list: &[String], id: &ResourceId) -> Result<(), Refusal> {
    let refuse = |code: Code, why: String| {
        Err(code.details(format_args!("Security rule parameter {member} for rule with Id {id} {why}.")))
    };
    let mut prefixes: Vec<IpNet> = Vec::with_capacity(list.len());
    for text in list {
        let prefix = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let Ok(prefix) = prefix else {
            return refuse(
                UNSUPPORTED,
                format!("cannot list '*' or service tags. Unsupported value used: {text}"),
            );
        };
        if let Some(first) = prefixes.first()
            && first.addr().is_ipv4() != prefix.addr().is_ipv4()
        {
            return refuse(
                TWO_FAMILIES,
                format!("has prefixes of different address families: {first} and {prefix}"),
            );
        }
        if let Some(other) = prefixes.iter().find(|other| other.contains(&prefix) || prefix.contains(*other))
        {
            return refuse(OVERLAP, format!("has subnets that overlap: {other} and {prefix}"));
        }
        prefixes.push(prefix);
    }
    Ok(())
}

fn is_port_range(text: &str) -> bool {
    let port = |text: &str| text.parse::<u16>().ok();
    match text.split_once('-') {
        _ if text == "*" => true,
        None => port(text).is_some(),
        Some((from, to)) => matches!((port(from), port(to)), (Some(from), Some(to)) if from <= to),
    }
}

fn is_prefix(text: &str) -> bool {
    if text == "*" || text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let base = text.split('.').next().unwrap_or_default();
    TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(base))
        || text.eq_ignore_ascii_case("AzureFrontDoor.Backend")
}

/// No two rules of one direction have the same priority.
pub(crate) fn check_conflicts(rules: &[Value]) -> Result<(), Refusal> {
    let mut seen: HashMap<(String, i64), &str> = HashMap::new();
    for rule in rules {
        let direction = text(rule, "properties/direction").unwrap_or_default().to_owned();
        let priority = azure_engine::document::at(rule, "properties/priority")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        if let Some(other) = seen.insert((direction, priority), name(rule)) {
            return Err(CONFLICT.details(format_args!(
                    "Security rule {other} conflicts with rule {}. Rules cannot have the same Priority and Direction.",
                    name(rule)
                )));
        }
    }
    Ok(())
}

/// The six rules that every security group ends with.
pub(crate) fn defaults() -> Vec<Value> {
    let rule = |name: &str,
                description: &str,
                from: &str,
                to: &str,
                access: &str,
                priority: i64,
                direction: &str| {
        json!({
            "name": name,
            "properties": {
                "description": description,
                "protocol": "*",
                "sourcePortRange": "*",
                "destinationPortRange": "*",
                "sourceAddressPrefix": from,
                "destinationAddressPrefix": to,
                "access": access,
                "priority": priority,
                "direction": direction,
                "sourcePortRanges": [],
                "destinationPortRanges": [],
                "sourceAddressPrefixes": [],
                "destinationAddressPrefixes": [],
            },
        })
    };
    vec![
        rule(
            "AllowVnetInBound",
            "Allow inbound traffic from all VMs in VNET",
            "VirtualNetwork",
            "VirtualNetwork",
            "Allow",
            65_000,
            "Inbound",
        ),
        rule(
            "AllowAzureLoadBalancerInBound",
            "Allow inbound traffic from azure load balancer",
            "AzureLoadBalancer",
            "*",
            "Allow",
            65_001,
            "Inbound",
        ),
        rule("DenyAllInBound", "Deny all inbound traffic", "*", "*", "Deny", 65_500, "Inbound"),
        rule(
            "AllowVnetOutBound",
            "Allow outbound traffic from all VMs to all VMs in VNET",
            "VirtualNetwork",
            "VirtualNetwork",
            "Allow",
            65_000,
            "Outbound",
        ),
        rule(
            "AllowInternetOutBound",
            "Allow outbound traffic from all VMs to Internet",
            "*",
            "Internet",
            "Allow",
            65_001,
            "Outbound",
        ),
        rule("DenyAllOutBound", "Deny all outbound traffic", "*", "*", "Deny", 65_500, "Outbound"),
    ]
}
