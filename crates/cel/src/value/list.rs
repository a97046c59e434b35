//! Lists while an expression runs: sets, and lists by key, are compared and joined as what they are.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use super::{Key, List, Result, Value, pay_for_key};
use crate::{EvalError, schema::ListType, work::Work};

impl<'v> List<'v> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(list, _) => list.len(),
            Self::Owned(list) => list.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Result<Value<'v>> {
        match self {
            Self::Json(list, schema) => {
                let json = list.get(at).ok_or_else(|| EvalError::new(format!("index out of bounds: {at}")))?;
                match schema.and_then(|schema| schema.items.as_deref()) {
                    Some(items) => items.view(json),
                    None => Ok(Value::from_json(json)),
                }
            }
            Self::Owned(list) => {
                list.get(at).cloned().ok_or_else(|| EvalError::new(format!("index out of bounds: {at}")))
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Value<'v>>> {
        (0..self.len()).map(move |at| self.get(at))
    }

    fn list_type(&self) -> ListType<'v> {
        match self {
            Self::Json(_, Some(schema)) => schema.list_type(),
            _ => ListType::Atomic,
        }
    }

    /// Lists of objects by key, and sets, are equal in any order.
    pub(super) fn equals(&self, other: &List<'_>, work: &Work) -> Result<bool> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.list_type() {
            ListType::Atomic => {
                for (mine, others) in self.iter().zip(other.iter()) {
                    if !mine?.equals(&others?, work)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListType::Set => {
                let mine = Set::of(self.iter(), work)?;
                for value in other.iter() {
                    if !mine.contains(&value?, work)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListType::Map(keys) => {
                let mut mine = HashMap::with_capacity(self.len());
                for value in self.iter() {
                    let value = value?;
                    mine.entry(entry_key(&value, keys, work)?).or_insert(value);
                }
                for value in other.iter() {
                    let value = value?;
                    match mine.get(&entry_key(&value, keys, work)?) {
                        Some(mine) if mine.equals(&value, work)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
        }
    }

    /// One list after another; sets and lists by key are merged.
    pub(crate) fn joined(&self, other: &List<'v>, work: &Work) -> Result<List<'v>> {
        work.copy_values(self.len() + other.len())?;
        let mut elements: Vec<Value<'v>> = self.iter().collect::<Result<_>>()?;
        match self.list_type() {
            ListType::Atomic => {
                for value in other.iter() {
                    elements.push(value?);
                }
            }
            ListType::Set => {
                let mut known = Set::of(elements.iter().cloned().map(Ok), work)?;
                for value in other.iter() {
                    let value = value?;
                    if !known.contains(&value, work)? {
                        known.insert(value.clone(), work)?;
                        elements.push(value);
                    }
                }
            }
            ListType::Map(keys) => {
                let mut places = HashMap::with_capacity(elements.len());
                for (at, element) in elements.iter().enumerate() {
                    places.entry(entry_key(element, keys, work)?).or_insert(at);
                }
                for value in other.iter() {
                    let value = value?;
                    match places.entry(entry_key(&value, keys, work)?) {
                        Entry::Occupied(place) => elements[*place.get()] = value,
                        Entry::Vacant(place) => {
                            place.insert(elements.len());
                            elements.push(value);
                        }
                    }
                }
            }
        }
        Ok(List::Owned(Arc::new(elements)))
    }
}

/// Values that can be found again, most of them without going through all.
struct Set<'v> {
    keys: HashSet<Key>,
    /// Those that can be no keys, such as objects.
    others: Vec<Value<'v>>,
}

impl<'v> Set<'v> {
    fn of(values: impl Iterator<Item = Result<Value<'v>>>, work: &Work) -> Result<Self> {
        let mut set = Self { keys: HashSet::new(), others: Vec::new() };
        for value in values {
            set.insert(value?, work)?;
        }
        Ok(set)
    }

    fn insert(&mut self, value: Value<'v>, work: &Work) -> Result<()> {
        pay_for_key(&value, work)?;
        match value.to_key() {
            Some(key) => drop(self.keys.insert(key)),
            None => self.others.push(value),
        }
        Ok(())
    }

    fn contains(&self, wanted: &Value<'_>, work: &Work) -> Result<bool> {
        pay_for_key(wanted, work)?;
        if let Some(key) = wanted.to_key() {
            return Ok(self.keys.contains(&key));
        }
        for value in &self.others {
            if value.equals(wanted, work)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The values of the key fields of an object in a list by key, as one text.
fn entry_key(value: &Value<'_>, keys: &[String], work: &Work) -> Result<String> {
    let Value::Map(map) = value else { return Err(EvalError::NoSuchOverload) };
    let mut all = String::new();
    for key in keys {
        if let Some(part) = map.get_str(key)?.and_then(|value| value.to_json()) {
            all.push_str(&part.to_string());
        }
        all.push('\n');
    }
    work.make(all.len())?;
    Ok(all)
}
