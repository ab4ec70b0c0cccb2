package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/calibration/calibrate"
)

// release returns a folder whose install script installs a command that runs this shell script.
func release(t *testing.T, script string) string {
	t.Helper()
	dist := t.TempDir()
	install := "set -eu\ntest -f \"$ASSAY_DOWNLOADS/install.sh\"\nmkdir -p \"$PREFIX/bin\"\nprintf '#!/bin/sh\\n%s\\n' '" + script +
		"' > \"$PREFIX/bin/assay\"\nchmod 755 \"$PREFIX/bin/assay\"\n"
	if err := os.WriteFile(filepath.Join(dist, "install.sh"), []byte(install), 0o644); err != nil {
		t.Fatal(err)
	}
	return dist
}

func TestFirstMinute_TimesInstallationAndComparison(t *testing.T) {
	var log strings.Builder
	figures, err := firstMinute(t.Context(), release(t, `test "$1" = bench && echo "$2"`), 3, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var names []string
	for _, figure := range figures {
		names = append(names, figure.Figure)
		if figure.Samples != 3 || figure.Unit != "s" || figure.Low <= 0 || figure.Low > figure.Value || figure.Value > figure.High {
			t.Errorf("%+v", figure)
		}
	}
	if diff := cmp.Diff([]string{"first.install_s", "first.verdict_s"}, names); diff != "" {
		t.Error(diff)
	}
	if strings.Count(log.String(), "gzip -6 -c ") != 3 {
		t.Errorf("the comparison did not run three times:\n%s", log.String())
	}
}

func TestFirstMinute_WithoutAVerdictHasNoFigures(t *testing.T) {
	for sentence, tc := range map[string]struct {
		dist  string
		times int
		want  string
	}{
		"the verdict is Inconclusive": {release(t, "exit 3"), 1, "the first comparison has no verdict: exit status 3"},
		"there is no release":         {t.TempDir(), 1, "make release writes one"},
		"zero repetitions":            {release(t, "exit 0"), 0, "invalid --times 0"},
	} {
		figures, err := firstMinute(t.Context(), tc.dist, tc.times, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(figures) > 0 {
			t.Errorf("%s: %v, %v", sentence, figures, err)
		}
	}
}

const demoLog = `
== Building the cluster tool  (0:00 elapsed)
== Building the tools (cached after the first time)  (0:30 elapsed)
build kubectl                  v1.34.4                                …
build kubectl                  still building after 30 s
build kubectl                  v1.34.4                                45 s
build helm                     v3.19.0                                cached
== Starting the cluster (embedded)  (1:30 elapsed)
== Done  (12:00 elapsed)
`

func TestDemo_ParsesTheLogs(t *testing.T) {
	parts, err := readDemo(demoLog)
	if err != nil {
		t.Fatal(err)
	}
	one := func(name, unit string, value float64, note string) calibrate.Figure {
		return calibrate.Figure{Figure: name, Unit: unit, Value: value, Low: value, High: value, Samples: 1, Note: note}
	}
	want := []calibrate.Figure{
		one("demo.cold_min.build-kubectl", "min", 0.75, "a component, within a step"),
		one("demo.cold_min.building-the-cluster-tool", "min", 0.5, "a step"),
		one("demo.cold_min.building-the-tools", "min", 1, "a step"),
		one("demo.cold_min.starting-the-cluster", "min", 10.5, "a step"),
		one("demo.cold_min", "min", 12, "nothing compiled; modules and crates downloaded"),
	}
	if diff := cmp.Diff(want, coldFigures(parts)); diff != "" {
		t.Errorf("cold (-want +got):\n%s", diff)
	}
	want = []calibrate.Figure{one("demo.warm_s", "s", 720, "everything compiled, no cluster running")}
	if diff := cmp.Diff(want, warmFigures(parts)); diff != "" {
		t.Errorf("warm (-want +got):\n%s", diff)
	}
}

func TestDemo_IncompleteLogHasNoTime(t *testing.T) {
	for sentence, log := range map[string]string{
		"an empty log":                "",
		"a log without its last step": strings.ReplaceAll(demoLog, "== Done  (12:00 elapsed)\n", ""),
	} {
		if parts, err := readDemo(log); err == nil {
			t.Errorf("%s: %v", sentence, parts)
		}
	}
}
