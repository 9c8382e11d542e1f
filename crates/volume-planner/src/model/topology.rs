//! Zones: which one a disk is created in, and from where a volume can be reached.

use std::collections::BTreeMap;

use super::disk_sku::DiskSku;

/// A topology: labels of nodes that reach a volume.
pub type Segments = BTreeMap<String, String>;

/// Kubernetes' label for a node's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// The number of zones that a volume in all zones names: more than any region has, so that a later one is served.
const ZONES: u32 = 4;

/// The label of a driver for the zone; its value is empty for nodes without one.
pub fn zone_key(driver: &str) -> String {
    format!("topology.{driver}/zone")
}

/// A region, in lower case without blanks.
pub fn normalize_region(region: &str) -> String {
    region.chars().filter(|letter| !letter.is_whitespace()).collect::<String>().to_ascii_lowercase()
}

/// A zone as labels name it, such as `westus2-1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// The region.
    pub region: String,
    /// The zone's name in the region, as Azure's documents have it.
    pub id: String,
}

impl Zone {
    /// Reads a label's value. If the region is known, other regions' zones and fault domains are no zones.
    pub fn parse(label: &str, region: Option<&str>) -> Option<Self> {
        let label = label.to_ascii_lowercase();
        let (own, id) = match region {
            Some(region) => {
                let region = normalize_region(region);
                let id = label.strip_prefix(&region)?.strip_prefix('-')?.to_owned();
                (region, id)
            }
            None => {
                let (region, id) = label.rsplit_once('-')?;
                (region.to_owned(), id.to_owned())
            }
        };
        (!own.is_empty() && !id.is_empty()).then_some(Self { region: own, id })
    }

    /// The label's value.
    pub fn label(&self) -> String {
        format!("{}-{}", self.region, self.id)
    }
}

/// What a request says about topologies, each list in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirement {
    /// Those preferred, best first.
    pub preferred: Vec<Segments>,
    /// Those that serve at all.
    pub requisite: Vec<Segments>,
}

impl Requirement {
    /// The first zone that is preferred, else the first that serves. `region` is that of the class, if it names one.
    pub fn zone(&self, driver: &str, region: Option<&str>) -> Option<Zone> {
        let keys = [ZONE_LABEL.to_owned(), zone_key(driver)];
        let zone_of = |one: &Segments| {
            keys.iter().find_map(|key| one.get(key).and_then(|label| Zone::parse(label, region)))
        };
        self.preferred.iter().chain(&self.requisite).find_map(zone_of)
    }
}

/// Where a disk is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPlace {
    /// The region.
    pub region: String,
    /// The zone; absent for a disk in all zones, and for one without a zone.
    pub zone: Option<String>,
}

/// Chooses the place of a disk: a class's region goes before the zone's, a zone's before the cluster's. A source in one zone
/// forces that zone, because Azure copies disks within a zone. A disk in all zones has none.
pub fn place(
    requirement: &Requirement,
    driver: &str,
    class_region: Option<&str>,
    cluster_region: &str,
    sku: DiskSku,
    source_zone: Option<&str>,
) -> DiskPlace {
    let zone = requirement.zone(driver, class_region);
    let region = class_region.map(normalize_region);
    let region = region.or_else(|| zone.as_ref().map(|zone| zone.region.clone()));
    let region = region.unwrap_or_else(|| normalize_region(cluster_region));
    let zone = source_zone.map(str::to_owned).or_else(|| zone.map(|zone| zone.id));
    DiskPlace { region, zone: zone.filter(|_| !sku.is_zone_redundant()) }
}

/// The topologies from which a disk can be reached.
pub fn accessible(place: &DiskPlace, sku: DiskSku, driver: &str) -> Vec<Segments> {
    let segment = |value: String| Segments::from([(zone_key(driver), value)]);
    if sku.is_zone_redundant() {
        let zones = (1..=ZONES).map(|zone| segment(format!("{}-{zone}", place.region)));
        return zones.chain([segment(String::new())]).collect();
    }
    let zone = place.zone.as_ref().map(|zone| format!("{}-{zone}", place.region));
    vec![segment(zone.unwrap_or_default())]
}

