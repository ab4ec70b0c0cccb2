package dashboard

import (
	_ "embed"
	"encoding/json"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// template is the dashboard for any run, written by make generate from dashboards/.
//
//go:embed run.json
var template []byte

// verdictPanel has the link to the report, as that is where the verdict comes from.
const verdictPanel = "Verdict"

type object = map[string]any

// render fixes the template's variables and times. The template is a part of the program, and a test fixes all that is fixed here.
func render(run *assayv1alpha1.BenchmarkRun, pin Pin) string {
	var out object
	if err := json.Unmarshal(template, &out); err != nil {
		panic(err)
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
	fix(variable(out, "namespace"), run.Namespace)
	fix(variable(out, "run"), run.Name)
	choose(variable(out, "metric"), pin.Metric)
	choose(variable(out, "axis"), pin.Axis)
	linkReport(out, pin.Report)
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// fix makes a variable a constant.
func fix(variable object, value string) {
	name, label := variable["name"], variable["label"]
	clear(variable)
	variable["type"], variable["name"], variable["label"] = "constant", name, label
	variable["query"], variable["current"] = value, object{"text": value, "value": value}
	variable["hide"], variable["skipUrlSync"] = 2, true // 2 hides it and its label.
}

// choose makes a value the first choice of a variable. Grafana takes another one if there is no such value.
func choose(variable object, value string) {
	if value != "" {
		variable["current"] = object{"text": value, "value": value}
	}
}

func variable(out object, name string) object {
	templating, _ := out["templating"].(object)
	list, _ := templating["list"].([]any)
	for _, each := range list {
		if entry, ok := each.(object); ok && entry["name"] == name {
			return entry
		}
	}
	panic("run.json has no variable " + name)
}

// linkReport puts links to the report beside the variables and on the verdict.
func linkReport(out object, report string) {
	if report == "" {
		return
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
		return
	}
	panic("run.json has no panel " + verdictPanel)
}
