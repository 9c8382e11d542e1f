//! Facts from instance metadata.

use std::sync::Arc;

use async_trait::async_trait;
use imds::Imds;

use super::facts::{FactSource, Facts, FactsError};

/// Facts from instance metadata.
#[derive(Debug, Clone)]
pub struct Metadata(Arc<Imds>);

impl Metadata {
    /// Facts from this service.
    pub fn new(imds: Arc<Imds>) -> Self {
        Self(imds)
    }
}

#[async_trait]
impl FactSource for Metadata {
    async fn read(&self) -> Result<Facts, FactsError> {
        let facts = self.0.storage().await.map_err(|error| FactsError::new("instance metadata", error))?;
        let disks = facts.data_disks.into_iter().map(|disk| disk.id).collect();
        Ok(Facts {
            zone: Some(facts.zone),
            region: Some(facts.region),
            size: Some(facts.size),
            data_disks: Some(disks),
            ..Facts::default()
        })
    }
}

/// The name of the node of a machine, by the machine's name in instance metadata: an instance `<set>_<number>` of a uniform
/// scale set has the host name `<set>` and the number in six digits to base 36 (`--get-nodeid-from-imds`).
pub fn node_name(machine: &str) -> String {
    let parts = machine.rsplit_once('_').and_then(|(set, number)| Some((set, number.parse::<u64>().ok()?)));
    let Some((set, mut number)) = parts else { return machine.to_ascii_lowercase() };
    let mut digits = Vec::new();
    while number > 0 || digits.len() < 6 {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        number /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("{set}{digits}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.14, NodeGetInfo: `--get-nodeid-from-imds`.
    #[test]
    fn instances_of_uniform_sets_have_their_number_to_base_36() {
        for (machine, node) in [
            ("workers_0", "workers000000"),
            ("workers_35", "workers00000z"),
            ("aks-pool-vmss_46655", "aks-pool-vmss000zzz"),
            ("Alone", "alone"),
            ("flex_1a2b3c", "flex_1a2b3c"),
        ] {
            assert_eq!(node_name(machine), node);
        }
    }
}
