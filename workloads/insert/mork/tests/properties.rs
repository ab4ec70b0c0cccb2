//! One suite over all encoders, stores and variants, compared with the slow reference.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use insert_mork::encoding::{self, Parser, Tag, decode};
use insert_mork::environment::{Environment, InPlace, Insertion, Items, Rule};
use insert_mork::laps::Untimed;
use insert_mork::query::{Bound, Pattern, is_like};
use insert_mork::scratch::{self, Scratch};
use insert_mork::store::{Reference, Trie};
use insert_mork::subject::{Measured, Part, StoreKind, Subject, Symbols, Variant};
use insert_mork::symbols::SymbolTable;
use insert_mork::text::to_text;
use insert_mork::value::Value;
use insert_mork::workload::{Kind, Order, Shape, Workload, fact};
use proptest::prelude::*;

/// Values of all kinds, variables under any names, atoms that read as something else.
fn values() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        "[a-z][a-z0-9-]{0,8}",
        // Anything that is one token.
        "[!-~&&[^()\"`]]{1,12}",
        "\\PC{1,5}".prop_filter("a separator", |name| insert_mork::token::is_atom(name)),
        Just("true".to_owned()),
        Just("error".to_owned()),
        Just("type".to_owned()),
    ];
    let variable = prop_oneof!["[$&'][xyz]", Just("_".to_owned()), Just("$".to_owned())];
    let leaf = prop_oneof![
        4 => name.prop_map(Value::Atom),
        3 => variable.prop_map(Value::Atom),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => any::<i64>().prop_map(Value::Long),
        1 => any::<f64>().prop_map(Value::Float),
        2 => "\\PC{0,12}".prop_map(Value::String),
        1 => "[ -~]{0,20}".prop_map(Value::Uri),
        1 => Just(Value::Nil),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            6 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::SExpr),
            1 => ("[ -~]{0,10}", inner.clone()).prop_map(|(message, value)| Value::Error(message, Box::new(value))),
            1 => inner.prop_map(|value| Value::Type(Box::new(value))),
        ]
    })
}

fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoding::encode(value, &mut bytes).unwrap();
    bytes
}

/// Every variant with every store, scratch buffer, way of inserting, form of symbols and number of threads that go together.
fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (_, variant) in Variant::CHOICES {
        let direct = variant == Variant::Direct;
        let stores: &[_] =
            if direct { &[StoreKind::Trie, StoreKind::PathMap, StoreKind::Btree] } else { &[StoreKind::PathMap] };
        let buffers: &[_] = if direct { &[Scratch::Reused] } else { &[Scratch::Huge, Scratch::Small, Scratch::Reused] };
        for &store in stores {
            // Where 4 GiB cannot be had, `command.rs` checks that asking for them is refused.
            for &scratch in buffers.iter().filter(|kind| scratch::check(**kind).is_ok()) {
                for insertion in [Insertion::Individual, Insertion::Bulk] {
                    // A small cache, so that values are thrown out of it.
                    let cache_capacity = NonZeroUsize::new(3).unwrap();
                    let (symbols, threads) = (Symbols::Inline, NonZeroUsize::MIN);
                    let one = Subject { variant, scratch, store, insertion, cache_capacity, symbols, threads };
                    subjects.push(one);
                    if direct {
                        subjects.push(Subject { symbols: Symbols::Interned, ..one });
                        // One share more than there are items, and shares of several.
                        subjects.extend([2, 31].map(|n| Subject { threads: NonZeroUsize::new(n).unwrap(), ..one }));
                    }
                }
            }
        }
    }
    subjects
}

