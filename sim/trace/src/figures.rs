//! Figures that the demonstration and the simulator show in the same way.

/// A whole number: 12,345.
pub fn thousands(n: u64) -> String {
    grouped(&n.to_string())
}

/// Commas between every three digits before the point.
pub fn grouped(text: &str) -> String {
    let (sign, rest) = text.split_at(usize::from(text.starts_with('-')));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Spearman's rank correlation of pairs: 1 if both order alike, -1 if they order the other way round; 0 where one says nothing. Equal
/// values share the mean of their ranks.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |value: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let rank = |own: f64| {
            let below = pairs.iter().filter(|pair| value(pair) < own).count();
            let same = pairs.iter().filter(|pair| value(pair) == own).count();
            below as f64 + (same as f64 - 1.0) / 2.0
        };
        pairs.iter().map(|pair| rank(value(pair))).collect()
    };
    let (a, b) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + (a - mean) * (b - mean));
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    if spread > 0.0 {
        product(&a, &b) / spread
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let shown: Vec<String> = [0, 999, 1_000, 45_678, 123_456, 1_234_567].map(thousands).to_vec();
        assert_eq!(shown.join(" "), "0 999 1,000 45,678 123,456 1,234,567");
    }

    #[test]
    fn rank_correlation_by_hand() {
        let pairs = |ys: [f64; 5]| ys.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect::<Vec<_>>();
        assert_eq!(rank_correlation(&pairs([1.0, 2.0, 40.0, 41.0, 900.0])), 1.0);
        assert_eq!(rank_correlation(&pairs([5.0, 4.0, 3.0, 2.0, 1.0])), -1.0);
        // 1 - 6 x (1 + 1 + 1 + 1) / (5 x 24).
        assert!((rank_correlation(&pairs([2.0, 1.0, 3.0, 5.0, 4.0])) - 0.8).abs() < 1e-12);
        // Ranks 0.5, 0.5, 2, 3, 4: a sum of products of 9.5 over the root of 10 x 9.5.
        assert!((rank_correlation(&pairs([1.0, 1.0, 3.0, 5.0, 7.0])) - 9.5 / 95.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(rank_correlation(&pairs([3.0; 5])), 0.0);
        assert_eq!(rank_correlation(&[]), 0.0);
    }
}
