//! One suite over both indexes, all factors and all paths, compared with a slow reference.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use assay_harness::{Flags, Phases};
use insert_diskann::blocks::layout::{Block, Layout};
use insert_diskann::blocks::{self, Blocks};
use insert_diskann::crash::Crash;
use insert_diskann::dataset::{Data, Kind};
use insert_diskann::distance::{Distance, Meter, Path};
use insert_diskann::exact::{K, nearest, recall};
use insert_diskann::index::{BackEdges, Editable, Index, NodeCache, Searcher};
use insert_diskann::options::Options;
use insert_diskann::sqlite;
use insert_diskann::start::Start;
use insert_diskann::strategy::Strategy as Preset;
use insert_diskann::verify;
use proptest::prelude::*;
use rusqlite::Connection;

/// A file that goes with its test.
struct File(PathBuf);

impl File {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("insert-diskann-properties-{}-{number}.db", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

/// Small nodes, so that few vectors fill them: with 6 dimensions and 640 bytes, 15 edges.
fn options(strategy: Preset) -> Options {
    let flags = ["--dims=6", "--block-size=640", "--insert-list=24", "--synchronous=off"].map(str::to_owned);
    let flags = flags.into_iter().chain([format!("--strategy={}", strategy.name())]);
    Options::take(&mut Flags::parse(flags).unwrap()).unwrap()
}

fn connect(file: &File, options: &Options) -> Connection {
    let is_new = !file.0.exists();
    let connection = sqlite::open(&file.0, &options.tuning, true).unwrap();
    if is_new {
        options.create(&connection).unwrap();
    }
    connection
}

fn open<'c>(options: &Options, connection: &'c Connection) -> Box<dyn Index + 'c> {
    options.open(connection, options.distance().unwrap(), Crash::default()).unwrap()
}