/// All variants and parts agree with the reference.
fn check(items: &Items) {
    let mut reference = InPlace::<Reference>::default();
    reference.add(items, Insertion::Individual, &mut Untimed).unwrap();
    let expected = reference.dump();
    for subject in subjects() {
        let plain = subject.symbols == Symbols::Inline && subject.threads == NonZeroUsize::MIN;
        let parts = subject.variant.parts().iter().copied();
        for part in parts.filter(|part| plain || matches!(part, Part::All | Part::Query)) {
            let measured = Measured::new(subject, part, true, items).unwrap();
            let checked = measured.verify().unwrap_or_else(|failure| panic!("{subject:?}, {part:?}: {failure}"));
            assert_eq!(checked.dump, expected, "{subject:?}, {part:?}");
            let outcome = measured.iterate(false, &mut assay_harness::Phases::new()).unwrap().outcome;
            if matches!(part, Part::All | Part::Insert) {
                assert_eq!(outcome, expected.paths.len(), "{subject:?}, {part:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn encoded_values_round_trip(value in values()) {
        let canonical = value.canonical();
        prop_assert_eq!(decode(&encode(&value)).unwrap(), canonical.clone());
        // Canonical values come back as they are, and have the same bytes.
        prop_assert_eq!(encode(&canonical), encode(&value));
        prop_assert_eq!(decode(&encode(&canonical)).unwrap(), canonical);
    }

    #[test]
    fn direct_and_textual_encoding_are_equal(value in values()) {
        let mut parsed = Vec::new();
        let text = to_text(&value);
        let mut parser = Parser::new(&text);
        prop_assert!(parser.next_expression(&mut parsed).unwrap(), "{}", text);
        prop_assert_eq!(&parsed, &encode(&value), "{}", text);
        prop_assert!(!parser.next_expression(&mut parsed).unwrap(), "{} has a second expression", text);
    }

    #[test]
    fn no_path_is_the_beginning_of_another(a in values(), b in values()) {
        let (a, b) = (encode(&a), encode(&b));
        prop_assert!(a == b || !a.starts_with(&b) && !b.starts_with(&a));
    }

    #[test]
    fn decoding_arbitrary_bytes_gives_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(value) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&value)).unwrap(), value);
        }
    }

    #[test]
    fn parsing_arbitrary_text_gives_bytes_or_an_error(text in "[() \"`$_a1\\\\]{0,40}") {
        let mut bytes = Vec::new();
        if let Ok(true) = Parser::new(&text).next_expression(&mut bytes) {
            prop_assert!(decode(&bytes).is_ok(), "{}: {:?}", text, bytes);
        }
    }

    #[test]
    fn the_trie_is_the_ordered_map(
        values in prop::collection::vec((values(), 0_u32..3), 0..80),
        absent in values(),
        prefix in 0_usize..6,
    ) {
        let (mut trie, mut reference) = (Trie::default(), Reference::default());
        for (value, times) in &values {
            let path = encode(value);
            prop_assert_eq!(trie.insert(&path, *times).unwrap(), !reference.contains_key(&path));
            *reference.entry(path).or_insert(0) += u64::from(*times);
        }
        let counted = || reference.iter().map(|(path, count)| (path.as_slice(), *count));
        prop_assert!(trie.with_prefix(b"").eq(counted()));
        prop_assert_eq!(trie.len(), reference.len());
        for value in values.iter().map(|(value, _)| value).chain([&absent]) {
            let path = encode(value);
            let found = trie.with_prefix(&path).find(|(found, _)| *found == path).map(|(_, count)| count);
            prop_assert_eq!(found, reference.get(&path).copied());
            let prefix = &path[..prefix.min(path.len())];
            let expected = counted().filter(|(path, _)| path.starts_with(prefix));
            prop_assert!(trie.with_prefix(prefix).eq(expected));
        }
    }
}

/// Values of few kinds and names, so that patterns have something to match.
fn alike() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => "[ab]".prop_map(Value::Atom),
        3 => "\\$[xy]|_".prop_map(Value::Atom),
        1 => "[ab]".prop_map(Value::String),
        1 => Just(Value::Nil),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::SExpr),
            1 => inner.clone().prop_map(|value| Value::Error("a".into(), Box::new(value))),
            1 => inner.prop_map(|value| Value::Type(Box::new(value))),
        ]
    })
}

