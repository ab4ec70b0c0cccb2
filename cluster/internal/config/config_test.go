package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestFromEnv_DefaultsAndOverrides(t *testing.T) {
	cfg, err := FromEnv(env(map[string]string{"HOME": "/home/ada"}))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Name: DefaultName, State: DefaultState, Cache: "/home/ada/.cache/assay", Port: DefaultPort}
	if cfg != want {
		t.Errorf("nothing set: got %+v, want %+v", cfg, want)
	}
	for reason, pairs := range map[string]map[string]string{
		"a port that is no number":     {"HOME": "/root", "ASSAY_CLUSTER_PORT": "http"},
		"nowhere to put compiled code": {},
	} {
		if _, err := FromEnv(env(pairs)); err == nil {
			t.Errorf("%s: want an error", reason)
		}
	}
}

func TestValidate_InvalidConfigurations(t *testing.T) {
	good := Config{Name: "assay-cluster", State: "/var/lib/assay-cluster", Cache: "/root/.cache/assay", Port: 16443}
	for reason, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"the defaults are fine":                     {func(*Config) {}, ""},
		"a name that climbs out of its cgroup":      {func(c *Config) { c.Name = "../system" }, "cluster name"},
		"a state folder that is the root":           {func(c *Config) { c.State = "/" }, "deeper"},
		"a state folder right below the root":       {func(c *Config) { c.State = "/var" }, "deeper"},
		"a relative state folder":                   {func(c *Config) { c.State = "state" }, "absolute"},
		"a state folder that holds the cache":       {func(c *Config) { c.State = "/root/.cache" }, "separate them"},
		"a cache that holds the state folder":       {func(c *Config) { c.Cache = "/var/lib" }, "separate them"},
		"a port that cannot be listened on":         {func(c *Config) { c.Port = 70000 }, "port"},
		"a state folder that is not written simply": {func(c *Config) { c.State = "/var/lib/../lib/x" }, "clean"},
	} {
		cfg := good
		tc.change(&cfg)
		err := cfg.Validate()
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", reason, err, tc.want)
		}
	}
}

func TestFindSource_FromTheCheckoutAndBelow(t *testing.T) {
	for _, from := range []string{"../..", "../../..", "."} {
		dir, err := FindSource("", abs(t, from))
		if err != nil || !strings.HasSuffix(dir, "/cluster") {
			t.Errorf("from %s: got %q, %v", from, dir, err)
		}
	}
	if _, err := FindSource("", t.TempDir()); err == nil {
		t.Error("outside of a checkout: want an error that says what to set")
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