fn edit<'a>(index: &'a mut (dyn Index + '_)) -> &'a mut (dyn Editable + 'a) {
    index.editable().expect("ours can be edited")
}

fn presets() -> impl Strategy<Value = Preset> {
    prop_oneof![Just(Preset::Baseline), Just(Preset::Seek), Just(Preset::Ours)]
}

fn paths() -> impl Strategy<Value = Path> {
    let available = Distance::available();
    let paths = Path::CHOICES.into_iter().filter(move |(name, _)| available.iter().any(|way| way.name() == *name));
    prop::sample::select(paths.map(|(_, path)| path).collect::<Vec<_>>())
}

prop_compose! {
    fn any_options()(
        strategy in presets(),
        start in prop::sample::select(vec![Start::Count, Start::Seek, Start::Medoid]),
        node_cache in prop::sample::select(vec![NodeCache::None, NodeCache::PerBatch]),
        back_edges in prop::sample::select(vec![BackEdges::Eager, BackEdges::Deferred]),
        path in paths(),
        transaction_size in 1_u64..7,
        fold_every in 1_u64..9,
        kind in prop::sample::select(Kind::CHOICES.map(|(_, kind)| kind).to_vec()),
        page_size in prop::sample::select(vec![512_u32, 4096, 16_384]),
        journal in prop::sample::select(vec![sqlite::Journal::Wal, sqlite::Journal::Delete]),
        budget in prop::sample::select(vec![0, 6, 20, 500]),
    ) -> Options {
        let mut options = options(strategy);
        options.factors = insert_diskann::strategy::Factors { start, node_cache, back_edges, path };
        (options.transaction_size, options.fold_every, options.dataset) = (transaction_size, fold_every, kind);
        (options.tuning.page_size, options.tuning.journal) = (page_size, journal);
        if strategy == Preset::Ours && node_cache == NodeCache::PerBatch && budget > 0 {
            options.memory_budget_kib = u64::from(options.tuning.cache_kib) + budget;
        }
        options
    }
}

/// The blobs of an index of blocks, in order.
fn all_blocks(connection: &Connection) -> Vec<Vec<u8>> {
    let mut select = connection.prepare("SELECT data FROM vectors_shadow ORDER BY id").unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Inserts `vectors` sequentially and returns the resulting blocks.
fn inserted_blocks(options: &Options, vectors: &[f32]) -> Vec<Vec<u8>> {
    let file = File::new();
    let connection = connect(&file, options);
    let mut index = open(options, &connection);
    for vector in vectors.chunks_exact(options.dims) {
        index.insert(vector, &mut Phases::new()).unwrap();
    }
    index.commit(&mut Phases::new()).unwrap();
    all_blocks(&connection)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_path_gives_the_distance_and_all_but_scalar_the_same_64_fused_sums(
        pairs in prop::collection::vec((-8.0_f32..8.0, -8.0_f32..8.0), 0..600),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let exact: f64 = a.iter().zip(&b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
        let lane = |lane: usize| {
            let numbers = a.iter().zip(&b).skip(lane).step_by(64);
            numbers.fold(0.0_f32, |sum, (x, y)| (x - y).mul_add(x - y, sum))
        };
        let mut sums: Vec<f32> = (0..64).map(lane).collect();
        while sums.len() > 1 {
            let (lower, upper) = sums.split_at(sums.len() / 2);
            sums = lower.iter().zip(upper).map(|(x, y)| x + y).collect();
        }
        for way in Distance::available() {
            let found = way.squared(&a, &b);
            let difference = (f64::from(found) - exact).abs();
            prop_assert!(difference <= 1e-5 * exact + 1e-9, "{}: {found} for {exact}", way.name());
            if way.name() != "scalar" {
                prop_assert_eq!(found.to_bits(), sums[0].to_bits(), "{}", way.name());
            }
        }
    }

    #[test]
    fn every_path_counts_the_same_steps_between_codes(pairs in prop::collection::vec(any::<(u8, u8)>(), 0..600)) {
        let (a, b): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
        let expected: u64 = a.iter().zip(&b).map(|(x, y)| u64::from(x.abs_diff(*y)).pow(2)).sum();
        for way in Distance::available() {
            prop_assert_eq!(u64::from(way.steps(&a, &b)), expected, "{}", way.name());
        }
    }

    #[test]
    fn index_is_complete_and_consistent_with_all_factors(
        options in any_options(), size in 1_usize..120, reopen in any::<prop::sample::Index>(),
    ) {
        let data = Data::generate(options.dataset, options.dims, 42, size, 0, 3);
        let file = File::new();
        // Closed and opened again somewhere on the way.
        let middle = reopen.index(size + 1);
        for part in [0..middle, middle..size] {
            let connection = connect(&file, &options);
            let mut index = open(&options, &connection);
            prop_assert_eq!(index.last_id(), part.start as u64);
            for at in part {
                prop_assert_eq!(index.insert(data.vector(at), &mut Phases::new()).unwrap(), at as u64 + 1);
                if options.memory_budget_kib > 0 {
                    let budget = (options.memory_budget_kib - u64::from(options.tuning.cache_kib)) << 10;
                    prop_assert!(index.memory_bytes() <= budget, "{} of {budget}", index.memory_bytes());
                }
            }
            index.commit(&mut Phases::new()).unwrap();
        }
        let connection = connect(&file, &options);
        let summary = verify::check(&connection).unwrap();
        prop_assert_eq!(summary.nodes, size as u64);

        let mut index = open(&options, &connection);
        let mut stored = Vec::new();
        index.each_stored(&mut |one| stored.push(one)).unwrap();
        let ids: Vec<u64> = stored.iter().map(|one| one.id).collect();
        prop_assert_eq!(ids, (1..=size as u64).collect::<Vec<_>>());
        let vectors: Vec<f32> = stored.into_iter().flat_map(|one| one.vector).collect();
        prop_assert_eq!(vectors, data.vectors.clone());

        for query in data.queries() {
            let found = index.search(query, K, 32).unwrap();
            let mut distinct = found.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), found.len());
            prop_assert!(!found.is_empty() && found.len() <= K.min(size));
            prop_assert!(distinct.iter().all(|id| (1..=size as u64).contains(id)));
            let distance = |id: &u64| Distance::PORTABLE.squared(data.vector(*id as usize - 1), query);
            let ascending = found.iter().map(distance).collect::<Vec<_>>();
            prop_assert!(ascending.windows(2).all(|pair| pair[0] <= pair[1] * 1.0001), "{ascending:?}");
        }
    }

    /// The reference is a map. The index has the same contents after any sequence of inserts, deletions, replacements,
    /// consolidations and reopenings. Concurrent searches find the results of the last commit.
    #[test]
    fn index_equals_the_reference_map(
        options in any_options(), steps in prop::collection::vec((0_u8..12, any::<prop::sample::Index>()), 1..250),
        percent in prop::sample::select(vec![1, 10, 100]),
    ) {
        let mut options = options;
        (options.strategy, options.consolidate_percent) = (Preset::Ours, percent);
        options.factors.start = Start::Medoid;
        let data = Data::generate(options.dataset, options.dims, 42, steps.len(), 0, 3);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        let mut searcher = edit(index.as_mut()).searcher().unwrap();
        let is_whole = options.memory_budget_kib == 0 && options.factors.node_cache == NodeCache::PerBatch;
        prop_assert_eq!(searcher.is_some(), is_whole);
        let mut committed: Vec<Vec<u64>> = vec![Vec::new(); 3];
        let mut model: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
        let (mut ids, mut phases) = (0, Phases::new());
        for (at, (what, chosen)) in steps.iter().enumerate() {
            let vector = data.vector(at).to_vec();
            // One that is there, was there, or never was.
            let id = chosen.index(ids as usize + 2) as u64;
            match what {
                0..5 => {
                    ids += 1;
                    prop_assert_eq!(index.insert(&vector, &mut phases).unwrap(), ids);
                    model.insert(ids, vector);
                }
                5..8 => {
                    prop_assert_eq!(edit(index.as_mut()).delete(id, &mut phases).unwrap(), model.remove(&id).is_some());
                }
                8..10 => {
                    let expected = model.remove(&id).map(|_| ids + 1);
                    prop_assert_eq!(edit(index.as_mut()).update(id, &vector, &mut phases).unwrap(), expected);
                    if expected.is_some() {
                        ids += 1;
                        model.insert(ids, vector);
                    }
                }
                10 => {
                    edit(index.as_mut()).consolidate().unwrap();
                    prop_assert_eq!(edit(index.as_mut()).consolidate().unwrap(), 0);
                }
                _ => {
                    index.commit(&mut phases).unwrap();
                    drop(searcher);
                    drop(index);
                    index = open(&options, &connection);
                    searcher = edit(index.as_mut()).searcher().unwrap();
                }
            }
            prop_assert_eq!((index.last_id(), index.live()), (ids, model.len() as u64));
            let found: Vec<Vec<u64>> = data.queries().map(|query| index.search(query, K, 16).unwrap()).collect();
            prop_assert!(found.iter().flatten().all(|id| model.contains_key(id)), "{found:?}");
            if connection.is_autocommit() {
                committed = found;
            }
            if let Some(searcher) = &mut searcher {
                let found: Vec<_> = data.queries().map(|query| searcher.search(query, K, 16).unwrap()).collect();
                prop_assert_eq!(&found, &committed);
                prop_assert!(searcher.commits() <= index.work().commits);
            }
        }
        index.commit(&mut phases).unwrap();
        prop_assert_eq!(verify::check(&connection).unwrap().nodes, model.len() as u64);
        let mut stored = BTreeMap::new();
        index.each_stored(&mut |one| drop(stored.insert(one.id, one.vector))).unwrap();
        prop_assert_eq!(&stored, &model);
    }

    /// The reference of the document's index is the index with all of the document's factors; a graph prepared in
    /// memory equals an inserted one.
    #[test]
    fn factors_that_only_change_the_speed_give_the_same_graph(
        size in 1_usize..90, page_size in prop::sample::select(vec![512_u32, 4096]), batch in 2_u64..9,
    ) {
        let mut baseline = options(Preset::Baseline);
        baseline.factors.path = Path::Portable;
        let data = Data::generate(Kind::Uniform, baseline.dims, 42, size, 0, 0);
        let expected = inserted_blocks(&baseline, &data.vectors);
        let mut others = vec![("seek", options(Preset::Seek)), ("cache", baseline), ("pages", baseline), ("batch", baseline)];
        others[1].1.factors.node_cache = NodeCache::PerBatch;
        others[2].1.tuning.page_size = page_size;
        others[3].1.transaction_size = batch;
        for (name, path) in Path::CHOICES.into_iter().filter(|(name, _)| *name != "scalar") {
            if Distance::select(path).is_ok() {
                others.push((name, baseline));
                others.last_mut().unwrap().1.factors.path = path;
            }
        }
        others[0].1.factors.path = Path::Portable;
        for (what, other) in &others {
            prop_assert_eq!(&inserted_blocks(other, &data.vectors), &expected, "{}", what);
        }

        let file = File::new();
        blocks::make(&file.0, &baseline, &data.vectors, Distance::PORTABLE).unwrap();
        let made = Connection::open(&file.0).unwrap();
        prop_assert_eq!(&all_blocks(&made), &expected, "made at once");
        verify::check(&made).unwrap();
    }

    /// Our graph is in memory, in rows and in a log, all of which must agree. A walk has the same results in every
    /// state. With a budget walks compare codes and have other results, which do not depend on the cached part of the
    /// edges.
    #[test]
    fn log_rows_and_memory_agree(size in 1_usize..120, fold_every in 1_u64..40, batch in 1_u64..5) {
        let mut expected: [Option<Vec<Vec<u64>>>; 2] = [None, None];
        for (back_edges, node_cache, budget) in [
            (BackEdges::Eager, NodeCache::PerBatch, 0),
            (BackEdges::Deferred, NodeCache::PerBatch, 0),
            (BackEdges::Deferred, NodeCache::None, 0),
            (BackEdges::Eager, NodeCache::None, 0),
            (BackEdges::Eager, NodeCache::PerBatch, 6),
            (BackEdges::Deferred, NodeCache::PerBatch, 6),
            (BackEdges::Deferred, NodeCache::PerBatch, 30),
            (BackEdges::Deferred, NodeCache::PerBatch, 4000),
        ] {
            let mut options = options(Preset::Ours);
            (options.factors.back_edges, options.factors.node_cache) = (back_edges, node_cache);
            if budget > 0 {
                options.memory_budget_kib = u64::from(options.tuning.cache_kib) + budget;
            }
            let expected = &mut expected[usize::from(budget > 0)];
            (options.fold_every, options.transaction_size) = (fold_every, batch);
            options.factors.path = Path::Portable;
            let data = Data::generate(Kind::Clustered, options.dims, 42, size, 0, 4);
            let file = File::new();
            let connection = connect(&file, &options);
            let mut index = open(&options, &connection);
            for vector in data.vectors.chunks_exact(options.dims) {
                index.insert(vector, &mut Phases::new()).unwrap();
            }
            index.commit(&mut Phases::new()).unwrap();
            let search = |index: &mut dyn Index| -> Vec<Vec<u64>> {
                data.queries().map(|query| index.search(query, K, 16).unwrap()).collect()
            };
            let memory = search(index.as_mut());
            drop(index);
            // From the file alone. The steps of codes are learnt anew when it is opened, so only exact vectors find the same as before.
            let file = search(open(&options, &connection).as_mut());
            if budget == 0 {
                prop_assert_eq!(&memory, &file);
            }
            prop_assert_eq!(expected.get_or_insert_with(|| file.clone()), &file);
        }
    }

    #[test]
    fn arbitrary_bytes_are_a_block_or_rejected(bytes in prop::collection::vec(any::<u8>(), 640), edges in 0_u16..40) {
        let options = options(Preset::Baseline);
        let file = File::new();
        let connection = connect(&file, &options);
        let layout = Layout::new(options.dims, options.block_size).unwrap();
        let mut block = Block::zeroed(layout);
        block.bytes_mut().copy_from_slice(&bytes);
        block.bytes_mut()[..8].copy_from_slice(&1_u64.to_le_bytes());
        block.bytes_mut()[8..10].copy_from_slice(&edges.to_le_bytes());
        connection.execute("INSERT INTO vectors_shadow VALUES(1, ?1)", [block.bytes()]).unwrap();
        // Edges lead anywhere, distances may be no numbers.
        let mut index = open(&options, &connection);
        let query = vec![0.5; options.dims];
        let outcomes = [
            verify::check(&connection).is_ok(),
            index.search(&query, K, 16).is_ok(),
            index.insert(&query, &mut Phases::new()).is_ok(),
        ];
        prop_assert!(edges == 0 || !outcomes[0], "random edges are not consistent");
    }
}

#[test]
fn the_walk_finds_most_true_neighbours() {
    for (strategy, budget) in
        [(Preset::Baseline, 0), (Preset::Seek, 0), (Preset::Ours, 0), (Preset::Ours, 2010), (Preset::Ours, 3000)]
    {
        for (_, kind) in Kind::CHOICES {
            let mut options = options(strategy);
            options.memory_budget_kib = budget;
            let data = Data::generate(kind, options.dims, 42, 300, 100, 50);
            let file = File::new();
            let connection = connect(&file, &options);
            let mut index = open(&options, &connection);
            data.vectors.chunks_exact(options.dims).for_each(|vector| {
                index.insert(vector, &mut Phases::new()).unwrap();
            });
            let vectors = || (1..).zip(data.vectors.chunks_exact(data.dims));
            let truth: Vec<Vec<u64>> = data.queries().map(|query| nearest(query, vectors(), K)).collect();
            let found: Vec<Vec<u64>> = data.queries().map(|query| index.search(query, K, 64).unwrap()).collect();
            let recall = recall(&truth, &found).unwrap();
            assert!(recall > 0.9, "{} {} {budget}: {recall}", strategy.name(), kind.name());
        }
    }
}

/// A sliding window: most vectors are replaced or deleted, and the walk still finds the remaining ones.
#[test]
fn the_walk_finds_most_true_neighbours_of_those_that_are_left() {
    for (kind, budget) in [(Kind::Uniform, 0), (Kind::Clustered, 0), (Kind::Clustered, 2100), (Kind::Uneven, 3000)] {
        let mut options = options(Preset::Ours);
        options.memory_budget_kib = budget;
        let data = Data::generate(kind, options.dims, 42, 1200, 0, 50);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        for at in 0..600 {
            index.insert(data.vector(at), &mut Phases::new()).unwrap();
        }
        for at in 600..1200 {
            let new = edit(index.as_mut()).update(at - 599, data.vector(at as usize), &mut Phases::new()).unwrap();
            assert_eq!(new, Some(at + 1));
        }
        (601..=700).for_each(|id| assert!(edit(index.as_mut()).delete(id, &mut Phases::new()).unwrap()));
        assert_eq!((index.live(), index.last_id()), (500, 1200));
        let left = || (701..).zip(data.vectors[700 * data.dims..].chunks_exact(data.dims));
        let truth: Vec<Vec<u64>> = data.queries().map(|query| nearest(query, left(), K)).collect();
        for step in ["some wait", "none waits", "opened again"] {
            let found: Vec<Vec<u64>> = data.queries().map(|query| index.search(query, K, 64).unwrap()).collect();
            let recall = recall(&truth, &found).unwrap();
            assert!(recall > 0.9, "{} {budget}, {step}: {recall}", kind.name());
            edit(index.as_mut()).consolidate().unwrap();
            let rows: i64 = connection.query_row("SELECT COUNT(*) FROM vector", [], |row| row.get(0)).unwrap();
            assert_eq!((rows, verify::check(&connection).unwrap().nodes), (500, 500));
            if step == "none waits" {
                drop(index);
                index = open(&options, &connection);
            }
        }
    }
}

#[test]
fn absent_vectors_cannot_be_deleted_and_all_others_can() {
    let options = options(Preset::Ours);
    let file = File::new();
    let connection = connect(&file, &options);
    let mut index = open(&options, &connection);
    let (vector, mut phases) = ([0.5; 6], Phases::new());
    {
        let index = edit(index.as_mut());
        assert!(!index.delete(0, &mut phases).unwrap() && !index.delete(1, &mut phases).unwrap());
        assert_eq!(index.update(1, &vector, &mut phases).unwrap(), None);
        assert_eq!(index.insert(&vector, &mut phases).unwrap(), 1);
        assert_eq!(index.update(1, &[0.5; 7], &mut phases).unwrap(), None, "of other dimensions");
        assert!(index.delete(1, &mut phases).unwrap() && !index.delete(1, &mut phases).unwrap());
        assert_eq!(
            (index.search(&vector, K, 16).unwrap().len(), index.consolidate().unwrap(), index.live()),
            (0, 1, 0)
        );
        assert_eq!(index.search(&vector, K, 16).unwrap().len(), 0);
    }
    drop(index);
    let mut index = open(&options, &connection);
    // An id is not given out again.
    assert_eq!(index.insert(&vector, &mut phases).unwrap(), 2);
    assert_eq!(index.search(&vector, K, 16).unwrap(), [2]);
    assert_eq!(verify::check(&connection).unwrap().nodes, 1);
    assert!(
        open(&self::options(Preset::Seek), &connect(&File::new(), &self::options(Preset::Seek))).editable().is_none()
    );
}

/// Everything that lies around a query was deleted and waits: the list looks further until it has as many as it should.
#[test]
fn deleted_vectors_take_no_place_in_the_list() {
    for cache in [NodeCache::PerBatch, NodeCache::None] {
        let mut options = options(Preset::Ours);
        (options.factors.node_cache, options.consolidate_percent) = (cache, 100);
        let data = Data::generate(Kind::Uniform, options.dims, 42, 300, 0, 20);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        for vector in data.vectors.chunks_exact(data.dims) {
            index.insert(vector, &mut Phases::new()).unwrap();
        }
        let vectors = || (1..).zip(data.vectors.chunks_exact(data.dims));
        let query = data.queries().next().unwrap();
        let around = nearest(query, vectors(), 60);
        for id in &around {
            assert!(edit(index.as_mut()).delete(*id, &mut Phases::new()).unwrap());
        }
        assert_eq!((index.work().consolidations, index.live()), (0, 240));
        let left = || vectors().filter(|(id, _)| !around.contains(id));
        let found = index.search(query, K, 20).unwrap();
        assert_eq!(found.len(), K);
        let recall = recall(&[nearest(query, left(), K)], std::slice::from_ref(&found)).unwrap();
        assert!(recall > 0.8, "{cache:?}: {recall}");
        if let Some(mut searcher) = edit(index.as_mut()).searcher().unwrap() {
            assert_eq!(searcher.search(query, K, 20).unwrap(), found);
        }
    }
}

/// Whole regions go at once, again and again, until few vectors are left; those that are left are found.
#[test]
fn remainder_of_a_deleted_region_is_found() {
    for budget in [0, 2100] {
        let mut options = options(Preset::Ours);
        (options.consolidate_percent, options.memory_budget_kib) = (100, budget);
        let data = Data::generate(Kind::Clustered, options.dims, 42, 800, 0, 30);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        for vector in data.vectors.chunks_exact(data.dims) {
            index.insert(vector, &mut Phases::new()).unwrap();
        }
        let mut left: BTreeMap<u64, &[f32]> = (1..).zip(data.vectors.chunks_exact(data.dims)).collect();
        for (round, query) in data.queries().take(12).enumerate() {
            for id in nearest(query, left.iter().map(|(id, vector)| (*id, *vector)), 60) {
                assert!(edit(index.as_mut()).delete(id, &mut Phases::new()).unwrap());
                left.remove(&id);
            }
            edit(index.as_mut()).consolidate().unwrap();
            let there = || left.iter().map(|(id, vector)| (*id, *vector));
            let truth: Vec<Vec<u64>> = data.queries().map(|query| nearest(query, there(), K)).collect();
            let found: Vec<Vec<u64>> = data.queries().map(|query| index.search(query, K, 64).unwrap()).collect();
            let recall = recall(&truth, &found).unwrap();
            assert!(recall > 0.9, "{budget}, round {round}, {} left: {recall}", left.len());
            assert_eq!(verify::check(&connection).unwrap().nodes, left.len() as u64);
        }
        assert_eq!(left.len(), 80);
    }
}

/// Threads search during inserts, updates and deletions. Each search has the results of the index after the commit that
/// it observed, and observes every commit that returned before its start.
#[test]
fn concurrent_searches_find_committed_vectors() {
    const THREADS: usize = 3;
    for (transaction_size, back_edges) in [(1, BackEdges::Deferred), (3, BackEdges::Deferred), (1, BackEdges::Eager)] {
        let mut options = options(Preset::Ours);
        (options.transaction_size, options.fold_every, options.factors.back_edges) = (transaction_size, 16, back_edges);
        let data = Data::generate(Kind::Clustered, options.dims, 42, 900, 0, 7);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        let answers = |index: &mut dyn Index| -> Vec<Vec<u64>> {
            data.queries().map(|query| index.search(query, K, 24).unwrap()).collect()
        };
        let mut searchers = Vec::new();
        for _ in 0..THREADS {
            searchers.push(edit(index.as_mut()).searcher().unwrap().unwrap());
        }
        let mut expected = BTreeMap::from([(index.work().commits, answers(index.as_mut()))]);
        let (committed, done) = (AtomicU64::new(index.work().commits), AtomicBool::new(false));
        let seen: Vec<(u64, usize, Vec<u64>)> = std::thread::scope(|scope| {
            let (committed, done, data) = (&committed, &done, &data);
            let start = |mut searcher: Box<dyn Searcher>| {
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    loop {
                        // Read first, because all commits up to now must be observed.
                        let last = done.load(Ordering::SeqCst);
                        for (query, vector) in data.queries().enumerate() {
                            let before = committed.load(Ordering::SeqCst);
                            let found = searcher.search(vector, K, 24).unwrap();
                            assert!(searcher.commits() >= before, "{} after {before}", searcher.commits());
                            seen.push((searcher.commits(), query, found));
                        }
                        if last {
                            return seen;
                        }
                    }
                })
            };
            let threads: Vec<_> = searchers.into_iter().map(start).collect();
            let mut phases = Phases::new();
            let mut oldest = 0;
            for at in 0..data.len() {
                match at % 6 {
                    4 => {
                        oldest += 1;
                        assert!(edit(index.as_mut()).delete(oldest, &mut phases).unwrap());
                    }
                    5 => {
                        oldest += 1;
                        assert!(edit(index.as_mut()).update(oldest, data.vector(at), &mut phases).unwrap().is_some());
                    }
                    _ => {
                        index.insert(data.vector(at), &mut phases).unwrap();
                    }
                }
                if connection.is_autocommit() {
                    let commits = index.work().commits;
                    expected.insert(commits, answers(index.as_mut()));
                    committed.store(commits, Ordering::SeqCst);
                }
            }
            index.commit(&mut phases).unwrap();
            expected.insert(index.work().commits, answers(index.as_mut()));
            committed.store(index.work().commits, Ordering::SeqCst);
            done.store(true, Ordering::SeqCst);
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(index.work().consolidations > 0 && index.work().folds + index.work().node_writes > 0);
        for (commits, query, found) in &seen {
            assert_eq!(Some(found), expected.get(commits).map(|found| &found[*query]), "after commit {commits}");
        }
        let commits =
            |thread: usize| seen.iter().filter(move |(commits, ..)| *commits as usize % THREADS == thread).count();
        assert!((0..THREADS).all(|thread| commits(thread) > 0), "searches saw few of {} commits", index.work().commits);
    }
}

/// Uncommitted and rolled back changes are invisible to other threads.
#[test]
fn uncommitted_changes_are_invisible_to_other_threads() {
    let mut options = options(Preset::Ours);
    (options.transaction_size, options.tuning.page_size) = (100, 512);
    let data = Data::generate(Kind::Uniform, options.dims, 42, 400, 0, 1);
    let file = File::new();
    let connection = connect(&file, &options);
    let mut index = open(&options, &connection);
    let (query, mut phases) = (data.queries().next().unwrap(), Phases::new());
    for at in 0..20 {
        index.insert(data.vector(at), &mut phases).unwrap();
    }
    let mut searcher = edit(index.as_mut()).searcher().unwrap().unwrap();
    let before = index.search(query, K, 32).unwrap();
    let first = before[0];
    for at in 20..90 {
        index.insert(data.vector(at), &mut phases).unwrap();
    }
    assert!(edit(index.as_mut()).delete(first, &mut phases).unwrap());
    assert_ne!(index.search(query, K, 32).unwrap(), before);
    assert_eq!(searcher.search(query, K, 32).unwrap(), before);

    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(())).unwrap();
    let failed = (90..400).find_map(|at| index.insert(data.vector(at), &mut phases).err());
    assert!(failed.expect("two pages hold fewer").to_string().contains("database or disk is full"));
    assert_eq!((index.live(), index.search(query, K, 32).unwrap()), (20, before.clone()));
    assert_eq!(searcher.search(query, K, 32).unwrap(), before);

    connection.pragma_update_and_check(None, "max_page_count", 1 << 30, |_| Ok(())).unwrap();
    assert!(edit(index.as_mut()).delete(first, &mut phases).unwrap());
    index.commit(&mut phases).unwrap();
    let found = searcher.search(query, K, 32).unwrap();
    assert_eq!(found, index.search(query, K, 32).unwrap());
    assert!(!found.contains(&first) && found.len() == K);
}

