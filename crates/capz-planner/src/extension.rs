//! Extensions of machines: those that users declare, and the one that waits for a machine to join its cluster.

use capz_api::machine::VmExtension;
use serde_json::{Value, json};

use crate::image::WINDOWS;

/// The cloud that has the bootstrapping extension, which is also the default.
pub(crate) const PUBLIC_CLOUD: &str = "AzurePublicCloud";
const PUBLISHER: &str = "Microsoft.Azure.ContainerUpstream";
/// The file that a machine writes once it has joined its cluster: part of Cluster API's contract with bootstrap
/// providers.
const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";
/// The number of tries of the extension, with the seconds between them: five minutes.
const TRIES: u32 = 60;
const SECONDS: u32 = 5;

/// An extension.
#[derive(Clone, PartialEq)]
pub(crate) struct Extension {
    /// Its name, which is also its type.
    pub name: String,
    /// Members of its properties.
    pub properties: Value,
}

/// Extensions in the order in which they are installed. `arm` is whether the machine's processors are of that
/// architecture.
pub(crate) fn extensions(
    declared: Option<&[VmExtension]>,
    without_bootstrapping: Option<bool>,
    os_type: Option<&str>,
    cloud: Option<&str>,
    arm: bool,
) -> Vec<Extension> {
    let mut extensions: Vec<Extension> = declared
        .unwrap_or_default()
        .iter()
        .map(|extension| {
            let name = extension.name.clone().unwrap_or_default();
            let properties = json!({
                "publisher": extension.publisher,
                "type": name,
                "typeHandlerVersion": extension.version,
                "settings": extension.settings,
                "protectedSettings": extension.protected_settings,
            });
            Extension { name, properties }
        })
        .collect();
    // It is left out unless the user asks for it.
    if without_bootstrapping == Some(false) && cloud.unwrap_or(PUBLIC_CLOUD) == PUBLIC_CLOUD {
        extensions.push(bootstrapping(os_type, arm));
    }
    extensions
}

fn bootstrapping(os_type: Option<&str>, arm: bool) -> Extension {
    let windows = os_type == Some(WINDOWS);
    let (name, version, command) = if windows {
        let look = format!("if (Test-Path '{SENTINEL}') {{ exit 0 }}; Start-Sleep -Seconds {SECONDS}");
        let repeat = format!("for ($i = 0; $i -lt {TRIES}; $i++) {{ {look} }}; exit -2");
        ("CAPZ.Windows.Bootstrapping", "1.0", format!("powershell.exe -Command \"{repeat}\""))
    } else {
        let look =
            format!("for i in $(seq 1 {TRIES}); do test -f {SENTINEL} && exit 0; sleep {SECONDS}; done");
        let words = "The machine has not joined its cluster. See /var/log/cloud-init-output.log and journalctl -u kubelet.";
        (
            "CAPZ.Linux.Bootstrapping",
            if arm { "1.1" } else { "1.0" },
            format!("{look}; echo '{words}'; exit 1"),
        )
    };
    let properties = json!({
        "publisher": PUBLISHER,
        "type": name,
        "typeHandlerVersion": version,
        "protectedSettings": { "commandToExecute": command },
    });
    Extension { name: name.to_owned(), properties }
}
