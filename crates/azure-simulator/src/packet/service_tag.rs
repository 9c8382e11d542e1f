//! Service tags: names for the addresses of Azure's services.
//!
//! Azure publishes thousands of prefixes and changes them weekly. Here each tag has a few that it has
//! had for years, so that rules can be told apart; [`super::Network::with_service_tag`] gives it others.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// (tag with or without a region, prefixes). A tag without a region also has those of its regions.
const TABLE: &[(&str, &[&str])] = &[
    ("AzureActiveDirectory", &["20.190.128.0/18", "40.126.0.0/18"]),
    ("AzureContainerRegistry.EastUS", &["20.62.128.0/26", "40.71.10.216/29"]),
    ("AzureContainerRegistry.WestEurope", &["13.69.64.80/29", "20.61.97.128/25"]),
    ("AzureFrontDoor.Backend", &["13.73.248.16/29", "147.243.0.0/16"]),
    ("AzureFrontDoor.FirstParty", &["13.107.253.0/24"]),
    ("AzureFrontDoor.Frontend", &["13.107.246.0/24"]),
    ("AzureKeyVault.EastUS", &["40.71.10.200/29"]),
    ("AzureKeyVault.WestEurope", &["13.69.64.72/29"]),
    ("AzureMonitor.EastUS", &["40.71.12.224/28"]),
    ("AzureMonitor.WestEurope", &["13.69.65.16/28"]),
    ("AzureResourceManager.EastUS", &["40.71.13.224/28"]),
    ("AzureResourceManager.WestEurope", &["13.69.67.32/28"]),
    ("EventHub.EastUS", &["40.71.10.128/26"]),
    ("EventHub.WestEurope", &["13.69.64.0/26"]),
    ("MicrosoftContainerRegistry", &["40.79.132.96/29", "204.79.197.219/32"]),
    ("Sql.EastUS", &["40.71.8.0/26", "40.78.225.32/29"]),
    ("Sql.WestEurope", &["40.68.37.158/32", "104.40.168.64/26"]),
    ("Storage.EastUS", &["20.38.98.0/24", "52.239.152.0/22"]),
    ("Storage.NorthEurope", &["20.38.102.0/23", "52.239.136.0/22"]),
    ("Storage.WestEurope", &["20.38.108.0/23", "52.239.140.0/22"]),
    ("Storage.WestUS", &["52.239.160.0/22"]),
    ("Storage.WestUS2", &["20.38.99.0/24", "52.239.148.0/23"]),
];

/// Tags for what each host offers its machines.
const PLATFORM: &[(&str, &[&str])] = &[
    ("AzurePlatformDNS", &["168.63.129.16/32"]),
    ("AzurePlatformIMDS", &["169.254.169.254/32"]),
    ("AzurePlatformLKM", &["23.102.135.246/32"]),
];

/// Everything that a tag stands for, by its name or that of a region of it. `given` goes before the table.
pub(super) fn prefixes(given: &HashMap<String, Vec<IpNet>>, tag: &str) -> Vec<IpNet> {
    if let Some(prefixes) = given.get(&tag.to_ascii_lowercase()) {
        return prefixes.clone();
    }
    let parse = |prefixes: &&[&str]| prefixes.iter().filter_map(|text| text.parse().ok()).collect::<Vec<_>>();
    let of_region = |name: &str, region: &str| {
        name.rsplit_once('.').is_some_and(|(_, known)| known.eq_ignore_ascii_case(region))
    };
    let (base, region) = tag.split_once('.').map_or((tag, None), |(base, region)| (base, Some(region)));
    // Everything that Azure has is in `AzureCloud`.
    let cloud = base.eq_ignore_ascii_case("AzureCloud");
    let is = |name: &str| match region {
        _ if name.eq_ignore_ascii_case(tag) => true,
        None if cloud => true,
        Some(region) => cloud && of_region(name, region),
        None => name.split_once('.').is_some_and(|(known, _)| known.eq_ignore_ascii_case(base)),
    };
    let of_services = TABLE.iter().filter(|(name, _)| is(name));
    let of_hosts = PLATFORM.iter().filter(|(name, _)| name.eq_ignore_ascii_case(tag));
    of_services.chain(of_hosts).flat_map(|(_, prefixes)| parse(prefixes)).collect()
}

/// Whether an address is of a service that the table knows.
pub(super) fn is_azures(address: IpAddr) -> bool {
    prefixes(&HashMap::new(), "AzureCloud").iter().any(|prefix| prefix.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_the_prefixes_of_its_regions_and_the_cloud_has_all() {
        let of = |tag: &str| prefixes(&HashMap::new(), tag);
        assert!(of("storage").len() > of("Storage.WestUS").len());
        assert!(of("Storage.westus").iter().all(|prefix| of("Storage").contains(prefix)));
        assert!(of("Storage").iter().chain(&of("Sql")).all(|prefix| of("AzureCloud").contains(prefix)));
        assert!(of("AzureCloud.WestUS").iter().all(|prefix| of("Storage.WestUS").contains(prefix)));
        assert!(of("AzureFrontDoor.Backend").len() < of("AzureFrontDoor").len());
        assert_eq!(of("NoSuchTag"), []);
        let own = HashMap::from([("storage".to_owned(), vec!["192.0.2.0/24".parse().unwrap()])]);
        assert_eq!(prefixes(&own, "Storage"), ["192.0.2.0/24".parse::<IpNet>().unwrap()]);
    }

    #[test]
    fn every_prefix_of_the_table_is_one() {
        for (tag, prefixes) in TABLE.iter().chain(PLATFORM) {
            for prefix in *prefixes {
                let parsed: IpNet = prefix.parse().unwrap();
                assert_eq!(parsed.trunc(), parsed, "{tag}");
            }
        }
    }
}
