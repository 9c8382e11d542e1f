//! Finds the commit and its date: `CERULEAN_COMMIT` and `SOURCE_DATE_EPOCH`, or what git says of the checkout; neither in an
//! archive of the sources.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn given(name: &str) -> Option<String> {
    println!("cargo::rerun-if-env-changed={name}");
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // It changes with each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = given("CERULEAN_COMMIT").or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let seconds = given("SOURCE_DATE_EPOCH").or_else(|| git(&["show", "--no-patch", "--format=%ct", "HEAD"]));
    // The date of the build would differ in each build of one commit.
    let date = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds.parse().ok()?).ok());
    println!("cargo::rustc-env=CERULEAN_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rustc-env=CERULEAN_DATE={}", date.map(|date| date.to_string()).unwrap_or_default());
}
