//! Figures in text that tools print for people.

use crate::fault::quoted;
use crate::report::Reading;

/// The number that a text is, or what is wrong with it.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("found {}, not a finite number", quoted(text))),
    }
}

/// The number, so many times, as what the tool has computed.
pub(crate) fn summary(text: &str, times: f64) -> Result<Reading, String> {
    number(text).map(|number| Reading::Summary(number * times))
}
