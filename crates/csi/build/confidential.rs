//! Finds the messages with secrets in the descriptor, and writes the code that never prints them.

use std::error::Error;
use std::fmt::Write as _;

use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

/// The option by which the definition marks a field as secret.
const SECRET: &str = "csi.v1.csi_secret";

/// The fields of which the definition says in words alone that they may be sensitive.
const SENSITIVE: [&str; 1] = ["csi.v1.VolumeCapability.MountVolume.mount_flags"];

/// A message of the interface.
pub struct Message {
    /// Its name in the definition, such as `csi.v1.VolumeCapability.MountVolume`.
    pub full_name: String,
    /// Its path in the generated module, such as `volume_capability::MountVolume`.
    path: String,
    name: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    shown: Shown,
}

/// What of a field is printed.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// All of it.
    Whole,
    /// The keys of a map: beside secrets, its values may be credentials, too.
    Keys,
    /// How many values there are; the definition says in words that they may be sensitive.
    Count,
    /// Nothing, and the secrets can be taken out.
    Nothing,
}

impl Message {
    /// Whether anything of it is never printed.
    pub fn is_confidential(&self) -> bool {
        self.fields.iter().any(|field| field.shown != Shown::Whole)
    }
}

/// All messages of the interface, those inside others included.
pub fn messages(pool: &DescriptorPool) -> Result<Vec<Message>, Box<dyn Error>> {
    let mut messages = Vec::new();
    for message in pool.all_messages().filter(|it| it.package_name() == "csi.v1" && !it.is_map_entry()) {
        messages.push(read(pool, &message)?);
    }
    for name in SENSITIVE {
        let (message, field) = name.rsplit_once('.').unwrap_or_default();
        let message = pool.get_message_by_name(message);
        if message.is_none_or(|message| message.get_field_by_name(field).is_none()) {
            return Err(format!("the definition has no {name}: correct build/confidential.rs").into());
        }
    }
    Ok(messages)
}

fn read(pool: &DescriptorPool, message: &MessageDescriptor) -> Result<Message, Box<dyn Error>> {
    let secret = pool.get_extension_by_name(SECRET).ok_or("the definition does not declare csi_secret")?;
    let is_secret = |field: &FieldDescriptor| field.options().get_extension(&secret).as_bool() == Some(true);
    let has_secrets = message.fields().any(|field| is_secret(&field));
    let mut fields = Vec::<Field>::new();
    for field in message.fields() {
        let shown = if is_secret(&field) {
            if !is_map_of_text(&field) {
                return Err(format!("{} is secret, and no map of texts", field.full_name()).into());
            }
            Shown::Nothing
        } else if SENSITIVE.contains(&field.full_name()) {
            Shown::Count
        } else if has_secrets && is_map_of_text(&field) {
            Shown::Keys
        } else {
            Shown::Whole
        };
        // The alternatives of a oneof are one member of the generated type.
        let alternative = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let name = alternative.map_or_else(|| field.name().to_owned(), |oneof| oneof.name().to_owned());
        if !fields.iter().any(|field| field.name == name) {
            fields.push(Field { name, shown });
        }
    }
    Ok(Message {
        full_name: message.full_name().to_owned(),
        path: path(message),
        name: message.name().to_owned(),
        fields,
    })
}

fn is_map_of_text(field: &FieldDescriptor) -> bool {
    let Kind::Message(entry) = field.kind() else { return false };
    field.is_map()
        && entry.map_entry_key_field().kind() == Kind::String
        && entry.map_entry_value_field().kind() == Kind::String
}

/// A message inside another is in a module with the other's name.
fn path(message: &MessageDescriptor) -> String {
    let mut path = message.name().to_upper_camel_case();
    let mut inner = message.clone();
    while let Some(outer) = inner.parent_message() {
        path = format!("{}::{path}", outer.name().to_snake_case());
        inner = outer;
    }
    path
}

/// `Debug` of the confidential messages, and the way to their secrets. For tests, `Debug` of any message by its name.
pub fn code(messages: &[Message]) -> String {
    let mut code = String::new();
    for message in messages.iter().filter(|message| message.is_confidential()) {
        debug(&mut code, message);
        for field in message.fields.iter().filter(|field| field.shown == Shown::Nothing) {
            let (path, field) = (&message.path, &field.name);
            let _infallible = write!(
                code,
                "impl crate::secrets::Confidential for {path} {{\n    \
                 fn take_secrets(&mut self) -> crate::secrets::Secrets {{\n        \
                 ::core::mem::take(&mut self.{field}).into()\n    }}\n}}\n"
            );
        }
    }
    code.push_str(
        "#[cfg(test)]\n\
         pub(crate) fn debug_of(message: &str, bytes: &[u8]) -> Option<String> {\n    \
         use ::prost::Message;\n    match message {\n",
    );
    for message in messages {
        let (name, path) = (&message.full_name, &message.path);
        let _infallible = writeln!(
            code,
            "        {name:?} => {path}::decode(bytes).ok().map(|message| format!(\"{{message:?}}\")),"
        );
    }
    code.push_str("        _ => None,\n    }\n}\n");
    code
}

fn debug(code: &mut String, message: &Message) {
    let (path, name) = (&message.path, &message.name);
    let _infallible = write!(
        code,
        "impl ::core::fmt::Debug for {path} {{\n    \
         fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{\n        \
         f.debug_struct({name:?})\n"
    );
    for Field { name, shown } in &message.fields {
        let value = match shown {
            Shown::Whole => format!("&self.{name}"),
            Shown::Keys => format!("&crate::secrets::Keys(&self.{name})"),
            Shown::Count | Shown::Nothing => format!("&crate::secrets::Withheld(self.{name}.len())"),
        };
        let _infallible = writeln!(code, "            .field({name:?}, {value})");
    }
    code.push_str("            .finish()\n    }\n}\n");
}
