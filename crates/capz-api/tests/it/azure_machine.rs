//! Section D of the acceptance list, as far as it concerns admission: machines and their templates.

use capz_api::{Context, Lookup};
use serde_json::{Value, json};

use super::{GUID, SSH_KEY, admitted, change_refused, context, judge, refused, with};

const KIND: &str = "AzureMachine";

fn base() -> Value {
    json!({
        "metadata": { "name": "m" },
        "spec": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 128 }, "sshPublicKey": SSH_KEY }
    })
}

fn defaulted(changes: &[(&str, Value)]) -> Value {
    admitted(KIND, with(&base(), changes), &context())["spec"].clone()
}

/// CAPZ-082
#[test]
fn a_key_is_made_or_is_a_key() {
    assert_eq!(defaulted(&[("spec.sshPublicKey", json!(""))])["sshPublicKey"], SSH_KEY);
    judge(
        KIND,
        &base(),
        &[
            (
                &[("spec.sshPublicKey", json!("not base64!"))],
                "spec.sshPublicKey: Invalid value: \"not base64!\": the SSH public key is not properly base64",
            ),
            (&[("spec.sshPublicKey", json!("dGVzdA=="))], "the SSH public key is not valid"),
        ],
        &context(),
    );
}

/// CAPZ-083, CAPZ-084
#[test]
fn data_disks_get_a_free_lun_and_a_cache() {
    let disk = |name: &str, lun: Value, kind: &str| json!({ "nameSuffix": name, "diskSizeGB": 64, "lun": lun, "managedDisk": { "storageAccountType": kind } });
    let luns = |disks: Value| -> Vec<Value> {
        let spec = defaulted(&[("spec.dataDisks", disks)]);
        spec["dataDisks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|disk| json!([disk["lun"], disk["cachingType"]]))
            .collect()
    };
    let none = Value::Null;
    let standard = "Standard_LRS";
    assert_eq!(
        luns(json!([
            disk("a", none.clone(), standard),
            disk("b", none.clone(), standard),
            disk("c", none.clone(), "UltraSSD_LRS")
        ])),
        [json!([0, "ReadWrite"]), json!([1, "ReadWrite"]), json!([2, "None"])]
    );
    assert_eq!(
        luns(json!([
            disk("a", json!(0), standard),
            disk("b", json!(2), standard),
            disk("c", none, standard)
        ]))[2],
        json!([1, "ReadWrite"])
    );
    let one = |member: &str, value: Value| {
        let mut disk = disk("a", json!(0), standard);
        disk[member] = value;
        ("spec.dataDisks", json!([disk]))
    };
    let mut ultra = disk("a", json!(0), "UltraSSD_LRS");
    ultra["cachingType"] = json!("ReadOnly");
    judge(
        KIND,
        &base(),
        &[
            (
                &[("spec.dataDisks", json!([disk("a", json!(0), standard), disk("b", json!(0), standard)]))],
                "dataDisks[1].lun: Duplicate value: 0",
            ),
            (
                &[("spec.dataDisks", json!([disk("a", json!(0), standard), disk("a", json!(1), standard)]))],
                "dataDisks[1].nameSuffix: Duplicate value",
            ),
            (&[one("lun", json!(-1))], "dataDisks[0].lun: Invalid value: -1"),
            (&[one("lun", json!(64))], "dataDisks[0].lun: Invalid value: 64"),
            (&[one("diskSizeGB", json!(3))], "dataDisks[0].diskSizeGB: Invalid value: 3"),
            (&[one("nameSuffix", json!(""))], "dataDisks[0].nameSuffix: Required value"),
            (&[("spec.dataDisks", json!([ultra]))], "cachingType must be None"),
            (
                &[one("managedDisk", json!({ "storageAccountType": "Floppy" }))],
                "storageAccountType: Unsupported value: \"Floppy\"",
            ),
        ],
        &context(),
    );
}

/// CAPZ-085, CAPZ-086
#[test]
fn the_systems_disk_is_one_that_azure_makes() {
    let set = json!({ "storageAccountType": "Premium_LRS", "diskEncryptionSet": { "id": "x" } });
    judge(
        KIND,
        &base(),
        &[
            (
                &[("spec.osDisk.managedDisk", json!({ "storageAccountType": "UltraSSD_LRS" }))],
                "UltraSSD_LRS can only be used with data disks",
            ),
            (&[("spec.osDisk.managedDisk", json!({}))], "storageAccountType: Required value"),
            (&[("spec.osDisk.diskSizeGB", json!(2049))], "spec.osDisk.diskSizeGB: Invalid value: 2049"),
            (
                &[
                    ("spec.osDisk.diffDiskSettings", json!({ "option": "Local" })),
                    ("spec.osDisk.managedDisk", set),
                ],
                "not supported when diffDiskSettings.option is 'Local'",
            ),
            (
                &[("spec.osDisk.diffDiskSettings", json!({ "placement": "CacheDisk" }))],
                "placement is only supported when",
            ),
            (&[("spec.osDisk.diffDiskSettings", json!({ "option": "Local", "placement": "CacheDisk" }))], ""),
            (
                &[("spec.osDisk.cachingType", json!("Sometimes"))],
                "spec.osDisk.cachingType: Unsupported value",
            ),
        ],
        &context(),
    );
}

/// CAPZ-087
#[test]
fn identities_are_named_where_the_machine_has_them() {
    let id =
        "/subscriptions/1/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i";
    let user = ("spec.identity", json!("UserAssigned"));
    let list = |id: &str| ("spec.userAssignedIdentities", json!([{ "providerID": id }]));
    judge(
        KIND,
        &base(),
        &[
            (std::slice::from_ref(&user), "spec.userAssignedIdentities: Required value"),
            (&[list(id)], "userAssignedIdentities needs the identity type"),
            (&[user.clone(), list("bad")], "userAssignedIdentities[0].providerID: Invalid value: \"bad\""),
            (&[user.clone(), list(id)], ""),
            (&[user.clone(), list(&format!("azure://{id}"))], ""),
        ],
        &context(),
    );
}

/// CAPZ-088, CAPZ-089
#[test]
fn a_machine_with_an_identity_of_its_own_has_a_role() {
    let system = ("spec.identity", json!("SystemAssigned"));
    let role = |value: Value| ("spec.systemAssignedIdentityRole", value);
    assert_eq!(
        defaulted(std::slice::from_ref(&system))["systemAssignedIdentityRole"],
        json!({
            "name": GUID, "scope": "/subscriptions/123/",
            "definitionID": "/subscriptions/123/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c"
        })
    );
    let own =
        json!({ "name": GUID, "scope": "/subscriptions/1/resourceGroups/rg", "definitionID": "/owner" });
    assert_eq!(defaulted(&[system.clone(), role(own.clone())])["systemAssignedIdentityRole"], own);
    let moved = defaulted(&[system.clone(), ("spec.roleAssignmentName", json!(GUID))]);
    assert!(moved.get("roleAssignmentName").is_none(), "it is where it belongs now");
    judge(
        KIND,
        &base(),
        &[
            (
                &[system.clone(), role(json!({ "name": "no-guid" }))],
                "the name of a role assignment must be a valid GUID",
            ),
            (&[role(json!({ "scope": "/subscriptions/1" }))], "systemAssignedIdentityRole: Forbidden"),
            (
                &[system.clone(), role(json!({ "name": GUID })), ("spec.roleAssignmentName", json!(GUID))],
                "cannot set both",
            ),
        ],
        &context(),
    );
    let unknown = Context { subscription: Lookup::NotNeeded, ..Context::default() };
    let errors = refused(
        KIND,
        with(&base(), &[system.clone(), role(json!({ "name": GUID, "definitionID": "/d" }))]),
        &unknown,
    );
    assert!(
        errors.iter().any(|error| error.starts_with("spec.systemAssignedIdentityRole.scope: Required value")),
        "{errors:?}"
    );
    let failed =
        Context { subscription: Lookup::Failed("the Cluster is not there".to_owned()), ..Context::default() };
    let denied =
        capz_api::admission::set_defaults(KIND, with(&base(), &[system]), &failed, &mut super::Fixed);
    assert!(denied.unwrap_err().to_string().contains("the Cluster is not there"));
}

/// CAPZ-090
#[test]
fn a_spot_machine_is_deallocated_or_deleted() {
    let spot = ("spec.spotVMOptions", json!({ "maxPrice": "0.04" }));
    let spec = defaulted(std::slice::from_ref(&spot));
    assert_eq!(spec["spotVMOptions"], json!({ "evictionPolicy": "Deallocate", "maxPrice": "0.04" }));
    let local = ("spec.osDisk.diffDiskSettings", json!({ "option": "Local" }));
    assert_eq!(defaulted(&[spot.clone(), local])["spotVMOptions"]["evictionPolicy"], "Delete");
}

/// CAPZ-091
#[test]
fn there_is_one_interface_with_one_address_at_least() {
    let interfaces = |value: Value| ("spec.networkInterfaces", value);
    assert_eq!(defaulted(&[])["networkInterfaces"], json!([{ "privateIPConfigs": 1 }]));
    let moved = defaulted(&[("spec.subnetName", json!("s")), ("spec.acceleratedNetworking", json!(true))]);
    assert_eq!(
        moved["networkInterfaces"],
        json!([{ "subnetName": "s", "acceleratedNetworking": true, "privateIPConfigs": 1 }])
    );
    assert!(moved.get("subnetName").is_none() && moved.get("acceleratedNetworking").is_none());
    assert_eq!(
        defaulted(&[interfaces(json!([{ "privateIPConfigs": 0 }]))])["networkInterfaces"][0]["privateIPConfigs"],
        1
    );
    judge(
        KIND,
        &base(),
        &[
            (
                &[interfaces(json!([{ "subnetName": "a" }])), ("spec.subnetName", json!("b"))],
                "cannot set both networkInterfaces and machine subnetName",
            ),
            (&[interfaces(json!([{ "privateIPConfigs": -1 }]))], "privateIPConfigs: Invalid value: -1"),
        ],
        &context(),
    );
}

/// CAPZ-092, CAPZ-095, and the ids of groups and scale sets.
#[test]
fn extensions_images_and_ids_are_checked() {
    let set = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/s";
    judge(
        KIND,
        &base(),
        &[
            (
                &[
                    ("spec.disableExtensionOperations", json!(true)),
                    ("spec.vmExtensions", json!([{ "name": "a", "publisher": "p", "version": "1" }])),
                ],
                "spec.vmExtensions: Forbidden",
            ),
            (
                &[("spec.image", json!({ "marketplace": { "offer": "o", "sku": "s", "version": "1" } }))],
                "spec.image.marketplace.publisher: Required value",
            ),
            (
                &[(
                    "spec.image",
                    json!({ "id": "/x", "sharedGallery": { "subscriptionID": "1", "resourceGroup": "g", "gallery": "g", "name": "n", "version": "1" } }),
                )],
                "spec.image.sharedGallery: Forbidden",
            ),
            (
                &[(
                    "spec.image",
                    json!({ "computeGallery": { "gallery": "g", "name": "n", "version": "1", "resourceGroup": "rg" } }),
                )],
                "spec.image.computeGallery.subscriptionID: Required value",
            ),
            (
                &[(
                    "spec.image",
                    json!({ "computeGallery": { "gallery": "g", "name": "n", "version": "1" } }),
                )],
                "",
            ),
            (&[("spec.image", json!({}))], "spec.image: Required value"),
            (
                &[("spec.capacityReservationGroupID", json!("x"))],
                "spec.capacityReservationGroupID: Invalid value: \"x\"",
            ),
            (&[("spec.virtualMachineScaleSetID", json!(set))], ""),
            (
                &[("spec.virtualMachineScaleSetID", json!(set.replace("ScaleSets", "s")))],
                "providers/Microsoft.Compute/virtualMachineScaleSets/NAME",
            ),
            (
                &[("spec.diagnostics", json!({ "boot": { "storageAccountType": "UserManaged" } }))],
                "storageAccountURI cannot be empty",
            ),
            (
                &[(
                    "spec.diagnostics",
                    json!({ "boot": { "storageAccountType": "Managed", "userManaged": { "storageAccountURI": "https://a" } } }),
                )],
                "spec.diagnostics.boot.userManaged.storageAccountURI: Invalid value",
            ),
        ],
        &context(),
    );
    assert_eq!(defaulted(&[])["diagnostics"], json!({ "boot": { "storageAccountType": "Managed" } }));
}

/// CAPZ-093, CAPZ-094
#[test]
fn what_would_need_another_machine_stays() {
    let bootstrap = |value: bool| [("spec.disableVMBootstrapExtension", json!(value))];
    for (member, value) in [
        ("image", json!({ "id": "/x" })),
        ("osDisk.diskSizeGB", json!(256)),
        ("dataDisks", json!([{ "nameSuffix": "a", "diskSizeGB": 8 }])),
        ("identity", json!("SystemAssigned")),
        ("sshPublicKey", json!("x")),
        ("allocatePublicIP", json!(true)),
        ("enableIPForwarding", json!(true)),
        ("spotVMOptions", json!({})),
        ("securityProfile", json!({ "encryptionAtHost": true })),
        ("networkInterfaces", json!([{ "privateIPConfigs": 2 }])),
    ] {
        let path = format!("spec.{member}");
        let errors = change_refused(KIND, base(), with(&base(), &[(&path, value)]), &context());
        let member = member.split('.').next().unwrap();
        assert!(
            errors.iter().any(|error| error.starts_with(&format!("spec.{member}: Invalid value"))),
            "{member}: {errors:?}"
        );
    }
    for (old, new, taken) in [
        (base(), with(&base(), &[("spec.additionalTags", json!({ "a": "b" }))]), true),
        (
            base(),
            with(
                &base(),
                &[("spec.networkInterfaces", json!([{ "subnetName": "s", "privateIPConfigs": 1 }]))],
            ),
            true,
        ),
        // S6: a machine is identified by its provider ID, and stays in its zone.
        (base(), with(&base(), &[("spec.providerID", json!("azure:///a"))]), true),
        (
            with(&base(), &[("spec.providerID", json!("azure:///a"))]),
            with(&base(), &[("spec.providerID", json!("azure:///b"))]),
            false,
        ),
        (
            with(&base(), &[("spec.failureDomain", json!("1"))]),
            with(&base(), &[("spec.failureDomain", json!("2"))]),
            false,
        ),
        (base(), with(&base(), &bootstrap(false)), true),
        (with(&base(), &bootstrap(false)), with(&base(), &bootstrap(true)), false),
        (with(&base(), &bootstrap(false)), base(), false),
    ] {
        let errors = change_refused(KIND, old, new.clone(), &context());
        assert_eq!(errors.is_empty(), taken, "{new}: {errors:?}");
    }
}

/// CAPZ-122
#[test]
fn a_confidential_machine_is_one_all_through() {
    let confidential = |kind: &str, profile: Value| {
        vec![
            (
                "spec.osDisk.managedDisk",
                json!({ "storageAccountType": "Premium_LRS", "securityProfile": { "securityEncryptionType": kind } }),
            ),
            ("spec.securityProfile", profile),
        ]
    };
    let uefi = |tpm: bool, boot: bool| json!({ "vTpmEnabled": tpm, "secureBootEnabled": boot });
    let profile = |uefi: Value| json!({ "securityType": "ConfidentialVM", "uefiSettings": uefi });
    let mut host = profile(uefi(true, true));
    host["encryptionAtHost"] = json!(true);
    for (kind, profile, expected) in [
        ("VMGuestStateOnly", profile(uefi(false, true)), "vTpmEnabled: Invalid value: false"),
        ("VMGuestStateOnly", profile(uefi(true, false)), ""),
        ("DiskWithVMGuestState", profile(uefi(true, false)), "secureBootEnabled: Invalid value: false"),
        ("DiskWithVMGuestState", host, "encryptionAtHost: Invalid value: true"),
        (
            "VMGuestStateOnly",
            json!({ "uefiSettings": uefi(true, true) }),
            "securityType should be set to ConfidentialVM",
        ),
        ("VMGuestStateOnly", json!({ "securityType": "ConfidentialVM" }), "uefiSettings: Required value"),
    ] {
        judge(KIND, &base(), &[(&confidential(kind, profile), expected)], &context());
    }
}

/// CAPZ-123
#[test]
fn a_template_that_is_used_stays() {
    let template = |size: &str| {
        json!({ "metadata": { "name": "t" }, "spec": { "template": { "spec": {
        "vmSize": size, "osDisk": { "osType": "Linux" } } } } })
    };
    let kind = "AzureMachineTemplate";
    assert!(refused(kind, template("a"), &context()).is_empty());
    assert!(change_refused(kind, template("a"), template("a"), &context()).is_empty());
    let errors = change_refused(kind, template("a"), template("b"), &context());
    assert!(errors[0].starts_with("spec.template.spec: Invalid value"), "{errors:?}");
    let tried = Context { topology_dry_run: true, ..context() };
    assert!(change_refused(kind, template("a"), template("b"), &tried).is_empty());
    // An object that was stored before defaults existed equals one with them; the schema's are set at every read.
    let mut old = template("a");
    capz_api::crd::fill_defaults(kind, &mut old);
    let new = admitted(kind, template("a"), &context());
    assert_eq!(
        super::said(capz_api::admission::validate(kind, &new, Some(&old), &context())),
        Vec::<String>::new()
    );
    let named = with(
        &template("a"),
        &[
            ("spec.template.spec.identity", json!("SystemAssigned")),
            (
                "spec.template.spec.systemAssignedIdentityRole",
                json!({ "name": GUID, "scope": "/s", "definitionID": "/d" }),
            ),
        ],
    );
    let errors = refused(kind, named, &context());
    assert!(
        errors
            .iter()
            .any(|error| error.starts_with("spec.template.spec.systemAssignedIdentityRole.name: Forbidden")),
        "{errors:?}"
    );
}
