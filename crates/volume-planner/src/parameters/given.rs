//! The parameters of a class after reading: by the key of their row, each with a value of the row's form.

use std::collections::BTreeMap;

use super::form::boolean;
use super::table::{Parameter, Suits, row_of};
use crate::model::disk_sku::DiskSku;
use crate::model::error::{ClassKind, Refusal, Result};

/// Parameters as a request has them.
pub type Entries = BTreeMap<String, String>;

/// Parameters that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    values: BTreeMap<&'static str, String>,
    /// What follows a key that is a prefix, with the value.
    suffixed: BTreeMap<String, String>,
}

impl Given {
    /// Reads parameters by a table. Empty values count as absent.
    ///
    /// # Errors
    /// A key has no row, a value not the form of its row, or two spellings of a key have different values.
    pub fn read(table: &'static [Parameter], source: ClassKind, entries: &Entries) -> Result<Self> {
        let mut given = Self::default();
        for (key, value) in entries {
            let row = row_of(table, key)
                .ok_or_else(|| Refusal::UnknownParameter { key: key.clone(), class: source })?;
            if value.is_empty() {
                continue;
            }
            if !row.form.admits(value) {
                let (key, expected) = (row.key, row.form.words());
                return Err(Refusal::InvalidValue { key, value: value.clone(), expected });
            }
            if row.is_prefix {
                let suffix = key.get(row.key.len()..).unwrap_or_default();
                given.suffixed.insert(suffix.to_owned(), value.clone());
                continue;
            }
            if let Some(other) = given.values.insert(row.key, value.clone())
                && other != *value
            {
                let (first, second) =
                    if other < *value { (other, value.clone()) } else { (value.clone(), other) };
                return Err(Refusal::AmbiguousParameter { key: row.key, first, second });
            }
        }
        Ok(given)
    }

    /// Checks that all parameters suit a SKU.
    ///
    /// # Errors
    /// One of them does not.
    pub fn check_sku(&self, table: &'static [Parameter], sku: DiskSku) -> Result<()> {
        let unsuitable = |row: &&Parameter| row.suits == Suits::Provisioned && !sku.is_provisioned();
        for row in table.iter().filter(unsuitable) {
            if let Some(value) = self.text(row.key) {
                let expected = "it needs PremiumV2_LRS or UltraSSD_LRS";
                let (key, sku) = (row.key, sku.name());
                return Err(Refusal::UnsuitableForSku { key, value: value.to_owned(), sku, expected });
            }
        }
        Ok(())
    }

    /// The value of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// The value of a key, as a text of its own.
    pub fn owned(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    /// A whole number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// `true` or `false`.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        boolean(self.text(key)?)
    }

    /// Whether the value is this word, in any case.
    pub fn is(&self, key: &str, word: &str) -> bool {
        self.text(key).is_some_and(|value| value.eq_ignore_ascii_case(word))
    }

    /// What follows the keys that are prefixes, with the values.
    pub fn suffixed(&self) -> &BTreeMap<String, String> {
        &self.suffixed
    }
}

/// Parameters of a class with the mutable ones over them, whatever the spelling of their keys.
pub fn merge(table: &'static [Parameter], class: &Entries, mutable: &Entries) -> Entries {
    let is_replaced = |key: &str| {
        let rows = mutable.keys().filter_map(|one| row_of(table, one));
        rows.into_iter().any(|row| !row.is_prefix && row.is_key(key))
    };
    let left =
        class.iter().filter(|(key, _)| !is_replaced(key)).map(|(key, value)| (key.clone(), value.clone()));
    left.chain(mutable.clone()).collect()
}
