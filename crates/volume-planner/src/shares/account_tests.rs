//! Tests of what an account has to be.

use serde_json::json;

use super::*;
use crate::model::cluster_place::ClusterPlace;
use crate::parameters::given::Entries;
use crate::parameters::share::ShareParameters;

/// A request of a class, in subnets of the cluster if it asks for subnets.
pub(crate) fn request(pairs: &[(&str, &str)]) -> AccountRequest {
    let entries = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let place = ClusterPlace {
        subscription: "s".into(),
        group: "g".into(),
        location: "westeurope".into(),
        is_stack: false,
    };
    let given = ShareParameters::parse(&entries, &Entries::new(), &place).unwrap();
    let subnets = match given.account.reach {
        Reach::Subnets(_) => vec![subnet()],
        _ => Vec::new(),
    };
    AccountRequest {
        parameters: given.account,
        protocol: given.protocol,
        region: "westeurope".into(),
        subnets,
    }
}

fn subnet() -> ResourceId {
    ResourceId::group("s", "g")
        .resource("Microsoft.Network", "virtualNetworks", "net")
        .child("subnets", "pods")
}

/// The account that Azure makes of a request's document.
pub(crate) fn made(request: &AccountRequest, name: &str) -> Value {
    let mut account = request.document();
    account["name"] = name.into();
    account["location"] = "West Europe".into();
    if request.is_private() {
        account["properties"]["privateEndpointConnections"] = json!([{}]);
    }
    account
}

const CLASSES: [&[(&str, &str)]; 10] = [
    &[],
    &[("protocol", "nfs")],
    &[("skuName", "Premium_ZRS")],
    &[("skuName", "StandardV2_LRS"), ("accountAccessTier", "Cool")],
    &[("networkEndpointType", "privateEndpoint")],
    &[("networkEndpointType", "serviceEndpoint"), ("enableLargeFileShares", "true")],
    &[("allowSharedKeyAccess", "false"), ("allowCrossTenantReplication", "true")],
    &[("requireInfraEncryption", "true"), ("allowBlobPublicAccess", "true")],
    &[("matchTags", "true"), ("tags", "team=a,env=b")],
    &[("mountWithManagedIdentity", "true"), ("accountAccessTier", "Hot")],
];

/// FILE-012. Section 4.5, FIX: an account that was made for a class suits it, its tier included, so that the next volume uses it.
#[test]
fn an_account_suits_the_class_that_it_was_made_for() {
    for class in CLASSES {
        let request = request(class);
        assert_eq!(request.differs(&made(&request, "a")), None, "{class:?}");
    }
    let tier = request(&[("accountAccessTier", "Cool")]).document();
    assert_eq!(tier["properties"]["accessTier"], "Cool");
}

/// FILE-013. Section 4.5, step 2: each criterion alone makes an account unsuitable.
#[test]
fn each_difference_counts() {
    let plain = request(&[]);
    let edits: [(&str, Value, &str); 11] = [
        ("/kind", json!("FileStorage"), "the kind of account"),
        ("/location", json!("eastus"), "location"),
        ("/tags", json!({ "skip-matching": "" }), "it is full, by its tag skip-matching"),
        ("/properties/isHnsEnabled", json!(true), "a hierarchical namespace"),
        ("/properties/isNfsV3Enabled", json!(true), "NFS 3"),
        ("/properties/supportsHttpsTrafficOnly", json!(false), "HTTPS only"),
        ("/properties/allowBlobPublicAccess", json!(true), "allowBlobPublicAccess"),
        (
            "/properties/encryption",
            json!({ "requireInfrastructureEncryption": true }),
            "requireInfraEncryption",
        ),
        ("/properties/allowSharedKeyAccess", json!(false), "allowSharedKeyAccess"),
        ("/properties/privateEndpointConnections", json!([{}]), "a private endpoint"),
        ("/properties/allowBlobPublicAccess", json!(null), "allowBlobPublicAccess"),
    ];
    for (pointer, value, what) in edits {
        let mut account = made(&plain, "a");
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        account.pointer_mut(parent).unwrap()[member] = value;
        assert_eq!(plain.differs(&account), Some(what), "{pointer}");
    }
    for (class, what) in [
        (&[("skuName", "Standard_ZRS")][..], "skuName"),
        (&[("enableLargeFileShares", "true")], "enableLargeFileShares"),
        (&[("matchTags", "true"), ("tags", "a=b")], "tags"),
        (&[("allowCrossTenantReplication", "false")], "allowCrossTenantReplication"),
        (&[("accountAccessTier", "Cool")], "accountAccessTier"),
        (&[("networkEndpointType", "serviceEndpoint")], "subnets"),
        (&[("mountWithManagedIdentity", "true")], "SMB with tokens"),
    ] {
        assert_eq!(request(class).differs(&made(&plain, "a")), Some(what), "{class:?}");
    }
    // What a class does not name suits any: another replication, other tags.
    let mut account = made(&request(&[("skuName", "Standard_GRS")]), "a");
    account["tags"]["other"] = "x".into();
    assert_eq!(plain.differs(&account), None);
}

/// FILE-014. Section 4.5, step 2: the file service, which is read only if the class says something of it.
#[test]
fn the_file_service_is_compared_where_the_class_says_something() {
    assert!(!request(&[]).needs_service());
    let quick = request(&[("skuName", "Premium_LRS"), ("enableMultichannel", "true")]);
    let gone = request(&[("disableDeleteRetentionPolicy", "true")]);
    for request in [&quick, &gone] {
        assert!(request.needs_service());
        assert_eq!(request.differs_in_service(&request.service_document().unwrap()), None);
    }
    assert_eq!(quick.differs_in_service(&json!({})), Some("enableMultichannel"));
    let kept = json!({ "properties": { "shareDeleteRetentionPolicy": { "enabled": true, "days": 7 } } });
    assert_eq!(gone.differs_in_service(&kept), Some("disableDeleteRetentionPolicy"));
    assert_eq!(request(&[]).service_document(), None);
}

/// FILE-010. Classes with the same wishes share accounts, those with other wishes do not.
#[test]
fn wishes_are_what_accounts_are_matched_by() {
    let wishes: Vec<String> = CLASSES.iter().map(|class| request(class).wishes()).collect();
    for (at, one) in wishes.iter().enumerate() {
        assert!(!wishes[at + 1..].contains(one), "{one}");
    }
    for class in
        [&[("tags", "a=b")][..], &[("shareAccessTier", "Cool")], &[("selectRandomMatchingAccount", "true")]]
    {
        assert_eq!(request(class).wishes(), wishes[0], "{class:?}");
    }
}
