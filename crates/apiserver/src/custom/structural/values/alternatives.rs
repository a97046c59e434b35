//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Check, Found, Node, Place, Problem};
use crate::field::{FieldErrorKind, quote};

impl Check<'_> {
    pub(super) fn alternatives(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        self.any_of(value, node, place);
        self.one_of(value, node, place);
        self.all_of(value, node, place);
        if let Some(not) = &node.not
            && self.apart(value, not, place).len() == 0
        {
            self.composite(place, "must not validate the schema (not)");
        }
        self.found.matches += 2;
    }

    fn any_of(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        if node.any_of.is_empty() {
            return;
        }
        let mut best: Option<Found> = None;
        for alternative in &node.any_of {
            let found = self.apart(value, alternative, place);
            if found.len() == 0 {
                return self.found.merge(found);
            }
            if best.as_ref().is_none_or(|best| found.matches > best.matches) {
                best = Some(found);
            }
        }
        self.composite(place, "must validate at least one schema (anyOf)");
        self.found.merge(best.unwrap_or_default());
    }

    fn one_of(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        if node.one_of.is_empty() {
            return;
        }
        let mut best: Option<Found> = None;
        let mut first: Option<Found> = None;
        let mut fitting = 0;
        for alternative in &node.one_of {
            let found = self.apart(value, alternative, place);
            if found.len() == 0 {
                fitting += 1;
                best = None;
                first.get_or_insert(found);
            } else if fitting == 0 && best.as_ref().is_none_or(|best| found.matches > best.matches) {
                best = Some(found);
            }
        }
        match fitting {
            0 => self.composite(place, "must validate one and only one schema (oneOf). Found none valid"),
            1 => best = first,
            several => {
                let text = format!("must validate one and only one schema (oneOf). Found {several} valid alternatives");
                self.composite(place, &text);
            }
        }
        self.found.merge(best.unwrap_or_default());
    }

    fn all_of(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        let mut fitting = 0;
        for alternative in &node.all_of {
            let found = self.apart(value, alternative, place);
            fitting += usize::from(found.len() == 0);
            self.found.merge(found);
        }
        if fitting < node.all_of.len() {
            let more = if fitting == 0 { ". None validated" } else { "" };
            self.composite(place, &format!("must validate all the schemas (allOf){more}"));
        }
    }

    /// What is wrong by another schema for the same value. Old values do not count there.
    fn apart(&self, value: &Value, node: &Node, place: &Place<'_>) -> Found {
        let mut check = Check { found: Found::default(), formats: self.formats, left: self.left };
        check.value(value, node, place, None);
        check.found
    }

    /// What is told of the whole value, wherever in it the place is.
    fn composite(&mut self, place: &Place<'_>, text: &str) {
        let message = format!("{} {text}", quote(&place.to_string()));
        let body = format!("Invalid value: \"\": {message}");
        self.found.add(Problem { name: String::new(), message, kind: FieldErrorKind::Invalid, body });
    }
}
