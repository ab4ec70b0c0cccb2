//! Pattern queries: find the expressions that match a pattern.
//!
//! A variable of a pattern stands for any item, the same one at each occurrence; `_` for any. Variables of an
//! expression stand for themselves, because patterns are matched, not unified.
//!
//! The part of a pattern before its first variable is a prefix of all matching paths. A store looks up this prefix, and
//! every path below it is compared with the rest, item by item, without decoding. A pattern that begins with a variable
//! is compared with all paths.

use std::collections::BTreeMap;

use crate::encoding::Tag;
use crate::token;
use crate::value::{ERROR, TYPE, Value};

/// A pattern as bytes.
#[derive(Debug, Clone)]
pub struct Pattern {
    path: Vec<u8>,
    /// Bytes before its first variable.
    ground: usize,
}

/// Bindings of a pattern's variables in the current path; reused for the next one.
#[derive(Debug, Default)]
pub struct Bound(Vec<Item>);

/// Where an item lies in a path.
#[derive(Debug, Clone, Copy)]
struct Item {
    start: usize,
    end: usize,
    /// Variables that are new before it.
    before: usize,
}

impl Pattern {
    /// A pattern of the bytes of an expression.
    #[must_use]
    pub fn new(path: Vec<u8>) -> Self {
        let mut ground = 0;
        while let Some(&tag) = path.get(ground) {
            match Tag::of(tag) {
                Some(Tag::Symbol(length)) => ground += 1 + length,
                Some(Tag::Arity(_)) => ground += 1,
                _ => break,
            }
        }
        Self { path, ground }
    }

    /// Common prefix of all matching paths.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.path[..self.ground]
    }

    /// Whether a path matches that begins with the prefix.
    #[must_use]
    pub fn matches(&self, path: &[u8], Bound(bound): &mut Bound) -> bool {
        bound.clear();
        let mut here = Cursor { at: self.ground, variables: 0 };
        let mut at = self.ground;
        while at < self.path.len() {
            match Tag::of(self.path[at]) {
                Some(Tag::NewVariable) => {
                    bound.push(here.item(path));
                    at += 1;
                }
                Some(Tag::Variable(level)) => {
                    let item = here.item(path);
                    if !same(path, bound[level], item) {
                        return false;
                    }
                    at += 1;
                }
                tag => {
                    let length = if let Some(Tag::Symbol(length)) = tag { 1 + length } else { 1 };
                    if path.get(here.at..here.at + length) != Some(&self.path[at..at + length]) {
                        return false;
                    }
                    at += length;
                    here.at += length;
                }
            }
        }
        true
    }
}

/// A place in a path.
struct Cursor {
    at: usize,
    /// Variables that are new before it.
    variables: usize,
}

/// A piece of a path that can be compared with another.
#[derive(PartialEq, Eq)]
enum Token<'a> {
    /// A tag, or a symbol with its tag.
    Bytes(&'a [u8]),
    /// The variable of that level, be it new or not.
    Variable(usize),
}

impl Cursor {
    fn token<'a>(&mut self, path: &'a [u8]) -> (Token<'a>, usize) {
        let (start, mut items) = (self.at, 0);
        self.at += 1;
        let token = match Tag::of(path[start]).expect("a path has only tags where tags are due") {
            Tag::Arity(arity) => {
                items = arity;
                Token::Bytes(&path[start..self.at])
            }
            Tag::Symbol(length) => {
                self.at += length;
                Token::Bytes(&path[start..self.at])
            }
            Tag::NewVariable => {
                self.variables += 1;
                Token::Variable(self.variables - 1)
            }
            Tag::Variable(level) => Token::Variable(level),
        };
        (token, items)
    }

    /// Passes one item with all that is in it.
    fn item(&mut self, path: &[u8]) -> Item {
        let (start, before) = (self.at, self.variables);
        let mut open = 1;
        while open > 0 {
            open += self.token(path).1;
            open -= 1;
        }
        Item { start, end: self.at, before }
    }
}

/// Whether two items of a path are equal. A variable is new in the first place only: levels are compared, not bytes.
fn same(path: &[u8], a: Item, b: Item) -> bool {
    let [mut a_at, mut b_at] = [a, b].map(|item| Cursor { at: item.start, variables: item.before });
    while a_at.at < a.end && b_at.at < b.end {
        if a_at.token(path).0 != b_at.token(path).0 {
            return false;
        }
    }
    a_at.at == a.end && b_at.at == b.end
}

