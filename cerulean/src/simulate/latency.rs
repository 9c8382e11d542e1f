//! `--latency`: how long Azure's operations take, by name or from a file.

use std::time::Duration;

use azure_simulator::LatencyProfile;

use super::input;

/// Long enough to see, short enough to wait for: a second for networks, none for machines.
pub fn quick() -> LatencyProfile {
    LatencyProfile::instant().with("*", "Microsoft.Network/*", Duration::from_millis(800))
}

/// Parses `instant`, `quick`, `typical` or the name of a file.
///
/// # Errors
/// What is wrong, and the allowed values.
pub fn parse(text: &str) -> Result<LatencyProfile, String> {
    match text {
        "quick" => Ok(quick()),
        text => match azure_simulator::named_latency(text) {
            Some(profile) => Ok(profile),
            None => input::json(text).map_err(|problem| {
                format!(
                    "{problem}; give instant, quick, typical, or a JSON file such as \
                     {{\"rules\": [{{\"method\": \"PUT\", \"resourceType\": \"*/disks\", \"ms\": 500}}], \"otherwiseMs\": 0}}"
                )
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_come_by_name_and_from_files() {
        assert_eq!(parse("typical").unwrap(), azure_simulator::typical_latency());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"otherwiseMs": 7}"#).unwrap();
        assert_eq!(parse(file.path().to_str().unwrap()).unwrap().otherwise_ms, 7);
        std::fs::write(file.path(), r#"{"otherwise": 7}"#).unwrap();
        let problem = parse(file.path().to_str().unwrap()).unwrap_err();
        assert!(problem.contains("unknown field `otherwise`") && problem.contains("instant"), "{problem}");
        assert!(parse("slow").unwrap_err().contains("slow"));
    }
}
