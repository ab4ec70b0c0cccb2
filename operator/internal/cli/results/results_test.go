package results

import (
	"testing"

	"assay.dev/assay/operator/internal/cli"
)

func TestDestination_FormOrFile(t *testing.T) {
	for name, tc := range map[string]struct {
		output, format string
		want           cli.Destination
	}{
		"nothing is the command's own form":   {"", "", cli.Destination{Form: "md", File: ""}},
		"a form is printed":                   {"json", "", cli.Destination{Form: "json", File: ""}},
		"a file's name tells the form":        {"out/Report.HTML", "", cli.Destination{Form: "html", File: "out/Report.HTML"}},
		"a format without a file is printed":  {"", "csv", cli.Destination{Form: "csv", File: ""}},
		"a dash is standard output":           {"-", "csv", cli.Destination{Form: "csv", File: ""}},
		"a format selects the form of a file": {"report", "html", cli.Destination{Form: "html", File: "report"}},
		"a format wins over a file's name":    {"data.txt", "csv", cli.Destination{Form: "csv", File: "data.txt"}},
		"a file may be called as a form":      {"./json", "csv", cli.Destination{Form: "csv", File: "./json"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cli.ParseDestination(tc.output, tc.format, reportForms...)
			if err != nil || got != tc.want {
				t.Errorf("got %+v (%v), want %+v", got, err, tc.want)
			}
		})
	}
}
