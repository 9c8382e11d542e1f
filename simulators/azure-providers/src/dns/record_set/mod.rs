//! Record sets: all records of one type and name in a zone. The tables of a kind of zones give the members of each
//! type.

pub(crate) mod fields;
pub(crate) mod views;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::names::{fqdn, spell};
use azure_engine::document::{Object, into_object, take_properties};
use azure_engine::provider::{
    Acting, AzureState, Expand, Presenting, Proposal, Protocol, Record, Shape, Source, Writing,
};
use azure_engine::refusal::{Code, Result};
use fields::Field;

const BAD: Code = Code::ours(400, "BadRequest");
const TOO_MANY: Code = Code::ours(400, "RecordSetLimitExceeded");

/// Longest time that a resolver may keep an answer.
const MAX_TTL: i64 = i32::MAX as i64;

/// The common part of all record sets of one kind of zones.
pub(crate) struct RecordSetRules {
    /// The full type of the zones.
    pub(crate) zone: &'static str,
    /// Their member with the time to live.
    pub(crate) ttl: &'static str,
    /// The limit of record sets in a zone.
    pub(crate) record_sets: &'static str,
    /// The limit of records in a set.
    pub(crate) records: &'static str,
    /// Whether sets say if a machine registered them.
    pub(crate) registered: bool,
    /// The records that the service creates in a new zone: ids and properties.
    pub(crate) made: fn(&ResourceId) -> Vec<(ResourceId, Value)>,
}

impl RecordSetRules {
    /// Creates the records of a new zone.
    pub(crate) fn make(&self, azure: &mut AzureState, zone: &ResourceId) {
        for (id, properties) in (self.made)(zone) {
            // These records are always valid.
            let _ = azure.make(&id, into_object(json!({ "properties": properties })));
        }
    }

    fn is_of(&self, record: &Record) -> bool {
        let (zone, _) = record.resource_type.name().rsplit_once('/').unwrap_or_default();
        zone == self.zone && record.resource_type.protocol().noun == "RecordSet"
    }

    /// The record sets of a zone.
    pub(crate) fn of_zone<'a>(
        &'a self,
        azure: &'a AzureState,
        zone: &ResourceId,
    ) -> impl Iterator<Item = &'a Record> {
        azure.store.below(zone).filter(|record| self.is_of(record))
    }

    /// How many there are.
    pub(crate) fn count(&self, azure: &AzureState, zone: &ResourceId) -> usize {
        self.of_zone(azure, zone).count()
    }
}

/// The records of a set: the member that holds them, and what each has.
pub(crate) enum Records {
    /// A list of them.
    Many(&'static str, &'static [Field]),
    /// At most one.
    One(&'static str, &'static [Field]),
    /// One, which the service creates with its zone and clients may change.
    Made(&'static str, &'static [Field]),
    /// A list that the service creates with its zone at `@`, to which clients may add; they may create others.
    Given(&'static str, &'static [Field]),
}

/// The record sets of one type.
pub(crate) struct RecordSets {
    pub(crate) protocol: &'static Protocol,
    pub(crate) rules: &'static RecordSetRules,
    pub(crate) records: Records,
}

/// The record sets of one kind of zones, a type of records a line.
macro_rules! record_sets {
    ($zone:literal, $protocol:ident, $rules:expr; $($kind:literal: $records:expr;)*) => {
        [$(RecordSets {
            protocol: &$protocol(concat!($zone, "/", $kind)),
            rules: $rules,
            records: $records,
        }),*]
    };
}

pub(crate) use record_sets;

impl RecordSets {
    /// The type of records, such as `AAAA`.
    fn kind(&self) -> &'static str {
        self.protocol.resource_type.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the service created this record set.
    fn is_made(&self, id: &ResourceId) -> bool {
        id.name() == "@" && matches!(self.records, Records::Made(..) | Records::Given(..))
    }
}

impl Shape for RecordSets {
    fn protocol(&self) -> &'static Protocol {
        self.protocol
    }
}

impl Writing for RecordSets {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut given = take_properties(&mut proposal.body);
        fields::spell(&mut given, &[self.rules.ttl, "metadata", self.member()]);
        let mut kept = Object::new();
        if proposal.source != Source::Service {
            self.check_made(azure, &proposal)?;
        }
        let ttl = given.get(self.rules.ttl).and_then(Value::as_i64);
        match ttl {
            Some(ttl) if (1..=MAX_TTL).contains(&ttl) => kept.insert(self.rules.ttl.into(), ttl.into()),
            _ => {
                return Err(BAD.says(format_args!(
                    "The record set '{}' of type {} needs a TTL between 1 and {MAX_TTL}.",
                    id.name(),
                    self.kind()
                )));
            }
        };
        if let Some(Value::Object(metadata)) = given.remove("metadata") {
            kept.insert("metadata".into(), Value::Object(metadata));
        }
        let records = self.records(azure, &proposal, given.remove(self.member()))?;
        kept.insert(self.member().into(), records);
        if proposal.old.is_none() {
            self.check_beside(azure, id)?;
        }
        Ok(json!({ "properties": kept }))
    }

    fn before_delete(&self, _azure: &AzureState, record: &Record) -> Result<()> {
        BAD.says_when(
            self.is_made(&record.id),
            format_args!("The record set '@' of type {} cannot be deleted.", self.kind()),
        )
    }
}

