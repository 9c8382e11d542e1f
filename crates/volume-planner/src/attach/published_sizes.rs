//! Azure's list of sizes (Azure REST reference, "Resource Skus - List"): how many data disks each takes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::document::text;

const MACHINES: &str = "virtualMachines";
const MAX_DATA_DISKS: &str = "MaxDataDiskCount";

/// The number of data disks by size, as far as Azure was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedSizes(BTreeMap<String, u32>);

impl PublishedSizes {
    /// Reads the elements of the list. Elements of other types, and sizes without the number, are left out.
    pub fn parse<'a>(elements: impl IntoIterator<Item = &'a Value>) -> Self {
        let read = |element: &Value| {
            text(element, "/resourceType").filter(|kind| kind.eq_ignore_ascii_case(MACHINES))?;
            let name = text(element, "/name")?.to_ascii_lowercase();
            let capabilities = element.get("capabilities")?.as_array()?;
            let disks = capabilities.iter().find(|one| text(one, "/name") == Some(MAX_DATA_DISKS))?;
            Some((name, text(disks, "/value")?.parse().ok()?))
        };
        Self(elements.into_iter().filter_map(read).collect())
    }

    /// The number for a size.
    pub fn max_data_disks(&self, size: &str) -> Option<u32> {
        self.0.get(&size.to_ascii_lowercase()).copied()
    }
}

/// Several parts of the list as one.
impl FromIterator<Self> for PublishedSizes {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CSI-048. Section 3.12, trap 5.
    #[test]
    fn sizes_have_the_number_that_azure_publishes() {
        let capability = |value: &str| json!([{ "name": "vCPUs", "value": "2" }, { "name": "MaxDataDiskCount", "value": value }]);
        let list = [
            json!({ "resourceType": "virtualMachines", "name": "Standard_New_v9", "capabilities": capability("24") }),
            json!({ "resourceType": "disks", "name": "Premium_LRS", "capabilities": capability("1") }),
            json!({ "resourceType": "virtualMachines", "name": "Standard_Odd", "capabilities": capability("many") }),
            json!({ "resourceType": "virtualMachines", "name": "Standard_None" }),
        ];
        let sizes = PublishedSizes::parse(&list);
        for (size, disks) in [
            ("standard_new_V9", Some(24)),
            ("Premium_LRS", None),
            ("Standard_Odd", None),
            ("Standard_None", None),
        ] {
            assert_eq!(sizes.max_data_disks(size), disks, "{size}");
        }
    }
}
