package chart

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	release "helm.sh/helm/v4/pkg/release/v1"
)

// Kubernetes takes names such as 2024, 1e3 and no, which YAML reads as numbers and truths where nothing says that they are texts.
func TestANameThatLooksLikeANumberIsAName(t *testing.T) {
	t.Parallel()
	values := map[string]string{"the names": `{fullnameOverride: "7", nameOverride: "8"}`}
	maps.Copy(values, variations)
	for name, values := range values {
		t.Run(name, func(t *testing.T) {
			install := action.NewInstall(action.NewConfiguration())
			install.DryRunStrategy = action.DryRunClient
			install.KubeVersion, install.APIVersions = kubeVersion, withPrometheusOperator
			install.ReleaseName, install.Namespace = "42", "1e3"
			given := parseValues(t, values)
			given["runNamespaces"] = []any{"2024", "no", "1e3"}
			releaser, err := install.Run(loadChart(t), given)
			if err != nil {
				t.Fatal(err)
			}
			made := releaser.(*release.Release)
			manifests := []string{made.Manifest}
			for _, hook := range made.Hooks {
				manifests = append(manifests, hook.Manifest)
			}
			objects := 0
			for _, manifest := range manifests {
				for _, object := range decode(t, manifest) {
					objects++
					wantTexts(t, object.GetKind(), object.Object)
				}
			}
			if objects < 10 {
				t.Errorf("%d objects", objects)
			}
		})
	}
}

// wantTexts demands of everything in an object that names something that it is a text.
func wantTexts(t *testing.T, at string, value any) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			wantTexts(t, fmt.Sprintf("%s[%d]", at, i), element)
		}
	case map[string]any:
		for key, field := range value {
			text, deep := false, false
			switch field.(type) {
			case string:
				text = true
			case map[string]any, []any:
				deep = true
			}
			named := strings.HasSuffix(at, "abels") || strings.HasSuffix(at, "nnotations")
			for _, ending := range []string{"name", "Name", "namespace"} {
				named = named || strings.HasSuffix(key, ending)
			}
			if named && !text && !deep {
				t.Errorf("%s.%s is %v, and no text", at, key, field)
			}
			wantTexts(t, at+"."+key, field)
		}
	}
}
