//! Parameters in the URLs of the control API. An unknown one is refused: it would have no effect, and the answer would
//! be to another question than the caller meant.

use std::collections::BTreeMap;

/// The parameters of a URL.
pub(crate) type Parameters = BTreeMap<String, String>;

/// Checks that all parameters are known.
///
/// # Errors
/// The first unknown parameter, and the known ones.
pub(crate) fn check(parameters: &Parameters, known: &[&str]) -> Result<(), String> {
    match parameters.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "there is no parameter `{name}` (given as `{value}`); there are {}",
            known.join(", ")
        )),
    }
}
