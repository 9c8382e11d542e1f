//! The private zones of services' names ("Azure Private Endpoint private DNS zone values").

/// (suffix of the public names, zone).
const ZONES: [(&str, &str); 8] = [
    ("vault.azure.net", "privatelink.vaultcore.azure.net"),
    ("blob.core.windows.net", "privatelink.blob.core.windows.net"),
    ("file.core.windows.net", "privatelink.file.core.windows.net"),
    ("queue.core.windows.net", "privatelink.queue.core.windows.net"),
    ("table.core.windows.net", "privatelink.table.core.windows.net"),
    ("dfs.core.windows.net", "privatelink.dfs.core.windows.net"),
    ("web.core.windows.net", "privatelink.web.core.windows.net"),
    ("azurecr.io", "privatelink.azurecr.io"),
];

/// The name of the record set for a public name in a zone; `None` for names that do not belong there.
pub(super) fn record_name(fqdn: &str, zone: &str) -> Option<String> {
    let (suffix, _) = ZONES.iter().find(|(_, known)| known.eq_ignore_ascii_case(zone))?;
    let name = fqdn.strip_suffix(suffix)?.strip_suffix('.')?;
    Some(name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::record_name;

    #[test]
    fn names_stand_in_the_zone_of_their_service() {
        for (fqdn, zone, name) in [
            ("v.vault.azure.net", "privatelink.vaultcore.azure.net", Some("v")),
            ("r.eastus.data.azurecr.io", "privatelink.azurecr.io", Some("r.eastus.data")),
            ("v.vault.azure.net", "privatelink.azurecr.io", None),
            ("v.vault.azure.net", "own.zone", None),
        ] {
            assert_eq!(record_name(fqdn, zone).as_deref(), name, "{fqdn} {zone}");
        }
    }
}
