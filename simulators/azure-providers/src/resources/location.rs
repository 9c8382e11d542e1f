//! Regions.

use serde_json::{Value, json};

use azure_engine::answer::Answer;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

/// A region that a subscription may use.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) display_name: String,
    /// Logical zones; none in a region without zones.
    pub(super) zones: Vec<String>,
    facts: Option<&'static RegionFacts>,
}

/// The published facts of a region ("List of Azure regions").
struct RegionFacts {
    name: &'static str,
    display_name: &'static str,
    /// Such as `US`.
    group: &'static str,
    geography: &'static str,
    /// Latitude and longitude of where it roughly is.
    at: (&'static str, &'static str),
    physical: &'static str,
    paired: &'static str,
    zoned: bool,
}

macro_rules! region_facts {
    ($($name:literal, $shown:literal, $group:literal, $geography:literal, $latitude:literal, $longitude:literal,
       $physical:literal, $paired:literal, $zoned:literal;)*) => {
        &[$(RegionFacts {
            name: $name, display_name: $shown, group: $group, geography: $geography,
            at: ($latitude, $longitude), physical: $physical, paired: $paired, zoned: $zoned,
        }),*]
    };
}

static REGIONS: &[RegionFacts] = region_facts! {
    "eastus", "East US", "US", "United States", "37.3719", "-79.8164", "Virginia", "westus", true;
    "eastus2", "East US 2", "US", "United States", "36.6681", "-78.3889", "Virginia", "centralus", true;
    "southcentralus", "South Central US", "US", "United States", "29.4167", "-98.5", "Texas", "northcentralus", true;
    "westus2", "West US 2", "US", "United States", "47.233", "-119.852", "Washington", "westcentralus", true;
    "westus3", "West US 3", "US", "United States", "33.448376", "-112.074036", "Phoenix", "eastus", true;
    "centralus", "Central US", "US", "United States", "41.5908", "-93.6208", "Iowa", "eastus2", true;
    "northcentralus", "North Central US", "US", "United States", "41.8819", "-87.6278", "Illinois", "southcentralus", false;
    "westus", "West US", "US", "United States", "37.783", "-122.417", "California", "eastus", false;
    "westcentralus", "West Central US", "US", "United States", "40.89", "-110.234", "Wyoming", "westus2", false;
    "australiaeast", "Australia East", "Asia Pacific", "Australia", "-33.86", "151.2094", "New South Wales", "australiasoutheast", true;
    "australiasoutheast", "Australia Southeast", "Asia Pacific", "Australia", "-37.8136", "144.9631", "Victoria", "australiaeast", false;
    "southeastasia", "Southeast Asia", "Asia Pacific", "Asia Pacific", "1.283", "103.833", "Singapore", "eastasia", true;
    "eastasia", "East Asia", "Asia Pacific", "Asia Pacific", "22.267", "114.188", "Hong Kong", "southeastasia", true;
    "japaneast", "Japan East", "Asia Pacific", "Japan", "35.68", "139.77", "Tokyo, Saitama", "japanwest", true;
    "japanwest", "Japan West", "Asia Pacific", "Japan", "34.6939", "135.5022", "Osaka", "japaneast", true;
    "koreacentral", "Korea Central", "Asia Pacific", "Korea", "37.5665", "126.978", "Seoul", "koreasouth", true;
    "koreasouth", "Korea South", "Asia Pacific", "Korea", "35.1796", "129.0756", "Busan", "koreacentral", false;
    "centralindia", "Central India", "Asia Pacific", "India", "18.5822", "73.9197", "Pune", "southindia", true;
    "southindia", "South India", "Asia Pacific", "India", "12.9822", "80.1636", "Chennai", "centralindia", false;
    "northeurope", "North Europe", "Europe", "Europe", "53.3478", "-6.2597", "Ireland", "westeurope", true;
    "westeurope", "West Europe", "Europe", "Europe", "52.3667", "4.9", "Netherlands", "northeurope", true;
    "uksouth", "UK South", "Europe", "United Kingdom", "50.941", "-0.799", "London", "ukwest", true;
    "ukwest", "UK West", "Europe", "United Kingdom", "53.427", "-3.084", "Cardiff", "uksouth", false;
    "francecentral", "France Central", "Europe", "France", "46.3772", "2.373", "Paris", "francesouth", true;
    "francesouth", "France South", "Europe", "France", "43.8345", "2.1972", "Marseille", "francecentral", false;
    "germanywestcentral", "Germany West Central", "Europe", "Germany", "50.110924", "8.682127", "Frankfurt", "germanynorth", true;
    "germanynorth", "Germany North", "Europe", "Germany", "53.073635", "8.806422", "Berlin", "germanywestcentral", false;
    "norwayeast", "Norway East", "Europe", "Norway", "59.913868", "10.752245", "Norway", "norwaywest", true;
    "norwaywest", "Norway West", "Europe", "Norway", "58.969975", "5.733107", "Norway", "norwayeast", false;
    "swedencentral", "Sweden Central", "Europe", "Sweden", "60.67488", "17.14127", "Gävle", "swedensouth", true;
    "switzerlandnorth", "Switzerland North", "Europe", "Switzerland", "47.451542", "8.564572", "Zurich", "switzerlandwest", true;
    "switzerlandwest", "Switzerland West", "Europe", "Switzerland", "46.204391", "6.143158", "Geneva", "switzerlandnorth", false;
    "italynorth", "Italy North", "Europe", "Italy", "45.46888", "9.18109", "Milan", "", true;
    "polandcentral", "Poland Central", "Europe", "Poland", "52.23334", "21.01666", "Warsaw", "", true;
    "spaincentral", "Spain Central", "Europe", "Spain", "40.4259", "-3.4209", "Madrid", "", true;
    "canadacentral", "Canada Central", "Canada", "Canada", "43.653", "-79.383", "Toronto", "canadaeast", true;
    "canadaeast", "Canada East", "Canada", "Canada", "46.817", "-71.217", "Quebec", "canadacentral", false;
    "brazilsouth", "Brazil South", "South America", "Brazil", "-23.55", "-46.633", "Sao Paulo State", "southcentralus", true;
    "mexicocentral", "Mexico Central", "Mexico", "Mexico", "20.588818", "-100.389888", "Querétaro State", "", true;
    "southafricanorth", "South Africa North", "Africa", "South Africa", "-25.73134", "28.21837", "Johannesburg", "southafricawest", true;
    "southafricawest", "South Africa West", "Africa", "South Africa", "-34.075691", "18.843266", "Cape Town", "southafricanorth", false;
    "uaenorth", "UAE North", "Middle East", "UAE", "25.266666", "55.316666", "Dubai", "uaecentral", true;
    "uaecentral", "UAE Central", "Middle East", "UAE", "24.466667", "54.366669", "Abu Dhabi", "uaenorth", false;
    "qatarcentral", "Qatar Central", "Middle East", "Qatar", "25.551462", "51.439327", "Doha", "", true;
    "israelcentral", "Israel Central", "Middle East", "Israel", "31.2655698", "33.4506633", "Israel", "", true;
};

