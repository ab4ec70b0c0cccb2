package analyze

import (
	"encoding/json"
	"regexp"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
)

// What cannot be written down leaves a run without any verdict: whoever writes attempts could take it away.
func TestAnAnalysisCanBeWrittenWhateverItsAttemptsSay(t *testing.T) {
	const largest, smallest = "1.7e308", "5e-324"
	times := []string{
		`"0000-01-01T00:00:00Z"`, `"0000-01-01T00:00:00+23:59"`, `"0001-01-01T00:00:00Z"`, `"9000-12-31T23:59:59Z"`, `"9999-12-31T23:59:59Z"`,
		`"9999-12-31T23:59:59-23:59"`,
	}
	for field, values := range map[string][]string{
		"startedAt": times, "durationSeconds": {"0", smallest, "8999999999"}, "achieved": {largest}, "limit": {smallest},
		"userSeconds": {largest}, "stealRatio": {largest}, "otherWorkRatio": {largest}, "spinSeconds": {smallest, largest},
		"canarySeconds": {smallest, largest}, "windowSeconds": {smallest},
	} {
		for _, value := range values {
			for every := 1; every <= 2; every++ {
				t.Run(field+" "+value, func(t *testing.T) {
					l, changed := newFolderLedger(t), 0
					pattern := regexp.MustCompile(`"` + field + `": ?("[^"]*"|[^,}\]]*)`)
					for i, key := range l.attempts() {
						raw := l.read(key)
						if i%every == 0 {
							changed += len(pattern.FindAll(raw, -1))
							raw = pattern.ReplaceAll(raw, []byte(`"`+field+`":`+value))
						}
						l.write(key, regexp.MustCompile(`"soft": ?\{`).ReplaceAll(raw, []byte(`"soft":{"nodeName":"node-a",`)))
					}
					if changed == 0 {
						t.Fatalf("no attempt has %s", field)
					}
					result := l.analyze()
					raw, err := json.Marshal(result)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := analysis.Parse(raw); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}
