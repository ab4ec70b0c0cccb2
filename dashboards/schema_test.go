package dashboards

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// strict reads a dashboard by Grafana's schema: a field that is missing, of another type or unknown is an error, also in the
// options of panels and in queries.
func strict(raw []byte) (*dashboard.Dashboard, error) {
	plugins.RegisterDefaultPlugins()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if _, err := marks(fields["annotations"]); err != nil {
		return nil, err
	}
	// The schema allows further fields in annotations.
	fields["annotations"] = json.RawMessage("{}")
	closed, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	out := &dashboard.Dashboard{}
	if err := out.UnmarshalJSONStrict(closed); err != nil {
		return nil, err
	}
	return out, errors.Join(closedPanels(fields["panels"]), out.Validate())
}

// readStrictly rejects fields that the type does not have.
func readStrictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// transformations are those that the dashboards use, with the options that Grafana reads of each; the schema leaves both open.
// https://github.com/grafana/grafana/tree/main/packages/grafana-data/src/transformations/transformers
var transformations = map[string]func() any{
	"merge": func() any { return &struct{}{} },
	"organize": func() any {
		return &struct {
			ExcludeByName, IncludeByName map[string]bool
			IndexByName                  map[string]int
			RenameByName                 map[string]string
		}{}
	},
	"sortBy": func() any {
		return &struct {
			Fields struct{}
			Sort   []struct {
				Field string
				Desc  bool
			}
		}{}
	},
	"convertFieldType": func() any {
		return &struct {
			Fields      struct{}
			Conversions []struct{ TargetField, DestinationType, DateFormat string }
		}{}
	},
	"partitionByValues": func() any {
		return &struct {
			Fields     []string
			KeepFields bool
			Naming     struct{ AsLabels bool }
		}{}
	},
	"groupingToMatrix": func() any { return &struct{ ColumnField, RowField, ValueField, EmptyValue string }{} },
}

