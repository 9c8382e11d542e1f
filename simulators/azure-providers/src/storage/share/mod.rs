//! File shares.
//!
//! `quota` bounds their size, `snapshot` holds their snapshots, `deleted` the deleted shares, `listing` shows all of
//! these in one list.

mod deleted;
mod listing;
mod names;
mod quota;
mod shown;
pub(super) mod snapshot;

pub(super) use self::deleted::restore;
pub(super) use self::listing::{Expanded, all};
pub(super) use self::names::absent;

use azure_engine::answer::Answer;
use azure_engine::document::{Object, fill, take_properties, text};
use azure_engine::operation::execution::Execution;
use azure_engine::provider::{
    Acting, AzureState, Expand, Listing, Presenting, Proposal, Protocol, Record, ResourceRequest, Source,
    Writing,
};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::request::Conditions;
use azure_engine::types::member_table::Holds::{Anything, Derived, Word};
use azure_engine::types::member_table::Member;
use azure_types::ResourceId;
use serde_json::{Value, json};

use self::names::{RESOURCE_TYPE, account_of, bad_header};
use super::account::sku::{kind_of, sku_of};
use super::modified::{modified, note};
use super::protocol::{part, said};
use super::service::retain_sent;

pub(crate) struct Shares;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    actions: &["restore"],
    ..part(RESOURCE_TYPE, "FileShare")
};

static MEMBERS: [Member; 26] = [
    Member::new("accessTier", Word(&["TransactionOptimized", "Hot", "Cool", "Premium"], false)),
    Member::new("accessTierChangeTime", Derived),
    Member::new("accessTierStatus", Derived),
    Member::new("deleted", Derived),
    Member::new("deletedTime", Derived),
    Member::new("enabledProtocols", Word(&["SMB", "NFS"], true)),
    Member::new("fileSharePaidBursting", Anything),
    Member::new("includedBurstIops", Derived),
    Member::new("lastModifiedTime", Derived),
    Member::new("leaseDuration", Derived),
    Member::new("leaseState", Derived),
    Member::new("leaseStatus", Derived),
    Member::new("maxBurstCreditsForIops", Derived),
    Member::new("metadata", Anything),
    Member::new("nextAllowedProvisionedBandwidthDowngradeTime", Derived),
    Member::new("nextAllowedProvisionedIopsDowngradeTime", Derived),
    Member::new("nextAllowedQuotaDowngradeTime", Derived),
    Member::new("provisionedBandwidthMibps", Anything),
    Member::new("provisionedIops", Anything),
    Member::new("remainingRetentionDays", Derived),
    Member::new("rootSquash", Word(&["NoRootSquash", "RootSquash", "AllSquash"], false)),
    Member::new("shareQuota", Anything),
    Member::new("shareUsageBytes", Derived),
    Member::new("signedIdentifiers", Anything),
    Member::new("snapshotTime", Derived),
    Member::new("version", Derived),
];

shape!(Shares, PROTOCOL);

