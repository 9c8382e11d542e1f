//! Service tags: names for the addresses of Azure's services.
//!
//! Azure publishes thousands of prefixes and changes them weekly. Here the commonest tags have a few of them, the
//! largest as a rule, in some regions, so that rules can be distinguished; [`super::Network::with_service_tag`] gives a
//! tag others. From the list of Azure's public cloud with change number 360.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// (tag with or without a region, prefixes). A tag without a region also has those of its regions.
const TABLE: &[(&str, &[&str])] = &[
    ("AppService.EastUS", &["20.119.0.0/20", "20.119.16.0/21"]),
    ("AppService.NorthEurope", &["13.69.228.0/25", "20.107.224.0/21"]),
    ("AppService.WestEurope", &["20.105.216.0/21", "20.105.224.0/20"]),
    ("AppService.WestUS", &["20.59.88.0/21", "20.59.96.0/22"]),
    ("AppService.WestUS2", &["20.115.232.0/21", "20.115.247.0/26"]),
    ("AzureActiveDirectory", &["20.190.128.0/18", "40.126.0.0/18"]),
    ("AzureCloud.EastUS", &["4.156.0.0/15", "172.190.0.0/15"]),
    ("AzureCloud.NorthEurope", &["4.207.0.0/16", "4.208.0.0/15"]),
    ("AzureCloud.WestEurope", &["13.80.0.0/15", "108.142.0.0/15"]),
    ("AzureCloud.WestUS", &["13.64.0.0/16", "172.184.0.0/15"]),
    ("AzureCloud.WestUS2", &["4.154.0.0/15", "20.3.0.0/16"]),
    ("AzureContainerRegistry.EastUS", &["20.42.66.0/24", "57.151.4.0/23"]),
    ("AzureContainerRegistry.NorthEurope", &["4.207.245.0/24", "13.69.236.0/23"]),
    ("AzureContainerRegistry.WestEurope", &["52.178.18.0/23", "172.211.120.0/23"]),
    ("AzureContainerRegistry.WestUS", &["4.150.255.0/24", "20.189.169.0/24"]),
    ("AzureContainerRegistry.WestUS2", &["13.66.146.0/24", "13.66.148.0/24"]),
    ("AzureCosmosDB.EastUS", &["40.71.10.0/25", "40.78.226.0/25"]),
    ("AzureCosmosDB.NorthEurope", &["13.69.226.0/25", "13.74.106.0/25"]),
    ("AzureCosmosDB.WestEurope", &["13.69.66.0/25", "13.69.112.0/25"]),
    ("AzureCosmosDB.WestUS", &["40.112.241.0/24", "68.220.35.0/25"]),
    ("AzureCosmosDB.WestUS2", &["13.66.138.0/26", "20.42.170.128/25"]),
    ("AzureFrontDoor.Backend", &["69.15.0.0/16", "147.243.0.0/16"]),
    ("AzureFrontDoor.Frontend", &["40.90.64.0/22", "150.171.84.0/22"]),
    ("AzureKeyVault.EastUS", &["20.62.134.224/29", "20.88.156.160/29"]),
    ("AzureKeyVault.NorthEurope", &["13.69.227.72/30", "52.146.137.168/29"]),
    ("AzureKeyVault.WestEurope", &["13.69.64.72/30", "20.61.103.224/29"]),
    ("AzureKeyVault.WestUS", &["20.66.2.28/30", "20.66.5.128/29"]),
    ("AzureKeyVault.WestUS2", &["20.51.12.248/29", "20.83.221.96/28"]),
    ("AzureMonitor.EastUS", &["20.42.65.128/25", "20.42.73.128/25"]),
    ("AzureMonitor.NorthEurope", &["4.207.252.128/27", "4.207.252.192/26"]),
    ("AzureMonitor.WestEurope", &["13.69.109.224/27", "57.153.246.192/26"]),
    ("AzureMonitor.WestUS", &["13.86.223.128/26", "20.189.172.0/25"]),
    ("AzureMonitor.WestUS2", &["20.51.9.0/26", "40.78.247.64/26"]),
    ("AzureResourceManager.EastUS", &["20.62.130.0/23", "40.79.158.0/23"]),
    ("AzureResourceManager.NorthEurope", &["13.69.234.0/23", "52.146.134.0/23"]),
    ("AzureResourceManager.WestEurope", &["13.69.114.0/23", "20.61.100.0/23"]),
    ("AzureResourceManager.WestUS", &["4.150.240.0/23", "20.66.0.0/23"]),
    ("AzureResourceManager.WestUS2", &["20.51.10.0/23", "40.78.254.0/23"]),
    ("EventHub.EastUS", &["52.191.45.0/24", "172.191.248.0/24"]),
    ("EventHub.NorthEurope", &["20.82.245.0/24", "134.149.88.0/23"]),
    ("EventHub.WestEurope", &["20.86.89.0/24", "68.219.160.128/25"]),
    ("EventHub.WestUS", &["20.66.7.0/24", "172.185.82.0/23"]),
    ("EventHub.WestUS2", &["20.51.14.128/25", "52.233.111.128/25"]),
    ("GatewayManager", &["4.199.82.192/26", "4.232.24.64/26"]),
    ("MicrosoftContainerRegistry.EastUS", &["40.71.10.208/29", "40.78.226.200/29"]),
    ("MicrosoftContainerRegistry.NorthEurope", &["13.69.227.80/29", "13.74.107.72/29"]),
    ("MicrosoftContainerRegistry.WestEurope", &["13.69.64.80/29", "13.69.106.72/29"]),
    ("MicrosoftContainerRegistry.WestUS", &["20.168.162.64/29", "40.112.242.152/29"]),
    ("MicrosoftContainerRegistry.WestUS2", &["13.66.140.64/29", "40.78.242.152/29"]),
    ("ServiceBus.EastUS", &["57.152.109.128/25", "57.154.201.0/24"]),
    ("ServiceBus.NorthEurope", &["20.82.244.128/25", "172.205.66.0/24"]),
    ("ServiceBus.WestEurope", &["20.86.92.0/25", "57.153.239.0/24"]),
    ("ServiceBus.WestUS", &["20.66.6.128/25", "57.154.143.0/24"]),
    ("ServiceBus.WestUS2", &["20.51.15.0/25", "172.179.213.0/24"]),
    ("Sql.EastUS", &["20.42.69.0/25", "52.179.78.0/24"]),
    ("Sql.NorthEurope", &["20.166.43.0/25", "20.166.45.0/24"]),
    ("Sql.WestEurope", &["13.69.116.128/25", "68.219.168.0/24"]),
    ("Sql.WestUS", &["13.86.216.0/25", "13.86.217.0/25"]),
    ("Sql.WestUS2", &["20.42.168.128/25", "20.42.174.128/25"]),
    ("Storage.EastUS", &["20.38.98.0/24", "52.239.152.0/22"]),
    ("Storage.NorthEurope", &["20.33.228.0/23", "52.239.136.0/22"]),
    ("Storage.WestEurope", &["20.38.108.0/23", "52.239.140.0/22"]),
    ("Storage.WestUS", &["20.47.22.0/23", "52.239.160.0/22"]),
    ("Storage.WestUS2", &["20.47.62.0/23", "20.60.68.0/22"]),
];

/// Tags for what each host offers its machines.
const PLATFORM: &[(&str, &[&str])] = &[
    ("AzurePlatformDNS", &["168.63.129.16/32"]),
    ("AzurePlatformIMDS", &["169.254.169.254/32"]),
    ("AzurePlatformLKM", &["23.102.135.246/32"]),
];

/// All prefixes of a tag, by its name or that of a region of it. `given` overrides the table.
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
        let cloud = of("AzureCloud.WestUS");
        assert!(of("Storage.WestUS").iter().all(|prefix| cloud.contains(prefix)));
        assert!(!of("Storage.EastUS").iter().any(|prefix| cloud.contains(prefix)));
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
