//! `--limits`: limits that differ from Azure's published ones.

use std::collections::BTreeMap;

use azure_simulator::{Azure, Options};

use super::input;

/// Limits by name.
pub type Limits = BTreeMap<String, u64>;

/// Azure's own limits.
pub fn published() -> Limits {
    Azure::new(Options::default()).limits()
}

/// Core quotas with room for thousands of machines; a new subscription has few.
pub fn enough_cores() -> Limits {
    let names = published().into_keys().filter(|name| name.to_ascii_lowercase().contains("cores"));
    names.map(|name| (name, 1_000_000)).collect()
}

/// Parses `name=value` or the name of a JSON file with an object of such pairs.
///
/// # Errors
/// What is wrong, and which limits exist.
pub fn parse(text: &str) -> Result<Limits, String> {
    let limits: Limits = match text.split_once('=') {
        Some((name, value)) => {
            let value = value.trim().replace('_', "");
            let value = value.parse().map_err(|_| format!("`{value}` is not a whole number"))?;
            BTreeMap::from([(name.trim().to_owned(), value)])
        }
        None => input::json(text).map_err(|problem| {
            format!("{problem}; give name=value, or a JSON file such as {{\"name\": 7}}")
        })?,
    };
    let options = Options { limits, ..Options::default() };
    azure_simulator::Azure::check(&options).map_err(|name| {
        let known: Vec<String> =
            published().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("there is no limit `{name}`; these are: {}", known.join(", "))
    })?;
    Ok(options.limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_known_and_numbers() {
        assert_eq!(parse("network.routesPerTable=1_000").unwrap()["network.routesPerTable"], 1_000);
        assert!(parse("network.routesPerTable=many").unwrap_err().contains("`many`"));
        let problem = parse("network.routes=1").unwrap_err();
        assert!(
            problem.contains("`network.routes`") && problem.contains("network.routesPerTable=400"),
            "{problem}"
        );
    }
}
