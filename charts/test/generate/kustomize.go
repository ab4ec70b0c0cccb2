package generate

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
)

// Config is the folder that developers install with kustomize. The chart's objects of the operator are rendered into it, so that
// both run the same Deployment with the same rights.
const Config = "operator/config"

// Values are those that the chart is rendered with for it.
const Values = Config + "/default/values.yaml"

// Namespace is that of the operator there.
const Namespace = "assay-system"

// rendered names which templates of the chart make which file of Config.
var rendered = map[string][]string{
	"manager/manager.yaml": {"operator/deployment.yaml"},
	"rbac/install.yaml":    {"operator/rbac.yaml", "operator/policies.yaml", "operator/metrics.yaml", "runs/executor.yaml"},
}

// ofHelm are lines that apply only to a Helm release, and lines that templates leave empty.
var ofHelm = regexp.MustCompile(`(?m)^ *((app\.kubernetes\.io/managed-by|helm\.sh/chart): .*)?\n`)

// Kustomize returns those files. copied are the files of the chart that are generated too, in their newest form.
func Kustomize(root string, copied map[string][]byte) (map[string][]byte, error) {
	sources, err := RenderTemplates(root, copied)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, templates := range rendered {
		text := "# Rendered from charts/assay by make generate: change that.\n"
		for _, template := range templates {
			objects := sources["assay/templates/"+template]
			if len(objects) == 0 {
				return nil, fmt.Errorf("%s/%s: the chart's templates/%s renders nothing with %s", Config, name, template, Values)
			}
			text += strings.Join(objects, "")
		}
		files[path.Join(Config, name)] = []byte(text)
	}
	return files, nil
}

// RenderTemplates returns the objects that every template of the chart makes with Values, without Helm's labels and annotations.
func RenderTemplates(root string, copied map[string][]byte) (map[string][]string, error) {
	raw, err := os.ReadFile(filepath.Join(root, Values))
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", Values, err)
	}
	loaded, err := loader.Load(filepath.Join(root, chart))
	if err != nil {
		return nil, err
	}
	for name, content := range copied {
		if name, ok := strings.CutPrefix(name, chart+"/"); ok {
			loaded.Files = slices.DeleteFunc(loaded.Files, func(f *common.File) bool { return f.Name == name })
			loaded.Files = append(loaded.Files, &common.File{Name: name, Data: content})
			if name == "values.schema.json" {
				loaded.Schema = content
			}
		}
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "assay", Namespace
	install.KubeVersion = &common.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	made, err := install.Run(loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render %s with %s: %w", chart, Values, err)
	}
	out := map[string][]string{}
	for document := range strings.SplitSeq(made.(*release.Release).Manifest, "---\n") {
		source, object, _ := strings.Cut(document, "\n")
		name := strings.TrimPrefix(source, "# Source: ")
		out[name] = append(out[name], "---\n"+strings.TrimSpace(ofHelm.ReplaceAllString(object, ""))+"\n")
	}
	return out, nil
}
