//! The original's data on rules besides the facts: the count of each by its text, the rules for a head and a number of
//! arguments, the rules that apply to everything, and the heads' names for spelling suggestions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Dump, Rule};
use crate::encoding::Parser;

/// Rules by head.
#[derive(Debug, Default)]
pub(crate) struct RuleBook {
    multiplicities: HashMap<String, u64>,
    index: HashMap<(String, usize), Vec<Rule>>,
    wildcards: Vec<Rule>,
    names: BTreeSet<String>,
}

impl RuleBook {
    /// Adds a rule, of which the text is known.
    pub(crate) fn add(&mut self, rule: &Rule, text: String) {
        *self.multiplicities.entry(text).or_insert(0) += 1;
        match rule.left.head() {
            Some((head, arguments)) => {
                self.names.insert(head.to_owned());
                self.index.entry((head.to_owned(), arguments)).or_default().push(rule.clone());
            }
            None => self.wildcards.push(rule.clone()),
        }
    }

    /// Takes over all of another book.
    pub(crate) fn merge(&mut self, other: Self) {
        for (text, count) in other.multiplicities {
            *self.multiplicities.entry(text).or_insert(0) += count;
        }
        for (key, rules) in other.index {
            self.index.entry(key).or_default().extend(rules);
        }
        self.wildcards.extend(other.wildcards);
        self.names.extend(other.names);
    }

    /// The part of a dump that is about rules. Texts that differ only in the names of variables are one path; their
    /// counts add up.
    pub(crate) fn dump(&self, paths: Vec<Vec<u8>>) -> Dump {
        let mut multiplicities = BTreeMap::new();
        for (text, count) in &self.multiplicities {
            let mut path = Vec::new();
            Parser::new(text).next_expression(&mut path).expect("the text was parsed before");
            *multiplicities.entry(path).or_insert(0) += count;
        }
        let index = self.index.iter().map(|(key, rules)| (key.clone(), rules.len() as u64)).collect();
        debug_assert!(self.index.keys().all(|(head, _)| self.names.contains(head)));
        Dump { paths, multiplicities, index, wildcards: self.wildcards.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::to_text;
    use crate::value::Value;

    fn rule(variable: &str) -> Rule {
        let left = Value::expression([Value::atom("f"), Value::atom(variable)]);
        Rule { left, right: Value::atom(variable) }
    }

    #[test]
    fn rules_that_differ_in_names_only_are_counted_together() {
        let (mut all, mut more) = (RuleBook::default(), RuleBook::default());
        for (merged, variable) in [(false, "$x"), (true, "$y"), (true, "$x")] {
            let book = if merged { &mut more } else { &mut all };
            book.add(&rule(variable), to_text(&rule(variable).expression()));
        }
        let wildcard = Rule { left: Value::atom("$x"), right: Value::Nil };
        more.add(&wildcard, to_text(&wildcard.expression()));
        all.merge(more);
        let dump = all.dump(Vec::new());
        assert_eq!(dump.multiplicities.values().copied().collect::<Vec<_>>(), [3, 1]);
        assert_eq!(dump.index, [(("f".to_owned(), 1), 3)].into());
        assert_eq!(dump.wildcards, 1);
    }
}
