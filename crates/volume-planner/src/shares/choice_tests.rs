//! Tests of the choice of an account.

use proptest::prelude::*;

use super::*;
use crate::shares::account::tests::{made, request};

fn choose(class: &[(&str, &str)], accounts: &[Value], refused: &[&str]) -> Choice {
    let refused = refused.iter().map(|name| (*name).to_owned()).collect();
    request(class).choose(accounts, &refused, None, "pvc-1")
}

/// FILE-010. Section 4.5: the first suitable account, else one that follows from the class.
#[test]
fn the_first_suitable_account_is_taken() {
    let plain = request(&[]);
    let (a, b) = (made(&plain, "a"), made(&plain, "b"));
    let nfs = made(&request(&[("protocol", "nfs")]), "0");
    let all = [b.clone(), nfs, a.clone()];
    assert_eq!(choose(&[], &all, &[]), Choice::Use("a".into()));
    assert_eq!(choose(&[], &all, &["a"]), Choice::Use("b".into()));
    let preferred = plain.choose(&all, &BTreeSet::new(), Some("b"), "pvc-1");
    assert_eq!(preferred, Choice::Use("b".into()));
    let unsuitable = plain.choose(&all, &BTreeSet::new(), Some("0"), "pvc-1");
    assert_eq!(unsuitable, Choice::Use("a".into()));
    let (Choice::Make(first), Choice::Make(again)) = (choose(&[], &all, &["a", "b"]), choose(&[], &[], &[]))
    else {
        panic!("an account is made")
    };
    assert_eq!(first, again, "the first of the class, whatever others there are");
    let own = made(&plain, &first);
    assert_eq!(choose(&[], std::slice::from_ref(&own), &[]), Choice::Use(first.clone()));
    // Only where Azure has said that it is full, another one is made.
    let Choice::Make(second) = choose(&[], std::slice::from_ref(&own), &[&first]) else {
        panic!("an account is made")
    };
    assert_ne!(first, second);
    // createAccount: only those of the class.
    assert_eq!(
        choose(&[("createAccount", "true")], &[a, b], &[]),
        choose(&[("createAccount", "true")], &[], &[])
    );
}

/// FILE-015. selectRandomMatchingAccount: shares are spread, and a repeated request finds its account.
#[test]
fn shares_are_spread_over_accounts() {
    let spreading = request(&[("selectRandomMatchingAccount", "true")]);
    let all: Vec<Value> = (0..5).map(|number| made(&spreading, &format!("a{number}"))).collect();
    let chosen: BTreeSet<String> = (0..100)
        .map(|number| match spreading.choose(&all, &BTreeSet::new(), None, &format!("pvc-{number}")) {
            Choice::Use(name) => name,
            Choice::Make(name) => panic!("{name} is made"),
        })
        .collect();
    assert_eq!(chosen.len(), 5);
}

proptest! {
    /// FILE-010. Whatever accounts there are, in any order, two requests choose the same; a series ends where Azure takes the share.
    #[test]
    fn a_choice_does_not_depend_on_the_order(names in proptest::collection::btree_set("[a-z]{3,8}", 0..6), full in 0_usize..4) {
        let plain = request(&[]);
        let mut accounts: Vec<Value> = names.iter().map(|name| made(&plain, name)).collect();
        let mut refused = BTreeSet::new();
        for _ in 0..full {
            let choice = plain.choose(&accounts, &refused, None, "x");
            let mut reversed = accounts.clone();
            reversed.reverse();
            prop_assert_eq!(&choice, &plain.choose(&reversed, &refused, None, "x"));
            let (Choice::Use(name) | Choice::Make(name)) = choice.clone();
            prop_assert!(refused.insert(name.clone()));
            if let Choice::Make(_) = choice {
                accounts.push(made(&plain, &name));
            }
        }
    }
}
