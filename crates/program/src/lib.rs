//! Shared parts of programs beside Kubernetes: command line values, environment, process lifecycle, the connections to
//! its API and to Azure.

pub mod azure;
pub mod environment;
pub mod go_values;
pub mod kubeconfig;
pub mod kubernetes;
pub mod process;

/// An error and its causes on one line. Many errors repeat the text of their cause; the repetition is dropped.
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

#[cfg(test)]
mod tests {
    #[test]
    fn causes_are_said_once() {
        let problem = anyhow::anyhow!("in use").context("cannot listen on port 80: in use").context("start");
        assert_eq!(super::in_one_line(&problem), "start: cannot listen on port 80: in use");
        assert_eq!(super::in_one_line(&anyhow::anyhow!("b").context("a\nc")), "a c: b");
    }
}
