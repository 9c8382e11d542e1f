//! Security rules, written and default ("Azure network security groups overview").

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use azure_engine::document::{Object, at, name, text};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Derived, Number, Text, Texts, UsesAll, Word};
use azure_engine::types::member_table::Member;

const OVERLAP: Code = Code::azures(400, "OverlappingSubnetsNotPermittedInSecurityRule");
const UNSUPPORTED: Code = Code::azures(400, "SecurityRuleParameterContainsUnsupportedValue");

const TWO_FAMILIES: Code =
    Code::azures(400, "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies");

const GROUPS: &str = "applicationSecurityGroups";

pub(super) static MEMBERS: [Member; 17] = [
    Member::new("access", Word(&["Allow", "Deny"], false)),
    Member::new("description", Text),
    Member::new("destinationAddressPrefix", Text),
    Member::new("destinationAddressPrefixes", Texts).or_empty(),
    Member::new("destinationApplicationSecurityGroups", UsesAll(GROUPS)).none_if_empty(),
    Member::new("destinationPortRange", Text),
    Member::new("destinationPortRanges", Texts).or_empty(),
    Member::new("direction", Word(&["Inbound", "Outbound"], false)),
    Member::new("priority", Number(i64::MIN, i64::MAX)),
    Member::new("protocol", Word(&["*", "Tcp", "Udp", "Icmp", "Esp", "Ah"], false)),
    Member::new("provisioningState", Derived),
    Member::new("resourceGuid", Derived),
    Member::new("sourceAddressPrefix", Text),
    Member::new("sourceAddressPrefixes", Texts).or_empty(),
    Member::new("sourceApplicationSecurityGroups", UsesAll(GROUPS)).none_if_empty(),
    Member::new("sourcePortRange", Text),
    Member::new("sourcePortRanges", Texts).or_empty(),
];

/// Service tags without a region; those of Azure services may carry one, as in `Storage.WestUS` ("Virtual
/// network service tags").
const TAGS: &str = "\
    ActionGroup ApiManagement AppConfiguration AppService AppServiceManagement \
    ApplicationInsightsAvailability AutonomousDevelopmentPlatform AzureActiveDirectory \
    AzureActiveDirectoryDomainServices AzureAdvancedThreatProtection AzureArcInfrastructure \
    AzureAttestation AzureBackup AzureBotService AzureCloud AzureCognitiveSearch AzureConnectors \
    AzureContainerAppsService AzureContainerRegistry AzureCosmosDB AzureDataExplorerManagement \
    AzureDataLake AzureDatabricks AzureDevOps AzureDevSpaces AzureDeviceUpdate AzureDigitalTwins \
    AzureEventGrid AzureFrontDoor AzureHealthcareAPIs AzureInformationProtection AzureIoTHub \
    AzureKeyVault AzureLoadBalancer AzureLoadTestingInstanceManagement AzureMachineLearning \
    AzureMachineLearningInference AzureManagedGrafana AzureMonitor AzureMonitorForSAP AzureOpenDatasets \
    AzurePlatformDNS AzurePlatformIMDS AzurePlatformLKM AzureResourceManager AzureSecurityCenter \
    AzureSentinel AzureSignalR AzureSiteRecovery AzureSphere AzureSpringCloud AzureStack \
    AzureTrafficManager AzureUpdateDelivery AzureVideoAnalyzerForMedia AzureWebPubSub BatchNodeManagement \
    ChaosStudio CognitiveServicesFrontend CognitiveServicesManagement DataFactory DataFactoryManagement \
    Dynamics365BusinessCentral Dynamics365ForMarketingEmail EOPExternalPublishedIPs EventHub \
    GatewayManager GuestAndHybridManagement HDInsight Internet KustoAnalytics LogicApps \
    LogicAppsManagement M365ManagementActivityApi M365ManagementActivityApiWebhook Marketplace \
    MicrosoftAzureFluidRelay MicrosoftCloudAppSecurity MicrosoftContainerRegistry \
    MicrosoftDefenderForEndpoint MicrosoftPurviewPolicyDistribution OneDsCollector PowerBI \
    PowerPlatformInfra PowerPlatformPlex PowerQueryOnline SCCservice Scuba SecurityCopilot SerialConsole \
    ServiceBus ServiceFabric Sql SqlManagement Storage StorageMover StorageSyncService VideoIndexer \
    VirtualNetwork WindowsAdminCenter WindowsVirtualDesktop";

