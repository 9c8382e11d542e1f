//! A key that is not used to sign in: Azure creates no Linux machine without one. Its private half is never computed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use num_bigint::BigUint;
use ring::rand::{SecureRandom, SystemRandom};

/// The length of the primes; the key has twice as many bits.
const PRIME_BYTES: usize = 128;

/// The usual public exponent.
const EXPONENT: u32 = 65_537;

/// Rounds of the Miller-Rabin test. At this length, the probability that a composite passes even five rounds is below
/// 2^-100.
const ROUNDS: usize = 8;

/// Primes below this are tried as divisors, which saves the long test for most numbers.
const SMALL: u32 = 5_000;

/// The public half of a new RSA key of 2048 bits, as a line of `authorized_keys` in base64.
///
/// # Errors
/// The system has no random numbers.
pub(super) fn generate() -> Result<String, ring::error::Unspecified> {
    let random = SystemRandom::new();
    let small = small_primes();
    let mut modulus = BigUint::from(1_u8);
    for _ in 0..2 {
        modulus *= prime(&random, &small)?;
    }
    Ok(BASE64_STANDARD.encode(line(&modulus)))
}

/// A line of `authorized_keys` (RFC 4253, section 6.6).
fn line(modulus: &BigUint) -> String {
    let mut blob = Vec::new();
    for part in [b"ssh-rsa".to_vec(), number(&BigUint::from(EXPONENT)), number(modulus)] {
        blob.extend(u32::try_from(part.len()).unwrap_or_default().to_be_bytes());
        blob.extend(part);
    }
    format!("ssh-rsa {}\n", BASE64_STANDARD.encode(blob))
}

/// A signed number: one that begins with a set bit has a zero before it (RFC 4251, section 5).
fn number(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    bytes
}

/// A prime of full length that fits the exponent. Its two highest bits are set, so that the product of two has full
/// length.
fn prime(random: &impl SecureRandom, small: &[u32]) -> Result<BigUint, ring::error::Unspecified> {
    let mut bytes = [0; PRIME_BYTES];
    loop {
        random.fill(&mut bytes)?;
        bytes[0] |= 0xC0;
        bytes[PRIME_BYTES - 1] |= 1;
        let candidate = BigUint::from_bytes_be(&bytes);
        let has_divisor = small.iter().any(|small| remainder(&bytes, *small) == 0);
        // The exponent would divide the prime minus one.
        let is_bad = remainder(&bytes, EXPONENT) == 1;
        if !has_divisor && !is_bad && is_probably_prime(&candidate, random)? {
            return Ok(candidate);
        }
    }
}

fn remainder(bytes: &[u8], divisor: u32) -> u32 {
    let divisor = u64::from(divisor);
    let rest = bytes.iter().fold(0_u64, |rest, byte| (rest << 8 | u64::from(*byte)) % divisor);
    u32::try_from(rest).unwrap_or_default()
}

/// The odd primes below the limit.
fn small_primes() -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::new();
    for number in (3..SMALL).step_by(2) {
        let mut below_root = primes.iter().take_while(|prime| **prime * **prime <= number);
        if below_root.all(|prime| !number.is_multiple_of(*prime)) {
            primes.push(number);
        }
    }
    primes
}

/// The Miller-Rabin test with random bases, for odd numbers.
fn is_probably_prime(
    candidate: &BigUint,
    random: &impl SecureRandom,
) -> Result<bool, ring::error::Unspecified> {
    let one = BigUint::from(1_u8);
    let less = candidate - &one;
    let twos = less.trailing_zeros().unwrap_or_default();
    let odd = &less >> twos;
    let mut bytes = vec![0; candidate.to_bytes_be().len()];
    for _ in 0..ROUNDS {
        random.fill(&mut bytes)?;
        let base = BigUint::from_bytes_be(&bytes) % candidate;
        if base <= one || base == less {
            continue;
        }
        let mut power = base.modpow(&odd, candidate);
        if power == one || power == less {
            continue;
        }
        let mut is_witness = true;
        for _ in 1..twos {
            power = &power * &power % candidate;
            if power == less {
                is_witness = false;
                break;
            }
        }
        if is_witness {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_told_from_numbers_that_look_like_them() {
        let random = SystemRandom::new();
        let test = |text: &str| {
            is_probably_prime(&BigUint::parse_bytes(text.as_bytes(), 10).unwrap(), &random).unwrap()
        };
        // 2^127 - 1, 2^89 - 1; Carmichael numbers, and the product of both.
        for prime in ["170141183460469231731687303715884105727", "618970019642690137449562111", "65537", "7"]
        {
            assert!(test(prime), "{prime}");
        }
        for other in [
            "561",
            "41041",
            "825265",
            "9",
            "105312291668557186697918027683670432318895095400549111254310977535",
        ] {
            assert!(!test(other), "{other}");
        }
        assert_eq!(&small_primes()[..5], &[3, 5, 7, 11, 13]);
        assert_eq!(small_primes().len(), 668);
    }

    #[test]
    fn a_key_is_one_that_the_rules_take_and_no_two_are_alike() {
        let keys = [generate().unwrap(), generate().unwrap()];
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            let line = String::from_utf8(BASE64_STANDARD.decode(&key).unwrap()).unwrap();
            let (kind, blob) = line.trim_end().split_once(' ').unwrap();
            let blob = BASE64_STANDARD.decode(blob).unwrap();
            assert_eq!((kind, &blob[..11]), ("ssh-rsa", &b"\0\0\0\x07ssh-rsa"[..]));
            assert_eq!(&blob[11..18], &[0, 0, 0, 3, 1, 0, 1]);
            let modulus = BigUint::from_bytes_be(&blob[22..]);
            assert_eq!((blob[18..22].to_vec(), modulus.bits()), (vec![0, 0, 1, 1], 2048));
        }
    }
}