/// Ways in which items are spread over calls.
fn calls() -> impl Strategy<Value = Vec<(bool, Vec<u16>)>> {
    // Runs in order, as facts mostly come, beside numbers from anywhere.
    let run = (0_u16..2000, 1_u16..60).prop_map(|(from, length)| (from..from + length).collect());
    let numbers = prop_oneof![run, prop::collection::vec(0_u16..2000, 1..60)];
    prop::collection::vec((any::<bool>(), numbers), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_pattern_matches_bytes_as_it_matches_values(pattern in alike(), value in alike()) {
        let compared = Pattern::new(encode(&pattern));
        let path = encode(&value);
        let matches = path.starts_with(compared.prefix()) && compared.matches(&path, &mut Bound::default());
        prop_assert_eq!(matches, is_like(&pattern.canonical(), &value.canonical()), "{:?} {:?}", pattern, value);
    }

    #[test]
    fn a_variable_stands_for_one_item_wherever_it_occurs(
        items in prop::collection::vec(alike(), 4),
        places in prop::collection::vec((0_usize..4, 0_usize..8), 1..7),
    ) {
        let value = Value::SExpr(places.iter().map(|(item, _)| items[*item].clone()).collect());
        // Of eight places four have the variable of their item, three the item itself, one the variable of another.
        let pattern = places.iter().map(|(item, choice)| match choice {
            0..4 => Value::atom(format!("$of-{item}")),
            4..7 => items[*item].clone(),
            _ => Value::atom("$of-0"),
        });
        let pattern = Value::SExpr(pattern.collect());
        let compared = Pattern::new(encode(&pattern));
        let path = encode(&value);
        let matches = path.starts_with(compared.prefix()) && compared.matches(&path, &mut Bound::default());
        prop_assert_eq!(matches, is_like(&pattern.canonical(), &value.canonical()), "{:?} {:?}", pattern, value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn symbols_have_the_numbers_of_their_first_occurrence(values in prop::collection::vec(values(), 0..40)) {
        let (mut table, mut reference) = (SymbolTable::default(), BTreeMap::new());
        for value in &values {
            let (path, mut numbered, mut found) = (encode(value), Vec::new(), Vec::new());
            for symbol in symbols_of(&path) {
                let next = reference.len();
                let number = *reference.entry(symbol.to_vec()).or_insert(next);
                prop_assert_eq!(table.known(symbol).unwrap_or(table.len()), number);
                prop_assert_eq!(table.number(symbol), number);
                prop_assert_eq!(table.symbol(number), symbol);
            }
            table.intern(&path, &mut numbered).unwrap();
            prop_assert!(table.find(&path, &mut found));
            prop_assert_eq!(&found, &numbered);
            prop_assert_eq!(table.expand(&numbered), path);
            prop_assert_eq!(table.len(), reference.len());
        }
    }

    #[test]
    fn an_insertion_goes_on_from_any_other(calls in calls()) {
        let (mut trie, mut reference) = (InPlace::<Trie>::default(), InPlace::<Reference>::default());
        for (bulk, numbers) in calls {
            let facts = numbers.into_iter().map(|n| fact(Shape::Flat, n.into())).collect();
            let insertion = if bulk { Insertion::Bulk } else { Insertion::Individual };
            let facts = Items::Facts(facts);
            trie.add(&facts, insertion, &mut Untimed).unwrap();
            reference.add(&facts, Insertion::Individual, &mut Untimed).unwrap();
        }
        prop_assert!(trie.dump() == reference.dump());
    }
}

/// The symbols of a path, in order.
fn symbols_of(mut path: &[u8]) -> Vec<&[u8]> {
    let mut symbols = Vec::new();
    while let Some((&tag, rest)) = path.split_first() {
        let length = if let Some(Tag::Symbol(length)) = Tag::of(tag) { length } else { 0 };
        if length > 0 {
            symbols.push(&rest[..length]);
        }
        path = &rest[length..];
    }
    symbols
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_variant_has_the_same_facts(facts in prop::collection::vec(values(), 0..30)) {
        check(&Items::Facts(facts));
    }

    #[test]
    fn every_variant_has_the_same_rules(rules in prop::collection::vec((values(), values()), 0..20)) {
        // Names as they are written are the names of heads only in canonical rules.
        let rules = rules.into_iter().map(|(left, right)| {
            let rule = Rule { left, right }.expression().canonical();
            let Value::SExpr(items) = rule else { unreachable!("a rule is an expression") };
            let [_, left, right] = <[Value; 3]>::try_from(items).unwrap();
            Rule { left, right }
        });
        check(&Items::Rules(rules.collect()));
    }

    #[test]
    fn every_workload_is_the_same_for_every_variant(
        items in 1_usize..120,
        repeated_share in prop_oneof![Just(0_u64), Just(50), Just(99)],
        rules: bool,
        shuffled: bool,
        shape in 0_usize..4,
        seed: u64,
    ) {
        let kind = if rules { Kind::Rules } else { Kind::Facts };
        let order = if shuffled { Order::Shuffled } else { Order::Sequential };
        check(&Workload { kind, shape: Shape::CHOICES[shape].1, items, repeated_share, order, seed }.generate());
    }
}

/// Enough paths for every size of branch, reuse of freed blocks, and bulk insertions into a filled trie.
#[test]
fn large_sets_in_every_order() {
    for (_, shape) in Shape::CHOICES {
        for order in [Order::Sequential, Order::Shuffled] {
            let workload = Workload { kind: Kind::Facts, shape, items: 5000, repeated_share: 20, order, seed: 7 };
            let items = workload.generate();
            let Items::Facts(facts) = &items else { unreachable!("facts were asked for") };
            let (head, tail) = facts.split_at(facts.len() / 3);
            let mut reference = InPlace::<Reference>::default();
            reference.add(&items, Insertion::Individual, &mut Untimed).unwrap();
            for pair in [
                [Insertion::Individual, Insertion::Individual],
                [Insertion::Individual, Insertion::Bulk],
                [Insertion::Bulk, Insertion::Individual],
                [Insertion::Bulk, Insertion::Bulk],
            ] {
                let mut environment = InPlace::<Trie>::default();
                for (part, insertion) in [head, tail].into_iter().zip(pair) {
                    environment.add(&Items::Facts(part.to_vec()), insertion, &mut Untimed).unwrap();
                }
                assert!(environment.dump() == reference.dump(), "{shape:?}, {order:?}, {pair:?}");
            }
        }
    }
}

#[test]
fn unencodable_value_is_rejected_by_every_variant() {
    let bad = Value::atom("x".repeat(64));
    let good = Value::atom("good");
    for subject in subjects() {
        for items in [
            Items::Facts(vec![good.clone(), bad.clone()]),
            Items::Rules(vec![Rule { left: good.clone(), right: bad.clone() }]),
        ] {
            let measured = Measured::new(subject, Part::All, true, &items).unwrap();
            let failure = measured.iterate(false, &mut assay_harness::Phases::new()).unwrap_err();
            assert_eq!(failure.to_string(), "a symbol has 64 bytes; at most 63 are possible", "{subject:?}");
        }
    }
}
