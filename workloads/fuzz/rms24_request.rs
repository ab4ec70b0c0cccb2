//! Fuzzes the RMS24 server with requests before and after the first message. Every request gets a reply that the client
//! can decode.
#![no_main]

use std::sync::LazyLock;

use batch_rms24::database::{Database, Entries, Layout, Pages};
use batch_rms24::geometry::Geometry;
use batch_rms24::server::Server;
use batch_rms24::wire::framing::Framing;
use batch_rms24::wire::{Answering, Hello, Reply, Request, Wishes};
use libfuzzer_sys::fuzz_target;

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let entries = Entries::new(1, Geometry::new(1024, 40, 1));
    Server::new(Database::Memory(Layout::new(entries, Pages::Huge)), 4)
});

fuzz_target!(|message: &[u8]| {
    if let Ok(request) = Request::decode(message) {
        let mut again = Vec::new();
        request.encode(&mut again);
        assert_eq!(again, message, "a message has one form");
    }
    for answering in [None, Some(Answering::Copy), Some(Answering::Prefetch)] {
        let mut session = None;
        if let Some(answering) = answering {
            let wishes = Wishes { nodelay: true, framing: Framing::SingleWrite, answering };
            let mut hello = Vec::new();
            Request::RunConfig(Hello { entries: 1024, entry_size: 40, seed: 1, batch_limit: 4, wishes })
                .encode(&mut hello);
            assert!(matches!(SERVER.handle(&mut session, &hello, |_| true), Reply::Ready(_)));
        }
        let mut reply = Vec::new();
        SERVER.handle(&mut session, message, |_| true).encode(&mut reply);
        Reply::decode(&reply).expect("a server's replies are well formed");
    }
});
