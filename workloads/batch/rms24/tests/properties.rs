//! One suite over all searches, functions, instruction sets, dummies, encodings and answering methods, compared with
//! the scheme's definition.

use std::collections::HashSet;

use assay_harness::Phases;
use batch_rms24::client::{Client, Flush, Memory};
use batch_rms24::database::{Database, Entries, Layout, Pages};
use batch_rms24::geometry::{Geometry, Place};
use batch_rms24::hints::{Hints, NO_EXTRA};
use batch_rms24::offline::{self, State, Way};
use batch_rms24::prf::{AesPath, AnyPrf, Prf, PrfKind, Secret};
use batch_rms24::query::{Builder, Dummy, Encoding, Plan, Question};
use batch_rms24::reference;
use batch_rms24::search::{self, Strategy as Search};
use batch_rms24::server::Server;
use batch_rms24::wire::framing::Framing;
use batch_rms24::wire::{Answering, Hello, Reply, Request, Wishes};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

const BACKUPS: u32 = 64;

/// Every function, on every instruction set.
fn functions(secret: &Secret, geometry: Geometry) -> Vec<(String, AnyPrf)> {
    let path = AesPath::available()[0];
    let chacha = ("chacha".to_owned(), AnyPrf::new(PrfKind::ChaCha, secret, geometry.block_size(), path));
    let aes = AesPath::available().into_iter().map(|path| {
        (format!("aes on {}", path.name()), AnyPrf::new(PrfKind::Aes, secret, geometry.block_size(), path))
    });
    [chacha].into_iter().chain(aes).collect()
}

fn searches(prf: &AnyPrf) -> impl Iterator<Item = Search> {
    let kind = prf.kind();
    Search::CHOICES.into_iter().map(|(_, search)| search).filter(move |search| search.prf() == kind)
}

fn state(prf: &AnyPrf, secret: &Secret, entries: Entries) -> State {
    offline::generate(prf, secret, entries, BACKUPS, Way::of(prf), 1)
}

