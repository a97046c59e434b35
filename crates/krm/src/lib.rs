//! KRM function SDK and the interface, ipam, vlan and nad functions.
//!
//! A function implements [`Function`]: it gets a [`ResourceList`] and edits its items. [`process`] runs one on the bytes of
//! standard input and says what to write and how to exit; `orrery fn render` runs several on the files of a package. In both
//! cases what no function edited keeps every byte: comments, order, quoting, anchors and the spelling of scalars.
//!
//! # Writing a function
//!
//! ```
//! use orrery_krm::{Condition, Context, Function, FunctionError, Item, ResourceList, Status, Value};
//!
//! /// Gives every Widget a Gadget of the same name, and says so in the Kptfile.
//! struct Gadgets;
//!
//! impl Function for Gadgets {
//!     fn name(&self) -> &'static str {
//!         "gadgets"
//!     }
//!
//!     fn about(&self) -> &'static str {
//!         "Gives every Widget a Gadget."
//!     }
//!
//!     fn run(&self, list: &mut ResourceList, context: &Context) -> Result<(), FunctionError> {
//!         let mut conditions = list.conditions()?;
//!         let mut gadgets = Vec::new();
//!         for item in &mut list.items {
//!             if !item.is("example.org", "Widget") {
//!                 continue;
//!             }
//!             let Some(size) = item.text(&["spec", "size"]).map(str::to_owned) else {
//!                 list.results.error(item, "spec.size is missing");
//!                 continue;
//!             };
//!             item.set(&["status", "seen"], context.now.as_str());
//!             item.set_label("example.org/size", &size);
//!             gadgets.push(Item::new(
//!                 &Value::object()
//!                     .with("apiVersion", "example.org/v1")
//!                     .with("kind", "Gadget")
//!                     .with("metadata", Value::map([("name", item.name())]))
//!                     .with("spec", Value::object().with("size", size)),
//!             ));
//!             let done = Condition::new(format!("example.org/v1.Widget.{}", item.name()), Status::True);
//!             conditions.set(done.saying("made a gadget"));
//!         }
//!         list.items.extend(gadgets);
//!         list.store_conditions(conditions)
//!     }
//! }
//!
//! let input = b"apiVersion: config.kubernetes.io/v1
//! kind: ResourceList
//! items:
//! - apiVersion: kpt.dev/v1
//!   kind: Kptfile
//!   metadata:
//!     name: example  # kept
//! - apiVersion: example.org/v1
//!   kind: Widget
//!   metadata:
//!     name: 'w'
//!   spec: {size: 0x10}
//! ";
//! let context = Context { now: "2026-11-16T02:00:00Z".to_owned(), ..Context::default() };
//! let outcome = orrery_krm::process(&Gadgets, input, &context);
//! assert_eq!(outcome.exit, 0);
//! assert!(outcome.stdout.contains("    name: example  # kept\n  status:\n    conditions:\n    - type: example.org/v1.Widget.w\n"));
//! assert!(outcome.stdout.contains("    name: 'w'\n    labels:\n      example.org/size: \"0x10\"\n  spec: {size: 0x10}\n"));
//! assert!(outcome.stdout.ends_with("- apiVersion: example.org/v1\n  kind: Gadget\n  metadata:\n    name: w\n  spec:\n    size: \"0x10\"\n"));
//! ```
//!
//! # Rules for functions
//!
//! - Fields are addressed by their keys: `item.get(&["spec", "networkInstance", "name"])`. [`Item::text`] reads a scalar of any
//!   type as text, [`Node::elements`](yaml::Node::elements) walks a list, [`Item::value`] gives a plain [`Value`].
//! - [`Item::set`] gives a field a value; setting what is already there changes nothing, so a second run changes nothing.
//! - Deleting an object is taking it out of [`ResourceList::items`]; a new one goes to the end, and gets a file of its own
//!   (`<kind>_<name>.yaml`) unless it has the annotation [`item::PATH`].
//! - Conditions are read, edited and stored as a whole: [`ResourceList::conditions`], [`ResourceList::store_conditions`].
//! - An error about one object is a result ([`Results::error`]) and the run goes on. [`FunctionError`] is for a package in
//!   which nothing can be done: its items are then given back unchanged. `strict` is handled outside of the function.
//! - Annotations of existing items stay as they are, above all those that kpt sets.

pub mod functions;
pub mod item;
pub mod render;
pub mod yaml;

mod function;
mod kptfile;
mod list;
mod results;

pub use function::{Context, Function, FunctionError, Outcome, process};
pub use item::Item;
pub use kptfile::{Condition, Conditions, Status};
pub use list::{InputError, ResourceList};
pub use results::{FunctionResult, ResourceRef, Results, Severity};
pub use yaml::Value;