/// The topology that a node reports. `label` is its zone by metadata or label; without support for zones it is empty.
pub fn of_node(label: Option<&str>, region: Option<&str>, driver: &str, supports_zones: bool) -> Segments {
    let zone = label.filter(|_| supports_zones).and_then(|label| Zone::parse(label, region));
    let mut segments = Segments::from([(zone_key(driver), String::new())]);
    if let Some(zone) = zone {
        segments.insert(zone_key(driver), zone.label());
        segments.insert(ZONE_LABEL.to_owned(), zone.label());
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER: &str = "disk.csi.azure.com";

    fn at(key: &str, zone: &str) -> Segments {
        Segments::from([(key.to_owned(), zone.to_owned())])
    }

    /// CSI-025. Section 3.3: which labels are zones.
    #[test]
    fn a_zone_begins_with_its_region() {
        for (label, region, expected) in [
            ("westus2-1", Some("westus2"), Some("1")),
            ("westus2-1", Some("West US 2"), Some("1")),
            ("westus-1", Some("westus2"), None),
            ("1", Some("westus2"), None),
            ("0", None, None),
            ("", None, None),
            ("westus2-", Some("westus2"), None),
            ("-1", None, None),
            ("eastus-3", None, Some("3")),
        ] {
            assert_eq!(Zone::parse(label, region).map(|zone| zone.id).as_deref(), expected, "{label}");
        }
    }

    /// CSI-025. Section 3.3: preferred before requisite, Kubernetes' label before the driver's, and the region of the class.
    #[test]
    fn the_first_zone_that_is_preferred_is_chosen() {
        let own = zone_key(DRIVER);
        let both = Segments::from([
            (own.clone(), "westus2-1".to_owned()),
            (ZONE_LABEL.to_owned(), "westus2-2".to_owned()),
        ]);
        let none = at(&own, "");
        for (preferred, requisite, class, expected) in [
            (vec![at(&own, "westus2-2")], vec![at(&own, "westus2-1")], None, ("westus2", Some("2"))),
            (vec![none.clone()], vec![at(&own, "westus2-1")], None, ("westus2", Some("1"))),
            (vec![both], vec![], None, ("westus2", Some("2"))),
            (vec![none], vec![], None, ("westus2", None)),
            (vec![at(&own, "eastus-3")], vec![], None, ("eastus", Some("3"))),
            (vec![at(&own, "eastus-3")], vec![], Some("westus2"), ("westus2", None)),
            (vec![at(&own, "eastus-3")], vec![], Some("East US"), ("eastus", Some("3"))),
        ] {
            let requirement = Requirement { preferred, requisite };
            let made = place(&requirement, DRIVER, class, "westus2", DiskSku::PremiumLrs, None);
            assert_eq!((made.region.as_str(), made.zone.as_deref()), expected, "{requirement:?}");
        }
    }

    /// CSI-026. Sections 3.3 and 3.7: disks in all zones, and sources in one.
    #[test]
    fn a_disk_in_all_zones_has_none_and_a_source_forces_its_own() {
        let requirement = Requirement { preferred: vec![at(ZONE_LABEL, "westus2-1")], requisite: vec![] };
        let make = |sku, source| place(&requirement, DRIVER, None, "westus2", sku, source);
        let zrs = make(DiskSku::PremiumZrs, Some("2"));
        assert_eq!(zrs.zone, None);
        assert_eq!(make(DiskSku::PremiumLrs, Some("2")).zone.as_deref(), Some("2"));
        let zones = |place: &DiskPlace, sku| {
            let all = accessible(place, sku, DRIVER);
            all.into_iter().map(|one| one[&zone_key(DRIVER)].clone()).collect::<Vec<_>>()
        };
        let all = ["westus2-1", "westus2-2", "westus2-3", "westus2-4", ""];
        assert_eq!(zones(&zrs, DiskSku::PremiumZrs), all);
        assert_eq!(zones(&make(DiskSku::PremiumLrs, None), DiskSku::PremiumLrs), ["westus2-1"]);
        let without = DiskPlace { region: "westus2".into(), zone: None };
        assert_eq!(zones(&without, DiskSku::PremiumLrs), [""]);
    }

    /// CSI-027. Section 3.3: the topology of a node.
    #[test]
    fn a_node_reports_its_zone_twice_or_an_empty_one() {
        let both = of_node(Some("westus2-1"), Some("westus2"), DRIVER, true);
        assert_eq!((both[ZONE_LABEL].as_str(), both[&zone_key(DRIVER)].as_str()), ("westus2-1", "westus2-1"));
        for (label, supports) in [(Some("westus2-1"), false), (Some("0"), true), (None, true)] {
            assert_eq!(of_node(label, Some("westus2"), DRIVER, supports), at(&zone_key(DRIVER), ""));
        }
    }
}
