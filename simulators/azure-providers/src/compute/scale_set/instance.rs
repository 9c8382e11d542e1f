//! Instances of uniform scale sets (Azure REST reference, "Virtual Machine Scale Set VMs").

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::data_disk;
use crate::compute::machine::guest;
use crate::compute::machine::instance_view;
use crate::compute::machine::network_profile;
use crate::compute::machine::power;
use crate::compute::scale_set::extension;
use crate::compute::scale_set::flexible;
use crate::compute::scale_set::instance_address::{address, ip_configuration_id, set_of};
use crate::compute::scale_set::instance_public_ip;
use crate::compute::scale_set::network_interface;
use crate::compute::scale_set::uniform::{allocate, disk_prefix, follows};
use crate::compute::scale_set::{model, provisioning};
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::document::{
    Object, at, drop_nulls, into_object, items, merge, name, stored_reference, take_properties, text,
};
use azure_engine::error::Refusal;
use azure_engine::member_table::Member;
use azure_engine::operation::Completion;
use azure_engine::options::Options;
use azure_engine::provider::{Action, AzureState, Expand, Listing, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, Role};
use azure_engine::store::State;

pub(crate) struct Instances;

const PROTOCOL: Protocol = Protocol {
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
        "reimageAll",
        "simulateEviction",
        "attachDetachDataDisks",
    ],
    puts_merge: false,
    ..protocol(INSTANCE_TYPE, "Virtual Machine Scale Set VM Instance")
};

impl ResourceType for Instances {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &model::INSTANCE
    }

    fn gather<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        let set = azure.store.get(scope).filter(|set| flexible::is_flexible(set))?;
        Some(flexible::all_members(azure, &set.id).collect())
    }

    fn listed(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let mut shown = azure.present(record, listing.expand);
        if record.resource_type.name() != self.name() {
            shown["instanceId"] = record.id.name().into();
        }
        Some(shown)
    }

    fn page_size(&self, options: &Options, _listing: &Listing<'_>) -> usize {
        options.page_size
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        Err(Refusal::invalid_parameter(
            "instanceId",
            "Virtual Machine Scale Set VM instanceId must be a number.",
        ))
    }

    fn stands_for(&self, azure: &AzureState, id: &ResourceId) -> Option<ResourceId> {
        let set = set_of(azure, id).filter(|set| flexible::is_flexible(set))?;
        flexible::all_members(azure, &set.id)
            .find(|member| member.id.name().eq_ignore_ascii_case(id.name()))
            .map(|member| member.id.clone())
    }

    fn absent(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Some(not_active(id))
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let Some(old) = proposal.old else { return Err(not_active(id)) };
        if old.state == State::Deleting {
            let set = id.parent().map(|set| set.name().to_owned()).unwrap_or_default();
            return Err(OPERATION_NOT_ALLOWED.says(format_args!(
                    "'Put on Virtual Machine Scale Set VM Instance' is not allowed on Virtual Machine Scale Set '{set}' \
                     since it is marked for deletion."
                )));
        }
        // Recorded: tags sent with an instance do not come back, they are the set's.
        proposal.body.retain(|member, _| matches!(member.as_str(), "properties" | "identity"));
        let mut given = take_properties(&mut proposal.body);
        // What the service says about the instance is echoed by clients and not theirs to change.
        given.retain(|member, _| {
            matches!(
                member.as_str(),
                "networkProfileConfiguration"
                    | "protectionPolicy"
                    | "userData"
                    | "licenseType"
                    | "diagnosticsProfile"
                    | "storageProfile"
            )
        });
        // Of its disks, an instance has only the data disks for itself.
        if let Some(Value::Object(storage)) = given.get_mut("storageProfile") {
            storage.retain(|member, _| member == "dataDisks");
        }
        proposal.body.insert("properties".into(), Value::Object(given));
        let mut whole = old.body.clone();
        merge(&mut whole, Value::Object(proposal.body));
        drop_nulls(&mut whole);
        let mut body = into_object(whole);
        let mut properties = take_properties(&mut body);
        let mut profile = properties.remove("networkProfileConfiguration").unwrap_or_default();
        network_profile::normalise(&mut profile, id)?;
        network_profile::check(azure, &profile, |nic| id.child("networkInterfaces", nic))?;
        properties.insert("networkProfileConfiguration".into(), profile);
        let mut storage = properties.remove("storageProfile").map(into_object).unwrap_or_default();
        let machine = data_disk::Machine {
            id,
            noun: "virtual machine scale set instance",
            size: body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default(),
            zone: body.get("zones").and_then(|zones| zones.as_array()?.first()?.as_str()),
            name: &disk_prefix(id),
        };
        data_disk::normalise(azure, &machine, &mut storage)?;
        properties.insert("storageProfile".into(), Value::Object(storage));
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn owned(&self, _azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        data_disk::owned(&record.body)
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let Some(profile) = at(&record.body, "properties/networkProfileConfiguration") else {
            return Vec::new();
        };
        let mut all = Vec::new();
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
        let disks = items(&record.body, "properties/storageProfile/dataDisks").iter();
        all.extend(
            disks
                .filter_map(|disk| stored_reference(disk, "managedDisk/id"))
                .map(|to| Reference::uses(&record.id, to)),
        );
        all
    }

    fn public_address(&self, record: &Record) -> Option<std::net::IpAddr> {
        instance_public_ip::address(record)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        data_disk::create_asked_for(azure, id);
        allocate(azure, id);
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        match completion {
            Completion::Action(action, targets) if !failed => power::finish(azure, id, action, targets),
            Completion::Delete if failed => {}
            Completion::Delete => {}
            _ => provisioning::settle(azure, id, failed),
        }
    }

    fn told(&self, azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
        guest::told(azure, id, answer)
    }

    fn on_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        if let Some(set) = id.parent() {
            crate::compute::scale_set::capacity::lower(azure, &set, 1);
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        let Some(set) = set_of(azure, &record.id) else { return };
        document.insert("name".into(), format!("{}_{}", set.id.name(), record.id.name()).into());
        document.insert("instanceId".into(), record.id.name().into());
        if let Some(tags) = set.body.get("tags") {
            document.insert("tags".into(), tags.clone());
        }
        let view = expand.instance_view.then(|| instance_view::of_instance(azure, record));
        let extensions = guest::extensions(azure, record);
        if !extensions.is_empty() {
            document.insert("resources".into(), extensions.into());
        }
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let profile = at(&record.body, "properties/networkProfileConfiguration");
        let latest = follows(record, set);
        properties.insert("latestModelApplied".into(), latest.into());
        let nics: Vec<Value> = profile
            .map_or(&[] as &[Value], |profile| items(profile, "networkInterfaceConfigurations"))
            .iter()
            .map(|nic| json!({ "id": record.id.child("networkInterfaces", name(nic)) }))
            .collect();
        properties.insert("networkProfile".into(), json!({ "networkInterfaces": nics }));
        properties.insert("timeCreated".into(), record.created.to_string().into());
        if let Some(view) = view {
            properties.insert("instanceView".into(), view);
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("instanceView") => {
                Some(Ok(instance_view::of_instance(azure, record)))
            }
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

    fn act(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        if action.eq_ignore_ascii_case(data_disk::CHANGE) {
            return Some(data_disk::change(azure, &Self, id, body));
        }
        power::begin(azure, id, action, body)
    }
}

fn not_active(id: &ResourceId) -> Refusal {
    Refusal::invalid_parameter(
        "instanceId",
        format!(
            "The provided instanceId {} is not an active Virtual Machine Scale Set VM instanceId.",
            id.name()
        ),
    )
}
