//! Text on a terminal: headings, tables, spinners. All output of the program goes through here.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The program's output to people.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    colour: bool,
}

/// A row of a table, from cells of any type that can be displayed.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => {
        [$($cell.to_string()),+]
    };
}
pub(crate) use row;

/// The meaning of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// A change.
    Changed,
    /// Secondary.
    Quiet,
    /// A heading.
    Strong,
}

impl Screen {
    /// The process's own standard output, in colour as [`has_colour`] says.
    pub fn of_this_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self { colour: has_colour(variable, std::io::stdout().is_terminal()) }
    }

    /// Writes a line. A closed pipe is ignored: there is no reader any more.
    pub fn line(&self, text: impl Display) {
        let _closed_pipe = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// Prints an error as one line on standard error.
    pub fn complain(&self, text: impl Display) {
        let _closed_pipe = writeln!(std::io::stderr().lock(), "cerulean: {text}");
    }

    /// Prints a note as one line on standard error.
    pub fn note(&self, text: impl Display) {
        let _closed_pipe =
            writeln!(std::io::stderr().lock(), "note: {}", text.to_string().replace('\n', " "));
    }

    /// Writes text unchanged.
    pub fn text(&self, text: impl Display) {
        let mut out = std::io::stdout().lock();
        let _closed_pipe = write!(out, "{text}").and_then(|()| out.flush());
    }

    /// Writes a plan, with its signs in Terraform's colours.
    pub fn plan(&self, plan: impl Display) {
        self.text(self.paint_signs(&plan.to_string()));
    }

    fn paint_signs(&self, plan: &str) -> String {
        let paint = |line: &str| {
            let Some((before, sign, after)) = signed(line) else { return line.to_owned() };
            let tone = match sign {
                "+" => Tone::Good,
                "~" => Tone::Changed,
                _ => Tone::Bad,
            };
            format!("{before}{}{after}", self.paint(tone, sign))
        };
        plan.split_inclusive('\n').map(paint).collect()
    }

    /// An empty line and a heading.
    pub fn heading(&self, text: impl Display) {
        self.line(format_args!("\n{}", self.paint(Tone::Strong, text)));
    }

    /// The text in the colour of its tone, if colour is enabled.
    pub fn paint(&self, tone: Tone, text: impl Display) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Changed => "33",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A line that says whether a check passed.
    pub fn verdict(&self, good: bool, text: impl Display) {
        let mark = if good { self.paint(Tone::Good, "ok") } else { self.paint(Tone::Bad, "no") };
        self.line(format_args!("  {mark}  {text}"));
    }

    /// A line with a claim and whether it holds.
    ///
    /// # Errors
    /// It does not hold.
    pub fn claim(&self, holds: bool, text: impl Display) -> anyhow::Result<()> {
        self.verdict(holds, &text);
        anyhow::ensure!(holds, "this is not so: {text}");
        Ok(())
    }

    /// A line with an event and the time since the beginning.
    pub fn moment(&self, since: Duration, text: impl Display) {
        let after = format!("{:>6}", format!("+{:.1}", since.as_secs_f64()));
        self.line(format_args!("  {}  {text}", self.paint(Tone::Quiet, format_args!("{after} s"))));
    }

    /// A table, indented, with columns as wide as needed.
    pub fn table<const N: usize>(&self, heads: [&str; N], rows: &[[String; N]]) {
        for (index, line) in table_lines(heads, rows).into_iter().enumerate() {
            let line = if index == 0 { self.paint(Tone::Quiet, line) } else { line };
            self.line(format_args!("  {line}"));
        }
    }

    /// A spinner on a terminal, silent elsewhere.
    pub fn waiting(&self, text: impl Into<String>) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_message(text.into());
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

/// Whether output has colour, by the variables that command-line programs share (no-color.org, bixense.com/clicolors).
/// Clap decides in the same way for help and errors.
fn has_colour(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, wanted: &str| variable(name).as_deref() == Some(wanted);
    if set("NO_COLOR") {
        return false;
    }
    if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
        return true;
    }
    is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb")
}

/// Splits a line of a plan with a sign: before it are spaces and the number of a round, after it a space. The lines of
/// a step are indented further.
fn signed(line: &str) -> Option<(&str, &str, &str)> {
    let inside = |c: char| c == ' ' || c == '.' || c.is_ascii_digit();
    let at = line.find(|c| !inside(c)).filter(|at| (2..=8).contains(at))?;
    let (before, rest) = line.split_at(at);
    let (sign, after) = rest.split_at_checked(1)?;
    let is_step = before == "  " || before == "    " || before.ends_with(". ");
    (is_step && after.starts_with(' ') && ["+", "~", "-", "!"].contains(&sign))
        .then_some((before, sign, after))
}

fn table_lines<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let mut widths = heads.map(|head| head.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; N]| {
        let padded: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    std::iter::once(line(&heads.map(str::to_owned))).chain(rows.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U11
    #[test]
    fn the_signs_of_a_plan_are_coloured_on_a_terminal_alone() {
        let plan = "In this order (+ create, ~ change, - delete):\n\n  + public IP a\n      - not a sign\n  ~ subnet b\n\
            \x20  1. - resource group g\n    ! c does not exist\n  ! d is refused: why\n";
        let painted = "In this order (+ create, ~ change, - delete):\n\n  \x1b[32m+\x1b[0m public IP a\n      - not a sign\n\
            \x20 \x1b[33m~\x1b[0m subnet b\n   1. \x1b[31m-\x1b[0m resource group g\n    \x1b[31m!\x1b[0m c does not exist\n\
            \x20 \x1b[31m!\x1b[0m d is refused: why\n";
        assert_eq!(Screen { colour: true }.paint_signs(plan), painted);
        assert_eq!(Screen { colour: false }.paint_signs(plan), plan);
    }

    #[test]
    fn colour_follows_the_terminal_and_the_variables_that_programs_share() {
        let cases = [
            (&[] as &[(&str, &str)], true, true),
            (&[], false, false),
            (&[("NO_COLOR", "1")], true, false),
            (&[("NO_COLOR", "")], true, true),
            (&[("CLICOLOR_FORCE", "1")], false, true),
            (&[("CLICOLOR_FORCE", "0")], false, false),
            (&[("CLICOLOR_FORCE", "")], false, false),
            (&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false),
            (&[("CLICOLOR", "0")], true, false),
            (&[("CLICOLOR", "1")], false, false),
            (&[("TERM", "dumb")], true, false),
        ];
        for (variables, is_terminal, expected) in cases {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(has_colour(variable, is_terminal), expected, "{variables:?} {is_terminal}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["web".to_owned(), "20.0.0.1".to_owned()], ["resolver".to_owned(), String::new()]];
        assert_eq!(
            table_lines(["NAME", "ADDRESS"], &rows),
            ["NAME      ADDRESS", "web       20.0.0.1", "resolver"]
        );
    }
}
