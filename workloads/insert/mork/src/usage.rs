//! Resource usage of this process.

/// Numbers since the process began.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Pages given without reading anything.
    pub minor_faults: u64,
    /// The most memory it ever had, in bytes.
    pub max_resident_bytes: u64,
}

impl Usage {
    /// As of now.
    #[must_use]
    pub fn now() -> Self {
        // SAFETY: `rusage` is integers only, for which zeros are values.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid place for the answer; asking about oneself does not fail.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        Self {
            minor_faults: usage.ru_minflt.cast_unsigned(),
            max_resident_bytes: usage.ru_maxrss.cast_unsigned() * 1024,
        }
    }
}

/// Whether large blocks of fresh memory come in huge pages: the word in brackets of the system's setting.
#[must_use]
pub fn transparent_huge_pages() -> Option<String> {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    Some(setting.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Usage;

    #[test]
    fn page_faults_of_fresh_memory_are_counted() {
        let before = Usage::now();
        std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = Usage::now();
        assert!(after.minor_faults > before.minor_faults, "{before:?}, {after:?}");
        assert!(after.max_resident_bytes >= 64 << 20);
    }
}
