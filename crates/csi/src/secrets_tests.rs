//! What is printed of messages with secrets.

use prost::Message;
use prost::encoding::{WireType, encode_key};

use super::*;
use crate::v1;

// The part of protobuf's descriptors that says which fields are secret, read without the build's help.
#[derive(Message)]
struct Definition {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}
#[derive(Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Type>,
}
#[derive(Message)]
struct Type {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    inner: Vec<Type>,
    #[prost(message, optional, tag = "7")]
    options: Option<TypeOptions>,
}
#[derive(Message)]
struct TypeOptions {
    #[prost(bool, tag = "7")]
    is_map_entry: bool,
}
#[derive(Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "3")]
    number: u32,
    #[prost(message, optional, tag = "8")]
    options: Option<FieldOptions>,
}
#[derive(Message)]
struct FieldOptions {
    #[prost(bool, tag = "1059")]
    is_secret: bool,
}
#[derive(Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

fn with_inner(outer: &str, types: Vec<Type>, all: &mut Vec<(String, Vec<Field>)>) {
    for Type { name, fields, inner, options } in types {
        let name = format!("{outer}.{name}");
        with_inner(&name, inner, all);
        if !options.is_some_and(|options| options.is_map_entry) {
            all.push((name, fields));
        }
    }
}

/// All messages of the definition, with their fields.
fn messages() -> Vec<(String, Vec<Field>)> {
    let mut all = Vec::new();
    for file in Definition::decode(v1::DESCRIPTOR).unwrap().files {
        if file.package == "csi.v1" {
            with_inner("csi.v1", file.messages, &mut all);
        }
    }
    all
}

/// A message with one value in one field.
fn encoded(number: u32, value: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    value.encode_length_delimited(&mut bytes).unwrap();
    bytes
}

/// CSI-061. Section 2.1 of the specification of the drivers: what is logged has no secrets.
#[test]
fn no_secret_field_of_the_definition_is_printed() {
    let mut secret_fields = 0;
    for (message, fields) in messages() {
        assert!(v1::debug_of(&message, &[]).is_some(), "{message} cannot be printed by name");
        for field in fields {
            if !field.options.is_some_and(|options| options.is_secret) {
                continue;
            }
            secret_fields += 1;
            let entry = Entry { key: "account-key".to_owned(), value: "hunter2".to_owned() };
            let text = v1::debug_of(&message, &encoded(field.number, &entry)).unwrap();
            let name = &field.name;
            assert!(text.contains(&format!("{name}: <1 withheld>")), "{message}.{name}: {text}");
            assert!(!text.contains("hunter2") && !text.contains("account-key"), "{message}.{name}: {text}");
        }
    }
    let stated = include_str!("../proto/csi.proto").matches("[(csi_secret) = true").count();
    assert_eq!(secret_fields, stated);
}

/// CSI-061. Kubelets put tokens of service accounts into the context of a volume.
#[test]
fn of_maps_beside_secrets_the_keys_are_printed() {
    let request = v1::NodePublishVolumeRequest {
        volume_id: "vol-1".to_owned(),
        volume_context: HashMap::from([("serviceAccount.tokens".to_owned(), "hunter2".to_owned())]),
        ..v1::NodePublishVolumeRequest::default()
    };
    let text = format!("{request:?}");
    assert!(text.contains("volume_id: \"vol-1\"") && text.contains("[\"serviceAccount.tokens\"]"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

/// CSI-061. The definition says in words that they may be sensitive.
#[test]
fn mount_flags_are_not_printed() {
    let volume = v1::volume_capability::MountVolume {
        fs_type: "ext4".to_owned(),
        mount_flags: vec!["password=hunter2".to_owned()],
        ..v1::volume_capability::MountVolume::default()
    };
    let text = format!("{volume:?}");
    assert!(text.contains("fs_type: \"ext4\"") && text.contains("mount_flags: <1 withheld>"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn secrets_leave_their_request_and_are_exposed_by_name_alone() {
    let mut request = v1::DeleteVolumeRequest {
        secrets: HashMap::from([("account-key".to_owned(), "hunter2".to_owned())]),
        ..v1::DeleteVolumeRequest::default()
    };
    let secrets = request.take_secrets();
    assert!(request.secrets.is_empty());
    assert_eq!(secrets.expose("account-key"), Some("hunter2"));
    assert_eq!(secrets.names(), ["account-key"]);
    assert_eq!(format!("{secrets:?}"), "Secrets(<1 withheld>)");
}
