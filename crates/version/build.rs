//! Finds the commit: `CERULEAN_COMMIT`, or what git says of the checkout; neither in an archive of the sources.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-env-changed=CERULEAN_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    // It changes with each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let given = std::env::var("CERULEAN_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"])).unwrap_or_default();
    println!("cargo::rustc-env=CERULEAN_COMMIT={commit}");
}
