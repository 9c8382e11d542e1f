//! Scale sets of AzureMachinePools, and their instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_types::ResourceId;
use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_api::{Context, Lookup};
use capz_planner::managed_cluster::joined;
use capz_planner::pool::{self, HASH_TAG, Instance, MachineInputs, OwnerMachinePool, PoolScope};
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::{Action, Goal, GoalError, ObservedResources, State, Step, tags};
use cloud_config::Secret;
use serde_json::{Value, json};

use super::azure::Azure;
use super::cluster::Cluster;
use super::machine::{Fixed, SIZE};

/// A pool in the form that a controller reconciles: after admission, and completed.
pub struct Pool {
    pub cluster: Cluster,
    pub name: String,
    pub spec: AzureMachinePoolSpec,
    pub annotations: BTreeMap<String, String>,
    pub replicas: u32,
    pub failure_domains: Vec<String>,
    pub owner_annotations: BTreeMap<String, String>,
    pub bootstrap: String,
    pub image: Value,
    pub skus: Skus,
}

impl Pool {
    pub fn new(template: Value) -> Self {
        Self::with(Cluster::new(json!({})), json!({}), template)
    }

    pub fn with(cluster: Cluster, mut spec: Value, mut template: Value) -> Self {
        for (member, value) in [("vmSize", json!(SIZE)), ("osDisk", json!({ "osType": "Linux" }))] {
            template.as_object_mut().unwrap().entry(member).or_insert(value);
        }
        spec["template"] = template;
        spec["location"] = json!("eastus");
        let object = json!({ "metadata": { "name": "mp" }, "spec": spec });
        let context = Context { subscription: Lookup::Found("123".into()), ..Context::default() };
        let object =
            capz_api::admission::set_defaults("AzureMachinePool", object, &context, &mut Fixed).unwrap();
        let mut spec: AzureMachinePoolSpec = serde_json::from_value(object["spec"].clone()).unwrap();
        pool::complete(&mut spec, cluster.scope()).unwrap();
        let capabilities = [("vCPUs", "2"), ("MemoryGB", "8"), ("CpuArchitectureType", "x64")]
            .map(|(name, value)| json!({ "name": name, "value": value }));
        let size = json!({
            "name": SIZE,
            "resourceType": VIRTUAL_MACHINES,
            "capabilities": capabilities,
            "locationInfo": [{ "location": "eastus", "zones": ["1", "2", "3"] }],
        });
        Self {
            cluster,
            name: "mp".into(),
            spec,
            annotations: BTreeMap::new(),
            replicas: 3,
            failure_domains: Vec::new(),
            owner_annotations: BTreeMap::new(),
            bootstrap: "Ym9vdA==".into(),
            image: json!({ "id": image_id(1) }),
            skus: Skus::read("eastus", &[size]),
        }
    }

