//! Units, which every figure must have.

/// The unit of a figure in UCUM notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit(&'static str);

impl Unit {
    /// Seconds.
    pub const SECONDS: Self = Self("s");
    /// Bytes.
    pub const BYTES: Self = Self("By");
    /// Bytes per second; 10^9 of them are a GB/s, not a GiB/s.
    pub const BYTES_PER_SECOND: Self = Self("By/s");
    /// A dimensionless count.
    pub const ONE: Self = Self("1");

    /// A custom unit, e.g. `queries/s`.
    ///
    /// # Panics
    ///
    /// If the name is empty or exceeds the schema's 32 bytes.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(!name.is_empty() && name.len() <= 32, "a unit has 1 to 32 characters");
        Self(name)
    }

    /// The unit's notation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// A value with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Quantity {
    /// `value` in `unit`.
    #[must_use]
    pub const fn new(value: f64, unit: Unit) -> Self {
        Self { value, unit }
    }

    /// A number of bytes. Exact up to 2^53.
    #[must_use]
    pub const fn bytes(count: u64) -> Self {
        Self::new(count as f64, Unit::BYTES)
    }

    /// A plain count. Exact up to 2^53.
    #[must_use]
    pub const fn count(count: u64) -> Self {
        Self::new(count as f64, Unit::ONE)
    }

    /// Bytes moved per second.
    #[must_use]
    pub const fn bytes_per_second(bytes: u64, seconds: f64) -> Self {
        Self::new(bytes as f64 / seconds, Unit::BYTES_PER_SECOND)
    }
}