/// Sizes around everything that is done in steps: squares (blocks of a power of two, or not), halves of blocks, groups of hints.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![2_u64..40, 200_u64..300, Just(1024), Just(1025), 3000_u64..5000, Just(4096), Just(16_384)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn all_values_of_a_hint_are_those_of_single_calls(seed: u64, entries in sizes(), hint in 0_u32..100_000) {
        let (secret, geometry) = (Secret::from_seed(seed), Geometry::new(entries, 40, 80));
        let functions = functions(&secret, geometry);
        let (_, first_aes) = &functions[1];
        for (name, prf) in &functions {
            let (mut selects, mut offsets) = (vec![0; geometry.blocks() as usize], vec![0; geometry.blocks() as usize]);
            prf.selects(hint, &mut selects);
            prf.offsets(hint, &mut offsets);
            for block in 0..geometry.blocks() {
                let at = block as usize;
                prop_assert_eq!((selects[at], offsets[at]), (prf.select(hint, block), prf.offset(hint, block)), "{}", name);
                prop_assert!(offsets[at] < geometry.block_size());
                if prf.kind() == PrfKind::Aes {
                    prop_assert_eq!((selects[at], offsets[at]), (first_aes.select(hint, block), first_aes.offset(hint, block)), "{}", name);
                }
            }
        }
    }

    #[test]
    fn hints_match_the_definition_for_every_order_and_thread_count(
        seed: u64, entries in sizes(), words in prop_oneof![Just(4_usize), Just(5), Just(1), Just(7)], threads in 1_usize..4,
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 8 * words, 6);
        let entries = Entries::new(seed, geometry);
        for (name, prf) in functions(&secret, geometry) {
            let first = state(&prf, &secret, entries);
            let again = offline::generate(&prf, &secret, entries, BACKUPS, Way::HintMajor, threads);
            prop_assert!(first == again, "{} hint by hint with {} threads", name, threads);
            for slot in (0..geometry.hints()).step_by(5) {
                let hint = first.hints.get(slot);
                prop_assert_eq!(hint.cutoff, reference::cutoff(&prf, geometry, slot), "{}", name);
                if first.hints.is_usable(slot) {
                    let subset: Vec<Place> = reference::subset(&prf, geometry, &hint).collect();
                    prop_assert_eq!(subset.len(), geometry.half() + 1);
                    let blocks: HashSet<u32> = subset.iter().map(|place| place.block).collect();
                    prop_assert_eq!(blocks.len(), subset.len(), "one entry per block");
                    prop_assert_eq!(hint.parity, reference::parity(entries, subset), "{} slot {}", name, slot);
                } else {
                    prop_assert_eq!(hint.extra, NO_EXTRA);
                }
            }
        }
    }

    #[test]
    fn a_search_finds_a_hint_that_contains_the_entry_if_there_is_one(
        seed: u64, entries in sizes(), wanted: [prop::sample::Index; 3], lambda in 2_u32..40, used in 0_usize..30,
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 32, lambda);
        let contents = Entries::new(seed, geometry);
        for (name, prf) in functions(&secret, geometry) {
            let mut state = state(&prf, &secret, contents);
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            // Some slots are empty, some have another hint than in the beginning.
            for i in 0..used as u32 {
                let slot = i * 7 % geometry.hints();
                if state.hints.is_usable(slot) {
                    state.hints.consume(slot);
                    let index = i % geometry.entries();
                    let entry = vec![0; geometry.entry_words()];
                    if let (0, Some(hint)) = (i % 3, state.backups.take(&prf, index, &entry)) {
                        state.hints.refill(slot, hint);
                    }
                }
            }
            for index in wanted.iter().map(|wanted| wanted.index(entries as usize) as u32) {
                let candidates = reference::candidates(&prf, &state.hints, index);
                for strategy in searches(&prf) {
                    for _ in 0..4 {
                        let found = search::find(strategy, &prf, &state.hints, index, &mut rng);
                        prop_assert_eq!(found.slot.is_some(), !candidates.is_empty(), "{} on {}", strategy.name(), name);
                        prop_assert!(found.slot.is_none_or(|slot| candidates.contains(&slot)), "{} on {}", strategy.name(), name);
                        prop_assert!(found.examined <= geometry.hints());
                    }
                }
            }
        }
    }

    #[test]
    fn both_halves_of_a_query_have_the_same_length_and_look_alike(
        seed: u64, entries in sizes(), wanted: [prop::sample::Index; 6],
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 32, 80);
        let contents = Entries::new(seed, geometry);
        for (name, prf) in functions(&secret, geometry) {
            for strategy in searches(&prf) {
                for (dummy, encoding) in
                    [(Dummy::Hint, Encoding::Pairs), (Dummy::Complement, Encoding::Pairs), (Dummy::Complement, Encoding::Halves)]
                {
                    let mut hints = state(&prf, &secret, contents).hints;
                    let plan = Plan { strategy, dummy, encoding };
                    let mut builder = Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(seed));
                    for index in wanted.iter().map(|wanted| wanted.index(entries as usize) as u32) {
                        let Some(built) = builder.build(&prf, &mut hints, index) else { continue };
                        let sums: Vec<Vec<Place>> =
                            built.questions.iter().flat_map(|question| reference::places(geometry, question)).collect();
                        prop_assert_eq!(sums.len(), 2);
                        for places in &sums {
                            prop_assert_eq!(places.len(), geometry.half(), "{} {:?}", name, plan);
                            prop_assert!(places.windows(2).all(|pair| pair[0].block < pair[1].block), "in the order of blocks");
                            prop_assert!(places.iter().all(|place| place.block < geometry.blocks()));
                            prop_assert!(places.iter().all(|place| place.offset < geometry.block_size()));
                        }
                        let block = geometry.place(index).block;
                        prop_assert!(sums[built.real].iter().all(|place| place.block != block));
                        if dummy == Dummy::Complement {
                            let blocks: HashSet<u32> = sums.iter().flatten().map(|place| place.block).collect();
                            prop_assert_eq!(blocks.len(), geometry.blocks() as usize, "every block is asked for once");
                        }
                        let expected: Vec<u64> = (0..geometry.entry_words()).map(|word| contents.word(index, word)).collect();
                        prop_assert_eq!(reference::answer(&prf, contents, &built), expected, "{} {:?}", name, plan);
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_builds_the_same_queries_in_fresh_memory_and_in_that_of_earlier_ones(
        seed: u64, entries in sizes(), wanted: [prop::sample::Index; 8],
        encoding in prop_oneof![Just(Encoding::Pairs), Just(Encoding::Halves)],
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 32, 80);
        let contents = Entries::new(seed, geometry);
        let functions = functions(&secret, geometry);
        for strategy in [Search::AesUniform, Search::AesPacked] {
            let plan = Plan { strategy, dummy: Dummy::Complement, encoding };
            let mut expected = None;
            for (name, prf) in functions.iter().filter(|(_, prf)| prf.kind() == PrfKind::Aes) {
                let state = state(prf, &secret, contents);
                for recycles in [false, true] {
                    let (mut hints, mut builder) =
                        (state.hints.clone(), Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(seed)));
                    let mut all = Vec::new();
                    for index in wanted.iter().map(|wanted| wanted.index(entries as usize) as u32) {
                        let built = builder.build(prf, &mut hints, index);
                        if recycles {
                            let questions = built.iter().flat_map(|built| built.questions.clone());
                            questions.for_each(|question| builder.recycle(question));
                        }
                        all.push(built);
                    }
                    let expected = expected.get_or_insert_with(|| all.clone());
                    prop_assert!(&all == expected, "{} on {}, recycles: {}", strategy.name(), name, recycles);
                }
            }
        }
    }

    #[test]
    fn hints_for_wanted_entries_agree_with_complete_hints(
        seed: u64, entries in prop_oneof![250_u64..300, Just(1024), Just(5000)], wanted: [prop::sample::Index; 5],
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 40, 80);
        let contents = Entries::new(seed, geometry);
        let indices: Vec<u32> = wanted.iter().map(|wanted| wanted.index(entries as usize) as u32).collect();
        let server = Server::new(Database::Computed(contents), 16);
        for (name, prf) in functions(&secret, geometry) {
            for strategy in searches(&prf) {
                let state = offline::wanted(&prf, &secret, contents, BACKUPS, &indices);
                let wishes = Wishes { nodelay: true, framing: Framing::SingleWrite, answering: Answering::Copy };
                let hello =
                    Hello { entries: geometry.entries(), entry_size: 40, seed, batch_limit: 2, wishes };
                let (link, _) = Memory::connect(&server, &hello).unwrap();
                let plan = Plan { strategy, dummy: Dummy::Complement, encoding: Encoding::Pairs };
                let builder = Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(seed));
                let mut client = Client::new(&prf, state, builder, link, 2, Flush::Full);
                for index in &indices {
                    client.query(*index, &mut Phases::new()).unwrap();
                }
                let expected: Vec<u64> =
                    indices.iter().flat_map(|index| (0..5).map(|word| contents.word(*index, word))).collect();
                prop_assert_eq!(&client.tally.answers, &expected, "{} {}", name, strategy.name());
            }
        }
    }

    #[test]
    fn server_answers_arbitrary_bytes_and_continues(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        places in prop::collection::vec((0_u32..40, 0_u32..40), 0..40),
        mask in prop::collection::vec(any::<u8>(), 4..5), offsets in prop::collection::vec(0_u16..40, 16..17),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let contents = Entries::new(1, Geometry::new(1024, 40, 1));
        let server = Server::new(Database::Memory(Layout::new(contents, Pages::Huge)), 4);
        let wishes = Wishes { nodelay: true, framing: Framing::SingleWrite, answering: Answering::Prefetch };
        let hello = Hello { entries: 1024, entry_size: 40, seed: 1, batch_limit: 4, wishes };
        let pairs = Question::Pairs(places.iter().map(|(block, offset)| Place { block: *block, offset: *offset }).collect());
        let halves = Question::Halves { mask, offsets };
        // Good messages, the same with some bytes changed and cut off, and noise.
        let requests =
            [Request::RunConfig(hello), Request::Query(1, pairs.clone()), Request::Batch(vec![(2, pairs), (3, halves)])];
        let mut messages = vec![noise];
        for request in requests {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            for (at, change) in &changes {
                let at = at.index(bytes.len());
                bytes[at] ^= change;
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
            messages.push(bytes);
        }
        for message in messages {
            if let Ok(request) = Request::decode(&message) {
                let mut again = Vec::new();
                request.encode(&mut again);
                prop_assert_eq!(&again, &message, "a message has one form");
            }
            for ready in [false, true] {
                let mut session = None;
                if ready {
                    let mut bytes = Vec::new();
                    Request::RunConfig(hello).encode(&mut bytes);
                    prop_assert!(matches!(server.handle(&mut session, &bytes, |_| true), Reply::Ready(_)));
                }
                let mut reply = Vec::new();
                server.handle(&mut session, &message, |_| true).encode(&mut reply);
                prop_assert!(Reply::decode(&reply).is_ok());
            }
        }
    }

    #[test]
    fn every_answer_is_the_entry_and_every_hint_is_used_once(
        seed: u64,
        entries in prop_oneof![250_u64..300, Just(1024), Just(5000)],
        words in prop_oneof![Just(4_usize), Just(5), Just(2)],
        batch in 1_usize..20,
        indices in prop::collection::vec(any::<prop::sample::Index>(), 1..BACKUPS as usize),
        full: bool,
    ) {
        let secret = Secret::from_seed(seed);
        let geometry = Geometry::new(entries, 8 * words, 80);
        let contents = Entries::new(seed, geometry);
        let server = Server::new(Database::Memory(Layout::new(contents, Pages::Huge)), 16);
        // The same entry again and again is allowed, too.
        let indices: Vec<u32> = indices.iter().map(|index| index.index(entries as usize) as u32 / 2 * 2).collect();
        for (name, prf) in functions(&secret, geometry) {
            let fresh = state(&prf, &secret, contents);
            for strategy in searches(&prf) {
                for (dummy, encoding, answering) in [
                    (Dummy::Hint, Encoding::Pairs, Answering::Copy),
                    (Dummy::Complement, Encoding::Pairs, Answering::Prefetch),
                    (Dummy::Complement, Encoding::Halves, Answering::Copy),
                    (Dummy::Complement, Encoding::Halves, Answering::Prefetch),
                ] {
                    let hello = Hello {
                        entries: geometry.entries(),
                        entry_size: geometry.entry_size() as u32,
                        seed,
                        batch_limit: batch as u32,
                        wishes: Wishes { nodelay: true, framing: Framing::SingleWrite, answering },
                    };
                    let (link, ready) = Memory::connect(&server, &hello).unwrap();
                    prop_assert_eq!(ready.batch_limit as usize, batch.min(16));
                    let builder =
                        Builder::new(Plan { strategy, dummy, encoding }, geometry, ChaCha12Rng::seed_from_u64(seed));
                    let flush = if full { Flush::Full } else { Flush::OnePerQuery };
                    let mut client = Client::new(&prf, fresh.clone(), builder, link, ready.batch_limit as usize, flush);
                    for index in &indices {
                        client.query(*index, &mut Phases::new()).unwrap();
                    }
                    client.finish(&mut Phases::new()).unwrap();
                    let tally = &client.tally;
                    let expected: Vec<u64> =
                        indices.iter().flat_map(|index| (0..words).map(|word| contents.word(*index, word))).collect();
                    prop_assert_eq!(&tally.answers, &expected, "{} {} {:?}", name, strategy.name(), encoding);
                    let used: HashSet<u32> = tally.used.iter().copied().collect();
                    prop_assert_eq!(used.len(), indices.len(), "a hint is used once");
                    let questions: u64 = (0..).zip(&tally.batch_sizes).map(|(size, count): (u64, &u64)| size * count).sum();
                    prop_assert_eq!(questions as usize, indices.len() * if encoding == Encoding::Pairs { 2 } else { 1 });
                }
            }
        }
    }
}

