//! Types without special rules: a protocol and tables.

use serde_json::{Value, json};

use azure_engine::document::Object;
use azure_engine::provider::{Acting, AzureState, Expand, Presenting, Protocol, Record, Shape, Writing};
use azure_engine::refusal::{Code, Result};

/// One of them.
pub(crate) struct Plain {
    /// How requests about it are answered, and what its documents hold.
    pub(crate) protocol: &'static Protocol,
    /// Its children, by the last segment of their type: it cannot be deleted before them. A member may list them.
    pub(crate) children: Option<(&'static str, Option<&'static str>)>,
}

impl Plain {
    /// A type without children.
    pub(crate) const fn of(protocol: &'static Protocol) -> Self {
        Self { protocol, children: None }
    }

    fn nested<'a>(&self, azure: &'a AzureState, record: &Record) -> Vec<&'a Record> {
        let Some((segment, _)) = self.children else { return Vec::new() };
        azure.store.of_type_below(&format!("{}/{segment}", self.protocol.resource_type), &record.id)
    }
}

impl Shape for Plain {
    fn protocol(&self) -> &'static Protocol {
        self.protocol
    }
}

impl Writing for Plain {
    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        match self.nested(azure, record).first() {
            None => Ok(()),
            Some(child) => Err(Code::azures(409, "CannotDeleteResource").says(format_args!(
                "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: '{}'. \
                 Please delete all nested resources before deleting this resource.",
                child.id
            ))),
        }
    }
}

impl Presenting for Plain {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some((_, Some(member))) = self.children else { return };
        let listed: Vec<Value> =
            self.nested(azure, record).into_iter().map(|child| json!({ "id": child.id })).collect();
        if let (false, Some(Value::Object(properties))) = (listed.is_empty(), document.get_mut("properties"))
        {
            properties.insert(member.into(), listed.into());
        }
    }
}

impl Acting for Plain {}