impl Presenting for RecordSets {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        spell(document, &record.id);
        let zone = record.id.parent().map(|zone| zone.name().to_owned()).unwrap_or_default();
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        properties.insert("fqdn".into(), fqdn(&zone, record.id.name()).into());
        match self.rules.registered {
            true => properties.insert("isAutoRegistered".into(), false.into()),
            false => properties.insert("provisioningState".into(), "Succeeded".into()),
        };
    }
}

impl Acting for RecordSets {}

impl RecordSets {
    fn member(&self) -> &'static str {
        match self.records {
            Records::Many(member, _)
            | Records::One(member, _)
            | Records::Made(member, _)
            | Records::Given(member, _) => member,
        }
    }

    /// The records to store.
    fn records(&self, azure: &AzureState, proposal: &Proposal<'_>, given: Option<Value>) -> Result<Value> {
        let old = || proposal.old_member(&format!("properties/{}", self.member())).cloned();
        match &self.records {
            Records::Many(_, wanted) | Records::Given(_, wanted) => {
                let Some(Value::Array(given)) = given.or_else(|| Some(json!([]))) else {
                    return Err(BAD.says(format_args!("The member '{}' must be a list.", self.member())));
                };
                let most = azure.limit(self.rules.records);
                TOO_MANY.says_when(
                    given.len() as u64 > most,
                    format_args!("A record set can have at most {most} records."),
                )?;
                let kept = given.into_iter().map(|record| fields::kept(record, wanted, None));
                let kept: Vec<Value> = kept.collect::<Result<_, _>>()?;
                if let Some(given) = self.missing(proposal.id, &kept) {
                    return Err(
                        BAD.says(format_args!("The record {given} of the zone's own set cannot be removed."))
                    );
                }
                match kept
                    .iter()
                    .enumerate()
                    .find(|(at, record)| kept.iter().take(*at).any(|one| one == *record))
                {
                    Some((_, twice)) => {
                        Err(BAD.says(format_args!("The record set has the record {twice} twice.")))
                    }
                    None => Ok(kept.into()),
                }
            }
            Records::One(_, wanted) => match given {
                Some(given) => fields::kept(given, wanted, None),
                None => Err(BAD.says(format_args!("The member '{}' is missing.", self.member()))),
            },
            Records::Made(_, wanted) => match (given, old()) {
                (Some(given), Some(old)) => fields::kept(given, wanted, Some(old)),
                (given, old) => Ok(given.or(old).unwrap_or_default()),
            },
        }
    }

    /// A record that the service created with the zone and that is missing here.
    fn missing(&self, id: &ResourceId, kept: &[Value]) -> Option<Value> {
        if !matches!(self.records, Records::Given(..)) || !self.is_made(id) {
            return None;
        }
        let made = (self.rules.made)(&id.parent()?).into_iter().find(|(made, _)| made == id)?.1;
        let records = made.get(self.member())?.as_array()?;
        records.iter().find(|record| !kept.contains(record)).cloned()
    }

    /// Refuses a record set of a type that only the service creates, and more record sets than the limit.
    fn check_made(&self, azure: &AzureState, proposal: &Proposal<'_>) -> Result<()> {
        let id = proposal.id;
        match self.records {
            Records::Made(..) if proposal.old.is_none() => Err(BAD.says(format_args!(
                "A record set of type {} is made with its zone, and there is no other.",
                self.kind()
            ))),
            _ => {
                let zone = id.parent().unwrap_or_else(|| id.clone());
                let most = azure.limit(self.rules.record_sets);
                let count = self.rules.count(azure, &zone);
                TOO_MANY.says_when(
                    proposal.old.is_none() && count as u64 >= most,
                    format_args!("The zone '{}' cannot have more than {most} record sets.", zone.name()),
                )
            }
        }
    }

    /// Refuses other records beside a CNAME.
    fn check_beside(&self, azure: &AzureState, id: &ResourceId) -> Result<()> {
        let is_alias = self.kind() == "CNAME";
        let zone = id.parent().unwrap_or_else(|| id.clone());
        let beside = self.rules.of_zone(azure, &zone).find(|other| {
            let theirs = other.resource_type.name().rsplit('/').next().unwrap_or_default();
            other.id.name().eq_ignore_ascii_case(id.name())
                && other.id != *id
                && (is_alias || theirs == "CNAME")
        });
        match beside {
            None => Ok(()),
            Some(other) => Err(Code::ours(400, "Conflict").says(format_args!(
                "The record set '{}' of type {} cannot be beside the record set {}: a CNAME is alone.",
                id.name(),
                self.kind(),
                other.id
            ))),
        }
    }
}