/// Four times as large as the memory it may have, all in all: built so, opened so, and nine of ten neighbours are found.
#[test]
fn an_index_larger_than_its_budget_works() {
    let parsed = |flags: &[&str]| Options::take(&mut Flags::parse(flags.iter().map(|&flag| flag.to_owned())).unwrap());
    for kind in ["clustered", "uneven"] {
        let dataset = format!("--dataset={kind}");
        let flags = ["--strategy=ours", "--dims=64", "--cache-kib=64", "--memory-budget-kib=400", "--synchronous=off"];
        let flags = [&flags[..], &["--transaction-size=50", &dataset]].concat();
        let options = parsed(&flags).unwrap();
        let data = Data::generate(options.dataset, options.dims, 42, 4000, 0, 50);
        let file = File::new();
        {
            let connection = connect(&file, &options);
            let mut index = open(&options, &connection);
            for vector in data.vectors.chunks_exact(options.dims) {
                index.insert(vector, &mut Phases::new()).unwrap();
                let held = index.memory_bytes() + sqlite::cache_bytes(&connection).unwrap();
                assert!(held <= 410 << 10, "{held} after {}", index.last_id());
            }
            index.finish().unwrap();
        }
        let connection = connect(&file, &options);
        assert!(sqlite::file_bytes(&connection).unwrap() >= 4 * (400 << 10), "{:?}", sqlite::file_bytes(&connection));
        assert_eq!(verify::check(&connection).unwrap().log_records, 0);
        let mut index = open(&options, &connection);
        let vectors = || (1..).zip(data.vectors.chunks_exact(data.dims));
        let truth: Vec<Vec<u64>> = data.queries().map(|query| nearest(query, vectors(), K)).collect();
        let found: Vec<Vec<u64>> = data.queries().map(|query| index.search(query, K, 64).unwrap()).collect();
        let recall = recall(&truth, &found).unwrap();
        assert!(recall >= 0.9, "{kind}: {recall}");
        assert!(index.work().node_reads > 0 && index.work().cache_hits > 0, "{:?}", index.work());

        // Too little for the codes is said, and how much they take.
        let small = parsed(&[&flags[..3], &["--memory-budget-kib=200", "--synchronous=off"]].concat()).unwrap();
        let refused = small.open(&connection, small.distance().unwrap(), Crash::default()).err().unwrap().to_string();
        assert_eq!(
            refused,
            "invalid --memory-budget-kib: without SQLite's cache it leaves 136 KiB, and the codes of 4000 vectors take 267 KiB; \
             give it more"
        );
    }
}