impl Writing for Shares {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        // A PUT of what exists is an update: members that it leaves out stay.
        if let (Some(old), Source::Put) =
            (proposal.old.and_then(|old| old.body.get("properties")), proposal.source)
        {
            let given = proposal.old.is_some() && properties.get("enabledProtocols").is_some();
            for (member, value) in old.as_object().into_iter().flatten() {
                let is_default = member == "enabledProtocols" && given;
                if !is_default {
                    properties.entry(member.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        let account = account_of(id).and_then(|account| azure.store.get(&account)).map(|record| &record.body);
        let Some(account) = account else { return Err(absent(azure)) };
        Code::azures(409, "ShareBeingDeleted").says_when(
            proposal.old.is_none() && super::contents::is_going(azure, id),
            said(azure, "The specified share is being deleted. Try operation later."),
        )?;
        check_protocols(azure, account, proposal.old, &properties)?;
        let standard = kind_of(account).name != "FileStorage";
        let tier = properties.get("accessTier").and_then(Value::as_str);
        if tier.is_some_and(|tier| standard == (tier == "Premium")) {
            return Err(bad_header(azure));
        }
        quota::normalise(azure, id, account, &mut properties)?;
        Ok(json!({ "properties": properties }))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        let tier = |body: &Value| text(body, "properties/accessTier").map(str::to_owned);
        let changed = azure.store.get(id).is_some_and(|record| old.map(&tier) != Some(tier(&record.body)));
        note(azure, id);
        let now = azure.now().to_string();
        if let (true, Some(record)) = (changed, azure.store.get_mut(id)) {
            record.hidden.insert("accessTierChangeTime".into(), now.into());
        }
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        deleted::keep(azure, id);
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        super::contents::forget(azure, &record.id);
    }
}

impl Presenting for Shares {
    fn page_size(&self, _options: &azure_engine::settings::options::Options, listing: &Listing<'_>) -> usize {
        super::listing::page_size(listing.query)
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let wanted = listing.query.get("$filter");
        if wanted.is_some_and(|filter| !super::listing::admits(filter, record.id.name())) {
            return None;
        }
        Some(shown::listed(azure, record))
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let account = account_of(&record.id).and_then(|account| azure.store.get(&account));
        let premium = account.is_some_and(|account| kind_of(&account.body).name == "FileStorage");
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        // Shares of standard accounts speak SMB unless they say otherwise: the document of a single one leaves it out.
        let speaks_smb = properties.get("enabledProtocols").and_then(Value::as_str) == Some("SMB");
        if !premium && speaks_smb {
            properties.remove("enabledProtocols");
        }
        fill(properties, "signedIdentifiers", json!([]));
        if !account.is_some_and(|account| super::account::sku::is_provisioned_v2(sku_of(&account.body))) {
            fill(properties, "accessTier", if premium { "Premium" } else { "TransactionOptimized" });
        }
        let changed = record.hidden.get("accessTierChangeTime").cloned();
        for (member, value) in [
            ("leaseStatus", Some(json!("unlocked"))),
            ("leaseState", Some(json!("available"))),
            ("lastModifiedTime", Some(json!(modified(record)))),
            ("accessTierChangeTime", changed.filter(|_| !premium)),
        ] {
            if let Some(value) = value {
                properties.insert(member.into(), value);
            }
        }
    }

    fn present_written(&self, _azure: &AzureState, record: &Record, sent: &Object, document: &mut Object) {
        document.remove("etag");
        let speaks = record.body.get("properties").and_then(|properties| properties.get("enabledProtocols"));
        if let (Some(speaks), Some(Value::Object(properties))) = (speaks, document.get_mut("properties")) {
            properties.insert("enabledProtocols".into(), speaks.clone());
        }
        retain_sent(sent, document);
    }

    fn absence_refusal(&self, azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        let service = id.parent()?;
        if let Some(service_type) = azure.resource_type(&service.resource_type())
            && azure.store.get(&service).is_none()
        {
            return service_type.absence_refusal(azure, &service);
        }
        Some(absent(azure))
    }
}

impl Acting for Shares {
    fn answer_request(&self, azure: &mut AzureState, request: &ResourceRequest<'_>) -> Handled<Answer> {
        let option =
            |name: &str| request.query.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let expand = option("$expand").unwrap_or_default();
        if let ("POST", [action]) = (request.method, request.below)
            && action.eq_ignore_ascii_case("restore")
        {
            return Some(deleted::restore(azure, request.id, request.body));
        }
        if !request.below.is_empty() {
            return None;
        }
        if request.list {
            let expanded = Expanded::parse(expand);
            return (request.method == "GET" && expanded.any())
                .then(|| listing::answer(azure, request.id, expanded, request.query));
        }
        azure.store.get(request.id)?;
        match (request.method, option("x-ms-snapshot")) {
            ("GET", Some(time)) => Some(snapshot::read(azure, request.id, time).map(Answer::ok)),
            ("GET", None) if expand.eq_ignore_ascii_case("stats") => {
                let record = azure.store.get(request.id)?;
                let mut document = azure.present(record, Expand::default());
                let used = super::contents::used_bytes(azure, request.id);
                document["properties"]["shareUsageBytes"] = used.into();
                Some(Ok(Answer { etag: Some(azure.etag(record)), ..Answer::ok(document) }))
            }
            ("PUT", None) if expand.eq_ignore_ascii_case("snapshots") => {
                Some(snapshot::create(azure, request.id, request.body).map(|(document, etag)| Answer {
                    status: 201,
                    etag: Some(etag),
                    ..Answer::ok(document)
                }))
            }
            ("DELETE", Some(time)) => {
                Some(snapshot::delete(azure, request.id, time).map(|()| Answer::empty(200)))
            }
            ("DELETE", None) if option("$include").is_some() => {
                let with_snapshots =
                    option("$include").is_some_and(|what| !what.eq_ignore_ascii_case("none"));
                Some(delete(azure, request.id, with_snapshots))
            }
            _ => None,
        }
    }
}

/// Deletes a share; one with snapshots only if the request includes these.
pub(super) fn delete(azure: &mut AzureState, id: &ResourceId, with_snapshots: bool) -> Result<Answer> {
    let has = azure.store.get(id).is_some_and(|record| !snapshot::times(record).is_empty());
    Code::azures(409, "ShareHasSnapshots").says_when(
        has && !with_snapshots,
        said(azure, "The share has snapshots and the operation requires no snapshots."),
    )?;
    let resolved = azure.resolve_id(id)?;
    azure.delete(&resolved, &Conditions::default(), &Execution::default())
}

/// NFS needs an account that supports it, and a share's protocol is fixed.
fn check_protocols(
    azure: &AzureState,
    account: &Value,
    old: Option<&Record>,
    properties: &Object,
) -> Result<()> {
    let speaks = properties.get("enabledProtocols").and_then(Value::as_str).unwrap_or("SMB");
    let before = old.and_then(|old| text(&old.body, "properties/enabledProtocols"));
    Code::ours(409, "ShareEnabledProtocolsCannotBeChanged").says_when(
        before.is_some_and(|before| before != speaks),
        "The protocols of a file share cannot be changed after its creation.",
    )?;
    let ssd = kind_of(account).name == "FileStorage" && sku_of(account).starts_with("Premium");
    Code::azures(400, "FeatureNotSupportedForAccount")
        .says_when(speaks == "NFS" && !ssd, said(azure, "NFS is not supported for the account."))?;
    if properties.contains_key("rootSquash") && speaks != "NFS" {
        return Err(bad_header(azure));
    }
    Ok(())
}
