package main

import (
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "interop.example.com", Version: "v1"}

// Website is what the operator looks after: a page, served by so many replicas.
type Website struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            WebsiteSpec   `json:"spec"`
	Status          WebsiteStatus `json:"status,omitempty"`
}

type WebsiteSpec struct {
	Page     string `json:"page"`
	Replicas int32  `json:"replicas,omitempty"`
}

type WebsiteStatus struct {
	ObservedGeneration int64            `json:"observedGeneration,omitempty"`
	Conditions         []meta.Condition `json:"conditions,omitempty"`
}

// WebsiteList is several of them.
type WebsiteList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty"`
	Items         []Website `json:"items"`
}

func (w *Website) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = append([]meta.Condition(nil), w.Status.Conditions...)
	return &copied
}

func (l *WebsiteList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Website)
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Website{}, &WebsiteList{})
	meta.AddToGroupVersion(scheme, groupVersion)
}

// The definition of the kind, with a default, a rule and a status.
func definition() *apiextensions.CustomResourceDefinition {
	text := apiextensions.JSONSchemaProps{Type: "string"}
	number := apiextensions.JSONSchemaProps{Type: "integer", Format: "int32", Default: &apiextensions.JSON{Raw: []byte("1")}}
	least := float64(0)
	number.Minimum = &least
	unknown := true
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: meta.ObjectMeta{Name: "websites.interop.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: groupVersion.Group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "websites", Kind: "Website"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensions.JSONSchemaProps{
						"spec": {
							Type: "object", Required: []string{"page"},
							Properties: map[string]apiextensions.JSONSchemaProps{"page": text, "replicas": number},
							XValidations: apiextensions.ValidationRules{{
								Rule: "self.replicas <= 10", Message: "ten replicas are enough for any page",
							}},
						},
						"status": {Type: "object", XPreserveUnknownFields: &unknown},
					},
				}},
			}},
		},
	}
}