/// The document's program sent a dummy that was one entry longer than the real half. Were the halves distinguished by order, or the real
/// one by its place, a server would know; here the real half is the first as often as the second.
#[test]
fn the_real_half_is_first_as_often_as_second() {
    let (secret, geometry) = (Secret::from_seed(5), Geometry::new(4096, 32, 80));
    let contents = Entries::new(5, geometry);
    let prf = functions(&secret, geometry).pop().unwrap().1;
    for encoding in [Encoding::Pairs, Encoding::Halves] {
        let mut hints = state(&prf, &secret, contents).hints;
        let plan = Plan { strategy: Search::AesPacked, dummy: Dummy::Complement, encoding };
        let mut builder = Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(5));
        let built: Vec<_> = (0..1000).filter_map(|index| builder.build(&prf, &mut hints, index)).collect();
        assert!(built.len() > 900);
        let second = built.iter().filter(|built| built.real == 1).count();
        let sigma = (built.len() as f64).sqrt() / 2.0;
        assert!((second as f64 - built.len() as f64 / 2.0).abs() < 4.5 * sigma, "{second} of {}", built.len());
    }
}

/// The leak of the document's dummies at equal length: the real half never has the wanted block, so that a block
/// missing from every first or every second question identifies it. With the complement every block is in exactly one
/// half.
#[test]
fn only_the_complement_hides_the_wanted_block() {
    let (secret, geometry) = (Secret::from_seed(6), Geometry::new(4096, 32, 80));
    let contents = Entries::new(6, geometry);
    let prf = functions(&secret, geometry).pop().unwrap().1;
    for (dummy, share) in [(Dummy::Hint, 0.5), (Dummy::Complement, 1.0)] {
        let mut hints = state(&prf, &secret, contents).hints;
        let plan = Plan { strategy: Search::AesPacked, dummy, encoding: Encoding::Pairs };
        let mut builder = Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(6));
        let mut with_block = 0;
        let mut queries = 0_usize;
        // All entries of the first block, as in the document.
        for built in (0..64).filter_map(|index| builder.build(&prf, &mut hints, index)) {
            queries += 1;
            let asked = built.questions.iter().flat_map(|question| match question {
                Question::Pairs(places) => places.clone(),
                Question::Halves { .. } => Vec::new(),
            });
            with_block += usize::from(asked.into_iter().any(|place| place.block == 0));
        }
        let found = with_block as f64 / queries as f64;
        assert!((found - share).abs() < 0.3, "{dummy:?}: block 0 is in {found} of all queries");
        assert!(dummy == Dummy::Hint || with_block == queries);
    }
}

