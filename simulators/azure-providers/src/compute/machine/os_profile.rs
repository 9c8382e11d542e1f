//! The system of a machine: who administers it, and what it is told when it starts for the first time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use azure_engine::document::{Object, at, fill, into_object, text};
use azure_engine::error::Refusal;
use azure_engine::provider::{Proposal, Source};

/// Most characters of custom data: Azure documents 65,535 bytes, which Base64 makes a third longer.
const MAX_CUSTOM_DATA: usize = 87_380;

/// Names that no administrator can have, as published with the member ("Virtual Machines - Create Or Update").
const RESERVED: &str = "1 123 a actuser adm admin admin1 admin2 administrator aspnet backup console david guest john owner \
                        root server sql support support_388945a0 sys test test1 test2 test3 user user1 user2 user3 user4 \
                        user5";

/// Checks what a client sent, secrets included: none of them is named in a refusal.
pub(crate) fn check(os: &Object) -> Result<(), Refusal> {
    let admin = os.get("adminUsername").and_then(Value::as_str).unwrap_or_default();
    if RESERVED.split(' ').any(|reserved| reserved.eq_ignore_ascii_case(admin)) {
        let text = "The Admin Username specified is not allowed.";
        return Err(Refusal::invalid_parameter("adminUsername", text));
    }
    if os.get("customData").is_none_or(is_custom_data) {
        return Ok(());
    }
    let text = format!(
        "Custom data in OSProfile must be in Base64 encoding and with a maximum length of {MAX_CUSTOM_DATA} characters."
    );
    Err(Refusal::invalid_parameter("customData", text))
}

fn is_custom_data(given: &Value) -> bool {
    let Some(given) = given.as_str().filter(|given| given.len() <= MAX_CUSTOM_DATA) else { return false };
    let bare: String = given.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(bare).is_ok()
}

/// Checks the profile of a machine, takes the secrets out of it and fills what is left open.
pub(crate) fn normalise(
    proposal: &Proposal<'_>,
    windows: bool,
    properties: &mut Object,
) -> Result<(), Refusal> {
    let storage = properties.get("storageProfile").cloned().unwrap_or_default();
    let specialised = text(&storage, "osDisk/createOption") == Some("Attach");
    if !properties.contains_key("osProfile") {
        if specialised {
            return Ok(());
        }
        check_present(proposal, &storage)?;
    }
    let mut os = properties.remove("osProfile").map(into_object).unwrap_or_default();
    check(&os)?;
    fill(&mut os, "computerName", proposal.id.name());
    let (member, mut configuration) = fill_system(&mut os, windows);
    fill(&mut configuration, "enableVMAgentPlatformUpdates", true);
    let mut patches = configuration.remove("patchSettings").map(into_object).unwrap_or_default();
    fill(&mut patches, "patchMode", if windows { "AutomaticByOS" } else { "ImageDefault" });
    fill(&mut patches, "assessmentMode", "ImageDefault");
    configuration.insert("patchSettings".into(), Value::Object(patches));
    os.insert(member.into(), Value::Object(configuration));
    properties.insert("osProfile".into(), Value::Object(os));
    Ok(())
}

/// Fills what is left open of a system, of a machine or of a model; gives what is said of its kind.
pub(crate) fn fill_system(os: &mut Object, windows: bool) -> (&'static str, Object) {
    fill(os, "secrets", json!([]));
    fill(os, "allowExtensionOperations", true);
    fill(os, "requireGuestProvisionSignal", true);
    let (member, extra) = if windows {
        ("windowsConfiguration", ("enableAutomaticUpdates", true))
    } else {
        ("linuxConfiguration", ("disablePasswordAuthentication", false))
    };
    let mut configuration = os.remove(member).map(into_object).unwrap_or_default();
    fill(&mut configuration, "provisionVMAgent", true);
    fill(&mut configuration, extra.0, extra.1);
    (member, configuration)
}

/// A system from the marketplace has no administrator yet. Images of one's own may have one.
fn check_present(proposal: &Proposal<'_>, storage: &Value) -> Result<(), Refusal> {
    let asked = proposal.old.is_none() && proposal.source != Source::Service;
    if !asked || at(storage, "imageReference/publisher").is_none() {
        return Ok(());
    }
    let text = "Required parameter 'osProfile' is missing (null).";
    Err(Refusal::invalid_parameter("osProfile", text))
}
