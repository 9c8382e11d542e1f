//! The commands of a guide, run as a reader would: copied from the page into a shell.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::program::root;

/// A page, and the shell of its reader.
#[derive(Debug, Clone)]
pub struct Guide {
    page: &'static str,
    text: String,
    /// Where the reader has the files of the page.
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

impl Guide {
    /// The guide on a page, for a reader whose shell has these variables and works in `folder`.
    ///
    /// # Errors
    /// The page cannot be read.
    pub fn read(
        page: &'static str,
        folder: &Path,
        environment: Vec<(String, String)>,
    ) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root().join(page)).with_context(|| page.to_owned())?;
        Ok(Self { page, text, folder: folder.to_owned(), environment })
    }

    /// Runs the commands below a heading of the third level, in their order, and returns what each prints.
    ///
    /// # Errors
    /// There is no such heading, it has no command, or a command fails.
    pub fn follow(&self, heading: &str) -> anyhow::Result<Vec<String>> {
        let commands = commands(&self.text, heading);
        ensure!(!commands.is_empty(), "{}: no command below {heading:?}", self.page);
        commands.into_iter().map(|command| self.run(command)).collect()
    }

    fn run(&self, command: &str) -> anyhow::Result<String> {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(&self.folder)
            .envs(self.environment.iter().cloned())
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {command}: {}\n{printed}{complaint}", self.page, output.status);
        Ok(printed)
    }
}

/// The lines with a prompt below a heading, without the prompt.
fn commands<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = page.lines().skip_while(|line| line.strip_prefix("### ") != Some(heading)).skip(1);
    let section = lines.take_while(|line| !line.starts_with('#'));
    section.filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_one_section() {
        let page =
            "### One\n```console\n$ first\nprinted\n$ second\n```\n### Two\n$ third\n## Three\n$ fourth\n";
        assert_eq!(commands(page, "One"), ["first", "second"]);
        assert_eq!(commands(page, "Two"), ["third"]);
        assert_eq!(commands(page, "Three"), Vec::<&str>::new());
    }
}
