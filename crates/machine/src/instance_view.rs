//! The instance view of a machine: its states, as codes.

use azure_types::InstanceView;

/// The status of one kind in a view, as Azure spells it after `<kind>/`.
pub(crate) fn status<'a>(view: Option<&'a InstanceView>, kind: &str) -> Option<&'a str> {
    let statuses = view.and_then(|view| view.statuses.as_deref()).unwrap_or_default();
    let codes = statuses.iter().filter_map(|status| status.code.as_deref()?.split_once('/'));
    codes.into_iter().find(|(this, _)| this.eq_ignore_ascii_case(kind)).map(|(_, state)| state)
}
