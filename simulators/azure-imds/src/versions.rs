//! The versions of the service, and which members came with which ("Azure Instance Metadata Service").

use serde_json::{Map, Value};

/// Versions of `/metadata/instance`, oldest first.
pub(super) const INSTANCE: [&str; 34] = [
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
];

/// Versions of `/metadata/scheduledevents`, oldest first.
pub(super) const SCHEDULED_EVENTS: [&str; 7] =
    ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"];

/// The first version with load balancers.
pub(super) const LOAD_BALANCER: &str = "2020-10-01";

/// Members of `compute` that did not come with the first version.
const COMPUTE: [(&str, &str); 33] = [
    ("additionalCapabilities", "2021-11-01"),
    ("azEnvironment", "2018-10-01"),
    ("customData", "2019-02-01"),
    ("evictionPolicy", "2020-12-01"),
    ("extendedLocation", "2021-03-01"),
    ("host", "2021-11-15"),
    ("hostGroup", "2021-11-15"),
    ("isHostCompatibilityLayerVm", "2020-06-01"),
    ("licenseType", "2020-09-01"),
    ("osProfile", "2020-07-15"),
    ("physicalZone", "2023-11-15"),
    ("placementGroupId", "2017-08-01"),
    ("plan", "2018-04-02"),
    ("platformSubFaultDomain", "2021-10-01"),
    ("priority", "2020-12-01"),
    ("provider", "2018-10-01"),
    ("publicKeys", "2018-04-02"),
    ("resourceGroupName", "2017-08-01"),
    ("resourceId", "2019-03-11"),
    ("securityProfile", "2020-06-01"),
    ("storageProfile", "2019-06-01"),
    ("subscriptionId", "2017-08-01"),
    ("tags", "2017-08-01"),
    ("tagsList", "2019-06-04"),
    ("userData", "2021-01-01"),
    ("virtualMachineScaleSet", "2021-03-01"),
    ("vmScaleSetName", "2017-12-01"),
    ("zone", "2017-12-01"),
    // Members of members, as paths.
    ("osProfile/disablePasswordAuthentication", "2020-10-01"),
    ("securityProfile/encryptionAtHost", "2021-11-01"),
    ("securityProfile/securityType", "2021-12-13"),
    ("storageProfile/resourceDisk", "2021-01-01"),
    ("storageProfile/osDisk/writeAcceleratorEnabled", "2019-06-01"),
];

/// Removes the members of `compute` that a version does not have.
pub(super) fn shape_compute(compute: &mut Map<String, Value>, version: &str) {
    for (path, since) in COMPUTE {
        if version >= since {
            continue;
        }
        match path.rsplit_once('/') {
            None => {
                compute.remove(path);
            }
            Some((above, member)) => {
                let holder = above.split('/').try_fold(&mut *compute, |holder, step| {
                    holder.get_mut(step).and_then(Value::as_object_mut)
                });
                holder.map(|holder| holder.remove(member));
            }
        }
    }
}