    pub fn scope(&self) -> PoolScope<'_> {
        PoolScope {
            cluster: self.cluster.scope(),
            name: &self.name,
            spec: &self.spec,
            annotations: &self.annotations,
            owner: OwnerMachinePool {
                version: Some("v1.31.1"),
                replicas: self.replicas,
                failure_domains: &self.failure_domains,
                annotations: &self.owner_annotations,
            },
        }
    }

    pub fn try_goals(
        &self,
        observed: &ObservedResources,
        instances: Option<&[Instance]>,
    ) -> Result<Vec<Goal>, GoalError> {
        let inputs = MachineInputs {
            bootstrap: Secret::new(self.bootstrap.clone()),
            password: Secret::new("correct horse"),
            image: serde_json::from_value(self.image.clone()).unwrap(),
            size: self.skus.get(SIZE, VIRTUAL_MACHINES).unwrap().clone(),
            skus: Arc::new(self.skus.clone()),
        };
        pool::goals(&self.scope(), &inputs, observed, instances)
    }

    pub fn document(&self) -> Value {
        self.try_goals(&ObservedResources::default(), None).unwrap().remove(0).document
    }

    /// A small Azure with the cluster and the set, and the instances that it would have.
    pub fn made(&self) -> (Azure, Vec<Instance>) {
        let mut azure = Azure::default();
        let image = ResourceId::parse(&image_id(1)).unwrap().parent().unwrap();
        azure.put(&image, json!({}));
        assert!(azure.settle("my-cluster", &self.cluster.goals()).is_reached());
        let goals = self.try_goals(&azure.observed(&self.goals_unseen()), None).unwrap();
        assert!(azure.settle("my-cluster", &goals).is_reached());
        let instances = (0..self.replicas).map(|index| self.instance(index, 1, "Succeeded")).collect();
        (azure, instances)
    }

    pub fn goals_unseen(&self) -> Vec<Goal> {
        self.try_goals(&ObservedResources::default(), None).unwrap()
    }

    pub fn instance(&self, index: u32, version: u32, state: &str) -> Instance {
        let id = self.scope().scale_set().child("virtualMachines", &index.to_string());
        Instance::read(
            &json!({
                "id": id.as_str(),
                "instanceId": index.to_string(),
                "properties": {
                    "provisioningState": state,
                    "storageProfile": { "imageReference": { "id": image_id(version), "exactVersion": "1.0.0" } },
                },
            }),
            false,
        )
        .unwrap()
    }

    /// The next write to the set.
    pub fn step(&self, azure: &Azure, instances: &[Instance]) -> Option<Step> {
        let observed = azure.observed(&self.goals_unseen());
        let plan = azure.plan("my-cluster", self.try_goals(&observed, Some(instances)).unwrap());
        let steps: Vec<Step> = plan.steps().cloned().collect();
        assert!(steps.len() < 2, "{plan}");
        steps.into_iter().next()
    }
}

pub fn image_id(version: u32) -> String {
    format!(
        "/subscriptions/123/resourceGroups/i/providers/Microsoft.Compute/galleries/g/images/n/versions/{version}.0.0"
    )
}