/// The document releases its savepoint while writable blob handles are open, and ignores the result. SQLite refuses, so
/// that its inserts are never committed; 39 µs are not a commit.
#[test]
fn a_savepoint_that_is_released_while_a_handle_may_write_commits_nothing() {
    let options = options(Preset::Baseline);
    let file = File::new();
    let connection = connect(&file, &options);
    let committed = || -> i64 {
        let other = Connection::open(&file.0).unwrap();
        other.query_row("SELECT COUNT(*) FROM vectors_shadow", [], |row| row.get(0)).unwrap()
    };
    for id in 1..=3 {
        connection.execute_batch("SAVEPOINT diskann_insert").unwrap();
        connection.execute("INSERT INTO vectors_shadow VALUES(?1, zeroblob(640))", [id]).unwrap();
        let mut handle = connection.blob_open(rusqlite::MAIN_DB, "vectors_shadow", "data", id, false).unwrap();
        handle.write_all_at(&[1; 640], 0).unwrap();
        let refused = connection.execute_batch("RELEASE diskann_insert").unwrap_err().to_string();
        assert!(refused.contains("cannot release savepoint - SQL statements in progress"), "{refused}");
        drop(handle);
        // The savepoint of the next insert lies within this one.
        assert_eq!((connection.is_autocommit(), committed()), (false, 0));
    }
    connection.execute_batch("RELEASE diskann_insert; RELEASE diskann_insert; RELEASE diskann_insert").unwrap();
    assert_eq!((connection.is_autocommit(), committed()), (true, 3));
}

