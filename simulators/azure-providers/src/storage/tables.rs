//! Request budgets, limits and name rules of Storage ("Scalability targets for the Azure Storage resource provider",
//! "Naming rules and restrictions for Azure resources").

use std::time::Duration;

use azure_engine::refusal::{Code, Refusal};
use azure_engine::settings::budget::policy::{Per, Policy, Wording};
use azure_engine::settings::latency::{CHOICE, TypicalLatency};
use azure_engine::settings::limits::{Counts, Limit};
use azure_engine::types::join::Join;
use azure_engine::types::names::NameRule;

pub(super) const ACCOUNTS: &str = "Microsoft.Storage/storageAccounts";

const fn policy(
    name: &'static str,
    on: &'static [(&'static str, &'static str)],
    size: u32,
    seconds: u64,
) -> Policy {
    Policy {
        name,
        per: Per::Subscription,
        on,
        size,
        refill: size,
        window: Duration::from_secs(seconds),
        steady: false,
        wording: Wording::Window,
    }
}

const EVERYTHING: &str = "Microsoft.Storage/*";

pub(super) static POLICIES: [Policy; 4] = [
    policy("Read_ObservationWindow_00:05:00", &[("GET", EVERYTHING)], 800, 300),
    policy("List_ObservationWindow_00:05:00", &[("LIST", EVERYTHING)], 100, 300),
    policy("Write_ObservationWindow_00:00:01", WRITES, 10, 1),
    policy("Write_ObservationWindow_01:00:00", WRITES, 1_200, 3_600),
];

const WRITES: &[(&str, &str)] = &[("PUT", EVERYTHING), ("PATCH", EVERYTHING), ("DELETE", EVERYTHING)];

pub(super) static LIMITS: &[Limit] = &[
    Limit {
        name: "storage.accountsPerRegion",
        value: 250,
        counts: Counts::PerRegion {
            of: ACCOUNTS,
            called: "storage accounts",
            words: |excess| {
                Code::azures(409, "MaxStorageAccountsCountPerSubscriptionExceeded").says(format_args!(
                    "Subscription {} already contains {} storage accounts in location {} and the maximum allowed is {}.",
                    excess.id.subscription_id(),
                    excess.wanted - 1,
                    excess.region,
                    excess.most
                ))
            },
        },
    },
    Limit::of("storage.snapshotsPerShare", 200),
    Limit::of("storage.premiumGibPerAccount", 102_400),
    Limit::of("storage.provisionedV2GibPerAccount", 262_144),
    Limit::of("storage.provisionedV2SharesPerAccount", 50),
    Limit::of("storage.virtualNetworkRulesPerAccount", 400),
    Limit::of("storage.ipRulesPerAccount", 400),
];

/// A caller that lets a subnet through a firewall needs a right on the subnet.
pub(super) static JOINS: [Join; 1] = [Join {
    of: ACCOUNTS,
    members: &["virtualNetworkRules"],
    action: "Microsoft.Network/virtualNetworks/subnets/joinViaServiceEndpoint/action",
}];

/// How long operations take.
pub(super) static LATENCIES: &[TypicalLatency] = &[
    ("CREATE", "storageAccounts", 20_000, CHOICE),
    // "Delete Share": a share of the same name cannot be made for at least 30 seconds.
    (
        "DELETE",
        "storageAccounts/fileServices/shares/collect",
        30_000,
        "Azure Files REST reference, Delete Share",
    ),
    ("*", "storageAccounts*", 0, CHOICE),
];

/// Whether a name is valid for an account.
pub(super) fn is_account_name(name: &str) -> bool {
    (3..=24).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The refusal of an invalid account name.
pub(super) fn bad_account_name(name: &str) -> Refusal {
    Code::azures(400, "AccountNameInvalid").says(format_args!(
        "{name} is not a valid storage account name. Storage account name must be between 3 and 24 characters in length \
         and use numbers and lower-case letters only."
    ))
}

/// Names of shares and containers: letters and digits, single hyphens between them.
fn is_part_name(name: &str) -> bool {
    let special = matches!(name, "$root" | "$logs" | "$web");
    let plain = (3..=63).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    special || plain
}

fn bad_part_name(name: &str) -> Refusal {
    match (3..=63).contains(&name.len()) {
        true => Code::azures(400, "InvalidResourceName")
            .says("The specified resource name contains invalid characters."),
        false => Code::azures(400, "OutOfRangeInput")
            .says("The specified resource name length is not within the permissible limits."),
    }
}

pub(super) static NAMES: &[NameRule] = &[
    NameRule { of: ACCOUNTS, fits: is_account_name, refusal: |_, name| bad_account_name(name) },
    NameRule { of: "*/shares", fits: is_part_name, refusal: |_, name| bad_part_name(name) },
    NameRule { of: "*/containers", fits: is_part_name, refusal: |_, name| bad_part_name(name) },
    NameRule { of: "*Services/queues", fits: is_part_name, refusal: |_, name| bad_part_name(name) },
];
