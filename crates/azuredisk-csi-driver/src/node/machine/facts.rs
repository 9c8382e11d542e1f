//! The facts, whatever their source.

use async_trait::async_trait;

/// Facts about a machine; what a source does not know is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its zone as labels have it, such as `westus2-1`; of machines without zones the fault domain, or nothing.
    pub zone: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Its size.
    pub size: Option<String>,
    /// How many data disks its size takes, as the controller has published it.
    pub max_data_disks: Option<u32>,
    /// The resource ids of its data disks.
    pub data_disks: Option<Vec<String>>,
    /// The IDs of the volumes that Kubernetes has attached to it, or is about to attach.
    pub volumes: Option<Vec<String>>,
}

impl Facts {
    /// These facts, and where they are absent the other ones.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            zone: self.zone.filter(|zone| !zone.is_empty()).or(other.zone),
            region: self.region.or(other.region),
            size: self.size.filter(|size| !size.is_empty()).or(other.size),
            max_data_disks: self.max_data_disks.or(other.max_data_disks),
            data_disks: self.data_disks.or(other.data_disks),
            volumes: self.volumes.or(other.volumes),
        }
    }

    /// The data disks that are not Kubernetes' volumes. Without knowledge of both, none is called foreign.
    pub fn foreign_disks(&self) -> Vec<&str> {
        let (Some(disks), Some(volumes)) = (&self.data_disks, &self.volumes) else { return Vec::new() };
        let is_volume = |disk: &str| volumes.iter().any(|volume| volume.eq_ignore_ascii_case(disk));
        disks.iter().map(String::as_str).filter(|disk| !is_volume(disk)).collect()
    }
}

/// A source of facts does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {source_name}: {reason}")]
pub struct FactsError {
    source_name: String,
    reason: String,
}

impl FactsError {
    /// This source does not answer, for this reason.
    pub fn new(source: impl Into<String>, reason: impl ToString) -> Self {
        Self { source_name: source.into(), reason: reason.to_string() }
    }
}

/// A source of facts about the machine that this process runs on.
#[async_trait]
pub trait FactSource: Send + Sync + 'static {
    /// The facts as they are now.
    ///
    /// # Errors
    /// The source does not answer.
    async fn read(&self) -> Result<Facts, FactsError>;

    /// Shows a warning where the source has a place for it: in an event of the Node.
    async fn warn(&self, _reason: &'static str, _note: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Section 3.12, trap 2, FIX: disks that are no volumes take slots; those of volumes are not counted twice.
    #[test]
    fn disks_that_are_no_volumes_are_foreign() {
        for (disks, volumes, expected) in [
            (list(&["/d/a", "/d/B"]), list(&["/D/A"]), vec!["/d/B"]),
            (list(&["/d/a"]), list(&["/d/a", "/d/c"]), vec![]),
            (list(&["/d/a"]), list(&[]), vec!["/d/a"]),
            (list(&["/d/a"]), None, vec![]),
            (None, list(&["/d/a"]), vec![]),
        ] {
            let facts = Facts { data_disks: disks, volumes, ..Facts::default() };
            assert_eq!(facts.foreign_disks(), expected, "{facts:?}");
        }
    }
}
