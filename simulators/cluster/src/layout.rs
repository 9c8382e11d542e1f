//! Creates the cluster's resources in Azure before the first Service.

use azure_simulator::{Azure, Refusal};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::shape::{NodePool, Orchestration, Shape, StandaloneMachine};

/// The tag of control plane machines.
pub(crate) const ROLE_TAG: &str = "role";

/// The tag's value.
pub(crate) const CONTROL_PLANE: &str = "control-plane";

/// The tag of machines whose kubelets set their provider ID.
pub(crate) const KUBELET_TAG: &str = "kubelet";

/// The tag's value.
pub(crate) const SAYS_PROVIDER_ID: &str = "says-provider-id";

/// The Compute API requires flexible sets to name the API version of the network interfaces that they create.
const NETWORK_API_VERSION: &str = "2020-11-01";

impl Shape {
    /// Creates all resources at once. Resources that this shape shares with another cluster and that exist already stay
    /// as they are.
    ///
    /// # Errors
    /// Azure refuses a resource, for example because of an invalid name.
    pub fn lay_out(&self, azure: &Azure) -> Result<(), Refusal> {
        let (guard, location) = (self.security_group(), &self.region);
        let put_missing = |id: &ResourceId, document: Value| match azure.document(id) {
            Some(_) => Ok(()),
            None => azure.put(id, document).map(drop),
        };
        for group in [self.group(), self.group_of_network()] {
            put_missing(&group, json!({"location": location}))?;
        }
        put_missing(&guard, json!({"location": location, "properties": {"securityRules": []}}))?;
        let subnet = |name: &str, prefixes: Value| {
            json!({"name": name, "properties": {
                "addressPrefixes": prefixes, "networkSecurityGroup": {"id": guard}}})
        };
        let mut nodes = subnet(&self.subnet, json!(self.node_ranges()));
        if let Some(table) = self.route_table() {
            put_missing(&table, json!({"location": location, "properties": {"routes": []}}))?;
            nodes["properties"]["routeTable"] = json!({"id": table});
        }
        let mut subnets = vec![nodes];
        subnets.extend(self.more_subnets.iter().map(|more| subnet(&more.name, json!(more.prefixes))));
        let properties =
            json!({"addressSpace": {"addressPrefixes": self.network_ranges()}, "subnets": subnets});
        put_missing(&self.network(), json!({"location": location, "properties": properties}))?;
        for pool in &self.pools {
            azure.put(&self.scale_set(&pool.name), self.scale_set_document(pool))?;
        }
        for machine in &self.machines {
            self.lay_out_machine(azure, machine)?;
        }
        Ok(())
    }

    /// Creates one more machine, beside those of the shape.
    ///
    /// # Errors
    /// As [`Self::lay_out`].
    pub fn lay_out_machine(&self, azure: &Azure, machine: &StandaloneMachine) -> Result<(), Refusal> {
        let (group, location) = (self.group_of(machine), &self.region);
        if azure.document(&group).is_none() {
            azure.put(&group, json!({"location": location}))?;
        }
        let mut document = self.machine_document(machine);
        if let Some(name) = &machine.availability_set {
            let set = group.resource("Microsoft.Compute", "availabilitySets", name);
            azure.put(&set, json!({"location": location, "sku": {"name": "Aligned"}}))?;
            document["properties"]["availabilitySet"] = json!({"id": set});
        } else {
            document["zones"] = json!(self.zones.first().into_iter().collect::<Vec<_>>());
        }
        let primary = self.interface(machine);
        let mut interfaces = vec![json!({"id": primary, "properties": {"primary": true}})];
        azure.put(&primary, self.interface_document())?;
        if machine.second_interface {
            let second = format!("{}-second-nic", machine.name);
            let second = group.resource("Microsoft.Network", "networkInterfaces", &second);
            azure.put(&second, self.interface_document())?;
            interfaces.push(json!({"id": second, "properties": {"primary": false}}));
        }
        document["properties"]["networkProfile"] = json!({"networkInterfaces": interfaces});
        azure.put(&self.machine(machine), document)?;
        Ok(())
    }

    /// One IP configuration for each family, in the nodes' subnet.
    fn ip_configurations(&self) -> Vec<Value> {
        let subnet = self.network().child("subnets", &self.subnet);
        let configuration = |name: &str, version: &str, primary: bool| {
            json!({"name": name, "properties": {
                "primary": primary, "privateIPAddressVersion": version, "subnet": {"id": subnet}}})
        };
        let mut configurations = vec![configuration("primary", "IPv4", true)];
        if self.dual_stack {
            configurations.push(configuration("secondary", "IPv6", false));
        }
        configurations
    }

    fn interface_document(&self) -> Value {
        json!({"location": self.region, "properties": {
            // Machines forward packets for their pods.
            "enableIPForwarding": self.route_table.is_some(), "ipConfigurations": self.ip_configurations()}})
    }

    fn machine_document(&self, machine: &StandaloneMachine) -> Value {
        let mut document = json!({
            "location": self.region,
            "properties": {
                "hardwareProfile": {"vmSize": machine.size},
                "osProfile": {"computerName": machine.name, "adminUsername": "azureuser",
                    "linuxConfiguration": linux()},
                "storageProfile": storage(),
            },
        });
        if machine.control_plane {
            document["tags"][ROLE_TAG] = CONTROL_PLANE.into();
        }
        if machine.resource_group.is_some() {
            document["tags"][KUBELET_TAG] = SAYS_PROVIDER_ID.into();
        }
        document
    }

    fn scale_set_document(&self, pool: &NodePool) -> Value {
        let mut configurations = self.ip_configurations();
        if pool.public_addresses {
            configurations[0]["properties"]["publicIPAddressConfiguration"] = json!({"name": "public"});
        }
        let interface = json!({"name": "first", "properties": {
            "primary": true, "enableIPForwarding": self.route_table.is_some(),
            "ipConfigurations": configurations}});
        let mut document = json!({
            "location": self.region,
            "sku": {"name": pool.size, "tier": "Standard", "capacity": pool.nodes},
            "zones": self.zones,
            "properties": {
                "orchestrationMode": pool.orchestration.as_str(),
                // One placement group holds at most a hundred machines.
                "singlePlacementGroup": pool.nodes <= 100,
                "virtualMachineProfile": {
                    "osProfile": {"computerNamePrefix": pool.prefix, "adminUsername": "azureuser",
                        "linuxConfiguration": linux()},
                    "storageProfile": storage(),
                    "networkProfile": {"networkInterfaceConfigurations": [interface]},
                },
            },
        });
        let properties = &mut document["properties"];
        if pool.spot {
            let profile = &mut properties["virtualMachineProfile"];
            profile["priority"] = "Spot".into();
            profile["evictionPolicy"] = "Delete".into();
        }
        match pool.orchestration {
            Orchestration::Uniform => {
                properties["upgradePolicy"] = json!({"mode": "Manual"});
                properties["overprovision"] = false.into();
            }
            Orchestration::Flexible => {
                properties["platformFaultDomainCount"] = 1.into();
                properties["singlePlacementGroup"] = false.into();
                let network = &mut properties["virtualMachineProfile"]["networkProfile"];
                network["networkApiVersion"] = NETWORK_API_VERSION.into();
            }
        }
        document
    }
}

fn storage() -> Value {
    json!({
        "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
        "osDisk": {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}},
    })
}

/// The Linux configuration of machines: no sign-in with a password.
fn linux() -> Value {
    json!({"disablePasswordAuthentication": true, "ssh": {"publicKeys": [
        {"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGNlcnVsZWFu"}]}})
}
