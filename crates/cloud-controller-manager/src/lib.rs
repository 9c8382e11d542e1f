//! `azure-cloud-controller-manager`: flags and wiring, nothing else.
//!
//! The program is a library with a thin `main`, so that the demo runs exactly what production runs.

pub mod azure;
pub mod flags;
pub mod go_values;
pub mod kubeconfig;
pub mod kubernetes;
mod observe;
pub mod refusal;
pub mod run;
pub mod settings;
pub mod surroundings;

/// An error and its causes on one line. Many errors have the text of their cause in their own; nothing is
/// said twice.
pub fn in_one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for part in error.chain().map(|part| part.to_string().replace('\n', " ")) {
        if text.is_empty() {
            text = part;
        } else if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
    }
    text
}

/// What the process says when it ends with an error: a list of refusals with a line for each, anything else on
/// one line.
pub fn last_words(error: &anyhow::Error) -> String {
    match error.downcast_ref::<refusal::Refused>() {
        Some(refused) => refused.to_string(),
        None => in_one_line(error),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn causes_are_said_once() {
        let problem = anyhow::anyhow!("in use").context("cannot listen on port 80: in use").context("start");
        assert_eq!(super::in_one_line(&problem), "start: cannot listen on port 80: in use");
        assert_eq!(super::in_one_line(&anyhow::anyhow!("b").context("a\nc")), "a c: b");
    }
}
