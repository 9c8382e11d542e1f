//! Instances of uniform scale sets (Azure REST reference, "Virtual Machine Scale Set VMs").

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::{creation, ownership};
use crate::compute::machine::ending;
use crate::compute::machine::power::not_active;
use crate::compute::machine::{data_disk, disk_change, guest, instance_view, network_profile, power};
use crate::compute::scale_set::instance_address::{address, ip_configuration_id, set_of};
use crate::compute::scale_set::uniform::{allocate, follows};
use crate::compute::scale_set::{
    capacity, extension, flexible, instance_public_ip, model, network_interface,
};
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::document::{Object, at, items, name, stored_reference};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, Action, AzureState, EndedOperation, Expand, Listing, Presenting, Proposal, Protocol, Record,
    Shape, Writing,
};
use azure_engine::refusal::{Handled, Refusal, Result};
use azure_engine::settings::options::Options;
use azure_engine::store::State;
use azure_engine::store::reference::{Reference, Role};

pub(crate) struct Instances;

const PROTOCOL: Protocol = Protocol {
    members: &model::INSTANCE,
    envelope: &model::INSTANCE_ENVELOPE,
    tracked: false,
    creatable: false,
    actions: &[
        "start",
        "powerOff",
        "deallocate",
        "restart",
        "redeploy",
        "reimage",
        "reapply",
        "attachDetachDataDisks",
    ],
    ..protocol(INSTANCE_TYPE, "Virtual Machine Scale Set VM Instance")
};

impl Shape for Instances {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn check_name(&self, name: &str) -> Result<()> {
        let number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let text = "Virtual Machine Scale Set VM instanceId must be a number.";
        Refusal::invalid_when(!number, "instanceId", text)
    }

    fn stands_for(&self, azure: &AzureState, id: &ResourceId) -> Option<ResourceId> {
        let set = set_of(azure, id).filter(|set| flexible::is_flexible(set))?;
        flexible::all_members(azure, &set.id)
            .find(|member| member.id.name().eq_ignore_ascii_case(id.name()))
            .map(|member| member.id.clone())
    }

    fn owned(&self, _azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        data_disk::owned(&record.body)
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let profile = at(&record.body, "properties/networkProfileConfiguration").unwrap_or(&Value::Null);
        let disks = items(&record.body, "properties/storageProfile/dataDisks").iter();
        let disks = disks.filter_map(|disk| stored_reference(disk, "managedDisk/id"));
        let mut all: Vec<Reference> = disks.map(|to| Reference::uses(&record.id, to)).collect();
        for (nic, ip) in network_profile::ip_configurations(profile) {
            let from = ip_configuration_id(&record.id, nic, ip);
            all.extend(network_profile::memberships(ip).map(|to| Reference::uses(&from, to)));
            if let Some(to) = network_profile::subnet(ip) {
                let address = address(record, nic, ip).and_then(|address| address.parse().ok());
                all.push(Reference { from: from.clone(), to, role: Role::Uses, address });
            }
        }
        for nic in items(profile, "networkInterfaceConfigurations") {
            if let Some(to) = stored_reference(nic, "properties/networkSecurityGroup/id") {
                all.push(Reference::uses(&record.id.child("networkInterfaces", name(nic)), to));
            }
        }
        all
    }

    fn public_address(&self, record: &Record) -> Option<std::net::IpAddr> {
        instance_public_ip::address(record)
    }
}

impl Writing for Instances {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let (id, mut body) = (proposal.id, proposal.take());
        let old = proposal.old.ok_or_else(|| not_active(id.name()))?;
        let set = id.parent().map(|set| set.name().to_owned()).unwrap_or_default();
        OPERATION_NOT_ALLOWED.says_when(
            old.state == State::Deleting,
            format_args!(
                "'Put on Virtual Machine Scale Set VM Instance' is not allowed on Virtual Machine Scale Set '{set}' since \
                 it is marked for deletion."
            ),
        )?;
        let profile = &mut body["properties"]["networkProfileConfiguration"];
        network_profile::normalise(profile, id)?;
        network_profile::check(azure, profile, |nic| id.child("networkInterfaces", nic))?;
        data_disk::normalise(azure, id, proposal.old, &mut body)?;
        Ok(body)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        creation::create_asked_for(azure, id);
        disk_change::begin(azure, id, old);
        allocate(azure, id);
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        match ended.completion {
            Completion::Action(action, targets) if !ended.failed => power::finish(azure, id, action, targets),
            Completion::Delete => {}
            _ => ending::settle(azure, id, ended.failed),
        }
    }

    fn after_outside_work(&self, azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
        guest::record_report(azure, id, answer)
    }

    fn preempts(&self, record: &Record, asked: &Value) -> Option<Refusal> {
        disk_change::preempted(record, asked)
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        ownership::machine_gone(azure, record);
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        if let Some(set) = id.parent() {
            capacity::lower(azure, &set, 1);
        }
    }
}

impl Presenting for Instances {
    fn gather_list<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        let set = azure.store.get(scope).filter(|set| flexible::is_flexible(set))?;
        Some(flexible::all_members(azure, &set.id).collect())
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let mut shown = azure.present(record, listing.expand);
        // A machine of its own is an instance here: clients make its own id of this one (`azure/types.go` of Cluster
        // API's provider for Azure).
        if let Some(set) = flexible::set_of(record).filter(|_| record.resource_type.name() != self.name()) {
            shown["id"] = set.child("virtualMachines", record.id.name()).to_string().into();
            shown["type"] = self.name().into();
            shown["instanceId"] = record.id.name().into();
            if let Some(Value::Object(properties)) = shown.get_mut("properties") {
                properties.remove("virtualMachineScaleSet");
            }
        }
        Some(shown)
    }

    fn page_size(&self, options: &Options, _listing: &Listing<'_>) -> usize {
        options.page_size
    }

    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Some(not_active(id.name()))
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        let Some(set) = set_of(azure, &record.id) else { return };
        document.insert("name".into(), format!("{}_{}", set.id.name(), record.id.name()).into());
        document.insert("instanceId".into(), record.id.name().into());
        if let Some(tags) = set.body.get("tags") {
            document.insert("tags".into(), tags.clone());
        }
        instance_view::present(azure, record, document, expand);
        let profile = at(&record.body, "properties/networkProfileConfiguration").unwrap_or(&Value::Null);
        let nics: Vec<Value> = items(profile, "networkInterfaceConfigurations")
            .iter()
            .map(|nic| json!({ "id": record.id.child("networkInterfaces", name(nic)) }))
            .collect();
        let properties = &mut document["properties"];
        properties["latestModelApplied"] = follows(record, set).into();
        properties["networkProfile"] = json!({ "networkInterfaces": nics });
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        match below {
            [view] if view.eq_ignore_ascii_case("instanceView") => Some(Ok(instance_view::of(azure, record))),
            [view, ..] if view.eq_ignore_ascii_case("extensions") => {
                extension::view_of_instance(azure, record, below)
            }
            _ => network_interface::view(azure, record, below),
        }
    }

    fn views_of_type(&self, azure: &AzureState, record: &Record, resource_type: &str) -> Vec<Value> {
        let below = resource_type.get(self.name().len() + 1..).unwrap_or_default();
        if below.eq_ignore_ascii_case("networkInterfaces") {
            return network_interface::all(azure, record);
        }
        Vec::new()
    }
}

impl Acting for Instances {
    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        data_disk::change(azure, id, action, body).or_else(|| power::begin(azure, id, action, body))
    }
}
