//! Expressions in CEL: parsed once, evaluated often (Kubernetes: "Common Expression Language in Kubernetes").
//!
//! Types are not checked before the evaluation: an expression that names a member which its schema does not have fails
//! for the objects that it is evaluated on.

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::{ParseErrors, Parser};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Program(IdedExpr);

impl Program {
    /// Evaluates the expression.
    ///
    /// # Errors
    /// The evaluation error, such as a missing member.
    pub(crate) fn evaluate(&self, context: &Context<'_>) -> Result<Cel, ExecutionError> {
        Cel::resolve(&self.0, context)
    }

    /// Whether the expression uses this variable.
    pub(crate) fn names(&self, variable: &str) -> bool {
        self.0.references().has_variable(variable)
    }
}

/// Parses an expression. Optional members (`self.?name`) are part of the language, as in Kubernetes since 1.29.
///
/// # Errors
/// The parser's messages, with positions.
pub(crate) fn compile(expression: &str) -> Result<Program, String> {
    match Parser::new().enable_optional_syntax(true).parse(expression) {
        Ok(root) => Ok(Program(root)),
        Err(ParseErrors { errors }) => {
            let messages = errors.iter().map(|error| {
                let place = (number(error.pos.0), number(error.pos.1));
                point_at(expression, place, &error.msg)
            });
            Err(messages.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// A message with the line that it refers to, and a mark below the position.
fn point_at(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let dots = ".".repeat(column.saturating_sub(1));
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}^")
}

fn number(signed: isize) -> usize {
    usize::try_from(signed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_shows_the_line_and_the_place() {
        let message = compile("self.size >").unwrap_err();
        assert!(
            message.starts_with("ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'"),
            "{message}"
        );
        assert!(message.ends_with("\n | self.size >\n | ...........^"), "{message}");
    }

    #[test]
    fn optional_members_are_part_of_the_language() {
        assert!(compile("self.?spec.?replicas.orValue(0) > 0").unwrap().names("self"));
    }
}