/// The disk is full in the middle of an insert: it fails, nothing of it stays, and the next one works.
#[test]
fn failed_insert_is_rolled_back() {
    for (strategy, transaction_size) in
        [(Preset::Baseline, 1), (Preset::Ours, 1), (Preset::Baseline, 4), (Preset::Ours, 4)]
    {
        for (node_cache, back_edges) in [
            (NodeCache::None, BackEdges::Eager),
            (NodeCache::PerBatch, BackEdges::Eager),
            (NodeCache::PerBatch, BackEdges::Deferred),
        ] {
            let mut options = options(strategy);
            (options.factors.node_cache, options.factors.back_edges) = (node_cache, back_edges);
            (options.transaction_size, options.tuning.page_size) = (transaction_size, 512);
            let data = Data::generate(Kind::Uniform, options.dims, 42, 400, 0, 0);
            let file = File::new();
            let connection = connect(&file, &options);
            let mut index = open(&options, &connection);
            let limit = |pages: i64| {
                connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
            };
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
            limit(pages + 40);
            let failed = (0..200).find_map(|at| index.insert(data.vector(at), &mut Phases::new()).err());
            let message = failed.expect("forty pages hold fewer").to_string();
            assert!(message.contains("database or disk is full"), "{message}");
            let len = index.last_id();
            assert!(len > 0 && len.is_multiple_of(transaction_size), "{len}");
            assert_eq!(verify::check(&connection).unwrap().nodes, len);
            // Nothing is left to commit.
            index.commit(&mut Phases::new()).unwrap();

            limit(1 << 30);
            // Other vectors than those that failed, under the same ids.
            for at in len..200 {
                assert_eq!(index.insert(data.vector(200 + at as usize), &mut Phases::new()).unwrap(), at + 1);
            }
            index.commit(&mut Phases::new()).unwrap();
            assert_eq!(verify::check(&connection).unwrap().nodes, 200);
        }
    }
}