/// The hint's own offset in the wanted block is the wanted one: the dummy half must not have it more often than by chance.
#[test]
fn the_dummy_half_does_not_ask_for_the_wanted_entry() {
    let (secret, geometry) = (Secret::from_seed(11), Geometry::new(4096, 32, 80));
    let contents = Entries::new(11, geometry);
    for (name, prf) in functions(&secret, geometry) {
        for encoding in [Encoding::Pairs, Encoding::Halves] {
            let mut hints = state(&prf, &secret, contents).hints;
            let strategy = searches(&prf).last().unwrap();
            let plan = Plan { strategy, dummy: Dummy::Complement, encoding };
            let mut builder = Builder::new(plan, geometry, ChaCha12Rng::seed_from_u64(11));
            let (mut queries, mut gave_away) = (0, 0);
            for built in (0..640).filter_map(|index| builder.build(&prf, &mut hints, index)) {
                let wanted = geometry.place(built.index);
                let asked = built.questions.iter().flat_map(|question| reference::places(geometry, question));
                queries += 1;
                gave_away += usize::from(asked.flatten().any(|place| place == wanted));
            }
            // One in 64 by chance.
            assert!(gave_away * 16 < queries, "{name} {encoding:?}: {gave_away} of {queries}");
        }
    }
}

