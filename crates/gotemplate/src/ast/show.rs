//! Nodes as text, in the normal form that error messages quote.

use std::fmt::{self, Display, Formatter};

use super::{Call, Command, Pipe, Term, TermKind};
use crate::quote::{Shown, quote};

/// A node together with the text its spans refer to.
pub(crate) struct Show<'a, T>(pub(crate) &'a T, pub(crate) &'a str);

impl Display for Show<'_, Pipe> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(pipe, text) = self;
        for (i, variable) in pipe.variables.iter().enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            write!(f, "{separator}{}", variable.of(text))?;
        }
        if !pipe.variables.is_empty() {
            f.write_str(if pipe.assigns { " = " } else { " := " })?;
        }
        for (i, command) in pipe.commands.iter().enumerate() {
            let separator = if i > 0 { " | " } else { "" };
            write!(f, "{separator}{}", Show(command, text))?;
        }
        Ok(())
    }
}

impl Display for Show<'_, Command> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(command, text) = self;
        for (i, term) in command.terms.iter().enumerate() {
            let separator = if i > 0 { " " } else { "" };
            match &term.kind {
                TermKind::Pipe(pipe) => write!(f, "{separator}({})", Show(&**pipe, text))?,
                _ => write!(f, "{separator}{}", Show(term, text))?,
            }
        }
        Ok(())
    }
}

impl Display for Show<'_, Term> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(term, text) = self;
        match &term.kind {
            TermKind::Pipe(pipe) => write!(f, "{}", Show(&**pipe, text)),
            TermKind::Chain { base, fields } => match &base.kind {
                TermKind::Pipe(pipe) => write!(f, "({}){}", Show(&**pipe, text), fields.of(text)),
                _ => write!(f, "{}{}", Show(&**base, text), fields.of(text)),
            },
            _ => f.write_str(term.source.of(text)),
        }
    }
}

impl Display for Show<'_, Call> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(call, text) = self;
        write!(f, "{{{{template {}", quote(&call.name, Shown::Printable))?;
        if let Some(pipe) = &call.pipe {
            write!(f, " {}", Show(pipe, text))?;
        }
        f.write_str("}}")
    }
}
