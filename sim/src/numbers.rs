//! Numbers as pages and pictures show them: digits before the point in groups of three, and no minus before a zero.

use muster_trace::figures::grouped;
pub use muster_trace::figures::thousands;

use crate::statistics::Estimate;

/// With this many decimals.
pub fn fixed(value: f64, decimals: usize) -> String {
    grouped(&positive_zero(format!("{value:.decimals$}")))
}

/// As many decimals as the value needs to be told from its neighbours, and no zeros at their end.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = if size >= 100.0 || value == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 0.1 {
        2
    } else if size >= 0.01 {
        3
    } else {
        4
    };
    let text = fixed(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A mean and its margin.
pub fn estimate(e: Estimate, decimals: usize) -> String {
    format!("{} ± {}", fixed(e.mean, decimals), fixed(e.margin, decimals))
}

/// A mean with its sign, and its margin.
pub fn signed(e: Estimate, decimals: usize) -> String {
    let mean = fixed(e.mean, decimals);
    let sign = if mean.starts_with('-') { "" } else { "+" };
    format!("{sign}{mean} ± {}", fixed(e.margin, decimals))
}

fn positive_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        assert_eq!(fixed(-123_456.789, 2), "-123,456.79");
        assert_eq!(fixed(-12.3, 0), "-12");
        assert_eq!(fixed(1_000.0, 1), "1,000.0");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.30000000000000004), "0.3");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(1234.5), "1,234");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(-0.0213), "-0.021");
    }

    #[test]
    fn a_zero_has_no_minus() {
        let e = Estimate { mean: -0.0004, margin: 1_234.5, count: 2 };
        assert_eq!(signed(e, 3), "+0.000 ± 1,234.500");
        assert_eq!(signed(e, 4), "-0.0004 ± 1,234.5000");
        assert_eq!(estimate(e, 2), "0.00 ± 1,234.50");
        assert_eq!(number(-0.00001), "0");
    }
}
