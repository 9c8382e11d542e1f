//! Tests of shares.

use super::*;
use crate::model::cluster_place::ClusterPlace;
use crate::model::error::Code;
use crate::parameters::given::Entries;

const G: i64 = 1 << 30;

fn parameters(pairs: &[(&str, &str)]) -> ShareParameters {
    let entries = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let place = ClusterPlace {
        subscription: "s".into(),
        group: "g".into(),
        location: "westeurope".into(),
        is_stack: false,
    };
    ShareParameters::parse(&entries, &Entries::new(), &place).unwrap()
}

/// FILE-007. Section 4.3: sizes.
#[test]
fn a_share_has_at_least_the_size_of_its_kind() {
    for (required, limit, sku, expected) in [
        (0, 0, None, Ok(100)),
        (G + 1, 0, None, Ok(2)),
        (5 * G, 0, Some("Premium_LRS"), Ok(100)),
        (5 * G, 0, Some("StandardV2_LRS"), Ok(32)),
        (200 * G, 0, Some("PremiumV2_LRS"), Ok(200)),
        (5 * G, 5 * G, Some("Premium_LRS"), Err(Code::OutOfRange)),
        (5 * G, 4 * G, None, Err(Code::OutOfRange)),
        (-1, 0, None, Err(Code::InvalidArgument)),
    ] {
        let range = CapacityRange { required_bytes: required, limit_bytes: limit };
        let size = new_size(range, sku.and_then(AccountSku::parse)).map_err(|refusal| refusal.code());
        assert_eq!(size, expected, "{required} {limit} {sku:?}");
    }
}

/// FILE-008. Section 4.5, step 9: the document of a share.
#[test]
fn a_document_has_what_the_class_says() {
    let smb = document(&parameters(&[("shareAccessTier", "Cool")]), 5, None, "file.csi.azure.com");
    let properties = json!({ "shareQuota": 5, "enabledProtocols": "SMB", "accessTier": "Cool",
        "metadata": { "createdBy": "file.csi.azure.com" } });
    assert_eq!(smb, json!({ "properties": properties }));
    let sku = AccountSku::parse("PremiumV2_LRS");
    let nfs =
        parameters(&[("protocol", "nfs"), ("rootSquashType", "RootSquash"), ("provisionedIOPS", "9000")]);
    let nfs = document(&nfs, 100, sku, "d");
    assert_eq!(nfs["properties"]["provisionedIops"], 9_000);
    assert_eq!(nfs["properties"]["provisionedBandwidthMibps"], 110);
    assert_eq!(
        (&nfs["properties"]["enabledProtocols"], &nfs["properties"]["rootSquash"]),
        (&json!("NFS"), &json!("RootSquash"))
    );
}

/// FILE-009. Section 4.5, step 8: an existing share that differs is refused as existing.
#[test]
fn an_existing_share_is_compared() {
    let share = json!({ "properties": { "shareQuota": 10, "enabledProtocols": "SMB" } });
    let check = |size, limit, protocol| {
        let range = CapacityRange { required_bytes: 0, limit_bytes: limit };
        check_existing("a", &share, range, size, protocol).map_err(|refusal| refusal.code())
    };
    assert_eq!(check(10, 0, Protocol::Smb), Ok(()));
    assert_eq!(check(5, 0, Protocol::Smb), Ok(()));
    assert_eq!(check(5, 8 * G, Protocol::Smb), Err(Code::AlreadyExists));
    assert_eq!(check(11, 0, Protocol::Smb), Err(Code::AlreadyExists));
    assert_eq!(check(10, 0, Protocol::Nfs), Err(Code::AlreadyExists));
}

/// FILE-011. Section 4.5: growing and changing write only differences.
#[test]
fn only_differences_are_written() {
    let share = json!({ "properties": { "shareQuota": 10, "provisionedIops": 4_000 } });
    let range = |required, limit| CapacityRange { required_bytes: required, limit_bytes: limit };
    assert_eq!(grow(&share, range(10 * G, 0)), Ok((10, None)));
    let grown = json!({ "properties": { "shareQuota": 11 } });
    assert_eq!(grow(&share, range(10 * G + 1, 0)), Ok((11, Some(grown))));
    assert_eq!(grow(&share, range(0, 0)).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(grow(&share, range(11 * G, 10 * G)).unwrap_err().code(), Code::OutOfRange);
    let wanted = ShareModification { iops: Some(4_000), bandwidth: Some(200) };
    assert_eq!(modify(&share, wanted), Some(json!({ "properties": { "provisionedBandwidthMibps": 200 } })));
    assert_eq!(modify(&share, ShareModification { iops: Some(4_000), bandwidth: None }), None);
}