#[test]
fn a_vector_of_other_dimensions_is_refused() {
    for strategy in [Preset::Baseline, Preset::Ours] {
        let options = options(strategy);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        let message = index.insert(&[1.0; 7], &mut Phases::new()).unwrap_err().to_string();
        assert!(message.contains("a vector of 7 dimensions does not fit 6"), "{message}");
        assert_eq!((index.last_id(), index.search(&[0.0; 6], K, 16).unwrap().len()), (0, 0));
    }
}

/// With one insert per transaction, an insert that returned is in the file as another connection sees it.
#[test]
fn an_insert_that_returned_is_committed() {
    for strategy in [Preset::Baseline, Preset::Seek, Preset::Ours] {
        let options = options(strategy);
        let data = Data::generate(Kind::Uniform, options.dims, 42, 20, 0, 0);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        for at in 0..20 {
            let id = index.insert(data.vector(at), &mut Phases::new()).unwrap();
            assert_eq!(verify::check_file(&file.0).unwrap().nodes, id, "{}", strategy.name());
        }
        assert_eq!(index.work().commits, 20);
    }
}

#[test]
fn the_work_is_counted() {
    let options = options(Preset::Baseline);
    let data = Data::generate(Kind::Uniform, options.dims, 42, 100, 0, 0);
    let file = File::new();
    let connection = connect(&file, &options);
    let mut index = Blocks::open(&connection, &options, Distance::SCALAR, Crash::default()).unwrap();
    for at in 0..100 {
        index.insert(data.vector(at), &mut Phases::new()).unwrap();
    }
    let work = index.work();
    // Each visited node is read once, asked once, and written if it accepts.
    assert_eq!((work.inserts, work.commits, work.cache_hits), (100, 100, 0));
    assert_eq!(work.node_reads, work.visited);
    assert_eq!(work.back_edges_proposed, work.visited);
    assert_eq!(work.back_edges_accepted, work.node_writes);
    assert!(work.node_writes > 100 && work.visited > 24 * 50, "{work:?}");
    assert!(index.meter().count() > work.visited && Meter::new(Distance::SCALAR).count() == 0);
}

