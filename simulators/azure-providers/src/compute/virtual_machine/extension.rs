//! Extensions of machines of their own (Azure REST reference, "Virtual Machine Extensions").

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::guest;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::EXTENSION_TYPE;
use azure_engine::document::{Object, at, text};
use azure_engine::provider::{AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::store::State;
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Text, Texts};
use azure_engine::types::member_table::Member;

pub(crate) struct Extensions;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("extension.json"),
    etagged: false,
    etag_on_writes: false,
    puts_merge: false,
    ..protocol(EXTENSION_TYPE, "VMExtension")
};

static MEMBERS: [Member; 12] = [
    Member::new("publisher", Text).required(),
    Member::new("type", Text).required(),
    Member::new("typeHandlerVersion", Text).required(),
    Member::new("autoUpgradeMinorVersion", Flag).or_flag(false),
    Member::new("enableAutomaticUpgrade", Flag),
    Member::new("settings", Anything),
    Member::new("protectedSettings", Anything).secret(),
    Member::new("protectedSettingsFromKeyVault", Anything).secret(),
    Member::new("suppressFailures", Flag),
    Member::new("forceUpdateTag", Text),
    Member::new("provisionAfterExtensions", Texts),
    Member::new("instanceView", Derived),
];

/// The hidden member with the guest's message.
const MESSAGE: &str = "message";

shape!(Extensions, PROTOCOL, without Acting);

impl Writing for Extensions {
    fn before_write(&self, azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        let machine = proposal.id.parent().and_then(|machine| azure.store.get(&machine));
        if let Some(machine) = machine {
            OPERATION_NOT_ALLOWED.says_when(
                at(&machine.body, "properties/osProfile/allowExtensionOperations")
                    == Some(&Value::Bool(false)),
                "This operation cannot be performed when extension operations are disallowed. To \
             allow, please ensure VM Agent is installed on the VM and the \
             osProfile.allowExtensionOperations property is true.",
            )?;
            OPERATION_NOT_ALLOWED.says_when(
                machine.hidden.get("power").is_some_and(|power| power != "running"),
                "Cannot modify extensions in the VM when the VM is not running.",
            )?;
        }
        Ok(Value::Object(proposal.body))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        guest::extend(azure, id);
    }

    fn after_outside_work(&self, azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
        let result = at(answer, "extensions").and_then(|all| all.get(id.name())).cloned();
        let result = result.unwrap_or_else(|| match text(answer, "failure") {
            Some(failure) => json!({ "failed": true, "message": failure }),
            None => json!({}),
        });
        let record = azure.store.get_mut(id)?;
        if let Some(message) = result.get("message") {
            record.hidden.insert(MESSAGE.into(), message.clone());
        }
        let suppressed = at(&record.body, "properties/suppressFailures") == Some(&Value::Bool(true));
        let extension = json!({ "name": id.name(), "properties": at(&record.body, "properties") });
        guest::refusal_of(&extension, &result).filter(|_| !suppressed)
    }
}

impl Presenting for Extensions {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        if expand.instance_view && record.state != State::Creating {
            let message = record.hidden.get(MESSAGE).and_then(Value::as_str).unwrap_or_default();
            let view = json!({
                "name": record.id.name(),
                "type": format!(
                    "{}.{}",
                    text(&record.body, "properties/publisher").unwrap_or_default(),
                    text(&record.body, "properties/type").unwrap_or_default()
                ),
                "typeHandlerVersion": at(&record.body, "properties/typeHandlerVersion"),
                "statuses": [guest::status(record.state.as_str(), message)],
            });
            properties.insert("instanceView".into(), view);
        }
    }
}
