package main

import (
	"io"
	"runtime/debug"
	"strings"
	"testing"
)

func TestOptions_InvalidFlagsAreNamed(t *testing.T) {
	complete := []string{"--ledger=s3://assay?endpoint=http://minio:9000", "--operator-image=o", "--runner-image=r"}
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing":                               {nil, `"ledger", "operator-image", "runner-image" not set`},
		"a folder in a cluster":                 {[]string{"--ledger=file:///tmp/x", "--operator-image=o", "--runner-image=r"}, "blocks in a cluster need an object store"},
		"an unknown parameter":                  {[]string{"--ledger=s3://assay?colour=red", "--operator-image=o", "--runner-image=r"}, `unknown parameter "colour"`},
		"an unknown pull policy":                {append(complete, "--image-pull-policy=Sometimes"), "use Always, IfNotPresent or Never"},
		"an invalid CPU":                        {append(complete, "--executor-cpu=fast"), "--executor-cpu"},
		"an invalid memory":                     {append(complete, "--executor-memory=much"), "--executor-memory"},
		"an unknown log level":                  {append(complete, "--log-level=loud"), "use debug, info or error"},
		"an unknown log format":                 {append(complete, "--log-format=prose"), "use json or console"},
		"a lease of no time":                    {append(complete, "--lease-duration=2s"), "invalid --lease-duration 2s: use whole seconds, at least 10s"},
		"a lease of half a second":              {append(complete, "--lease-duration=10500ms"), "use whole seconds"},
		"leases nowhere":                        {append(complete, "--lease-namespace="), "--lease-namespace is empty"},
		"a grace in the past":                   {append(complete, "--node-grace=-1s"), "invalid --node-grace -1s"},
		"histories that are thinned to nothing": {append(complete, "--policy={default: {history: {full: 24h}}}"), "--policy: default.history: retention: full is 24h0m0s and every is 0"},
		"a history without an order":            {append(complete, "--policy={namespaces: {team: {history: {full: 24h, every: 1h, thinned: 2h}}}}"), "--policy: namespaces.team.history: retention: thinned is 2h0m0s, which is less than full"},
		"a history of days":                     {append(complete, "--policy={default: {history: {full: 365d}}}"), "--policy: invalid policy"},
		"runs beyond any scrape":                {append(complete, "--metrics-runs=1001"), "invalid --metrics-runs 1001: use 0 to 1000"},
		"series below none":                     {append(complete, "--metrics-series-per-run=-1"), "invalid --metrics-series-per-run -1: use 0 to 20000"},
		"a Grafana without a scheme":            {append(complete, "--grafana-url=grafana"), "invalid --grafana-url \"grafana\""},
		"a word":                                {append(complete, "word"), "unknown command"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(tc.args)
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLimitHeap_StaysBelowPodLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "")
	if err := limitHeap("268435456"); err != nil || debug.SetMemoryLimit(-1) >= 256<<20 {
		t.Errorf("of 256 MiB the heap may have %d (%v)", debug.SetMemoryLimit(-1), err)
	}
	debug.SetMemoryLimit(before)
	if err := limitHeap(""); err != nil || debug.SetMemoryLimit(-1) != before {
		t.Errorf("without a limit the heap may have %d (%v)", debug.SetMemoryLimit(-1), err)
	}
	t.Setenv("GOMEMLIMIT", "100MiB")
	if err := limitHeap("268435456"); err != nil || debug.SetMemoryLimit(-1) != before {
		t.Errorf("beside GOMEMLIMIT the heap may have %d (%v)", debug.SetMemoryLimit(-1), err)
	}
	t.Setenv("GOMEMLIMIT", "")
	if err := limitHeap("much"); err == nil || !strings.Contains(err.Error(), `invalid ASSAY_MEMORY_LIMIT "much"`) {
		t.Errorf("error %v", err)
	}
}
