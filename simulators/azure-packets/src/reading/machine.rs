//! Machines and interfaces, out of their documents.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::ResourceId;
use serde_json::Value;

use crate::json::{address_at, flag_at, id_at, id_of, ids_at, items, text_at};
use crate::machine::{Interface, InterfaceTargets, Machine, Power};
use crate::network::Network;
use azure_engine::document::reading::Documents;

const SCALE_SET: &str = "Microsoft.Compute/virtualMachineScaleSets";

/// The configurations of scale set instances by IP configuration, which override what the interfaces show.
type InstanceConfigurations = HashMap<ResourceId, Value>;

impl Network {
    pub(super) fn read_machines(&mut self, documents: &dyn Documents) {
        let instances = format!("{SCALE_SET}/virtualMachines");
        let mut configurations = InstanceConfigurations::new();
        for document in documents.of_type(&instances) {
            // Machines of a flexible set are listed here too, but are machines like any other.
            if let Some(id) =
                self.read_machine(documents, &document, id_of(&document).and_then(|id| id.parent()))
            {
                instance_configurations(&id, &document, &mut configurations);
            }
        }
        for document in documents.of_type("Microsoft.Compute/virtualMachines") {
            let scale_set = id_at(&document, "/properties/virtualMachineScaleSet/id");
            self.read_machine(documents, &document, scale_set);
        }
        for document in documents.of_type(&format!("{instances}/networkInterfaces")) {
            self.read_interface(&document, Some(&configurations));
        }
        for document in documents.of_type("Microsoft.Network/networkInterfaces") {
            self.read_interface(&document, None);
        }
    }

    fn read_machine(
        &mut self,
        documents: &dyn Documents,
        document: &Value,
        scale_set: Option<ResourceId>,
    ) -> Option<ResourceId> {
        let id = id_of(document)?;
        let resource_name = text_at(document, "/name").unwrap_or_else(|| id.name()).to_owned();
        let host = text_at(document, "/properties/osProfile/computerName").filter(|name| !name.is_empty());
        let name = host.map_or_else(|| resource_name.clone(), str::to_owned);
        let power = match document.pointer("/properties/instanceView") {
            Some(view) => power(view),
            None => instance_view_id(&id)
                .and_then(|view| documents.document(&view))
                .map_or(Power::Running, |view| power(&view)),
        };
        let flexible = scale_set.as_ref().is_some_and(|set| id.parent().as_ref() != Some(set));
        self.machines
            .insert(id.clone(), Arc::new(Machine { name, resource_name, power, scale_set, flexible }));
        Some(id)
    }

    /// `instances` is given for interfaces of scale set instances.
    fn read_interface(&mut self, document: &Value, instances: Option<&InstanceConfigurations>) {
        let Some(interface) = id_of(document) else { return };
        let machine = match instances {
            Some(_) => interface.parent(),
            None => id_at(document, "/properties/virtualMachine/id"),
        };
        for configuration in items(document, "/properties/ipConfigurations") {
            let id = id_of(configuration)
                .or_else(|| Some(interface.child("ipConfigurations", text_at(configuration, "/name")?)));
            let Some(id) = id else { continue };
            let joined = match instances {
                Some(known) => known.get(&id).unwrap_or(&Value::Null),
                None => configuration,
            };
            let endpoint = id_at(document, "/properties/privateEndpoint/id");
            let mut application_groups = ids_at(configuration, "/properties/applicationSecurityGroups");
            application_groups.extend(ids_at(joined, "/properties/applicationSecurityGroups"));
            if let Some(of_endpoint) = endpoint.as_ref().and_then(|id| self.endpoints.get(id)) {
                application_groups.extend(of_endpoint.application_groups.iter().cloned());
            }
            self.add_interface(Interface {
                targets: InterfaceTargets::default(),
                subnet: id_at(configuration, "/properties/subnet/id"),
                interface: interface.clone(),
                machine: machine.clone(),
                endpoint,
                address: address_at(configuration, "/properties/privateIPAddress"),
                group: id_at(document, "/properties/networkSecurityGroup/id"),
                forwards: flag_at(document, "/properties/enableIPForwarding"),
                pools: ids_at(joined, "/properties/loadBalancerBackendAddressPools"),
                public_address: id_at(configuration, "/properties/publicIPAddress/id"),
                application_groups,
                nat_rules: ids_at(joined, "/properties/loadBalancerInboundNatRules"),
                id,
            });
        }
    }

    fn add_interface(&mut self, mut interface: Interface) {
        let index = self.interfaces.len();
        if let Some(address) = interface.address {
            self.by_address.entry(address).or_default().push(index);
        }
        self.by_configuration.insert(interface.id.clone(), index);
        if let Some(machine) = &interface.machine {
            self.interfaces_of_machine.entry(machine.clone()).or_default().push(index);
        }
        interface.targets = self.surroundings(
            interface.machine.as_ref(),
            interface.subnet.as_ref(),
            interface.group.as_ref(),
        );
        self.interfaces.push(interface);
    }
}

fn instance_configurations(instance: &ResourceId, document: &Value, found: &mut InstanceConfigurations) {
    let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
    for interface in items(document, path) {
        let Some(interface_name) = text_at(interface, "/name") else { continue };
        let interface_id = instance.child("networkInterfaces", interface_name);
        for configuration in items(interface, "/properties/ipConfigurations") {
            let Some(name) = text_at(configuration, "/name") else { continue };
            found.insert(interface_id.child("ipConfigurations", name), configuration.clone());
        }
    }
}

/// `{machine}/instanceView`: a view has a name, but no type before it as resources have.
fn instance_view_id(machine: &ResourceId) -> Option<ResourceId> {
    let scope = machine.parent()?;
    let below = machine.as_str().get(scope.as_str().len() + 1..)?;
    Some(scope.child(below, "instanceView"))
}

/// The power state in an instance view; a machine without one counts as running.
fn power(view: &Value) -> Power {
    let state = items(view, "/statuses")
        .filter_map(|status| text_at(status, "/code"))
        .find_map(|code| code.strip_prefix("PowerState/"));
    match state {
        None | Some("running") => Power::Running,
        Some("deallocated" | "deallocating") => Power::Deallocated,
        Some(_) => Power::Stopped,
    }
}
