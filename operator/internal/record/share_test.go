package record

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/records"
)

// Every fixture is parsed three times in a row, so that the later ones come from the cache.
func TestSharing_CachedValuesAreEqual(t *testing.T) {
	sharing := NewSharing()
	for range 3 {
		for file, raw := range records.All(t, "valid") {
			if !strings.HasPrefix(file, "attempt-") {
				continue
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

// Two attempts that differ only in readings of their machine share one fingerprint.
func TestSharing_FingerprintsWithoutReadingsAreShared(t *testing.T) {
	raw := records.Valid(t, "attempt-build")
	for sentence, more := range map[string]string{"unchanged": "", "with a name that only the validator accepts": `, "a \"b\"": "c"`} {
		t.Run(sentence, func(t *testing.T) {
			sharing := NewSharing()
			var read [2]*Attempt
			var err error
			for i, pad := range []string{"1203", "77"} {
				text := replaceOnce(t, string(raw), `"layoutPadBytes": 1203`, `"layoutPadBytes": `+pad+more)
				if read[i], err = sharing.ParseAttempt([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			first, second := read[0], read[1]
			for what, pair := range map[string][2]any{
				"soft": {first.Environment.Soft, second.Environment.Soft}, "hard": {first.Environment.Hard, second.Environment.Hard},
				"parameters": {first.Parameters, second.Parameters}, "argv": {first.Argv, second.Argv},
			} {
				if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
					t.Errorf("%s: two copies in memory", what)
				}
			}
		})
	}
}

// Every trial may have its own maximal output, for example with the time of day. Together they must not be retained.
func TestSharing_OutputIsRetainedUpToABound(t *testing.T) {
	raw := records.Valid(t, "attempt-build")
	sharing, held := NewSharing(), 0
	for i := range 1000 {
		tail := fmt.Sprint(i, strings.Repeat(" a line of a log", 1000))
		text := replaceOnce(t, string(raw), `"argv":`, `"stderrTail": "`+tail+`", "argv":`)
		attempt, err := sharing.ParseAttempt([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if held += len(attempt.StderrTail); i == 0 && attempt.StderrTail != tail {
			t.Errorf("the output of the first is %.100q", attempt.StderrTail)
		}
	}
	if held > mostTails {
		t.Errorf("%d bytes of output are retained", held)
	}
}

func replaceOnce(t *testing.T, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q does not occur once", old)
	}
	return strings.Replace(text, old, with, 1)
}
