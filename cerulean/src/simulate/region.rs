//! `--region` and `--zones`.

/// A region by its name, such as `westeurope`.
///
/// # Errors
/// Azure has no such region; names the one that was probably meant.
pub fn parse(text: &str) -> Result<String, String> {
    if azure_simulator::region_names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let written: String = text.to_ascii_lowercase().split_whitespace().collect();
    let distance = |name: &&str| strsim::osa_distance(&written, name);
    let nearest = azure_simulator::region_names().min_by_key(distance).filter(|name| distance(name) <= 2);
    Err(match nearest {
        Some(name) => format!("Azure has no region of this name; did you mean {name}?"),
        None => "Azure has no region of this name; names are written like westeurope or eastus2".to_owned(),
    })
}

/// A zone by its number; an empty text stands for no zones at all.
///
/// # Errors
/// The form of zones.
pub fn zone(text: &str) -> Result<String, String> {
    let fits = text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.to_owned()).ok_or_else(|| "zones are numbers, such as 1,2,3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_azures_and_misspelt_ones_are_corrected() {
        assert_eq!(parse("swedencentral").unwrap(), "swedencentral");
        assert_eq!(parse("usgovvirginia").unwrap(), "usgovvirginia");
        for (written, meant) in
            [("West Europe", "westeurope"), ("westeurop", "westeurope"), ("EastUS2", "eastus2")]
        {
            let problem = parse(written).unwrap_err();
            assert!(problem.ends_with(&format!("did you mean {meant}?")), "{written}: {problem}");
        }
        assert!(parse("atlantis").unwrap_err().contains("no region"));
    }
}
