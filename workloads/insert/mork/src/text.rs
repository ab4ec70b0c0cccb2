//! The text form, written as in the original: every part of a value becomes a separate string, and an expression joins
//! the strings of its items. A fact of three items costs about seven allocations, and still less than a microsecond.

use crate::token;
use crate::value::{ERROR, TYPE, Value};

/// The text of a value.
#[must_use]
pub fn to_text(value: &Value) -> String {
    match value {
        Value::Atom(name) => match token::variable(name) {
            Some(name) => format!("${name}"),
            None => name.clone(),
        },
        Value::Bool(truth) => truth.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Float(number) => token::float(*number),
        Value::String(text) => quoted(text, token::TEXT_QUOTE),
        Value::Uri(text) => quoted(text, token::URI_QUOTE),
        Value::SExpr(items) => {
            let items: Vec<String> = items.iter().map(to_text).collect();
            format!("({})", items.join(" "))
        }
        Value::Nil => "()".to_owned(),
        Value::Error(message, value) => {
            format!("({ERROR} {} {})", quoted(message, token::TEXT_QUOTE), to_text(value))
        }
        Value::Type(value) => format!("({TYPE} {})", to_text(value)),
    }
}

fn quoted(text: &str, quote: u8) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    token::write_quoted(text, quote, &mut out);
    String::from_utf8(out).expect("only ASCII was put between the characters of a string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_has_its_text() {
        let inner = Value::expression([Value::atom("fact"), Value::Long(-3), Value::atom("value-3")]);
        for (value, text) in [
            (inner.clone(), "(fact -3 value-3)"),
            (Value::expression([Value::atom("&x"), Value::atom("'y"), Value::atom("_")]), "($x $y $)"),
            (Value::expression([Value::Bool(true), Value::Float(2.0), Value::Nil]), "(true 2.0 ())"),
            (Value::String("a \"b\"".into()), r#""a \"b\"""#),
            (Value::Uri("u".into()), "`u`"),
            (Value::Error("no".into(), Box::new(Value::Nil)), r#"(error "no" ())"#),
            (Value::Type(Box::new(inner)), "(type (fact -3 value-3))"),
            (Value::expression([]), "()"),
        ] {
            assert_eq!(to_text(&value), text);
        }
    }
}
