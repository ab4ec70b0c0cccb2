package dashboard

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// template is the dashboard for any run, written by make generate from dashboards/.
//
//go:embed run.json
var template []byte

// verdictPanel has the link to the report, as that is where the verdict comes from.
const verdictPanel = "Verdict"

type object = map[string]any

// render fixes the template's variables and times.
func render(run *assayv1alpha1.BenchmarkRun, pin Pin) ([]byte, error) {
	var out object
	if err := json.Unmarshal(template, &out); err != nil {
		return nil, err
	}
	name := run.Namespace + "/" + run.Name
	out["uid"], out["title"] = UID(run), "Assay: "+name
	out["description"] = "BenchmarkRun " + name + ", as Assay's operator shows it."
	// Not among the overviews, to which all dashboards link.
	out["tags"] = []string{"assay", "run"}
	out["time"] = object{"from": pin.From, "to": pin.To}
	if pin.To != "now" {
		delete(out, "refresh") // Nothing changes any more.
	}
	if err := cmp.Or(
		fix(out, "namespace", run.Namespace), fix(out, "run", run.Name),
		choose(out, "metric", pin.Metric), choose(out, "axis", pin.Axis), linkReport(out, pin.Report),
	); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// fix makes a variable a constant.
func fix(out object, name, value string) error {
	entry, err := variable(out, name)
	if err != nil {
		return err
	}
	label := entry["label"]
	clear(entry)
	entry["type"], entry["name"], entry["label"] = "constant", name, label
	entry["query"], entry["current"] = value, object{"text": value, "value": value}
	entry["hide"], entry["skipUrlSync"] = 2, true // 2 hides it and its label.
	return nil
}

// choose makes a value the first choice of a variable. Grafana takes another one if there is no such value.
func choose(out object, name, value string) error {
	if value == "" {
		return nil
	}
	entry, err := variable(out, name)
	if err != nil {
		return err
	}
	entry["current"] = object{"text": value, "value": value}
	return nil
}

func variable(out object, name string) (object, error) {
	templating, _ := out["templating"].(object)
	list, _ := templating["list"].([]any)
	for _, each := range list {
		if entry, ok := each.(object); ok && entry["name"] == name {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("run.json has no variable %s", name)
}

// linkReport puts links to the report beside the variables and on the verdict.
func linkReport(out object, report string) error {
	if report == "" {
		return nil
	}
	link := object{
		"title": "Report", "type": "link", "icon": "doc", "tooltip": "The report of the newest analysis", "url": report, "tags": []string{},
		"asDropdown": false, "targetBlank": true, "includeVars": false, "keepTime": false,
	}
	links, _ := out["links"].([]any)
	out["links"] = append([]any{link}, links...)
	panels, _ := out["panels"].([]any)
	for _, each := range panels {
		panel, _ := each.(object)
		if panel["title"] != verdictPanel {
			continue
		}
		config, _ := panel["fieldConfig"].(object)
		defaults, ok := config["defaults"].(object)
		if !ok {
			break
		}
		defaults["links"] = []any{object{"title": "The report", "url": report, "targetBlank": true}}
		return nil
	}
	return errors.New("run.json has no panel " + verdictPanel)
}
