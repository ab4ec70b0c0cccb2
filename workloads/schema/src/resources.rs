//! What a process used, as the kernel says when it has ended.

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};

/// The process's own use, from `wait4`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// CPU time in user mode.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub user_seconds: Option<f64>,
    /// CPU time in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub system_seconds: Option<f64>,
    /// Peak resident memory.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub max_rss_bytes: Option<u64>,
    /// Page faults served without I/O.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub minor_faults: Option<u64>,
    /// Page faults that needed I/O.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub major_faults: Option<u64>,
    /// Times it waited.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub voluntary_context_switches: Option<u64>,
    /// Times it was pushed off its CPU.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::read::present")]
    pub involuntary_context_switches: Option<u64>,
}

impl Check for Resources {
    fn check(&self) -> Result<(), Violation> {
        check::not_negative("userSeconds", self.user_seconds.unwrap_or(0.0))?;
        check::not_negative("systemSeconds", self.system_seconds.unwrap_or(0.0))
    }
}

crate::read::objects!(Resources);
