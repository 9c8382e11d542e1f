//! The members of a registry, with Azure's defaults (recorded), and features of the sku Premium.

use serde_json::Value;

use azure_engine::document::text;
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Number, Object, Word};
use azure_engine::types::member_table::Member;

const OFF: [&str; 2] = ["disabled", "enabled"];
const ON: [&str; 2] = ["enabled", "disabled"];

static STATUS_OFF: [Member; 1] = [Member::new("status", Word(&OFF, true))];
static STATUS_ON: [Member; 1] = [Member::new("status", Word(&ON, true))];

static TRUST: [Member; 2] =
    [Member::new("type", Word(&["Notary"], true)), Member::new("status", Word(&OFF, true))];

static RETENTION: [Member; 3] = [
    Member::new("days", Number(0, 365)).or(7),
    Member::new("lastUpdatedTime", Derived),
    Member::new("status", Word(&OFF, true)),
];

static SOFT_DELETE: [Member; 3] = [
    Member::new("lastUpdatedTime", Derived),
    Member::new("retentionDays", Number(1, 90)).or(7),
    Member::new("status", Word(&OFF, true)),
];

static POLICIES: [Member; 6] = [
    Member::new("azureADAuthenticationAsArmPolicy", Object(&STATUS_ON)).or_empty(),
    Member::new("exportPolicy", Object(&STATUS_ON)).or_empty(),
    Member::new("quarantinePolicy", Object(&STATUS_OFF)).or_empty(),
    Member::new("retentionPolicy", Object(&RETENTION)).or_empty(),
    Member::new("softDeletePolicy", Object(&SOFT_DELETE)).or_empty(),
    Member::new("trustPolicy", Object(&TRUST)).or_empty(),
];

static ENCRYPTION: [Member; 2] =
    [Member::new("keyVaultProperties", Anything), Member::new("status", Word(&OFF, true))];

pub(super) static MEMBERS: [Member; 14] = [
    Member::new("adminUserEnabled", Flag).or_flag(false),
    Member::new("anonymousPullEnabled", Flag).or_flag(false),
    Member::new("creationDate", Derived),
    Member::new("dataEndpointEnabled", Flag).or_flag(false),
    Member::new("dataEndpointHostNames", Derived),
    Member::new("encryption", Object(&ENCRYPTION)).or_empty(),
    Member::new("loginServer", Derived),
    Member::new("networkRuleBypassOptions", Word(&["AzureServices", "None"], true)),
    Member::new("networkRuleSet", Anything),
    Member::new("policies", Object(&POLICIES)).or_empty(),
    Member::new("privateEndpointConnections", Derived),
    Member::new("publicNetworkAccess", Word(&["Enabled", "Disabled"], true)),
    Member::new("status", Derived),
    Member::new("zoneRedundancy", Word(&["Disabled", "Enabled"], true)),
];

/// Features of the sku Premium ("Azure Container Registry SKU features and limits"): the path of a member and its
/// value.
const PREMIUM: [(&str, &str); 6] = [
    ("publicNetworkAccess", "Disabled"),
    ("zoneRedundancy", "Enabled"),
    ("dataEndpointEnabled", "true"),
    ("encryption/status", "enabled"),
    ("policies/retentionPolicy/status", "enabled"),
    ("policies/exportPolicy/status", "disabled"),
];

/// Checks that a sku has the features that a registry uses.
pub(super) fn check(sku: &str, properties: &Value) -> Result<()> {
    let is = |path: &str, wanted: &str| {
        let given = azure_engine::document::at(properties, path);
        given.is_some_and(|given| match given.as_bool() {
            Some(given) => given == (wanted == "true"),
            None => given.as_str() == Some(wanted),
        })
    };
    let premium = PREMIUM.into_iter().find(|(path, wanted)| sku != "Premium" && is(path, wanted));
    let rules = text(properties, "networkRuleSet/defaultAction") == Some("Deny") && sku != "Premium";
    let member = premium.map(|(path, _)| path).or(rules.then_some("networkRuleSet"));
    let member =
        member.or((sku == "Basic" && is("anonymousPullEnabled", "true")).then_some("anonymousPullEnabled"));
    match member {
        None => Ok(()),
        Some(member) => Err(Code::ours(400, "SkuNotSupported")
            .says(format_args!("The property '{member}' cannot be so for a registry of the SKU {sku}."))),
    }
}
