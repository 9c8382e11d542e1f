//! Wildcards for faults and latency rules.

/// Whether `pattern` (`*` any run of characters, `?` any one) fits the whole text, ignoring ASCII case.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: the last star, and how much of the text it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (None, None) => return true,
            (Some(want), Some(have)) if *want == b'?' || want.eq_ignore_ascii_case(have) => {
                p += 1;
                t += 1;
            }
            (_, have) => match star {
                Some((at, swallowed)) if have.is_some() || swallowed < text.len() => {
                    star = Some((at, swallowed + 1));
                    p = at + 1;
                    t = swallowed + 1;
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards_fit_whole_texts_in_any_case() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "anything", true),
            ("Microsoft.Network/*", "microsoft.network/loadBalancers", true),
            ("*/loadBalancers", "Microsoft.Network/loadBalancers/probes", false),
            ("*loadBalancers*", "Microsoft.Network/loadBalancers/probes", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} against {text}");
        }
    }
}
