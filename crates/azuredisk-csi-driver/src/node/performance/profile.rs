//! The profile that a volume's class asks for.

use std::collections::HashMap;

use tonic::Status;
use volume_planner::parameters::given::Entries;
use volume_planner::parameters::keys;

use crate::node::capability::value;

/// What the SKUs begin with, in lower case, to which profiles apply.
const TUNED: [&str; 2] = ["premium", "standardssd"];

/// What a new volume has whose class names no SKU.
const DEFAULT_SKU: &str = "StandardSSD_LRS";

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) enum Profile {
    /// Settings are computed for this disk.
    Basic(DiskFacts),
    /// Settings as they are given: paths below the device's folder, with their values.
    Advanced(Vec<(String, String)>),
}

/// Facts about a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct DiskFacts {
    pub sku: String,
    pub iops: Option<u64>,
    pub mbps: Option<u64>,
}

/// The profile that applies to a volume, if one does. Facts about disks that the driver did not make are in the publish context.
pub(in crate::node) fn profile(
    context: &Entries,
    publish_context: &HashMap<String, String>,
) -> Result<Option<Profile>, Status> {
    let name = value(context, keys::PERF_PROFILE).unwrap_or("none").to_ascii_lowercase();
    let published: Entries = publish_context.iter().map(|(key, own)| (key.clone(), own.clone())).collect();
    let either = |key: &str| value(context, key).or_else(|| value(&published, key));
    let sku = either(keys::SKU_NAME).or_else(|| value(context, keys::STORAGE_ACCOUNT_TYPE));
    let sku = sku.unwrap_or(DEFAULT_SKU).to_owned();
    let is_tuned = TUNED.iter().any(|start| sku.to_ascii_lowercase().starts_with(start));
    match name.as_str() {
        "none" => Ok(None),
        "basic" | "advanced" if !is_tuned => Ok(None),
        "basic" => {
            let number = |key: &str| either(key).and_then(|text| text.parse().ok());
            let (iops, mbps) = (number(keys::IOPS), number(keys::MBPS));
            Ok(Some(Profile::Basic(DiskFacts { sku, iops, mbps })))
        }
        "advanced" => {
            let settings: Vec<_> = context.iter().filter_map(|(key, own)| setting(key, own)).collect();
            if settings.is_empty() {
                return Err(Status::invalid_argument(
                    "perfProfile advanced needs at least one device-setting/ key; add one, or choose another profile",
                ));
            }
            Ok(Some(Profile::Advanced(settings)))
        }
        other => Err(Status::invalid_argument(format!(
            "perfProfile {other} is invalid: expected none, basic or advanced; correct or remove it"
        ))),
    }
}

fn setting(key: &str, value: &str) -> Option<(String, String)> {
    let (prefix, path) = key.split_at_checked(keys::DEVICE_SETTING.len())?;
    prefix.eq_ignore_ascii_case(keys::DEVICE_SETTING).then(|| (path.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(context: &[(&str, &str)], published: &[(&str, &str)]) -> Result<Option<Profile>, Status> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        profile(&context.iter().map(own).collect(), &published.iter().map(own).collect())
    }

    /// Section 3.15: which disks have profiles.
    #[test]
    fn profiles_apply_to_solid_state_disks() {
        for (context, applies) in [
            (vec![], false),
            (vec![("perfProfile", "None")], false),
            (vec![("perfProfile", "Basic"), ("skuName", "Premium_LRS")], true),
            (vec![("perfprofile", "basic"), ("storageAccountType", "StandardSSD_ZRS")], true),
            (vec![("perfProfile", "basic")], true),
            (vec![("perfProfile", "basic"), ("skuName", "Standard_LRS")], false),
            (vec![("perfProfile", "basic"), ("skuName", "UltraSSD_LRS")], false),
            (vec![("perfProfile", "advanced"), ("device-setting/queue/scheduler", "none")], true),
        ] {
            assert_eq!(read(&context, &[]).unwrap().is_some(), applies, "{context:?}");
        }
        assert!(read(&[("perfProfile", "fast")], &[]).is_err());
        assert!(read(&[("perfProfile", "advanced")], &[]).is_err());
        let foreign = read(&[("perfProfile", "basic")], &[("skuname", "Standard_LRS")]).unwrap();
        assert_eq!(foreign, None);
    }
}
