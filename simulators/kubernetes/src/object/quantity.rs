//! Quantities of resources: `500m`, `1.5Gi`, `1e3` (Kubernetes: "Quantity").

/// One unit in billionths, the finest fraction that is kept.
const NANO: i128 = 1_000_000_000;

/// The API server's message for an invalid quantity.
pub(crate) const MALFORMED: &str =
    r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The notation of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `k`, `M`, `m` and the like: powers of a thousand.
    Decimal,
    /// `Ki`, `Mi` and the like: powers of 1024.
    Binary,
    /// `e3`.
    Exponent,
}

/// A quantity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nanos: i128,
    form: Form,
}

const DECIMAL: &[(&str, i32)] = &[
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: &[(&str, u32)] = &[("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

impl Quantity {
    /// Parses a quantity; fractions below a billionth are rounded up.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(end)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?;
        let (form, nanos) = if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            (Form::Binary, shift(digits.checked_mul(1024_i128.checked_pow(*power)?)?, 9 - places)?)
        } else if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            (Form::Decimal, shift(digits, power + 9 - places)?)
        } else {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (Form::Exponent, shift(digits, power.checked_add(9 - places)?)?)
        };
        Some(Self { nanos: if negative { -nanos } else { nanos }, form })
    }

    /// The quantity in billionths.
    pub(crate) fn nanos(self) -> i128 {
        self.nanos
    }
}

impl std::fmt::Display for Quantity {
    /// The API server's canonical form: without a fraction, with the largest unit that allows that.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.form == Form::Binary && self.nanos.abs() >= 1024 * NANO {
            // Fractions of a byte are rounded up.
            let mut number = self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0);
            let mut unit = "";
            for (name, _) in BINARY {
                if number % 1024 != 0 {
                    break;
                }
                number /= 1024;
                unit = name;
            }
            return write!(f, "{number}{unit}");
        }
        let (mut number, mut power) = (self.nanos, -9);
        while number % 1000 == 0 && power < 18 {
            number /= 1000;
            power += 3;
        }
        match (self.form, power) {
            (_, 0) => write!(f, "{number}"),
            (Form::Exponent, power) => write!(f, "{number}e{power}"),
            (_, power) => {
                let unit = DECIMAL.iter().find(|(_, of)| *of == power).map_or("", |(name, _)| name);
                write!(f, "{number}{unit}")
            }
        }
    }
}

/// `number` times ten to the `power`, rounded up.
fn shift(number: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (power >= 0, factor) {
        (true, factor) if number != 0 => number.checked_mul(factor?),
        (true, _) => Some(0),
        (false, None) => Some(i128::from(number != 0)),
        (false, Some(factor)) => Some(number / factor + i128::from(number % factor != 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_one_form() {
        for (written, shown) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("1000", "1k"),
            ("2048Ki", "2Mi"),
            ("100Ki", "100Ki"),
            ("0.1Ki", "102400m"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("12E", "12E"),
            ("-1.5", "-1500m"),
            ("+3", "3"),
            (".5", "500m"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1.0000000001", "1000000001n"),
        ] {
            assert_eq!(Quantity::parse(written).unwrap().to_string(), shown, "{written}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["", "x", "1x", "1 Gi", "1.2.3", "Gi", "--1", "1e", "1ki", "."] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn amounts_compare_whatever_their_units() {
        let nanos = |text| Quantity::parse(text).unwrap().nanos();
        assert!(nanos("1Ki") > nanos("1k"));
        assert_eq!(nanos("0.5"), nanos("500m"));
    }

    proptest::proptest! {
        #[test]
        fn the_shown_form_is_the_same_amount(number in 0u64..1_000_000_000, unit in 0usize..14) {
            let units = ["n", "u", "m", "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "e-3"];
            let text = format!("{number}{}", units[unit]);
            let parsed = Quantity::parse(&text).unwrap();
            let again = Quantity::parse(&parsed.to_string()).unwrap();
            proptest::prop_assert_eq!(parsed.nanos(), again.nanos());
            proptest::prop_assert_eq!(parsed.to_string(), again.to_string());
        }
    }
}
