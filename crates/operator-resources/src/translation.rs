//! The mechanism: from the operator's members to Azure's.

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::lookup::{Awaited, Lookup};
use crate::member::{name_and_key, object_of, text_of, word_of};
use crate::reference::Reference;
use crate::role;
use crate::table::{Kind, has_member};

/// Objects whose keys and values are the user's: they are passed on as they are.
const FREE: [&str; 7] = [
    "config",
    "configurationSettings",
    "nodeLabels",
    "podLabels",
    "substitute",
    "tags",
    "verificationConfig",
];
/// Objects whose keys are the user's, and whose values have members of Azure's.
const KEYED: [&str; 6] = [
    "addonProfiles",
    "delegatedResources",
    "identityProfile",
    "kubeDNSOverrides",
    "kustomizations",
    "vnetDNSOverrides",
];
/// References whose member ends in `ID`; all others end in `Id`.
const UPPER: [&str; 7] = [
    "capacityReservationGroup",
    "diskEncryptionSet",
    "hostGroup",
    "nodePublicIPPrefix",
    "podSubnet",
    "proximityPlacementGroup",
    "vnetSubnet",
];
/// Lists of references whose member is named without `Ids`.
const BARE: [&str; 1] = ["applicationSecurityGroups"];
/// The members of a nested item that stand beside its `properties`.
const BESIDE: [&str; 3] = ["id", "name", "type"];

/// Whether a whole specification or a merge patch of one is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `null` is the same as absent.
    Whole,
    /// `null` removes.
    Patch,
}

/// What a member of the operator's stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The same member.
    Plain,
    /// An ID.
    Reference,
    /// A list of IDs.
    References,
    /// A value of a ConfigMap.
    ConfigMap,
}

/// The name of a member in Azure, and what it stands for.
fn azure_member(name: &str) -> (String, Form) {
    if name == "reference" {
        return ("id".to_owned(), Form::Reference);
    }
    if let Some(stem) = name.strip_suffix("FromConfig") {
        return (stem.to_owned(), Form::ConfigMap);
    }
    if let Some(stem) = name.strip_suffix("References") {
        let suffix = if BARE.contains(&stem) { "" } else { "Ids" };
        return (format!("{stem}{suffix}"), Form::References);
    }
    if let Some(stem) = name.strip_suffix("Reference") {
        let suffix = if UPPER.contains(&stem) { "ID" } else { "Id" };
        return (format!("{stem}{suffix}"), Form::Reference);
    }
    (name.to_owned(), Form::Plain)
}

/// Where a walk is: in the object, and in the document.
#[derive(Clone)]
struct At {
    /// For messages, such as `spec.agentPoolProfiles[0].vnetSubnetReference`.
    path: String,
    /// The names from `spec` on, without keys of lists, such as `agentPoolProfiles.vnetSubnetReference`.
    names: String,
    /// The names in the document, such as `properties.agentPoolProfiles.vnetSubnetID`; `*` for keys of the user's choice.
    azure: String,
    /// The JSON pointer in the document.
    pointer: String,
    /// Whether all of it is known.
    is_known: bool,
}

impl At {
    fn root() -> Self {
        let (names, azure, pointer) = (String::new(), String::new(), String::new());
        Self { path: "spec".to_owned(), names, azure, pointer, is_known: true }
    }

    fn member(&self, name: &str, azure: &str) -> Self {
        Self {
            path: format!("{}.{name}", self.path),
            names: dotted(&self.names, name),
            azure: dotted(&self.azure, azure),
            pointer: format!("{}/{}", self.pointer, escaped(azure)),
            is_known: self.is_known,
        }
    }

    /// The value of a key of the user's choice.
    fn entry(&self, key: &str) -> Self {
        let path = format!("{}.{key}", self.path);
        let pointer = format!("{}/{}", self.pointer, escaped(key));
        Self { path, azure: dotted(&self.azure, "*"), pointer, ..self.clone() }
    }

    fn item(&self, index: usize) -> Self {
        let (path, pointer) = (format!("{}[{index}]", self.path), format!("{}/{index}", self.pointer));
        Self { path, pointer, ..self.clone() }
    }

    /// The `properties` that the operator does not show.
    fn properties(&self) -> Self {
        let (azure, pointer) = (dotted(&self.azure, "properties"), format!("{}/properties", self.pointer));
        Self { azure, pointer, ..self.clone() }
    }
}