/// CAPZ-137: what the document of a scale set holds.
#[test]
fn a_scale_set_is_what_is_declared() {
    let subnets =
        json!([{ "name": "n", "role": "cluster", "id": "/subscriptions/123/resourceGroups/my-rg" }]);
    let cluster = Cluster::new(
        json!({ "networkSpec": { "subnets": subnets, "nodeOutboundLB": { "frontendIPsCount": 1 } } }),
    );
    let mut pool = Pool::with(
        cluster,
        json!({ "zoneBalance": true, "additionalTags": { "team": "a" } }),
        json!({
            "dataDisks": [{ "nameSuffix": "data", "diskSizeGB": 8, "lun": 0, "cachingType": "ReadWrite", "managedDisk": { "storageAccountType": "UltraSSD_LRS" } }],
            "terminateNotificationTimeout": 7,
            "spotVMOptions": {},
            "securityProfile": { "encryptionAtHost": true, "uefiSettings": { "vTpmEnabled": true } },
            "disableVMBootstrapExtension": false,
        }),
    );
    pool.failure_domains = vec!["1".into(), "3".into()];
    pool.spec.template.as_mut().unwrap().ssh_public_key = None;
    pool.spec.template.as_mut().unwrap().os_disk.as_mut().unwrap().os_type = Some("Windows".into());
    let mut document = pool.document();
    let extension =
        document["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"][0].take();
    assert_eq!(extension["name"], "CAPZ.Windows.Bootstrapping");
    assert_eq!(
        document,
        json!({
            "location": "eastus",
            "sku": { "name": SIZE, "tier": "Standard", "capacity": 3 },
            "zones": ["1", "3"],
            "tags": {
                "Name": "mp",
                "capz-custom-data-hash": "1b10892d35a98e172c22aa085bb4776fa6e09c5fe545ee4ad3b3b233d679b95d",
                "kubernetes.io_cluster_my-cluster": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_role": "node",
                "team": "a",
            },
            "properties": {
                "orchestrationMode": "Uniform",
                "singlePlacementGroup": false,
                "overprovision": false,
                "upgradePolicy": { "mode": "Manual" },
                "zoneBalance": true,
                "additionalCapabilities": { "ultraSSDEnabled": true },
                "virtualMachineProfile": {
                    "osProfile": {
                        "computerNamePrefix": "mp",
                        "adminUsername": "capi",
                        "adminPassword": "correct horse",
                        "customData": "Ym9vdA==",
                        "windowsConfiguration": { "enableAutomaticUpdates": false },
                    },
                    "storageProfile": {
                        "imageReference": { "id": image_id(1) },
                        "osDisk": { "osType": "Windows", "createOption": "FromImage", "caching": "None" },
                        "dataDisks": [{
                            "name": "mp_data",
                            "createOption": "Empty",
                            "diskSizeGB": 8,
                            "lun": 0,
                            "managedDisk": { "storageAccountType": "UltraSSD_LRS" },
                        }],
                    },
                    "securityProfile": { "encryptionAtHost": true },
                    "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
                    "networkProfile": { "networkInterfaceConfigurations": [{
                        "name": "mp-nic-0",
                        "properties": {
                            "primary": true,
                            "enableIPForwarding": true,
                            "enableAcceleratedNetworking": false,
                            "ipConfigurations": [{
                                "name": "ipConfig0",
                                "properties": {
                                    "primary": true,
                                    "privateIPAddressVersion": "IPv4",
                                    "subnet": { "id": "/subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Network/virtualNetworks/my-cluster-vnet/subnets/n" },
                                    "loadBalancerBackendAddressPools": [{
                                        "id": "/subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Network/loadBalancers/my-cluster/backendAddressPools/my-cluster-outboundBackendPool",
                                    }],
                                },
                            }],
                        },
                    }] },
                    "extensionProfile": { "extensions": [null] },
                    "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT7M" } },
                    "priority": "Spot",
                },
            },
        })
    );
    pool.failure_domains = vec!["1".into()];
    pool.spec.orchestration_mode = Some("Flexible".into());
    let document = pool.document();
    let properties = &document["properties"];
    assert_eq!(properties.get("zoneBalance"), None);
    assert_eq!(properties.get("upgradePolicy"), None);
    assert_eq!(properties["platformFaultDomainCount"], 1);
    assert_eq!(properties["virtualMachineProfile"]["networkProfile"]["networkApiVersion"], "2020-11-01");
    pool.spec.platform_fault_domain_count = Some(3);
    assert_eq!(pool.document()["properties"]["platformFaultDomainCount"], 3);
}

/// CAPZ-156: self-managed machines join a cluster that Azure manages.
#[test]
fn a_pool_joins_a_managed_cluster() {
    let managed: AzureManagedControlPlaneSpec = serde_json::from_value(json!({
        "location": "eastus",
        "resourceGroupName": "my-rg",
        "virtualNetwork": { "name": "aks-vnet", "subnet": { "name": "aks-subnet" } },
    }))
    .unwrap();
    let mut cluster = Cluster::new(json!({}));
    cluster.spec = joined(&managed, "aks");
    let pool = Pool::with(cluster, json!({}), json!({}));
    let group = "/subscriptions/123/resourceGroups";
    let set = "providers/Microsoft.Compute/virtualMachineScaleSets/mp";
    assert_eq!(pool.scope().scale_set().as_str(), format!("{group}/MC_my-rg_aks_eastus/{set}"));
    let document = pool.document();
    let interface = "/properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/0";
    let first = document.pointer(&format!("{interface}/properties/ipConfigurations/0/properties")).unwrap();
    let network = format!("{group}/my-rg/providers/Microsoft.Network/virtualNetworks/aks-vnet");
    assert_eq!(first["subnet"]["id"], format!("{network}/subnets/aks-subnet"));
    let balancer =
        format!("{group}/MC_my-rg_aks_eastus/providers/Microsoft.Network/loadBalancers/kubernetes");
    assert_eq!(
        first["loadBalancerBackendAddressPools"],
        json!([{ "id": format!("{balancer}/backendAddressPools/aksOutboundBackendPool") }])
    );
    assert_eq!(document["tags"][tags::owner_key("my-cluster")], "owned");
}

