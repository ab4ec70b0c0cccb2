package record

import "testing"

func TestCeiling_StringNamesTheMeasurement(t *testing.T) {
	for want, ceiling := range map[string]Ceiling{
		"syncs":                           {Name: "syncs"},
		"randomRead (1 thread)":           {Name: "randomRead", Threads: 1},
		"aesRate (vaes256)":               {Name: "aesRate", Instructions: "vaes256"},
		"readBandwidth (avx2, 2 threads)": {Name: "readBandwidth", Instructions: "avx2", Threads: 2},
	} {
		if got := ceiling.String(); got != want {
			t.Errorf("%+v is %q, want %q", ceiling, got, want)
		}
	}
}
