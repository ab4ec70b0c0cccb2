package controller

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"assay.dev/assay/operator/internal/workflow"
)

// NewMapper discovers resources from the API server, except Argo's Workflows: their mapping is fixed, so that the operator starts on a
// cluster that does not have them yet.
func NewMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{workflow.GroupVersion})
	known.Add(workflowKind, meta.RESTScopeNamespace)
	return &mapper{asking, known}, nil
}

var workflowKind = workflow.GroupVersion.WithKind("Workflow")

type mapper struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind == workflowKind.GroupKind() {
		return m.known.RESTMapping(kind, versions...)
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}