/// The document's proposals, each checked by the cost that it saves.
#[test]
fn each_factor_saves_its_cost() {
    let data = Data::generate(Kind::Uniform, 6, 42, 100, 0, 0);
    let work = |options: &Options| {
        let file = File::new();
        let connection = connect(&file, options);
        let mut index = open(options, &connection);
        for vector in data.vectors.chunks_exact(data.dims) {
            index.insert(vector, &mut Phases::new()).unwrap();
        }
        index.commit(&mut Phases::new()).unwrap();
        index.work()
    };
    let mut options = options(Preset::Baseline);
    let plain = work(&options);
    options.factors.node_cache = NodeCache::PerBatch;
    let cached = work(&options);
    assert_eq!((cached.node_reads, cached.cache_hits), (0, plain.node_reads), "every node is there since it was made");
    options.transaction_size = 10;
    let batched = work(&options);
    assert_eq!((plain.commits, batched.commits, batched.node_writes), (100, 10, plain.node_writes));
    options.factors.back_edges = BackEdges::Deferred;
    let deferred = work(&options);
    assert!(4 * deferred.node_writes < 3 * batched.node_writes, "{deferred:?} {batched:?}");
    assert!(deferred.back_edges_accepted > deferred.node_writes, "{deferred:?}");

    let mut options = self::options(Preset::Ours);
    options.fold_every = 10;
    let deferred = work(&options);
    assert_eq!((deferred.folds, deferred.commits), (10, 100));
    options.factors.back_edges = BackEdges::Eager;
    let eager = work(&options);
    assert!(eager.folds == 0 && 2 * eager.node_writes > 3 * deferred.node_writes, "{eager:?} {deferred:?}");
}

