package record

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSharingReadsTheSame reads every fixture three times in a row, so that the later ones are from memory.
func TestSharingReadsTheSame(t *testing.T) {
	files, err := filepath.Glob("../../../workloads/schema/fixtures/valid/attempt*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	sharing := NewSharing()
	for range 3 {
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := parse[Attempt]("attempt", raw, strict)
			if err != nil {
				t.Fatal(err)
			}
			withoutReadings(&want.Environment.Soft)
			got, err := sharing.ParseAttempt(raw)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v", file, got, want)
			}
		}
	}
}

// TestSharedFingerprintsAreOne reads two attempts that differ in what their machine was doing.
func TestSharedFingerprintsAreOne(t *testing.T) {
	raw, err := os.ReadFile("../../../workloads/schema/fixtures/valid/attempt-build.json")
	if err != nil {
		t.Fatal(err)
	}
	sharing := NewSharing()
	first, err := sharing.ParseAttempt(raw)
	if err != nil {
		t.Fatal(err)
	}
	second, err := sharing.ParseAttempt([]byte(replaceOnce(t, string(raw), `"layoutPadBytes": 1203`, `"layoutPadBytes": 77`)))
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"soft": {first.Environment.Soft, second.Environment.Soft}, "hard": {first.Environment.Hard, second.Environment.Hard},
		"parameters": {first.Parameters, second.Parameters}, "argv": {first.Argv, second.Argv},
	} {
		if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
			t.Errorf("%s: two in memory", what)
		}
	}
}

func replaceOnce(t *testing.T, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not there once", old)
	}
	return strings.Replace(text, old, with, 1)
}
