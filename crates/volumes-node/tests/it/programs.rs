//! Programs.

use std::time::Duration;

use volumes_node::system::{Command, Kernel, RunError, System as _};

const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_program_is_run_without_a_shell() {
    let command = Command::new("printf", LONG).argument("%s").argument("$HOME; exit 3");
    let output = Kernel.run(&command).await.unwrap();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "$HOME; exit 3"));
    let failing = Command::new("cat", LONG).argument("/no/such/file");
    let output = Kernel.run(&failing).await.unwrap();
    assert_eq!(output.code, Some(1));
    assert!(output.summary().contains("No such file or directory"), "{}", output.summary());
}

#[tokio::test]
async fn a_program_that_is_not_there_and_one_that_takes_too_long_are_errors() {
    let error = Kernel.run(&Command::new("mkfs.none", LONG)).await.unwrap_err();
    assert!(matches!(error, RunError::Missing(_)), "{error}");
    assert_eq!(error.to_string(), "program mkfs.none is not installed; use an image that has it");
    let error = Kernel.run(&Command::new("sleep", Duration::ZERO).argument("3600")).await.unwrap_err();
    assert!(matches!(error, RunError::Timeout(_)), "{error}");
}

/// FILE-101. What a program started ends with it: a mount that took too long must not be made later.
#[tokio::test]
async fn what_a_program_started_is_killed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let script = format!("sleep 3600 & echo $! > {0}.new; mv {0}.new {0}; wait", number.display());
    let command = Command::new("sh", LONG).arguments(["-c", &script]);
    let running = tokio::spawn(async move { Kernel.run(&command).await });
    let child = loop {
        match std::fs::read_to_string(&number) {
            Ok(child) => break child,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    running.abort();
    let stat = format!("/proc/{}/stat", child.trim());
    while std::fs::read_to_string(&stat).is_ok_and(|state| !state.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}
