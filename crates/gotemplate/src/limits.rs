//! How much a template may cost.

/// Bounds on a template, so that a hostile one costs next to nothing.
///
/// Parsing takes time in proportion to the template's length. Executing takes time in proportion to `steps` and
/// `output_bytes`, whichever is used up first. The stack that either needs is in proportion to `nesting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest template that is parsed; more than 1 GiB is never accepted.
    pub template_bytes: usize,
    /// How deep actions, parentheses and template calls may stand in one another.
    pub nesting: usize,
    /// How many nodes, commands, arguments and iterations may be worked off. A function call counts as four, and as one more
    /// for every 64 bytes of the strings it is given; a verb of `printf` counts as one, or as sixteen beside numbers with a point.
    pub steps: u64,
    /// How many bytes may be produced: the output and every string that a function makes on the way.
    pub output_bytes: usize,
}

impl Limits {
    /// Positions are kept in 32 bits.
    pub(crate) const MAX_TEMPLATE_BYTES: usize = 1 << 30;
}

impl Default for Limits {
    fn default() -> Self {
        Self { template_bytes: 1 << 20, nesting: 100, steps: 50_000, output_bytes: 1 << 20 }
    }
}
