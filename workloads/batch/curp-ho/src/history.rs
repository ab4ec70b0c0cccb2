//! A run's history as JSON lines, the input of the consistency checker.

use std::io::{self, Write};

use serde::Serialize;

use crate::command::{Class, CommandId};
use crate::process::record::Record;

/// One command. A value is named after its writer, `client:seq`.
#[derive(Debug, Serialize)]
struct Line {
    client: u32,
    seq: u32,
    kind: &'static str,
    op: &'static str,
    key: u64,
    /// The value written or read; absent if a read found none.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(rename = "invoke")]
    invoked: u64,
    #[serde(rename = "return")]
    returned: u64,
}

/// Writes one line for every command.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(records: &[Record], out: &mut impl Write) -> io::Result<()> {
    for record in records {
        let value = if record.request.put { record.id } else { record.read };
        let line = Line {
            client: record.id.client,
            seq: record.id.seq,
            kind: if record.request.class == Class::Strong { "strong" } else { "weak" },
            op: if record.request.put { "put" } else { "get" },
            key: record.request.key,
            value: (value != CommandId::NONE).then(|| format!("{}:{}", value.client, value.seq)),
            invoked: record.invoked,
            returned: record.ended,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
