package controller

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"assay.dev/assay/operator/internal/executor"
)

// NewMapper discovers resources from the API server, except those of the engine's kinds, whose mapping is fixed, so that the operator
// starts on a cluster that does not serve them yet.
func NewMapper(kinds ...executor.Kind) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		discovered, err := apiutil.NewDynamicRESTMapper(config, client)
		return mapper{discovered, kinds}, err
	}
}

type mapper struct {
	meta.RESTMapper
	kinds []executor.Kind
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	for _, fixed := range m.kinds {
		if kind == fixed.Mapping.GroupVersionKind.GroupKind() {
			return fixed.Mapping, nil
		}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}