/// Regions that subscriptions get on demand, and those of other clouds: accepted where a document names them, and
/// listed nowhere.
const OTHERS: [&str; 38] = [
    "australiacentral",
    "australiacentral2",
    "austriaeast",
    "belgiumcentral",
    "brazilsoutheast",
    "centraluseuap",
    "chilecentral",
    "chinaeast",
    "chinaeast2",
    "chinaeast3",
    "chinanorth",
    "chinanorth2",
    "chinanorth3",
    "denmarkeast",
    "eastus2euap",
    "eastusstg",
    "germanycentral",
    "germanynortheast",
    "indonesiacentral",
    "jioindiacentral",
    "jioindiawest",
    "malaysiawest",
    "newzealandnorth",
    "southcentralusstg",
    "swedensouth",
    "taiwannorth",
    "taiwannorthwest",
    "usdodcentral",
    "usdodeast",
    "usgovarizona",
    "usgoviowa",
    "usgovtexas",
    "usgovvirginia",
    "usnateast",
    "usnatwest",
    "usseceast",
    "ussecwest",
    "westindia",
];

/// The names of all regions that are known here: those that Azure lists for all subscriptions, and those that a
/// document may name.
pub fn region_names() -> impl Iterator<Item = &'static str> {
    REGIONS.iter().map(|facts| facts.name).chain(OTHERS)
}

