//! The expressions that built-in kinds carry, compiled for where they will run.

use std::sync::LazyLock;

use orrery_cel::{Declaration, Environment, Type};

use crate::field::{FieldError, Path};

/// What was found so far.
type Errors = Vec<FieldError>;

/// What precedes what is wrong with an expression.
const UNCOMPILED: &str = "compilation failed: ";

/// What a selector of devices may cost.
const SELECTOR_COST: u64 = 1_000_000;

/// What expressions of one place may refer to.
pub(in crate::kinds) struct Admission {
    environment: Environment,
    /// Whether the type of the object is known.
    typed: bool,
    /// The variables of a policy so far, if it has any.
    variables: Option<Vec<(String, Type)>>,
}

impl Admission {
    /// What conditions of webhooks may refer to.
    pub(in crate::kinds) fn of_webhooks() -> Self {
        let environment = about_request().variable("object", Type::Dyn).variable("oldObject", Type::Dyn);
        Self { environment, typed: false, variables: None }
    }

    /// What conditions of policies may refer to, which may have parameters.
    pub(in crate::kinds) fn of_policy(params: bool) -> Self {
        let Self { environment, typed, variables } = Self::of_webhooks();
        let environment = if params { environment.variable("params", Type::Dyn) } else { environment };
        Self { environment, typed, variables }
    }

    /// What expressions of a policy may refer to where the type of the object is known.
    pub(in crate::kinds) fn of_type(object: &Type, params: Option<&Type>) -> Self {
        let typed = about_request().variable("object", object.clone()).variable("oldObject", object.clone());
        let environment = match params {
            Some(params) => typed.variable("params", params.clone()),
            None => typed,
        };
        Self { environment, typed: true, variables: Some(Vec::new()) }
    }

    /// The same, with variables that are yet to be told.
    pub(in crate::kinds) fn with_variables(self) -> Self {
        Self { variables: Some(Vec::new()), ..self }
    }

    /// Judges an expression that must come to true or false.
    pub(in crate::kinds) fn condition(&self, expression: &str, path: &Path<'_>, errors: &mut Errors) {
        self.judge(expression, expression, true, &[Type::Bool], path, errors);
    }

    /// Judges an expression that words a message. It cannot ask what a user may do.
    pub(in crate::kinds) fn message(&self, expression: &str, path: &Path<'_>, errors: &mut Errors) {
        self.judge(expression, expression, false, &[Type::String], path, errors);
    }

    /// Judges an expression that words an annotation.
    pub(in crate::kinds) fn annotation(&self, expression: &str, path: &Path<'_>, errors: &mut Errors) {
        self.judge(expression.trim(), expression, true, &[Type::String, Type::Null], path, errors);
    }

    /// Judges an expression that later ones may refer to by a name.
    pub(in crate::kinds) fn variable(&mut self, name: &str, expression: &str, path: &Path<'_>, errors: &mut Errors) {
        let found = self.judge(expression, expression, true, &[], path, errors);
        if let Some(variables) = &mut self.variables {
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), found.map_or(Type::Dyn, |of| kept(&of))));
        }
    }

    /// What is wrong with an expression of whatever type.
    pub(in crate::kinds) fn problem(&self, expression: &str) -> Option<String> {
        match compiled(&self.environment_for(true), expression, &[]) {
            Ok(_) => None,
            Err(Refusal::Wrong(detail)) => Some(detail.trim_start_matches(UNCOMPILED).to_owned()),
            Err(Refusal::Unusable(detail)) => Some(format!("type checking error: {detail}")),
        }
    }

    fn environment_for(&self, authorizer: bool) -> Environment {
        let mut environment = self.environment.clone();
        if authorizer {
            environment = environment.variable("authorizer", Type::library("kubernetes.authorization.Authorizer"));
            // Kubernetes forgets it where types are known.
            if !self.typed {
                let check = Type::library("kubernetes.authorization.ResourceCheck");
                environment = environment.variable("authorizer.requestResource", check);
            }
        }
        if let Some(variables) = &self.variables {
            let fields = variables.iter().map(|(name, of)| (name.as_str(), of.clone()));
            environment = environment.variable("variables", Type::object("kubernetes.variables", fields));
        }
        environment
    }

    fn judge(
        &self,
        expression: &str,
        shown: &str,
        authorizer: bool,
        wanted: &[Type],
        path: &Path<'_>,
        errors: &mut Errors,
    ) -> Option<Type> {
        match compiled(&self.environment_for(authorizer), expression, wanted) {
            Ok(found) => Some(found),
            Err(Refusal::Wrong(detail)) => {
                errors.push(FieldError::invalid(path, shown, &detail));
                None
            }
            Err(Refusal::Unusable(detail)) => {
                errors.push(FieldError::internal(path, &detail));
                None
            }
        }
    }
}