/// Checks one rule.
pub(super) fn check(id: &ResourceId, properties: &mut Object) -> Result<()> {
    for member in ["protocol", "access", "direction", "priority"] {
        missing(properties.get(member).is_none(), id, member)?;
    }
    let priority = properties.get("priority").and_then(Value::as_i64).unwrap_or_default();
    Code::azures(400, "SecurityRuleInvalidPriority").details_when(
        !(100..=4096).contains(&priority),
        format_args!(
            "Security rule has invalid Priority. Value provided: {priority} Allowed range 100-4096. Rule: {id}."
        ),
    )?;
    for side in ["source", "destination"] {
        let ports = format!("{side}PortRange");
        for value in values(properties, &ports, &format!("{ports}s"), false, id)? {
            Code::azures(400, "SecurityRuleInvalidPortRange").details_when(
                !is_port_range(&value),
                format_args!("Security rule {id} has invalid Port range. Value provided: {value}."),
            )?;
        }
        let grouped = properties.contains_key(&format!("{side}ApplicationSecurityGroups"));
        let (single, plural) = (format!("{side}AddressPrefix"), format!("{side}AddressPrefixes"));
        let prefixes = values(properties, &single, &plural, grouped, id)?;
        for value in &prefixes {
            Code::azures(400, "SecurityRuleInvalidAddressPrefix").details_when(
                !is_prefix(value),
                format_args!("Security rule {id} has invalid Address prefix. Value provided: {value}."),
            )?;
        }
        if !properties.contains_key(&single) {
            check_prefix_list(&plural, &prefixes, id)?;
        }
    }
    Ok(())
}

fn missing(wrong: bool, id: &ResourceId, member: &str) -> Result<()> {
    Code::ours(400, "SecurityRuleParameterMissing").details_when(
        wrong,
        format_args!(
            "Required security rule parameters are missing for security rule with Id: {id} ({member})."
        ),
    )
}

/// The values of a rule for source or destination, from the single or the plural member.
fn values(
    properties: &mut Object,
    single: &str,
    plural: &str,
    grouped: bool,
    id: &ResourceId,
) -> Result<Vec<String>> {
    if properties.get(single).is_some_and(|value| value == "") {
        properties.remove(single);
    }
    let one = properties.get(single).and_then(Value::as_str);
    let many = properties.get(plural).and_then(Value::as_array).into_iter().flatten();
    let many: Vec<String> = many.filter_map(|value| value.as_str().map(str::to_owned)).collect();
    UNSUPPORTED.details_when(
        one.is_some() && !many.is_empty(),
        format_args!("Security rule {id}: {single} and {plural} cannot both be specified."),
    )?;
    missing(one.is_none() && many.is_empty() && !grouped, id, single)?;
    Ok(one.map(str::to_owned).into_iter().chain(many).collect())
}

/// Several prefixes of one side are of one family, do not overlap, and are no tags.
fn check_prefix_list(member: &str, list: &[String], id: &ResourceId) -> Result<()> {
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
    TAGS.split(' ').any(|tag| tag.eq_ignore_ascii_case(base))
        || text.eq_ignore_ascii_case("AzureFrontDoor.Backend")
}

/// No two rules of one direction have the same priority.
pub(crate) fn check_conflicts(rules: &[Value]) -> Result<()> {
    let mut seen: HashMap<(Option<&str>, Option<i64>), &str> = HashMap::new();
    for rule in rules {
        let priority = at(rule, "properties/priority").and_then(Value::as_i64);
        if let Some(other) = seen.insert((text(rule, "properties/direction"), priority), name(rule)) {
            let why = "Rules cannot have the same Priority and Direction.";
            let one = name(rule);
            return Err(Code::azures(400, "SecurityRuleConflict")
                .details(format_args!("Security rule {other} conflicts with rule {one}. {why}")));
        }
    }
    Ok(())
}

/// The default rules at the end of every security group; their names say what they do.
const DEFAULTS: [(&str, &str, &str, &str, i64); 6] = [
    ("AllowVnetInBound", "inbound traffic from all VMs in VNET", VNET, VNET, 65_000),
    ("AllowAzureLoadBalancerInBound", "inbound traffic from azure load balancer", BALANCER, "*", 65_001),
    ("DenyAllInBound", "all inbound traffic", "*", "*", 65_500),
    ("AllowVnetOutBound", "outbound traffic from all VMs to all VMs in VNET", VNET, VNET, 65_000),
    ("AllowInternetOutBound", "outbound traffic from all VMs to Internet", "*", "Internet", 65_001),
    ("DenyAllOutBound", "all outbound traffic", "*", "*", 65_500),
];

const BALANCER: &str = "AzureLoadBalancer";
const VNET: &str = "VirtualNetwork";

pub(super) fn defaults() -> Vec<Value> {
    let rule = |(name, what, from, to, priority): (&str, &str, &str, &str, i64)| {
        let access = if name.starts_with("Allow") { "Allow" } else { "Deny" };
        json!({
            "name": name,
            "properties": {
                "description": format!("{access} {what}"),
                "protocol": "*",
                "sourcePortRange": "*",
                "destinationPortRange": "*",
                "sourceAddressPrefix": from,
                "destinationAddressPrefix": to,
                "access": access,
                "priority": priority,
                "direction": if name.ends_with("InBound") { "Inbound" } else { "Outbound" },
                "sourcePortRanges": [],
                "destinationPortRanges": [],
                "sourceAddressPrefixes": [],
                "destinationAddressPrefixes": [],
            },
        })
    };
    DEFAULTS.into_iter().map(rule).collect()
}
