//! Any bytes as an object of any kind, or as a patch of one, in every type of body: never a panic. Nothing is kept, so that each input stands alone.
#![no_main]

use http::Method;
use libfuzzer_sys::fuzz_target;

const TYPES: [(&str, Method); 6] = [
    ("application/json", Method::POST),
    ("application/yaml", Method::POST),
    ("application/vnd.kubernetes.protobuf", Method::POST),
    ("application/json-patch+json", Method::PATCH),
    ("application/merge-patch+json", Method::PATCH),
    ("application/strategic-merge-patch+json", Method::PATCH),
];

/// Objects that every cluster starts with, to be patched.
const PATCHED: [&str; 4] = [
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/services/kubernetes",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/probes",
];

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (number, kind, body) = input;
    let (content_type, method) = &TYPES[usize::from(number) % TYPES.len()];
    let path = match *method {
        Method::PATCH => PATCHED[usize::from(kind) % PATCHED.len()].to_owned(),
        _ => orrery_fuzz::collection(kind),
    };
    let uri = format!("{path}?dryRun=All&fieldValidation=Strict").parse().expect("it is an address");
    orrery_fuzz::send(method.clone(), uri, content_type, body);
});
