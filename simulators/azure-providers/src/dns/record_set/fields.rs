//! The members of records.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::super::names::is_domain;
use azure_engine::document::{Object, into_object};
use azure_engine::refusal::{Code, Result};

/// A member of a record.
pub(crate) enum Field {
    Ipv4(&'static str),
    Ipv6(&'static str),
    /// A domain name.
    Host(&'static str),
    /// A number between two.
    Number(&'static str, i64, i64),
    /// A word or text.
    Text(&'static str),
    /// A list of texts, each of 255 bytes at most, together 1,024.
    Texts(&'static str),
}

const WORD: i64 = 65_535;
const SECONDS: i64 = i32::MAX as i64;

/// The members of a mail exchanger.
pub(crate) static MX: [Field; 2] = [Field::Number("preference", 0, WORD), Field::Host("exchange")];

/// The members of a server of a service.
pub(crate) static SRV: [Field; 4] = [
    Field::Number("priority", 0, WORD),
    Field::Number("weight", 0, WORD),
    Field::Number("port", 0, WORD),
    Field::Host("target"),
];

/// The members of the start of authority; the name of the last one depends on the kind of zones.
pub(crate) const fn soa(minimum: &'static str) -> [Field; 5] {
    [
        Field::Number("serialNumber", 0, u32::MAX as i64),
        Field::Number("refreshTime", 0, SECONDS),
        Field::Number("retryTime", 0, SECONDS),
        Field::Number("expireTime", 0, SECONDS),
        Field::Number(minimum, 0, SECONDS),
    ]
}

impl Field {
    fn name(&self) -> &'static str {
        match self {
            Self::Ipv4(name)
            | Self::Ipv6(name)
            | Self::Host(name)
            | Self::Number(name, ..)
            | Self::Text(name)
            | Self::Texts(name) => name,
        }
    }

    fn fits(&self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Self::Ipv4(_) => text.is_some_and(|text| text.parse::<Ipv4Addr>().is_ok()),
            Self::Ipv6(_) => text.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()),
            Self::Host(_) => text.is_some_and(is_domain),
            Self::Text(_) => text.is_some(),
            Self::Number(_, least, most) => {
                value.as_i64().is_some_and(|number| (*least..=*most).contains(&number))
            }
            Self::Texts(_) => value.as_array().is_some_and(|texts| {
                let lengths: Option<Vec<usize>> =
                    texts.iter().map(|text| Some(text.as_str()?.len())).collect();
                lengths.is_some_and(|lengths| {
                    !lengths.is_empty()
                        && lengths.iter().all(|length| *length <= 255)
                        && lengths.iter().sum::<usize>() <= 1_024
                })
            }),
        }
    }
}

/// Gives members the spelling of the table.
pub(crate) fn spell(object: &mut Object, names: &[&'static str]) {
    for name in names {
        let key = object.keys().find(|key| *key != name && key.eq_ignore_ascii_case(name)).cloned();
        if let Some(value) = key.and_then(|key| object.remove(&key)) {
            object.insert((*name).into(), value);
        }
    }
}

/// A record with its members, each checked; missing ones keep their values.
pub(crate) fn kept(given: Value, wanted: &[Field], old: Option<Value>) -> Result<Value> {
    let mut given = into_object(given);
    let mut kept = old.map(into_object).unwrap_or_default();
    for field in wanted {
        let name = field.name();
        spell(&mut given, &[name]);
        let value = given.remove(name).or_else(|| kept.get(name).cloned()).unwrap_or_default();
        Code::ours(400, "BadRequest").says_when(
            !field.fits(&value),
            format_args!("The value {value} of the member '{name}' of a record is invalid."),
        )?;
        kept.insert(name.into(), value);
    }
    Ok(Value::Object(kept))
}
