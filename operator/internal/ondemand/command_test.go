package ondemand

import (
	"strings"
	"testing"
	"time"
	"unicode"
)

const someHead = "0123456789abcdef0123456789abcdef01234567"

func TestParse_CommentsOfTheGrammar(t *testing.T) {
	for comment, want := range map[string]Command{
		"/bench":                               {Suite: DefaultSuite},
		"/bench\r\n":                           {Suite: DefaultSuite},
		"/bench cancel":                        {Suite: DefaultSuite, Cancel: true},
		"/bench large":                         {Suite: "large"},
		"/bench large --budget 10m":            {Suite: "large", Budget: 10 * time.Minute},
		"/bench --budget 90s":                  {Suite: DefaultSuite, Budget: 90 * time.Second},
		"/bench --head " + someHead:            {Suite: DefaultSuite, Head: someHead},
		"/bench  a --head " + someHead + "   ": {Suite: "a", Head: someHead},
	} {
		got, err := Parse(comment)
		if err != nil || *got != want {
			t.Errorf("%q: %+v, %v; want %+v", comment, got, err, want)
		}
	}
}

func TestParse_OtherCommentsAreRefused(t *testing.T) {
	for name, comment := range map[string]string{
		"no command":                      "please /bench",
		"a longer word":                   "/benchmark",
		"a second line":                   "/bench\n/bench large",
		"a suite that is a flag":          "/bench -x",
		"a suite with a path":             "/bench ../x",
		"a suite with a shell":            "/bench $(id)",
		"a suite in capitals":             "/bench Large",
		"two suites":                      "/bench a b",
		"a cancelled suite":               "/bench cancel --budget 1m",
		"an unknown option":               "/bench --confidence 0.5",
		"an option twice":                 "/bench --budget 1m --budget 2m",
		"an option without a value":       "/bench --budget",
		"a budget of 0":                   "/bench --budget 0m",
		"a budget below 0":                "/bench --budget -1m",
		"a budget of several units":       "/bench --budget 1h30m",
		"a budget that is infinite":       "/bench --budget Inf",
		"a short hash":                    "/bench --head " + someHead[:12],
		"a branch":                        "/bench --head main",
		"letters that look like others":   "/bench l\u0430rge",
		"a direction override":            "/bench \u202elarge",
		"a terminal's escape":             "/bench \x1b[2J",
		"more than a comment is allowed":  "/bench " + strings.Repeat(" ", maxComment) + "a",
		"text behind the command's words": "/bench large thank you",
	} {
		if got, err := Parse(comment); err == nil {
			t.Errorf("%s is accepted as %+v", name, got)
		}
	}
}

// Whatever is accepted has only the forms that later become names, durations and commits.
func FuzzParse(f *testing.F) {
	for _, comment := range []string{"/bench", "/bench large --budget 10m --head " + someHead, "/bench cancel", "/bench a\x00b", "/bench é"} {
		f.Add(comment)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		got, err := Parse(comment)
		if err != nil {
			if got != nil || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: %+v, %q", comment, got, err)
			}
			return
		}
		if !suiteName.MatchString(got.Suite) || got.Budget < 0 || got.Head != "" && !commitHash.MatchString(got.Head) {
			t.Errorf("%q: %+v", comment, got)
		}
	})
}
