//! A row of a table of parameters, and the rows as Markdown.

use super::form::Form;

/// Which SKUs a parameter suits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suits {
    /// All of them.
    All,
    /// Those whose performance is provisioned.
    Provisioned,
}

/// A parameter of a class.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The key, as users write it.
    pub key: &'static str,
    /// Other keys for the same.
    pub aliases: &'static [&'static str],
    /// The form of its values. An empty value counts as absent.
    pub form: Form,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// The SKUs that it suits.
    pub suits: Suits,
    /// Whether a VolumeAttributesClass may change it.
    pub is_mutable: bool,
    /// Whether the key is what others begin with.
    pub is_prefix: bool,
}

/// A row with the usual properties.
pub(super) const fn parameter(
    key: &'static str,
    form: Form,
    default: &'static str,
    effect: &'static str,
) -> Parameter {
    Parameter {
        key,
        aliases: &[],
        form,
        default,
        effect,
        suits: Suits::All,
        is_mutable: false,
        is_prefix: false,
    }
}

impl Parameter {
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(super) const fn provisioned(mut self) -> Self {
        self.suits = Suits::Provisioned;
        self
    }

    pub(super) const fn mutable(mut self) -> Self {
        self.is_mutable = true;
        self
    }

    pub(super) const fn prefix(mut self) -> Self {
        self.is_prefix = true;
        self
    }

    /// Whether a key, in any case, is this parameter's.
    pub fn is_key(&self, key: &str) -> bool {
        if self.is_prefix {
            return key.get(..self.key.len()).is_some_and(|start| start.eq_ignore_ascii_case(self.key));
        }
        self.key.eq_ignore_ascii_case(key) || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(key))
    }
}

/// The row of a key.
pub fn row_of(table: &'static [Parameter], key: &str) -> Option<&'static Parameter> {
    table.iter().find(|row| row.is_key(key))
}

/// A table of parameters as rows of Markdown: key, values, what holds without it, effect, SKUs, whether it can change.
pub fn markdown_rows(table: &[Parameter]) -> String {
    let mut text = String::new();
    for row in table {
        let aliases = row.aliases.iter().map(|alias| format!(" or `{alias}`")).collect::<String>();
        let suffix = if row.is_prefix { "<path>" } else { "" };
        let suits = match row.suits {
            Suits::All => "all",
            Suits::Provisioned => "`PremiumV2_LRS`, `UltraSSD_LRS`",
        };
        let changes = if row.is_mutable { "yes" } else { "no" };
        let cells = [
            format!("`{}{suffix}`{aliases}", row.key),
            row.form.markdown(),
            row.default.to_owned(),
            row.effect.to_owned(),
            suits.to_owned(),
            changes.to_owned(),
        ];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}