fn dotted(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A key in a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// One walk through a specification.
pub(crate) struct Translation<'a> {
    kind: &'static Kind,
    subscription: Option<&'a str>,
    lookup: &'a dyn Lookup,
    mode: Mode,
    pub(crate) secrets: Vec<String>,
    /// The names of the Secrets.
    pub(crate) sources: Vec<String>,
    pub(crate) awaited: Vec<Awaited>,
    /// Objects of the document that are replaced as a whole, because the operator states them as a list or otherwise
    /// as one value.
    pub(crate) replaced: Vec<String>,
    /// Members that neither Azure nor the operator is known to have.
    pub(crate) unknown: Vec<String>,
}

impl<'a> Translation<'a> {
    pub(crate) fn new(
        kind: &'static Kind,
        subscription: Option<&'a str>,
        lookup: &'a dyn Lookup,
        mode: Mode,
    ) -> Self {
        let (secrets, sources, awaited) = (Vec::new(), Vec::new(), Vec::new());
        let (replaced, unknown) = (Vec::new(), Vec::new());
        Self { kind, subscription, lookup, mode, secrets, sources, awaited, replaced, unknown }
    }

    /// `spec` as a document: what is not beside `properties` goes into them.
    pub(crate) fn specification(&mut self, spec: &Map<String, Value>) -> Result<Value, Refusal> {
        if let Some(properties) = spec.get("properties") {
            let remedy = "write its members directly in spec, as the operator has them";
            return Err(Refusal::value("spec.properties", word_of(properties), remedy));
        }
        let document = self.split(spec, self.kind.envelope, &At::root())?;
        Ok(document.into())
    }

    /// An object whose members stand beside `properties` if they are among these, and else in `properties`.
    fn split(
        &mut self,
        members: &Map<String, Value>,
        beside: &[&str],
        at: &At,
    ) -> Result<Map<String, Value>, Refusal> {
        let is_beside = |(name, _): &(String, Value)| beside.contains(&name.as_str());
        let all = members.iter().map(|(name, value)| (name.clone(), value.clone()));
        let (envelope, rest): (Vec<_>, Vec<_>) = all.partition(is_beside);
        let mut document = self.members(&envelope.into_iter().collect(), at)?;
        let properties = self.members(&rest.into_iter().collect(), &at.properties())?;
        if !properties.is_empty() {
            document.insert("properties".to_owned(), properties.into());
        }
        Ok(document)
    }

    fn members(&mut self, members: &Map<String, Value>, at: &At) -> Result<Map<String, Value>, Refusal> {
        let mut translated = Map::new();
        let mut stated: Vec<(String, String)> = Vec::new();
        for (name, value) in members {
            let (azure, form) = azure_member(name);
            let mut at = at.member(name, &azure);
            if at.is_known && !has_member(self.kind.kind, &at.azure) {
                at.is_known = false;
                self.unknown.push(at.path.clone());
            }
            if value.is_null() {
                if self.mode == Mode::Patch {
                    translated.entry(azure).or_insert(Value::Null);
                }
                continue;
            }
            if let Some((_, first)) = stated.iter().find(|(stated, _)| *stated == azure) {
                return Err(Refusal::Twice { first: first.clone(), second: at.path });
            }
            stated.push((azure.clone(), at.path.clone()));
            if let Some(value) = self.member(name, form, value, &at)? {
                translated.insert(azure, value);
            }
        }
        Ok(translated)
    }

