package cli

import (
	"maps"
	"strings"
	"testing"
)

func TestPairs_OfFlags(t *testing.T) {
	for sentence, tc := range map[string]struct {
		texts []string
		want  map[string]string
		err   string
	}{
		"no pairs give an empty map":         {nil, map[string]string{}, ""},
		"a value may hold commas":            {[]string{"P=linux/amd64,linux/arm64"}, map[string]string{"P": "linux/amd64,linux/arm64"}, ""},
		"a value may hold equals signs":      {[]string{"A=b=c"}, map[string]string{"A": "b=c"}, ""},
		"a value may be empty":               {[]string{"REGISTRY="}, map[string]string{"REGISTRY": ""}, ""},
		"a name has an equals sign after it": {[]string{"A"}, nil, `invalid --parameter: found "A", write NAME=VALUE`},
		"a value has a name":                 {[]string{"=b"}, nil, `invalid --parameter: found "=b", write NAME=VALUE`},
		"a name is given once":               {[]string{"A=b", "A=c"}, nil, "A is given twice"},
	} {
		got, err := pairs("parameter", tc.texts)
		switch {
		case tc.err == "" && (err != nil || !maps.Equal(got, tc.want)):
			t.Errorf("%s: got %v, %v, want %v", sentence, got, err, tc.want)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: got %v, want %q", sentence, err, tc.err)
		}
	}
}