/// A renewed hint is defined by its new number, not by its slot's previous hint.
#[test]
fn renewed_hints_are_searched_by_their_own_numbers() {
    let (secret, geometry) = (Secret::from_seed(12), Geometry::new(256, 32, 4));
    let contents = Entries::new(12, geometry);
    for (name, prf) in functions(&secret, geometry) {
        let mut state = state(&prf, &secret, contents);
        for slot in 0..geometry.hints() {
            state.hints.consume(slot);
            let hint = state.backups.take(&prf, slot, &[0; 4]);
            hint.into_iter().for_each(|hint| state.hints.refill(slot, hint));
        }
        let mut rng = ChaCha12Rng::seed_from_u64(12);
        for index in 0..geometry.entries() {
            let candidates = reference::candidates(&prf, &state.hints, index);
            for strategy in searches(&prf) {
                let found = search::find(strategy, &prf, &state.hints, index, &mut rng).slot;
                assert_eq!(found.is_some(), !candidates.is_empty(), "{name} {} entry {index}", strategy.name());
                assert!(found.is_none_or(|slot| candidates.contains(&slot)), "{name} {}", strategy.name());
            }
        }
    }
}

/// A uniform choice takes every candidate with the same probability.
#[test]
fn a_uniform_search_is_uniform() {
    let (secret, geometry) = (Secret::from_seed(7), Geometry::new(1024, 32, 80));
    let contents = Entries::new(7, geometry);
    for (name, prf) in functions(&secret, geometry) {
        let state = state(&prf, &secret, contents);
        let candidates = reference::candidates(&prf, &state.hints, 77);
        assert!(candidates.len() > 15, "{name}: {} candidates", candidates.len());
        for strategy in searches(&prf).filter(|strategy| strategy.is_uniform()) {
            let mut rng = ChaCha12Rng::seed_from_u64(8);
            let draws = 50 * candidates.len();
            let mut counts = vec![0_u32; candidates.len()];
            for _ in 0..draws {
                let slot = search::find(strategy, &prf, &state.hints, 77, &mut rng).slot.unwrap();
                counts[candidates.iter().position(|candidate| *candidate == slot).unwrap()] += 1;
            }
            // 50 +- 7 each: 5 sigma.
            assert!(counts.iter().all(|count| (15..=85).contains(count)), "{name} {}: {counts:?}", strategy.name());
        }
    }
}