    /// A member's value; absent while it is not known.
    fn member(&mut self, name: &str, form: Form, value: &Value, at: &At) -> Result<Option<Value>, Refusal> {
        match form {
            Form::Reference => return Ok(self.reference(value, at)?.map(Value::from)),
            Form::References => {
                let Some(items) = value.as_array() else {
                    return Err(Refusal::value(&at.path, word_of(value), "write a list of references"));
                };
                let mut ids = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    ids.extend(self.reference(item, &at.item(index))?.map(Value::from));
                }
                return Ok(Some(ids.into()));
            }
            Form::ConfigMap => {
                let (name, key) = name_and_key(value, &at.path, "ConfigMap")?;
                let found = self.lookup.config_map(&name, &key);
                if found.is_none() {
                    self.awaited.push(Awaited::ConfigMap { name, key });
                }
                return Ok(found.map(Value::from));
            }
            Form::Plain => {}
        }
        let names = at.names.as_str();
        if self.kind.secrets.contains(&names) {
            return self.secret(value, at);
        }
        if self.kind.secret_maps.contains(&names) {
            return self.whole_secret(value, at);
        }
        if FREE.contains(&name) {
            return Ok(Some(value.clone()));
        }
        if names == "identity.userAssignedIdentities" {
            return self.identities(value, at).map(Some);
        }
        if KEYED.contains(&name)
            && let Some(entries) = value.as_object()
        {
            let mut translated = Map::new();
            for (key, value) in entries {
                if self.mode == Mode::Patch || !value.is_null() {
                    translated.insert(key.clone(), self.value(value, &at.entry(key))?);
                }
            }
            return Ok(Some(translated.into()));
        }
        if self.kind.nested.contains(&names)
            && let Some(items) = value.as_array()
        {
            return self.whole(|this| this.nested(items, at)).map(Some);
        }
        self.value(value, at).map(Some)
    }

    fn value(&mut self, value: &Value, at: &At) -> Result<Value, Refusal> {
        match value {
            Value::Object(members) => self.members(members, at).map(Value::Object),
            Value::Array(items) => self.whole(|this| {
                items.iter().enumerate().map(|(index, item)| this.value(item, &at.item(index))).collect()
            }),
            other => Ok(other.clone()),
        }
    }

    /// The items of a list: a patch replaces a list as a whole, so that nothing in it is removed by null.
    fn whole(
        &mut self,
        translate: impl FnOnce(&mut Self) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let mode = std::mem::replace(&mut self.mode, Mode::Whole);
        let translated = translate(self);
        self.mode = mode;
        translated
    }

    /// Items with `properties` of their own.
    fn nested(&mut self, items: &[Value], at: &At) -> Result<Value, Refusal> {
        let mut translated = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = at.item(index);
            let item = self.split(object_of(item, &at.path)?, &BESIDE, &at)?;
            translated.push(Value::Object(item));
        }
        Ok(translated.into())
    }

    /// A reference as an ID; absent while it is not known.
    fn reference(&mut self, value: &Value, at: &At) -> Result<Option<String>, Refusal> {
        match Reference::of(value, &at.path)? {
            Reference::Id(id) => Ok(Some(id)),
            Reference::Object(object) => {
                let id = self.lookup.id(&object);
                if id.is_none() {
                    self.awaited.push(Awaited::Object(object));
                }
                Ok(id)
            }
            Reference::Role(role) if at.names == "roleDefinitionReference" => {
                role::definition(&role, self.subscription, &at.path).map(Some)
            }
            Reference::Role(role) => Err(Refusal::value(
                &format!("{}.wellKnownName", at.path),
                role,
                "write {armId} or {group, kind, name}: only roleDefinitionReference takes the name of a role",
            )),
        }
    }

    /// Identities: the operator has a list of references, Azure an object whose keys are the IDs.
    fn identities(&mut self, value: &Value, at: &At) -> Result<Value, Refusal> {
        let remedy = "write a list of {reference: {armId}} or {reference: {group, kind, name}}";
        let items = value.as_array().ok_or_else(|| Refusal::value(&at.path, word_of(value), remedy))?;
        self.replaced.push(at.pointer.clone());
        self.whole(|this| {
            let mut identities = Map::new();
            for (index, item) in items.iter().enumerate() {
                let at = at.item(index);
                let mut members = object_of(item, &at.path)?.clone();
                let reference =
                    members.remove("reference").ok_or_else(|| Refusal::missing(&at.path, remedy))?;
                if let Some(id) = this.reference(&reference, &at.member("reference", ""))? {
                    identities.insert(id, this.members(&members, &at.entry(""))?.into());
                }
            }
            Ok(identities.into())
        })
    }

    /// A key of a Secret. A text that was written instead is passed on, and may not be shown either.
    fn secret(&mut self, value: &Value, at: &At) -> Result<Option<Value>, Refusal> {
        self.secrets.push(at.pointer.clone());
        if value.is_string() {
            return Ok(Some(value.clone()));
        }
        let (name, key) = name_and_key(value, &at.path, "Secret")?;
        self.sources.push(name.clone());
        let found = self.lookup.secret(&name, &key);
        if found.is_none() {
            self.awaited.push(Awaited::Secret { name, key: Some(key) });
        }
        Ok(found.map(Value::from))
    }

    /// A whole Secret, whose keys become members.
    fn whole_secret(&mut self, value: &Value, at: &At) -> Result<Option<Value>, Refusal> {
        self.secrets.push(at.pointer.clone());
        let remedy = "write {name} of a Secret of the same namespace";
        let members = object_of(value, &at.path)?;
        let name = match members.get("name") {
            Some(name) if members.len() == 1 => text_of(name, &format!("{}.name", at.path))?,
            Some(_) => return Err(Refusal::value(&at.path, "an object with other members", remedy)),
            None => return Err(Refusal::missing(&format!("{}.name", at.path), remedy)),
        };
        self.replaced.push(at.pointer.clone());
        self.sources.push(name.clone());
        let found = self.lookup.whole_secret(&name);
        if found.is_none() {
            self.awaited.push(Awaited::Secret { name, key: None });
        }
        let members = |pairs: Vec<(String, String)>| {
            Value::Object(pairs.into_iter().map(|(key, value)| (key, value.into())).collect())
        };
        Ok(found.map(members))
    }
}
