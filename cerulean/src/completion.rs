//! `cerulean completion`: commands, flags and their values for the shell's tab key.

use clap::Command;
use clap_complete::Shell;

use crate::screen::Screen;

/// For which shell.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "bash  cerulean completion bash > ~/.local/share/bash-completion/completions/cerulean\n\
                  zsh   cerulean completion zsh > a folder of $fpath, as the file _cerulean\n\
                  fish  cerulean completion fish > ~/.config/fish/completions/cerulean.fish"
)]
pub struct Arguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completions of a command line.
pub fn run(screen: Screen, arguments: &Arguments, mut command: Command) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    screen.text(String::from_utf8_lossy(&script));
}
