//! The three ways that are compared: every one of them is a set of factors.

use crate::distance::Path;
use crate::index::{BackEdges, NodeCache};
use crate::start::Start;

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
    /// The document's.
    Blocks,
    /// Ours.
    Compact,
}

assay_harness::choices!(LayoutKind { "blocks" => Blocks, "compact" => Compact });

/// A set of factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// As the document measured it.
    Baseline,
    /// With the document's proposal: the start is sought by id.
    Seek,
    /// Ours.
    Ours,
}

/// Factors of a strategy, each with a flag to override it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factors {
    /// Where a walk begins.
    pub start: Start,
    /// Cache across inserts.
    pub node_cache: NodeCache,
    /// When neighbours get their edges.
    pub back_edges: BackEdges,
    /// How distances are computed.
    pub path: Path,
}

assay_harness::choices!(Strategy { "baseline" => Baseline, "seek" => Seek, "ours" => Ours });

impl Strategy {
    /// Its index.
    #[must_use]
    pub fn layout(self) -> LayoutKind {
        match self {
            Self::Baseline | Self::Seek => LayoutKind::Blocks,
            Self::Ours => LayoutKind::Compact,
        }
    }

    /// Returns the strategy's factors.
    #[must_use]
    pub fn factors(self) -> Factors {
        let baseline = Factors {
            start: Start::Count,
            node_cache: NodeCache::None,
            back_edges: BackEdges::Eager,
            path: Path::Scalar,
        };
        match self {
            Self::Baseline => baseline,
            Self::Seek => Factors { start: Start::Seek, ..baseline },
            Self::Ours => Factors {
                start: Start::Medoid,
                node_cache: NodeCache::PerBatch,
                back_edges: BackEdges::Deferred,
                path: Path::Auto,
            },
        }
    }
}
