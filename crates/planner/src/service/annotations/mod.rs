//! The annotations of a Service: keys and how their values are read.

pub(crate) mod notices;
pub(crate) mod table;

use std::net::IpAddr;

use k8s::Service;
use k8s::names::SERVICE_ANNOTATION_PREFIX;

use crate::model::annotation_keys::full_key;
use crate::outcome::Refusal;

/// The annotations of one Service, by the part of the key after the common prefix.
#[derive(Clone, Copy)]
pub(crate) struct Annotations<'a>(pub &'a Service);

impl<'a> Annotations<'a> {
    /// The value, unchanged.
    pub fn get(self, key: &str) -> Option<&'a str> {
        let mut all = self.0.metadata.annotations.iter().flatten();
        let found = all.find(|(full, _)| full.strip_prefix(SERVICE_ANNOTATION_PREFIX) == Some(key));
        found.map(|(_, value)| value.as_str())
    }

    /// The value, unless it is empty.
    pub fn non_empty(self, key: &str) -> Option<&'a str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// The trimmed value, unless it is empty.
    pub fn trimmed(self, key: &str) -> Option<&'a str> {
        self.get(key).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Whether the value is `true` in any case. Surrounding spaces are significant.
    pub fn flag(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Like [`Self::flag`], but ignores surrounding spaces.
    pub fn trimmed_flag(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// A whole number.
    pub fn integer(self, key: &str) -> Result<Option<i32>, Refusal> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let value = value.trim();
        let number = value
            .parse()
            .map_err(|_| Refusal::NotAWholeNumber { key: full_key(key), value: value.to_owned() })?;
        Ok(Some(number))
    }

    /// A whole number of at least `minimum`; `what` names the setting.
    pub fn at_least(self, key: &str, what: &'static str, minimum: i32) -> Result<Option<i32>, Refusal> {
        match self.integer(key)? {
            Some(value) if value < minimum => {
                Err(Refusal::BelowMinimum { key: full_key(key), what, value, minimum })
            }
            other => Ok(other),
        }
    }

    /// The items of a comma separated list, trimmed, without empty ones.
    pub fn items(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.get(key).unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty())
    }

    /// The items of all annotations that have this key in any case, as the replaced program reads this one list.
    pub fn items_in_any_case(self, key: &str) -> Vec<String> {
        let full = full_key(key);
        let all = self.0.metadata.annotations.iter().flatten();
        let found = all.filter(|(key, _)| key.eq_ignore_ascii_case(&full));
        let items = found.flat_map(|(_, value)| value.split(',').map(str::trim));
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// The items of a list of addresses. Refuses the first item that is not an address.
    pub fn addresses(self, key: &str) -> Result<Vec<IpAddr>, Refusal> {
        let value = self.get(key).unwrap_or_default();
        let invalid =
            |item: &str| Refusal::InvalidAdditionalAddress { value: value.to_owned(), item: item.to_owned() };
        self.items(key).map(|item| item.parse().map_err(|_| invalid(item))).collect()
    }
}