/// CAPZ-138.
#[test]
fn scale_sets_with_windows_have_short_names() {
    let mut pool = Pool::new(json!({}));
    for (os, name, set) in [
        ("Windows", "my-machinepool", "win-epool"),
        ("Windows", "short-win", "short-win"),
        ("Linux", "my-machinepool", "my-machinepool"),
    ] {
        pool.name = name.into();
        pool.spec.template.as_mut().unwrap().os_disk.as_mut().unwrap().os_type = Some(os.into());
        assert_eq!(pool.scope().scale_set_name(), set);
    }
}

/// CAPZ-139, CAPZ-154: the set is written when its model or its size changes, and then only the changes.
#[test]
fn a_scale_set_is_written_when_its_model_or_size_changes() {
    let mut pool = Pool::new(json!({}));
    let (mut azure, instances) = pool.made();
    let id = pool.scope().scale_set();
    assert_eq!(pool.step(&azure, &instances), None);

    // New bootstrap data alone wait for another reason, and so does their hash.
    pool.bootstrap = "bmV3".into();
    assert_eq!(pool.step(&azure, &instances), None);
    let hash = |document: &Value| document["tags"][HASH_TAG].clone();
    let old_hash = hash(&azure.documents[&id]);

    // More machines: they start with the new data.
    pool.replicas = 5;
    let step = pool.step(&azure, &instances).unwrap();
    assert_eq!((step.action, step.document["sku"]["capacity"].as_u64()), (Action::Update, Some(5)));
    assert_eq!(step.document["properties"]["virtualMachineProfile"]["osProfile"]["customData"], "bmV3");
    assert_ne!(hash(&step.document), old_hash);
    assert!(step.if_match.is_some());
    pool.bootstrap = "Ym9vdA==".into();
    let step = pool.step(&azure, &instances).unwrap();
    let words: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["sku.capacity: 3 becomes 5"]);

    // Fewer: machines are deleted one by one, and the set follows.
    pool.replicas = 2;
    assert_eq!(pool.step(&azure, &instances), None);

    // A new image: one machine more at first, as long as there is one to replace.
    pool.replicas = 3;
    pool.image = json!({ "id": image_id(2) });
    let step = pool.step(&azure, &instances).unwrap();
    let words: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    let image = format!("{} becomes {}", image_id(1), image_id(2));
    let image = format!("virtualMachineProfile.storageProfile.imageReference: {image}");
    for expected in ["sku.capacity: 3 becomes 4", image.as_str()] {
        assert!(words.iter().any(|it| it == expected), "{words:?}");
    }
    assert_eq!(
        step.document["properties"]["virtualMachineProfile"]["networkProfile"],
        azure.documents[&id]["properties"]["virtualMachineProfile"]["networkProfile"]
    );
    *azure.documents.get_mut(&id).unwrap() = step.document;
    let mut instances = instances;
    assert_eq!(pool.step(&azure, &instances), None);
    instances.push(pool.instance(3, 2, "Succeeded"));
    instances.remove(0);
    azure.documents.get_mut(&id).unwrap()["sku"]["capacity"] = json!(3);
    assert_eq!(pool.step(&azure, &instances).unwrap().document["sku"]["capacity"], 4);
    // Those that are being deleted do not count.
    let mut instances: Vec<Instance> = (3..6).map(|index| pool.instance(index, 2, "Succeeded")).collect();
    instances.push(pool.instance(2, 1, "Deleting"));
    assert_eq!(pool.step(&azure, &instances), None);

    // A reference to an image of another kind replaces the previous one as a whole.
    pool.image = json!({ "computeGallery": { "gallery": "g", "name": "n", "version": "3.0.0" } });
    let step = pool.step(&azure, &instances).unwrap();
    assert_eq!(
        step.document["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"],
        json!({ "communityGalleryImageId": "/CommunityGalleries/g/Images/n/Versions/3.0.0" })
    );
}

