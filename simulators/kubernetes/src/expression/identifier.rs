//! Escapes members' names for CEL (Kubernetes: "Validation rules").

/// CEL's reserved words.
const WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A member's name in CEL.
pub(crate) fn escape(name: &str) -> String {
    if WORDS.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cel_cannot_spell_are_escaped() {
        let escaped = ["namespace", "a.b", "a-b", "a/b", "a__b", "a_b", "size"].map(escape);
        assert_eq!(
            escaped,
            ["__namespace__", "a__dot__b", "a__dash__b", "a__slash__b", "a__underscores__b", "a_b", "size"]
        );
    }
}