// closedPanels checks the parts of panels that the schema and its strict reading leave open: the kind of a panel and of its source, the
// configuration of fields, the values of overrides, and transformations.
func closedPanels(raw []byte) error {
	var all []struct {
		Type, Title     string
		FieldConfig     json.RawMessage
		Panels          json.RawMessage
		Targets         []struct{ Datasource struct{ Type string } }
		Transformations []struct {
			ID      string
			Options json.RawMessage
		}
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	var errs []error
	for _, panel := range all {
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("panel %q: %w", panel.Title, fmt.Errorf(format, args...)))
		}
		if panel.Type == "row" {
			if err := closedPanels(panel.Panels); err != nil {
				fail("%w", err)
			}
			continue
		}
		kind, known := cog.ConfigForPanelcfgVariant(panel.Type)
		if !known {
			fail("Grafana has no panel of the kind %q", panel.Type)
		}
		for _, target := range panel.Targets {
			if target.Datasource.Type != "prometheus" {
				fail("it asks a %q, and everything is in Prometheus", target.Datasource.Type)
			}
		}
		for _, transformation := range panel.Transformations {
			options := transformations[transformation.ID]
			if options == nil {
				fail("transformation %q is not one that is known here", transformation.ID)
			} else if err := readStrictly(transformation.Options, options()); err != nil {
				fail("transformation %s: %w", transformation.ID, err)
			}
		}
		if len(panel.FieldConfig) == 0 {
			continue
		}
		source, err := closedLinks(panel.FieldConfig)
		if err != nil {
			fail("fieldConfig: %w", err)
			continue
		}
		var config dashboard.FieldConfigSource
		if err := config.UnmarshalJSONStrict(source); err != nil {
			fail("fieldConfig: %w", err)
		}
		for _, override := range config.Overrides {
			for _, property := range override.Properties {
				if err := closedOverride(property, config.Defaults.Custom, kind.StrictFieldConfigUnmarshaler); err != nil {
					fail("override of %s: %w", property.Id, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// links are those of a field. The schema calls them links of a dashboard, which have more that is required, and Grafana reads no more
// than this of them: https://github.com/grafana/grafana/blob/main/packages/grafana-data/src/types/dataLink.ts
type links []struct {
	Title, URL  string
	TargetBlank bool
}

// closedLinks reads the links of a configuration's defaults, and returns it without them.
func closedLinks(raw []byte) ([]byte, error) {
	var source map[string]json.RawMessage
	if err := json.Unmarshal(raw, &source); err != nil {
		return nil, err
	}
	var defaults map[string]json.RawMessage
	if err := json.Unmarshal(source["defaults"], &defaults); err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	if got, has := defaults["links"]; has {
		if err := readStrictly(got, &links{}); err != nil {
			return nil, fmt.Errorf("defaults.links: %w", err)
		}
		delete(defaults, "links")
	}
	closed, err := json.Marshal(defaults)
	if err != nil {
		return nil, err
	}
	source["defaults"] = closed
	return json.Marshal(source)
}

// closedOverride holds the value that an override gives a property against the type that the property has where it is not overridden.
func closedOverride(property dashboard.DynamicConfigValue, custom any, read func([]byte) (any, error)) error {
	name, own := strings.CutPrefix(property.Id, "custom.")
	whole := map[string]any{}
	if own {
		defaults, err := json.Marshal(custom)
		if err == nil && custom != nil {
			err = json.Unmarshal(defaults, &whole)
		}
		if err != nil {
			return err
		}
	}
	whole[name] = property.Value
	raw, err := json.Marshal(whole)
	switch {
	case err != nil:
		return err
	case name == "links":
		if raw, err = json.Marshal(property.Value); err != nil {
			return err
		}
		return readStrictly(raw, &links{})
	case !own:
		return new(dashboard.FieldConfig).UnmarshalJSONStrict(raw)
	case read == nil:
		return errors.New("panels of this kind have no field configuration")
	default:
		_, err = read(raw)
		return err
	}
}

// marks reads annotations, and refuses a field that Grafana's Prometheus does not have.
func marks(raw []byte) ([]Annotation, error) {
	var out annotations
	err := readStrictly(raw, &out)
	return out.List, err
}

func TestSchema_DashboardsAreValid(t *testing.T) {
	for name, raw := range generated(t) {
		if _, err := strict(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The operator derives the dashboard of a run from the one for any run by this change, which its own test checks.
func TestSchema_DashboardOfARunIsValid(t *testing.T) {
	raw, err := os.ReadFile("../operator/internal/dashboard/testdata/pinned.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strict(raw); err != nil {
		t.Error(err)
	}
}

func TestSchema_IsStrict(t *testing.T) {
	run, fleet := string(generated(t)["run.json"]), string(generated(t)["fleet.json"])
	for name, edit := range map[string][2]string{
		"a panel's option that does not exist":       {`"colorMode": "background"`, `"colourMode": "background"`},
		"an option of another type":                  {`"graphMode": "none"`, `"graphMode": 1`},
		"a field of the dashboard that is not there": {`"refresh": "30s"`, `"refreshes": "30s"`},
		"a field of an annotation that is not there": {`"useValueForTime": "on"`, `"useValueForTimes": "on"`},
		"a field of a query that is not there":       {`"instant": true`, `"instantly": true`},
		"a kind of panel that there is not":          {`"type": "stat"`, `"type": "status"`},
		"a query of something else":                  {`"type": "prometheus",`, `"type": "prometheus2",`},
		"the text for no data, misspelt":             {`"noValue":`, `"novalues":`},
		"an option of fields that does not exist":    {`"filterable":`, `"filterables":`},
		"an override of a field that does not exist": {`"id": "custom.cellOptions"`, `"id": "custom.cellOption"`},
		"an override of another type":                {`"id": "unit"`, `"id": "links"`},
		"an override's misspelt property":            {`"id": "unit"`, `"id": "units"`},
		"a link's misspelt address":                  {`"url": "/d/`, `"uri": "/d/`},
		"a transformation that there is not":         {`"id": "organize"`, `"id": "organise"`},
		"an option of one that does not exist":       {`"renameByName":`, `"renamedByName":`},
		"an option of one of another type":           {`"keepFields": false`, `"keepFields": "no"`},
	} {
		raw := run
		if !strings.Contains(run, edit[0]) {
			raw = fleet
		}
		changed := strings.Replace(raw, edit[0], edit[1], 1)
		if changed == raw {
			t.Errorf("%s: %s is in neither dashboard", name, edit[0])
			continue
		}
		if _, err := strict([]byte(changed)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := closedLinks([]byte(`{"defaults": {"links": [{"title": "The run", "uri": "/d/assay-run"}]}}`)); err == nil {
		t.Error("a misspelt address of a link of all fields is accepted")
	}
}
