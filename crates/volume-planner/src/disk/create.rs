//! A new disk: what is decided about it once, and what is next, given what Azure has under its name.

use serde_json::Value;

use super::compatibility::difference;
use super::create_document::create_document;
use super::migration;
use super::observed::ObservedDisk;
use super::source::Source;
use crate::model::cluster_place::ClusterPlace;
use crate::model::disk_sku::DiskSku;
use crate::model::error::{Refusal, Result};
use crate::model::id::DiskId;
use crate::model::names::azure_name;
use crate::model::size::{self, CapacityRange};
use crate::model::topology::{self, DiskPlace, Requirement, Segments};
use crate::parameters::disk::DiskParameters;

/// A request for a volume.
#[derive(Debug, Clone)]
pub struct CreateRequest<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size.
    pub range: CapacityRange,
    /// The parameters of its class.
    pub parameters: &'a DiskParameters,
    /// Where it has to be reached from.
    pub requirement: &'a Requirement,
    /// What it is filled with.
    pub source: Option<Source>,
}

/// A disk that is to exist.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDisk {
    /// Its ID.
    pub id: DiskId,
    /// Its size in GiB.
    pub size_gib: u64,
    /// Its place.
    pub place: DiskPlace,
    /// What it is filled with.
    pub source: Option<Source>,
    /// Whether its file system is that of a smaller source and has to grow.
    pub is_resize_required: bool,
    /// Whether Azure changes its kind in the background, which is watched.
    pub is_migrated: bool,
    /// The document to PUT.
    pub document: Value,
    sku: DiskSku,
    range: CapacityRange,
    requirement: Requirement,
    driver: String,
}

/// What is next for a new disk.
#[derive(Debug, Clone, PartialEq)]
pub enum CreateStep {
    /// Its document is PUT: it is not there, or Azure failed to make it.
    Put,
    /// Azure is making it: read it again.
    Wait,
    /// It is there.
    Done(CreatedDisk),
}

/// What the caller is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedDisk {
    /// The volume's ID.
    pub id: DiskId,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// From where it can be reached.
    pub topologies: Vec<Segments>,
}

impl NewDisk {
    /// Decides about a new disk.
    ///
    /// # Errors
    /// The request has no name, or its size exceeds a limit.
    pub fn plan(request: CreateRequest<'_>, cluster: &ClusterPlace, driver: &str) -> Result<Self> {
        let CreateRequest { name, range, parameters, requirement, source } = request;
        if name.is_empty() {
            return Err(Refusal::Missing("volume name"));
        }
        let (sku, source_gib) = (parameters.sku, source.as_ref().and_then(Source::size_gib));
        let is_plus = parameters.performance_plus == Some(true);
        let size_gib = size::new_disk(range, sku, is_plus, source_gib)?;
        let zone = source.as_ref().and_then(Source::zone);
        let place =
            topology::place(requirement, driver, parameters.region.as_deref(), &cluster.location, sku, zone);
        let name = azure_name(parameters.disk_name.as_deref().unwrap_or(name));
        let is_clone = matches!(source, Some(Source::Disk { .. }));
        let source_sku = match &source {
            Some(Source::Disk { sku, .. }) => *sku,
            _ => None,
        };
        let document = create_document(parameters, size_gib, &place, source.as_ref());
        Ok(Self {
            id: DiskId::new(&parameters.subscription, &parameters.group, &name),
            size_gib,
            place,
            is_resize_required: is_clone && source_gib.is_some_and(|source| source < size_gib),
            is_migrated: source_sku.is_some_and(|source| migration::is_watched(source, sku)),
            source,
            document,
            sku,
            range,
            requirement: requirement.clone(),
            driver: driver.to_owned(),
        })
    }

    /// What is next, given the disk that Azure has under this ID. `None` means that Azure was asked and has none.
    ///
    /// # Errors
    /// Azure has another disk of this name. It is never changed: a PUT would let it grow.
    pub fn next(&self, existing: Option<ObservedDisk<'_>>) -> Result<CreateStep> {
        let Some(existing) = existing else { return Ok(CreateStep::Put) };
        if let Some(difference) = self.difference(existing) {
            return Err(Refusal::Incompatible { what: "disk", name: self.id.name().to_owned(), difference });
        }
        match existing.provisioning_state() {
            Some("Succeeded") => Ok(CreateStep::Done(self.created(existing))),
            Some("Failed") => Ok(CreateStep::Put),
            _ => Ok(CreateStep::Wait),
        }
    }

    fn difference(&self, existing: ObservedDisk<'_>) -> Option<String> {
        let size = existing.size_gib().unwrap_or(0);
        // If the source's size is not known, Azure may have made the copy larger.
        let may_be_larger = self.source.as_ref().is_some_and(|source| source.size_gib().is_none());
        if size != self.size_gib && !(may_be_larger && size > self.size_gib && self.range.admits(size)) {
            return Some(format!("capacity {size} GiB instead of {} GiB", self.size_gib));
        }
        difference(existing, &self.document, &self.place, &self.requirement, &self.driver)
    }

    /// The answer for a disk that is there: its own size and place, which may be another zone that serves the request.
    fn created(&self, disk: ObservedDisk<'_>) -> CreatedDisk {
        let place = DiskPlace { region: self.place.region.clone(), ..disk.place() };
        CreatedDisk {
            id: self.id.clone(),
            capacity_bytes: size::to_bytes(disk.size_gib().unwrap_or(self.size_gib)),
            topologies: topology::accessible(&place, self.sku, &self.driver),
        }
    }
}

#[cfg(test)]
#[path = "create_tests.rs"]
mod tests;
