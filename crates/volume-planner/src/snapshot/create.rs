//! A new snapshot, and what is next for it.
//!
//! A snapshot in another region than its disk's is made in three steps, each of which a repeated request finds done by what
//! Azure has: a local snapshot, its copy under the final name, and the deletion of the local one.
//!
//! ```text
//!  neither ──PUT local──▶ local ──is complete──PUT final──▶ both ──is complete──DELETE local──▶ final
//! ```

use serde_json::Value;

use super::create_document::SnapshotDocument;
use super::observed::{ObservedSnapshot, SnapshotFacts};
use crate::model::cluster_place::ClusterPlace;
use crate::model::disk_sku::DiskSku;
use crate::model::error::{Refusal, Result};
use crate::model::id::{DiskId, SnapshotId};
use crate::model::names::{azure_name, local_snapshot_name};
use crate::model::topology::normalize_region;
use crate::parameters::keys;
use crate::parameters::snapshot::SnapshotParameters;
use crate::parameters::tags::{self, SOURCE_VOLUME};

/// A request for a snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotRequest<'a> {
    /// Its name.
    pub name: &'a str,
    /// The disk.
    pub source: DiskId,
    /// The disk's region, if it was read.
    pub source_region: Option<&'a str>,
    /// The disk's kind, if it was read.
    pub source_sku: Option<DiskSku>,
    /// The parameters of its class.
    pub parameters: &'a SnapshotParameters,
}

/// The local snapshot of one in another region.
#[derive(Debug, Clone, PartialEq)]
struct LocalSnapshot {
    id: SnapshotId,
    document: Value,
}

/// A snapshot that is to exist.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSnapshot {
    /// Its ID, which the caller is answered from the first step on.
    pub id: SnapshotId,
    source: DiskId,
    document: Value,
    local: Option<LocalSnapshot>,
}

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub enum SnapshotStep {
    /// This document is PUT.
    Put(SnapshotId, Value),
    /// Azure is copying data: read again. The caller may be answered that the snapshot is not ready.
    Wait(SnapshotFacts),
    /// The local snapshot is deleted; a failure is logged and changes nothing for the caller.
    DeleteLocal(SnapshotId, SnapshotFacts),
    /// It is there; its facts say whether it is ready.
    Done(SnapshotFacts),
}

impl NewSnapshot {
    /// Decides about a new snapshot.
    ///
    /// # Errors
    /// The request has no name, or its parameters do not suit the disk or each other.
    pub fn plan(request: SnapshotRequest<'_>, cluster: &ClusterPlace) -> Result<Self> {
        let SnapshotRequest { name, source, source_region, source_sku, parameters } = request;
        if name.is_empty() {
            return Err(Refusal::Missing("snapshot name"));
        }
        source_sku.map_or(Ok(()), |sku| parameters.check_source(sku))?;
        let own_region = normalize_region(source_region.unwrap_or(&cluster.location));
        let region = parameters.region.clone().unwrap_or_else(|| own_region.clone());
        if region != own_region && !parameters.is_incremental {
            return Err(Refusal::ConflictingParameters {
                key: keys::LOCATION,
                value: region,
                other: format!("{}=false", keys::INCREMENTAL),
                remedy: "a copy to another region has to be incremental: remove incremental, or location",
            });
        }
        let subscription = parameters.subscription.as_deref().unwrap_or(source.subscription());
        let group = parameters.group.as_deref().unwrap_or(source.group());
        let name = azure_name(name);
        let mut tags = parameters.tags.clone();
        tags::set(&mut tags, SOURCE_VOLUME, source.resource().as_str());
        let of_disk = SnapshotDocument {
            region: &own_region,
            create_option: "Copy",
            source: source.resource().as_str(),
            instant_access_minutes: parameters.instant_access_minutes,
            tags: &tags,
        };
        let of_disk = of_disk.make(parameters);
        let id = SnapshotId::new(subscription, group, &name);
        if region == own_region {
            return Ok(Self { id, source, document: of_disk, local: None });
        }
        let local = SnapshotId::new(subscription, group, &local_snapshot_name(&name));
        let copy = SnapshotDocument {
            region: &region,
            create_option: "CopyStart",
            source: local.resource().as_str(),
            instant_access_minutes: None,
            tags: &tags,
        };
        let document = copy.make(parameters);
        Ok(Self { id, source, document, local: Some(LocalSnapshot { id: local, document: of_disk }) })
    }

    /// The ID of the local snapshot, which has to be read before [`Self::next`] is asked.
    pub fn local_id(&self) -> Option<&SnapshotId> {
        self.local.as_ref().map(|local| &local.id)
    }

    /// What is next, given what Azure has. `None` means that Azure was asked and has none.
    ///
    /// # Errors
    /// Azure has a snapshot of this name of another disk.
    pub fn next(
        &self,
        own: Option<ObservedSnapshot<'_>>,
        local: Option<ObservedSnapshot<'_>>,
    ) -> Result<SnapshotStep> {
        let put = || SnapshotStep::Put(self.id.clone(), self.document.clone());
        let own = self.checked(&self.id, own)?;
        let Some(needed) = &self.local else {
            return Ok(own.map_or_else(put, |own| SnapshotStep::Done(own.facts(self.id.clone()))));
        };
        let local = self.checked(&needed.id, local)?;
        if let Some(own) = own {
            let facts = own.facts(self.id.clone());
            return Ok(match local {
                _ if !own.is_complete() => SnapshotStep::Wait(facts),
                Some(_) => SnapshotStep::DeleteLocal(needed.id.clone(), facts),
                None => SnapshotStep::Done(facts),
            });
        }
        Ok(match local {
            None => SnapshotStep::Put(needed.id.clone(), needed.document.clone()),
            Some(local) if local.is_complete() => put(),
            Some(local) => {
                // The final snapshot is not there yet, however ready the local one may be.
                SnapshotStep::Wait(SnapshotFacts { is_ready: false, ..local.facts(self.id.clone()) })
            }
        })
    }

    /// A snapshot that is there and of the disk. One that Azure failed to make counts as absent: it is PUT again.
    fn checked<'a>(
        &self,
        id: &SnapshotId,
        observed: Option<ObservedSnapshot<'a>>,
    ) -> Result<Option<ObservedSnapshot<'a>>> {
        match observed {
            Some(observed) if !observed.is_of(&self.source) => Err(Refusal::Incompatible {
                what: "snapshot",
                name: id.name().to_owned(),
                difference: format!(
                    "source volume {} instead of {}",
                    observed.volume().unwrap_or("none"),
                    self.source
                ),
            }),
            other => Ok(other.filter(|observed| !observed.has_failed())),
        }
    }
}

#[cfg(test)]
#[path = "create_tests.rs"]
mod tests;
