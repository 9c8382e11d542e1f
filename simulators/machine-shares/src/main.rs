//! In the place of `mount.cifs` and `mount.nfs`, by the name under which it is called. `CERULEAN_SHARES` names the folder of the shares.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine_shares::helper::{Helper, mount};

/// The variable with the folder of the shares.
const FOLDER: &str = "CERULEAN_SHARES";
/// The variable of `mount.cifs` for the password.
const PASSWORD: &str = "PASSWD";

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let helper = match Path::new(&name).file_name().and_then(|name| name.to_str()) {
        Some("mount.cifs") => Helper::Cifs,
        Some("mount.nfs" | "mount.nfs4") => Helper::Nfs,
        _ => return ended(1, "call this as mount.cifs or mount.nfs: make links of these names to it"),
    };
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return ended(
            1,
            "CERULEAN_SHARES is not set: name the folder of the shares (VOLUMES/shares of the simulation)",
        );
    };
    let password = std::env::var(PASSWORD).ok();
    let arguments: Vec<String> = arguments.collect();
    let end = mount(helper, &arguments, password.as_deref(), &folder);
    ended(end.code, &end.words)
}

#[allow(clippy::print_stderr, reason = "a helper complains there")]
fn ended(code: i32, words: &str) -> ExitCode {
    if !words.is_empty() {
        eprintln!("{words}");
    }
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