/// An early exit examines two block sizes of hints on average, where a full scan examines all.
#[test]
fn an_early_exit_examines_as_many_hints_as_expected() {
    let (secret, geometry) = (Secret::from_seed(9), Geometry::new(1 << 14, 32, 80));
    let contents = Entries::new(9, geometry);
    for (name, prf) in functions(&secret, geometry) {
        let state = state(&prf, &secret, contents);
        let mut rng = ChaCha12Rng::seed_from_u64(9);
        for strategy in searches(&prf) {
            let examined: u32 =
                (0..100).map(|i| search::find(strategy, &prf, &state.hints, i * 131, &mut rng).examined).sum();
            let average = f64::from(examined) / 100.0;
            let expected = if strategy.is_uniform() { geometry.hints() } else { 2 * geometry.block_size() };
            assert!((average / f64::from(expected) - 1.0).abs() < 0.5, "{name} {}: {average}", strategy.name());
        }
    }
}

/// Prepared hints give the same search results as complete ones.
#[test]
fn prepared_hints_contain_the_wanted_entries_in_the_same_slots_as_complete_ones() {
    let (secret, geometry) = (Secret::from_seed(10), Geometry::new(5000, 40, 80));
    let contents = Entries::new(10, geometry);
    let indices = [0, 1, 2, 4999, 1234];
    for (name, prf) in functions(&secret, geometry) {
        let complete = state(&prf, &secret, contents).hints;
        let prepared = offline::prepare(&prf, &secret, geometry, &indices);
        for index in indices {
            let without_extras = |hints: &batch_rms24::hints::Hints| -> Vec<u32> {
                let found = reference::candidates(&prf, hints, index);
                found.into_iter().filter(|slot| hints.extra(*slot) != index).collect()
            };
            assert_eq!(without_extras(&prepared), without_extras(&complete), "{name}, entry {index}");
            for slot in reference::candidates(&prf, &prepared, index) {
                assert_eq!(prepared.get(slot).cutoff, reference::cutoff(&prf, geometry, slot), "{name}, slot {slot}");
            }
        }
    }
}

/// The only hint that contains the entry does so as its extra entry, around every step that a search takes, and more hints follow than it
/// reads extra entries of at once. Seven chunks in eight hold nothing else that could.
#[test]
fn an_extra_entry_is_found_wherever_its_hint_is() {
    let (secret, geometry, index) = (Secret::from_seed(3), Geometry::new(1 << 24, 8, 10), 77);
    let count = geometry.hints();
    assert!(count > 3 * 8192, "{count} hints");
    for slot in [0, 7, 8, 511, 512, 8191, 8192, 8193, 20_000, count - 1] {
        // Hints that cover next to nothing.
        let (cutoffs, mut extras) = (vec![1; count as usize], vec![index + 1; count as usize]);
        extras[slot as usize] = index;
        let hints = Hints::new(geometry, cutoffs, extras, Vec::new());
        for (name, prf) in functions(&secret, geometry) {
            assert_eq!(reference::candidates(&prf, &hints, index), [slot], "{name}");
            for strategy in searches(&prf) {
                for seed in 0..4 {
                    let mut rng = ChaCha12Rng::seed_from_u64(seed);
                    let found = search::find(strategy, &prf, &hints, index, &mut rng);
                    assert_eq!(found.slot, Some(slot), "{} on {name}, seed {seed}", strategy.name());
                }
            }
        }
    }
}