/// An item that is removed from the template is removed by the next write of the model, and not before; a policy's
/// additions stay.
#[test]
fn what_is_declared_no_longer_goes_with_the_next_model() {
    let extension = |name: &str| json!({ "name": name, "publisher": "p", "version": "1.0" });
    let disk = |suffix: &str, lun: u64| json!({ "nameSuffix": suffix, "diskSizeGB": 10, "lun": lun });
    let mut pool = Pool::new(json!({
        "vmExtensions": [extension("a"), extension("b")],
        "dataDisks": [disk("one", 0), disk("two", 1)],
    }));
    let (mut azure, instances) = pool.made();
    let id = pool.scope().scale_set();
    let remember = |pool: &mut Pool, azure: &Azure| {
        let names = pool.scope().remembered_extensions(&azure.documents[&id]);
        pool.annotations.extend(names.map(|names| (pool::EXTENSIONS.to_owned(), names)));
    };
    remember(&mut pool, &azure);
    assert_eq!(pool.annotations[pool::EXTENSIONS], "[\"a\",\"b\"]");
    let list = "/properties/virtualMachineProfile/extensionProfile/extensions";
    let held = azure.documents.get_mut(&id).unwrap();
    held.pointer_mut(list).unwrap().as_array_mut().unwrap().push(extension("policy"));
    let template = pool.spec.template.as_mut().unwrap();
    template.vm_extensions.as_mut().unwrap().remove(0);
    template.data_disks.as_mut().unwrap().remove(0);
    assert_eq!(pool.step(&azure, &instances), None);
    // It stays recorded until then.
    remember(&mut pool, &azure);
    pool.image = json!({ "id": image_id(2) });
    let step = pool.step(&azure, &instances).unwrap();
    let names = |document: &Value, list: &str| -> Vec<String> {
        let items = document.pointer(list).unwrap().as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&step.document, list), ["b", "policy"]);
    let disks = "/properties/virtualMachineProfile/storageProfile/dataDisks";
    assert_eq!(names(&step.document, disks), ["mp_two"]);
    *azure.documents.get_mut(&id).unwrap() = step.document;
    remember(&mut pool, &azure);
    assert_eq!(pool.annotations[pool::EXTENSIONS], "[\"b\"]");
}

