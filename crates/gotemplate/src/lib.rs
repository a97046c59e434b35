//! Go's text/template over a map of strings, with Go's outputs, errors and positions.
//!
//! ```
//! use orrery_gotemplate::{Budget, Data, Template};
//!
//! let template = Template::parse("url", "https://{{ .clusterName }}.example").unwrap();
//! let data = Data::from_iter([("clusterName", "virgo")]);
//! let mut out = Vec::new();
//! template.execute(&data, &mut Budget::default(), &mut out).unwrap();
//! assert_eq!(out, b"https://virgo.example");
//! ```
//!
//! The reference is Go 1.26 with the option `missingkey=error` and data of type `map[string]string`: the same output, also
//! the part that was written before an error, and the same error texts. It differs where it must:
//!
//! - [`Limits`] bound what a template may cost; beyond them execution ends with an error of our own. In particular templates
//!   call one another at most `nesting` times deep, where Go allows 100,000.
//! - `%p` of the data prints no address but zero, so that equal inputs give equal outputs.
//! - A `%` in the template's name is shown as it is; Go would take it for a verb of its own message.

mod ast;
mod budget;
mod error;
mod exec;
mod fmt;
mod funcs;
mod identifier;
mod lex;
mod limits;
mod parse;
mod quote;
mod template;
mod unicode;
mod value;

pub use budget::Budget;
pub use error::{ExecError, ParseError};
pub use identifier::is_identifier;
pub use limits::Limits;
pub use template::Template;
pub use unicode::to_text;
pub use value::Data;