/// The reported memory of an index is that of its vectors and edges with little overhead.
#[test]
fn the_memory_of_an_index_is_that_of_its_vectors_and_edges() {
    let options = options(Preset::Ours);
    let data = Data::generate(Kind::Uniform, options.dims, 42, 500, 0, 0);
    let file = File::new();
    let connection = connect(&file, &options);
    let mut index = open(&options, &connection);
    for vector in data.vectors.chunks_exact(data.dims) {
        index.insert(vector, &mut Phases::new()).unwrap();
    }
    let nodes = 500 * (6 + 48) * 4;
    assert!((nodes..2 * nodes + 500 * 20).contains(&index.memory_bytes()), "{}", index.memory_bytes());
    let _searcher = edit(index.as_mut()).searcher().unwrap();
    assert!((2 * nodes..4 * nodes + 1000 * 20).contains(&index.memory_bytes()), "{}", index.memory_bytes());
}

/// Rows that are read one by one are checked as those that are read all at once.
#[test]
fn damaged_row_is_an_error() {
    for (table, cache, budget) in [
        ("vector", NodeCache::None, 0),
        ("edge", NodeCache::None, 0),
        ("edge", NodeCache::PerBatch, 2010),
        ("vector", NodeCache::PerBatch, 2010),
    ] {
        let mut options = options(Preset::Ours);
        (options.factors.node_cache, options.memory_budget_kib, options.fold_every) = (cache, budget, 1);
        let data = Data::generate(Kind::Uniform, options.dims, 42, 60, 0, 1);
        let file = File::new();
        let connection = connect(&file, &options);
        let mut index = open(&options, &connection);
        for vector in data.vectors.chunks_exact(data.dims) {
            index.insert(vector, &mut Phases::new()).unwrap();
        }
        drop(index);
        let mut index = open(&options, &connection);
        let query = data.queries().next().unwrap();
        connection.execute(&format!("UPDATE {table} SET sum = sum + 1"), []).unwrap();
        let error = index.search(query, K, 60).unwrap_err().to_string();
        assert!(error.contains(&format!("of table {table} does not have its checksum")), "{cache:?}: {error}");
    }
}
