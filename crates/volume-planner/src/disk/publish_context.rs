//! What a node is given about an attached disk.

use super::context::VolumeContext;
use super::observed::ObservedDisk;
use crate::parameters::given::Entries;

/// The key for the LUN.
pub const LUN: &str = "LUN";

/// The context of a published volume: its LUN, and for one that the driver did not make, facts of its disk that the node would
/// otherwise find in the volume's own context.
pub fn publish_context(lun: u32, context: VolumeContext, disk: Option<ObservedDisk<'_>>) -> Entries {
    let mut entries = Entries::from([(LUN.to_owned(), lun.to_string())]);
    let Some(disk) = disk.filter(|_| !context.is_ours) else { return entries };
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let text = |text: Option<&str>| text.map(str::to_owned);
    let facts = [
        ("skuname", text(disk.sku_name())),
        ("networkaccesspolicy", text(disk.network_policy())),
        ("diskiopsreadwrite", number(disk.iops())),
        ("diskmbpsreadwrite", number(disk.mbps())),
        ("logicalsectorsize", number(disk.sector_size())),
        ("diskencryptionsetid", text(disk.encryption_set())),
        ("maxshares", Some(disk.max_shares().to_string())),
    ];
    entries.extend(facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Section 3.9, step 6.
    #[test]
    fn a_node_gets_facts_of_foreign_volumes() {
        let disk = json!({ "sku": { "name": "Premium_LRS" }, "properties": { "diskIOPSReadWrite": 120, "networkAccessPolicy": "DenyAll" } });
        let of = |context: &[(&str, &str)]| {
            let context =
                context.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let context = VolumeContext::parse(&context, false).unwrap();
            publish_context(7, context, Some(ObservedDisk(&disk)))
                .into_iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[("requestedsizegib", "1")]), ["LUN=7"]);
        assert_eq!(
            of(&[]),
            [
                "LUN=7",
                "diskiopsreadwrite=120",
                "maxshares=1",
                "networkaccesspolicy=DenyAll",
                "skuname=Premium_LRS"
            ]
        );
    }
}
