//! Shrinks a failure.

/// The fewest of `parts` that still fail: parts are left out one after the other, in halves first. `fails` gets the
/// remaining parts, in their order.
pub fn fewest<T: Clone>(parts: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = parts.to_vec();
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let mut place = 0;
        let mut left_out = false;
        while place < kept.len() {
            let end = (place + size).min(kept.len());
            let mut fewer = kept.clone();
            fewer.drain(place..end);
            if fails(&fewer) {
                kept = fewer;
                left_out = true;
            } else {
                place = end;
            }
        }
        if size == 1 && !left_out {
            return kept;
        }
        size = (size / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let mut asked = 0;
        let kept = fewest(&(0..64).collect::<Vec<u8>>(), |parts| {
            asked += 1;
            parts.contains(&7) && parts.contains(&40)
        });
        assert_eq!(kept, [7, 40]);
        assert!(asked < 60, "{asked} questions");
    }
}
