//! Expressions in CEL: parses them and type-checks them before evaluation (Kubernetes: "Common Expression Language in
//! Kubernetes").
//!
//! The crate that evaluates expressions has no types. An API server does: it refuses a rule that names a member which
//! its schema does not have, or that compares a text with a number. [`check`] adds that part: types ([`Type`]) from
//! schemas, functions from a table, and messages that point at the position.

mod check;
mod functions;
mod names;
mod positions;
mod types;

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::{ParseErrors, Parser};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};

pub(super) use check::check;
pub(super) use names::escape;
pub(super) use types::Type;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Program {
    source: String,
    root: IdedExpr,
}

impl Program {
    /// Evaluates the expression.
    ///
    /// # Errors
    /// The evaluation error, such as a missing member.
    pub(crate) fn evaluate(&self, context: &Context<'_>) -> Result<Cel, ExecutionError> {
        Cel::resolve(&self.root, context)
    }

    /// Whether the expression uses this variable.
    pub(crate) fn names(&self, variable: &str) -> bool {
        self.root.references().has_variable(variable)
    }
}

/// Parses an expression. Optional members (`self.?name`) are part of the language, as in Kubernetes since 1.29.
///
/// # Errors
/// The parser's messages, with positions.
pub(crate) fn compile(expression: &str) -> Result<Program, String> {
    match Parser::new().enable_optional_syntax(true).parse(expression) {
        Ok(root) => Ok(Program { source: expression.to_owned(), root }),
        Err(ParseErrors { errors }) => {
            let told = errors.iter().map(|error| {
                let place = (number(error.pos.0), number(error.pos.1));
                positions::point_at(expression, place, &error.msg)
            });
            Err(told.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn number(signed: isize) -> usize {
    usize::try_from(signed).unwrap_or_default()
}

#[cfg(test)]
mod tests;
