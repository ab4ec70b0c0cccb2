package chart

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// listed reads an annotation of Chart.yaml that holds a list, as Artifact Hub does
// (https://artifacthub.io/docs/topics/annotations/helm).
func listed[T any](t *testing.T, annotation string) []T {
	t.Helper()
	text := loadChart(t).Metadata.Annotations["artifacthub.io/"+annotation]
	var out []T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil || len(out) == 0 {
		t.Fatalf("%s: %v\n%s", annotation, err, text)
	}
	return out
}

func TestMetadata_ArtifactHubListsEveryImage(t *testing.T) {
	chart := loadChart(t)
	want := map[string]string{}
	for name, value := range chart.Values["images"].(map[string]any) {
		image, ok := value.(map[string]any)
		if !ok {
			continue // The policy and the secrets of pulls.
		}
		tag := image["tag"].(string)
		if tag == "" {
			tag = chart.Metadata.AppVersion
		}
		want[name] = image["repository"].(string) + ":" + tag
	}
	got := map[string]string{}
	for _, image := range listed[struct{ Name, Image string }](t, "images") {
		got[image.Name] = image.Image
	}
	if !maps.Equal(got, want) || len(got) < 11 {
		t.Errorf("it is told of %v, and the values name %v: run make generate", got, want)
	}
}

func TestMetadata_ArtifactHubListsEveryKind(t *testing.T) {
	type kind struct{ Kind, Version, Name, DisplayName, Description string }
	files, err := filepath.Glob(chartDir + "/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &definition); err != nil {
			t.Fatal(err)
		}
		want[definition.Name] = definition.Spec.Names.Kind + " " + definition.Spec.Versions[0].Name
	}
	got := map[string]string{}
	for _, each := range listed[kind](t, "crds") {
		got[each.Name] = each.Kind + " " + each.Version
		if each.DisplayName == "" || each.Description == "" {
			t.Errorf("%s has no words for people: %+v", each.Name, each)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("it is told of %v, and the chart installs %v", got, want)
	}
	for _, link := range listed[struct{ Name, URL string }](t, "links") {
		if link.Name == "" || link.URL == "" {
			t.Errorf("a link is %+v", link)
		}
	}
}