/// A tag that a policy adds never starts a rollout; a failed set is neither created again nor deleted; and while the
/// instances are unknown, nothing is decided about them.
#[test]
fn what_others_do_to_a_scale_set_starts_nothing() {
    let mut pool = Pool::new(json!({}));
    let (mut azure, instances) = pool.made();
    let id = pool.scope().scale_set();
    let held = azure.documents.get_mut(&id).unwrap();
    held["tags"]["policy"] = json!("costs");
    held["properties"]["provisioningState"] = json!("Failed");
    held["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"] =
        json!([{ "name": "theirs" }]);
    held["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]["exactVersion"] =
        json!("1.0.0");
    held["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]["id"] =
        json!(image_id(1).to_uppercase());
    assert_eq!(pool.step(&azure, &instances), None);
    assert!(instances.iter().all(|it| it.has_latest_model(&azure.documents[&id])));

    pool.image = json!({ "id": image_id(2) });
    let observed = azure.observed(&pool.goals_unseen());
    let plan = azure.plan("my-cluster", pool.try_goals(&observed, None).unwrap());
    assert_eq!(plan.state_of(&id), Some(&State::Reached));

    // Its tags are enforced by themselves.
    pool.image = json!({ "id": image_id(1) });
    pool.annotations.insert(pool::TAGS.into(), r#"{"old":"x"}"#.into());
    pool.spec.additional_tags = Some([("team".to_owned(), "b".to_owned())].into());
    azure.documents.get_mut(&id).unwrap()["tags"]["old"] = json!("x");
    let step = pool.step(&azure, &instances).unwrap();
    assert!(step.partial);
    let words: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["tags.team is missing: b", "tags.old is no longer declared: x"]);
    assert_eq!(step.document["tags"]["policy"], "costs");
}

/// CAPZ-149: externally managed replicas are not corrected.
#[test]
fn externally_counted_replicas_are_left_alone() {
    let mut pool = Pool::new(json!({}));
    let (mut azure, instances) = pool.made();
    pool.owner_annotations.insert(pool::EXTERNAL_REPLICAS.into(), "autoscaler".into());
    let id = pool.scope().scale_set();
    azure.documents.get_mut(&id).unwrap()["sku"]["capacity"] = json!(2);
    assert_eq!(pool.step(&azure, &instances), None);
    pool.image = json!({ "id": image_id(2) });
    let step = pool.step(&azure, &instances).unwrap();
    assert_eq!(step.document["sku"]["capacity"], 2, "no surge, and what the autoscaler said stays");
    pool.owner_annotations.insert(pool::EXTERNAL_REPLICAS.into(), "false".into());
    assert_eq!(pool.step(&azure, &instances).unwrap().document["sku"]["capacity"], 4);
}

#[test]
fn what_a_size_cannot_be_is_terminal() {
    let mut pool = Pool::new(json!({}));
    pool.failure_domains = vec!["7".into()];
    let mut observed = ObservedResources::default();
    assert!(pool.try_goals(&observed, None).is_ok(), "unknown is not absent");
    observed.take(&pool.scope().scale_set(), None);
    let error = pool.try_goals(&observed, None).unwrap_err();
    assert!(
        matches!(&error, GoalError::Terminal(terminal) if terminal.message.contains("availability zone 7")),
        "{error:?}"
    );
}

/// A foreign scale set of the same name is neither taken over nor deleted.
#[test]
fn a_foreign_scale_set_stays_foreign() {
    let mut pool = Pool::new(json!({}));
    let mut azure = Azure::default();
    azure.put(&pool.scope().scale_set(), json!({ "sku": { "capacity": 1 }, "properties": {} }));
    let observed = azure.observed(&pool.goals_unseen());
    let error = pool.try_goals(&observed, Some(&[])).unwrap_err();
    assert!(
        matches!(&error, GoalError::NotNow(words) if words.starts_with("a scale set mp exists already")),
        "{error:?}"
    );
    let before = azure.documents.clone();
    assert!(azure.settle("my-cluster", &pool::ends(&pool.scope())).is_reached());
    assert_eq!(azure.documents, before);
    // A provider ID is no proof, for any user can write it: the set is neither written nor deleted, and the object
    // reports why.
    pool.spec.provider_id = Some(format!("azure://{}", pool.scope().scale_set()));
    assert_eq!(pool.step(&azure, &[]), None);
    assert!(azure.settle("my-cluster", &pool::ends(&pool.scope())).is_reached());
    assert_eq!(azure.documents, before);
    let observed = azure.observed(&pool::ends(&pool.scope()));
    let words = pool::unproven_end(&pool.scope(), &observed).unwrap();
    assert!(
        words.contains("it lacks the tag sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster=owned"),
        "{words}"
    );
}

/// CAPZ-151.
#[test]
fn instances_are_objects_with_the_ids_of_nodes() {
    let instance_set = Pool::new(json!({})).scope().scale_set();
    let pool = Pool::new(json!({}));
    let document = |id: &str| {
        json!({
            "id": id,
            "properties": { "osProfile": { "computerName": "mp000003" } },
            "resources": [{ "name": "CAPZ.Linux.Bootstrapping", "properties": { "provisioningState": "Failed" } }],
        })
    };
    let group = "/subscriptions/123/resourceGroups/My-RG/providers/Microsoft.Compute";
    for (id, flexible, object, provider_id) in [
        (
            format!("{group}/virtualMachineScaleSets/mp/virtualMachines/3"),
            false,
            "mp-3",
            "virtualMachineScaleSets/mp/virtualMachines/3",
        ),
        (
            format!("{group}/virtualMachineScaleSets/mp/virtualMachines/mp_1234abcd"),
            true,
            "mp-mp-1234abcd",
            "virtualMachines/mp_1234abcd",
        ),
        (
            format!("{group}/virtualMachines/mp_1234abcd"),
            true,
            "mp-mp-1234abcd",
            "virtualMachines/mp_1234abcd",
        ),
    ] {
        let instance = Instance::read(&document(&id), flexible).unwrap();
        assert_eq!(instance.object_name("mp"), object);
        assert_eq!(
            instance.provider_id,
            format!(
                "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/{provider_id}"
            )
        );
        assert_eq!(instance.state, "Creating");
        let condition = instance.bootstrap_condition().unwrap();
        assert_eq!(condition.reason.as_deref(), Some("BootstrapFailed"));
        let end = pool::instance_end(&instance.provider_id, &instance_set).unwrap();
        assert!(!end.wanted && end.id.as_str().ends_with(provider_id));
    }
    let labels = pool::instance_labels("my-cluster", "mp", "machine-pool");
    assert_eq!(
        json!(labels),
        json!({
            "azuremachinepool.infrastructure.cluster.x-k8s.io/machine-pool": "mp",
            "cluster.x-k8s.io/cluster-name": "my-cluster",
            "cluster.x-k8s.io/pool-name": "machine-pool",
            "my-cluster": "owned",
        })
    );
    let long = "p".repeat(64);
    let shortened = &pool::instance_labels("c", "mp", &long)["cluster.x-k8s.io/pool-name"];
    assert!(
        shortened.starts_with("hash_") && shortened.ends_with("_z") && shortened.len() < 64,
        "{shortened}"
    );
    // The instance's goal ends with the set.
    let (mut azure, _) = pool.made();
    azure.put(&pool.scope().cluster.group(), json!({ "tags": { tags::owner_key("my-cluster"): "owned" } }));
    assert!(azure.settle("my-cluster", &pool::ends(&pool.scope())).is_reached());
    assert!(!azure.documents.contains_key(&pool.scope().scale_set()));
}

/// The extension that waits for a machine to join its cluster shows the progress; the others do not.
#[test]
fn an_instance_tells_of_its_bootstrapping() {
    let ours = "CAPZ.Linux.Bootstrapping";
    for (extension, state, expected, settled) in [
        (ours, "Creating", json!(["False", "BootstrapInProgress", "Info"]), false),
        (ours, "Failed", json!(["False", "BootstrapFailed", "Info"]), true),
        (ours, "Succeeded", json!(["True", null, null]), true),
        ("Monitoring", "Creating", json!([null, null, null]), true),
    ] {
        let document = json!({
            "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/mp/virtualMachines/0",
            "properties": { "provisioningState": "Succeeded" },
            "resources": [{ "name": extension, "properties": { "provisioningState": state } }],
        });
        let instance = Instance::read(&document, false).unwrap();
        let told = json!(instance.bootstrap_condition());
        assert_eq!(
            json!([told["status"], told["reason"], told["severity"]]),
            expected,
            "{extension} {state}"
        );
        assert_eq!(instance.is_settled(), settled, "{extension} {state}");
    }
}
