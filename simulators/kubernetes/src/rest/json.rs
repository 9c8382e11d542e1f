//! A JSON parser that reports duplicate members, which other parsers accept silently.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses a value. Returns the paths of duplicate members, too: `spec.ports[0].port`. The last value counts.
pub(super) fn read(bytes: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let mut duplicates = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let value = Reader { path: String::new(), duplicates: &mut duplicates }.deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, duplicates))
}

/// Reads one value at a path.
struct Reader<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Reader { path, duplicates: self.duplicates })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            if map.contains_key(&name) {
                self.duplicates.push(path.clone());
            }
            let value = members.next_value_seed(Reader { path, duplicates: self.duplicates })?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_named_by_their_path() {
        let text = br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":2}],"a":3,"e":1.5,"f":[null,true,-1,"x"]}"#;
        let (value, duplicates) = read(text).unwrap();
        assert_eq!(duplicates, ["a.b", "c[0].d", "a"]);
        assert_eq!(value, serde_json::json!({"a":3,"c":[{"d":2}],"e":1.5,"f":[null,true,-1,"x"]}));
        assert!(read(b"{} {}").is_err() && read(b"{").is_err());
    }

    proptest::proptest! {
        #[test]
        fn it_reads_what_the_plain_parser_reads(text in r#"[\[\]{}:,"a-c0-9 .e-]{0,40}"#) {
            let plain = serde_json::from_str::<Value>(&text).ok();
            proptest::prop_assert_eq!(read(text.as_bytes()).ok().map(|(value, _)| value), plain);
        }
    }
}