/// The paired region of a region, if it has one.
pub(crate) fn paired_region(region: &str) -> Option<&'static str> {
    let facts = REGIONS.iter().find(|facts| facts.name == region)?;
    Some(facts.paired).filter(|paired| !paired.is_empty())
}

/// A region's display name; the name itself if it is unknown.
pub fn region_display_name(region: &str) -> &str {
    REGIONS.iter().find(|facts| facts.name == region).map_or(region, |facts| facts.display_name)
}

/// Refuses a location, in its normal spelling, where there is no region. `resource_type` is `None` for groups.
pub(crate) fn check_region(azure: &AzureState, location: &str, resource_type: Option<&str>) -> Result<()> {
    if azure.options.region == location || region_names().any(|name| name == location) {
        return Ok(());
    }
    let regions: Vec<String> = regions(azure).into_iter().map(|region| region.name).collect();
    let regions = regions.join(",");
    match resource_type {
        Some(kind) => Err(Refusal::no_such_location(location, kind, &regions)),
        None => Err(Code::azures(400, "LocationNotAvailableForResourceGroup").says(format_args!(
            "The provided location '{location}' is not available for resource group. List of available regions for \
             the resource type is '{regions}'."
        ))),
    }
}

/// The regions, that of the options first, with the name and the zones that the options give it.
pub(super) fn regions(azure: &AzureState) -> Vec<Region> {
    let options = &azure.options;
    let own = Region {
        name: options.region.clone(),
        display_name: options.region_display_name.clone(),
        zones: options.zones.clone(),
        facts: REGIONS.iter().find(|facts| facts.name == options.region),
    };
    let others = REGIONS.iter().filter(|facts| facts.name != options.region).map(|facts| Region {
        name: facts.name.into(),
        display_name: facts.display_name.into(),
        zones: if facts.zoned { vec!["1".into(), "2".into(), "3".into()] } else { Vec::new() },
        facts: Some(facts),
    });
    std::iter::once(own).chain(others).collect()
}

/// GET of the locations.
pub(crate) fn list_locations(azure: &AzureState, subscription: &str) -> Answer {
    let list: Vec<Value> = regions(azure).iter().map(|region| shown(region, subscription)).collect();
    Answer::ok(json!({ "value": list }))
}

fn shown(region: &Region, subscription: &str) -> Value {
    let (name, display_name) = (&region.name, &region.display_name);
    let category = if region.zones.is_empty() { "Other" } else { "Recommended" };
    let mut metadata = json!({ "regionType": "Physical", "regionCategory": category });
    let mut regional = display_name.clone();
    if let Some(facts) = region.facts {
        regional = format!("({}) {display_name}", facts.group);
        metadata["geography"] = facts.geography.into();
        metadata["geographyGroup"] = facts.group.into();
        metadata["latitude"] = facts.at.0.into();
        metadata["longitude"] = facts.at.1.into();
        metadata["physicalLocation"] = facts.physical.into();
        let paired = facts.paired;
        metadata["pairedRegion"] = match paired {
            "" => json!([]),
            _ => {
                json!([{ "name": paired, "id": format!("/subscriptions/{subscription}/locations/{paired}") }])
            }
        };
    }
    let mut location = json!({
        "id": format!("/subscriptions/{subscription}/locations/{name}"),
        "name": name,
        "type": "Region",
        "displayName": display_name,
        "regionalDisplayName": regional,
        "metadata": metadata,
    });
    if !region.zones.is_empty() {
        let zones: Vec<Value> = region
            .zones
            .iter()
            .map(|zone| json!({ "logicalZone": zone, "physicalZone": format!("{name}-az{zone}") }))
            .collect();
        location["availabilityZoneMappings"] = zones.into();
    }
    location
}