/// Judges an expression that selects devices.
pub(in crate::kinds) fn device_selector(expression: &str, path: &Path<'_>, errors: &mut Errors) {
    let environment = Environment::kubernetes().with_names().variable("device", DEVICE.type_of().clone());
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(error) => {
            errors.push(FieldError::invalid(path, expression, &format!("{UNCOMPILED}{error}")));
            return;
        }
    };
    let found = program.output();
    if !matches!(found, Type::Bool | Type::Any) {
        let detail = format!("must evaluate to bool or the unknown type, not {}", found.name());
        errors.push(FieldError::invalid(path, expression, &detail));
    } else if let Some(reason) = program.unusable() {
        errors.push(FieldError::internal(path, &format!("program instantiation failed: {reason}")));
    } else if program.estimate_on("device", &DEVICE).max > SELECTOR_COST {
        errors.push(FieldError::forbidden(path, "too complex, exceeds cost limit"));
    }
}

/// Why an expression cannot be used.
enum Refusal {
    Wrong(String),
    Unusable(String),
}

/// The type of an expression that is well formed and comes to one of the wanted types; any is fine if none is named.
fn compiled(environment: &Environment, expression: &str, wanted: &[Type]) -> Result<Type, Refusal> {
    let program = environment.compile(expression).map_err(|error| Refusal::Wrong(format!("{UNCOMPILED}{error}")))?;
    let found = program.output();
    if !wanted.is_empty() && !wanted.contains(found) {
        let names: Vec<String> = wanted.iter().map(Type::name).collect();
        let wanted = match &names[..] {
            [one] => one.clone(),
            several => format!("one of [{}]", several.join(" ")),
        };
        return Err(Refusal::Wrong(format!("must evaluate to {wanted} but got {}", found.name())));
    }
    match program.unusable() {
        Some(reason) => Err(Refusal::Unusable(format!("program instantiation failed: {reason}"))),
        None => Ok(found.clone()),
    }
}

/// What is remembered of the type of a variable.
fn kept(of: &Type) -> Type {
    match of {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint
        | Type::Any => of.clone(),
        Type::List(element) => Type::list(kept(element)),
        Type::Map(key, value) => Type::map(kept(key), kept(value)),
        _ => Type::Dyn,
    }
}

/// What every expression of admission may refer to besides objects.
fn about_request() -> Environment {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
        Environment::kubernetes().variable("namespaceObject", namespace()).variable("request", request())
    });
    ENVIRONMENT.clone()
}

fn request() -> Type {
    let strings = || Type::list(Type::String);
    let name_in_group =
        |name: &str, last| Type::object(name, ["group", "version", last].map(|field| (field, Type::String)));
    let kind = || name_in_group("kubernetes.GroupVersionKind", "kind");
    let resource = || name_in_group("kubernetes.GroupVersionResource", "resource");
    let user = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", strings()),
        ("extra", Type::map(Type::String, strings())),
    ];
    let fields = [
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", Type::String),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", Type::object("kubernetes.UserInfo", user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    Type::object("kubernetes.AdmissionRequest", fields)
}

fn namespace() -> Type {
    let strings = || Type::list(Type::String);
    let named = || Type::map(Type::String, Type::String);
    let metadata = [
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", named()),
        ("annotations", named()),
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", strings()),
    ];
    let condition = [
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ];
    let status =
        [("conditions", Type::list(Type::object("kubernetes.NamespaceCondition", condition))), ("phase", Type::String)];
    let fields = [
        ("metadata", Type::object("kubernetes.NamespaceMetadata", metadata)),
        ("spec", Type::object("kubernetes.NamespaceSpec", [("finalizers", strings())])),
        ("status", Type::object("kubernetes.NamespaceStatus", status)),
    ];
    Type::object("kubernetes.Namespace", fields)
}

/// A device as selectors see it. The bounds are those of ResourceSlices.
static DEVICE: LazyLock<Declaration> = LazyLock::new(|| {
    let text = |most| Declaration::of(Type::String).at_most(most);
    let by_domain = |inner: Declaration| Declaration::map(text(63), inner).at_most(32);
    let attribute = Declaration::of(Type::Any).at_most(64);
    let attributes = Declaration::map(text(32), attribute).at_most(32).with_entries_as_fields();
    let quantity = Declaration::of(Type::library("kubernetes.Quantity"));
    let capacities = Declaration::map(text(32), quantity).at_most(32);
    let fields = [("driver", text(63)), ("attributes", by_domain(attributes)), ("capacity", by_domain(capacities))];
    Declaration::object("kubernetes.DRADevice", fields)
});
