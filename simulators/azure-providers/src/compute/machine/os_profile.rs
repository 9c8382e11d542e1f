//! The system of a machine: its administrator, and the data for its first start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::compute::tables::words::missing;
use azure_engine::document::{at, at_mut, fill_at, text};
use azure_engine::provider::{Proposal, Source};
use azure_engine::refusal::{Refusal, Result};

/// Most characters of custom data: Azure documents 65,535 bytes, which Base64 makes a third longer.
const MAX_CUSTOM_DATA: usize = 87_380;

/// Names that no administrator can have, as published with the member ("Virtual Machines - Create Or Update").
const RESERVED: &str = "1 123 a actuser adm admin admin1 admin2 administrator aspnet backup console david guest john owner \
                        root server sql support support_388945a0 sys test test1 test2 test3 user user1 user2 user3 user4 \
                        user5";

/// Checks what a client sent, secrets included: no refusal names a secret.
fn check(os: &Value) -> Result<()> {
    let admin = text(os, "adminUsername").unwrap_or_default();
    Refusal::invalid_when(
        RESERVED.split(' ').any(|reserved| reserved.eq_ignore_ascii_case(admin)),
        "adminUsername",
        "The Admin Username specified is not allowed.",
    )?;
    let text = format_args!(
        "Custom data in OSProfile must be in Base64 encoding and with a maximum length of {MAX_CUSTOM_DATA} characters."
    );
    Refusal::invalid_when(!os.get("customData").is_none_or(is_custom_data), "customData", text)
}

fn is_custom_data(given: &Value) -> bool {
    let Some(given) = given.as_str().filter(|given| given.len() <= MAX_CUSTOM_DATA) else { return false };
    let bare: String = given.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(bare).is_ok()
}

/// Checks the profile of a machine and fills what is left open.
pub(crate) fn normalise(proposal: &Proposal<'_>, windows: bool, body: &mut Value) -> Result<()> {
    if at(body, "properties/osProfile").is_none() {
        if text(body, "properties/storageProfile/osDisk/createOption") == Some("Attach") {
            return Ok(());
        }
        // A marketplace image has no administrator yet. A custom image may have one.
        let bare = at(body, "properties/storageProfile/imageReference/publisher").is_some();
        if bare && proposal.old.is_none() && proposal.source != Source::Service {
            return Err(missing("osProfile"));
        }
    }
    fill_at(body, "properties/osProfile/computerName", proposal.id.name());
    let Some(os) = at_mut(body, "properties/osProfile") else { return Ok(()) };
    let configuration = normalise_system(windows, os)?;
    fill_at(os, &format!("{configuration}/enableVMAgentPlatformUpdates"), true);
    let mode = if windows { "AutomaticByOS" } else { "ImageDefault" };
    fill_at(os, &format!("{configuration}/patchSettings/patchMode"), mode);
    fill_at(os, &format!("{configuration}/patchSettings/assessmentMode"), "ImageDefault");
    Ok(())
}

/// Checks the system of a machine or a model, and fills defaults; returns the member that belongs to its kind.
pub(crate) fn normalise_system(windows: bool, os: &mut Value) -> Result<&'static str> {
    check(os)?;
    fill_at(os, "secrets", json!([]));
    fill_at(os, "allowExtensionOperations", true);
    fill_at(os, "requireGuestProvisionSignal", true);
    let (member, choice, usual) = match windows {
        true => ("windowsConfiguration", "enableAutomaticUpdates", true),
        false => ("linuxConfiguration", "disablePasswordAuthentication", false),
    };
    fill_at(os, &format!("{member}/provisionVMAgent"), true);
    fill_at(os, &format!("{member}/{choice}"), usual);
    Ok(member)
}
