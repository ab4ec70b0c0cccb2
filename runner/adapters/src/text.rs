//! Parsing of figures in text output.

use crate::fault::quoted;
use crate::report::Reading;

/// Parses a number, or returns an error text.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("found {}, not a finite number", quoted(text))),
    }
}

/// Parses a printed time and multiplies it by `times`. One that is printed as 0 is below the last digit, not 0.
pub(crate) fn time(text: &str, times: f64) -> Result<Reading, String> {
    match number(text)? {
        0.0 => Err(format!("found {}, which is below the last printed digit, so that it has no value", quoted(text))),
        number => Ok(Reading::Summary(number * times)),
    }
}

/// Parses a statistic of the tool and multiplies it by `times`.
pub(crate) fn summary(text: &str, times: f64) -> Result<Reading, String> {
    number(text).map(|number| Reading::Summary(number * times))
}