/// The question for an expression's last item: the expression with a variable in its place.
#[must_use]
pub fn for_last_item(mut expression: Value) -> Value {
    if let Value::SExpr(items) = &mut expression
        && let Some(last) = items.last_mut()
    {
        *last = Value::atom("$the-last-item");
    }
    expression
}

/// The slow, obviously correct comparison: whether a value is like a pattern, both canonical.
#[must_use]
pub fn is_like(pattern: &Value, value: &Value) -> bool {
    like(pattern, value, &mut BTreeMap::new())
}

fn like(pattern: &Value, value: &Value, bound: &mut BTreeMap<String, Value>) -> bool {
    match (pattern, items(pattern), items(value)) {
        (Value::Atom(name), ..) if token::variable(name).is_some() => {
            bound.entry(name.clone()).or_insert_with(|| value.clone()) == value
        }
        (_, Some(patterns), Some(values)) => {
            patterns.len() == values.len() && patterns.iter().zip(&values).all(|(p, v)| like(p, v, bound))
        }
        (_, None, None) => pattern == value,
        _ => false,
    }
}

/// The items of a value that is written as an expression.
fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::SExpr(items) => Some(items.clone()),
        Value::Nil => Some(Vec::new()),
        Value::Error(message, inner) => {
            Some(vec![Value::atom(ERROR), Value::String(message.clone()), Value::clone(inner)])
        }
        Value::Type(inner) => Some(vec![Value::atom(TYPE), Value::clone(inner)]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Parser, decode, encode};

    fn path(text: &str) -> Vec<u8> {
        let mut path = Vec::new();
        assert_eq!(Parser::new(text).next_expression(&mut path), Ok(true));
        path
    }

    #[test]
    fn a_pattern_matches_what_its_variables_can_stand_for() {
        for (pattern, expression, matches) in [
            ("(fact 7 $v)", "(fact 7 value-7)", true),
            ("(fact 7 $v)", "(fact 8 value-8)", false),
            ("(fact 7 $v)", "(fact 7 (a (b c)))", true),
            ("(fact 7 $v)", "(fact 7)", false),
            ("(fact $x $x)", "(fact (a 1) (a 1))", true),
            ("(fact $x $x)", "(fact (a 1) (a 2))", false),
            ("(fact _ _)", "(fact 1 2)", true),
            ("$x", "(fact 1 2)", true),
            ("(fact 1)", "(fact 1)", true),
            ("(fact $x end)", "(fact (a b) end)", true),
            ("(fact $x end)", "(fact (a b) other)", false),
            // Variables of the expression stand for themselves, and are the same by level.
            ("(f $x $x)", "(f $a $a)", true),
            ("(f $x $x)", "(f $a $b)", false),
            ("(f $x $y $x)", "(f (p $a) $b (p $a))", true),
            ("(f $x $y $x)", "(f (p $a) $b (p $b))", false),
            ("(f _ $x $x)", "(f $b (p $a) (p $a))", true),
            ("(f a)", "(f $x)", false),
            ("(error $m $v)", "(error \"no\" 1)", true),
        ] {
            let [p, e] = [pattern, expression].map(path);
            let compared = Pattern::new(p.clone());
            let found = e.starts_with(compared.prefix()) && compared.matches(&e, &mut Bound::default());
            assert_eq!(found, matches, "{pattern}, {expression}");
            assert_eq!(is_like(&decode(&p).unwrap(), &decode(&e).unwrap()), matches, "{pattern}, {expression}");
        }
    }

    #[test]
    fn prefix_before_the_first_variable_is_looked_up() {
        for (pattern, prefix) in [
            ("(fact 7 $v)", &b"\x03\xc4fact\xc17"[..]),
            ("$x", b""),
            ("(a (b $x) c)", b"\x03\xc1a\x02\xc1b"),
            ("a", b"\xc1a"),
        ] {
            assert_eq!(Pattern::new(path(pattern)).prefix(), prefix, "{pattern}");
        }
    }

    #[test]
    fn the_question_for_the_last_item_has_that_item_as_an_answer() {
        let expression = Value::expression([Value::atom("fact"), Value::Long(7), Value::atom("value-7")]);
        let question = for_last_item(expression.clone());
        assert_eq!(crate::text::to_text(&question), "(fact 7 $the-last-item)");
        let mut bytes = Vec::new();
        encode(&question, &mut bytes).unwrap();
        assert!(Pattern::new(bytes).matches(&path("(fact 7 value-7)"), &mut Bound::default()));
        assert_eq!(for_last_item(Value::Nil), Value::Nil);
    }
}
