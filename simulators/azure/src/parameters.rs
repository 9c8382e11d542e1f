//! Parameters in the URLs of the control API. One that nobody reads would change nothing, and the answer would be to
//! another question than was asked.

use std::collections::BTreeMap;

/// The parameters of a URL.
pub(crate) type Parameters = BTreeMap<String, String>;

/// Finds out whether all parameters are among those that are read.
///
/// # Errors
/// The first that is not, and those that there are.
pub(crate) fn check(parameters: &Parameters, known: &[&str]) -> Result<(), String> {
    match parameters.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "there is no parameter `{name}` (given as `{value}`); there are {}",
            known.join(", ")
        )),
    }
}
