package controller

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"assay.dev/assay/operator/internal/executor/argo"
)

// NewMapper discovers resources from the API server, except Argo's Workflows: their mapping is fixed, so that the operator starts on a
// cluster that does not have them yet.
func NewMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, client)
	return mapper{asking}, err
}

var workflows = &meta.RESTMapping{
	Resource: argo.GroupVersion.WithResource("workflows"), GroupVersionKind: argo.GroupVersion.WithKind("Workflow"),
	Scope: meta.RESTScopeNamespace,
}

type mapper struct{ meta.RESTMapper }

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind == workflows.GroupVersionKind.GroupKind() {
		return workflows, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}
