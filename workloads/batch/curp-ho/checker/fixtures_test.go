package main

import (
	"strings"
	"testing"
)

// line is one command: client, seq, kind, op, key, value, invoke, return.
func line(fields string) string {
	f := strings.Fields(fields)
	value := ""
	if f[5] != "-" {
		value = `"value":"` + f[5] + `",`
	}
	return `{"client":` + f[0] + `,"seq":` + f[1] + `,"kind":"` + f[2] + `","op":"` + f[3] + `","key":` + f[4] + `,` + value +
		`"invoke":` + f[6] + `,"return":` + f[7] + `}`
}

func history(t *testing.T, lines ...string) (History, error) {
	t.Helper()
	all := make([]string, len(lines))
	for i, fields := range lines {
		all[i] = line(fields) + "\n"
	}
	return Read(strings.NewReader(strings.Join(all, "")))
}

func TestHistories(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  string // part of the error; empty for a consistent history
	}{
		"one session reads its own write": {lines: []string{
			"1 1 strong put 5 1:1 0 10", "1 2 strong get 5 1:1 20 30", "1 3 weak get 5 1:1 40 50",
		}},
		"strong commands that overlap may take either order": {lines: []string{
			"1 1 strong put 5 1:1 0 100", "2 1 strong get 5 - 10 20", "2 2 strong get 5 1:1 30 40",
		}},
		"a weak read may be old": {lines: []string{
			"1 1 strong put 5 1:1 0 10", "2 1 weak get 5 - 20 30",
		}},
		"a weak write may take effect after its answer": {lines: []string{
			"1 1 weak put 5 1:1 0 10", "2 1 strong get 5 - 20 30", "2 2 strong get 5 1:1 40 50",
		}},
		"reads in flight together may be answered out of order": {lines: []string{
			"1 1 strong put 5 1:1 0 10", "2 1 weak get 5 1:1 20 60", "2 2 weak get 5 - 30 50",
		}},
		"a strong read of an old value": {want: "not linearizable: key 5", lines: []string{
			"1 1 strong put 5 1:1 0 10", "2 1 strong get 5 - 20 30",
		}},
		"a strong value that comes and goes": {want: "not linearizable: key 5", lines: []string{
			"1 1 strong put 5 1:1 0 100", "2 1 strong get 5 1:1 10 20", "3 1 strong get 5 - 30 40",
		}},
		"a weak write that a later strong command of its session did not push out": {want: "not linearizable", lines: []string{
			"1 1 weak put 5 1:1 0 10", "1 2 strong get 6 - 15 18", "2 1 strong get 5 - 20 30",
		}},
		"a session that does not read its own weak write": {want: "its session knew of weak put 5", lines: []string{
			"1 1 weak put 5 1:1 0 10", "1 2 weak get 5 - 20 30",
		}},
		"a session that does not read its own write although both are in flight": {want: "its session knew of", lines: []string{
			"1 1 weak put 5 1:1 0 100", "1 2 weak get 5 - 10 20",
		}},
		"a session that reads its older write": {want: "knew of the newer", lines: []string{
			"1 1 weak put 5 1:1 0 10", "1 2 weak put 5 1:2 20 30", "1 3 weak get 5 1:1 40 50",
		}},
		"a session that goes back in time": {want: "its session knew of", lines: []string{
			"1 1 weak put 5 1:1 0 10", "2 1 weak get 5 1:1 20 30", "2 2 weak get 5 - 40 50",
		}},
		"an effect without its cause": {want: "its session knew of", lines: []string{
			"1 1 weak put 5 1:1 0 10", "2 1 weak get 5 1:1 20 30", "2 2 weak put 6 2:2 40 50",
			"3 1 weak get 6 2:2 60 70", "3 2 weak get 5 - 80 90",
		}},
		"a weak read older than a strong read": {want: "its session knew of", lines: []string{
			"1 1 strong put 5 1:1 0 10", "2 1 strong get 5 1:1 20 30", "2 2 weak get 5 - 40 50",
		}},
		"a read from the future": {want: "cycle", lines: []string{
			"1 1 weak get 5 2:2 0 10", "1 2 weak put 6 1:2 20 30", "2 1 weak get 6 1:2 0 10", "2 2 weak put 5 2:2 20 30",
		}},
		"a value from another key": {want: "no client wrote that value to that key", lines: []string{
			"1 1 weak put 5 1:1 0 10", "2 1 weak get 6 1:1 20 30",
		}},
		"a lost command": {want: "command 2 is missing", lines: []string{
			"1 1 weak get 5 - 0 10", "1 3 weak get 5 - 20 30",
		}},
		"a command that was done twice": {want: "came twice", lines: []string{
			"1 1 weak get 5 - 0 10", "1 1 weak get 5 - 20 30",
		}},
		"an answer before the command":        {want: "returned before it was sent", lines: []string{"1 1 weak get 5 - 10 0"}},
		"a write with another client's value": {want: "not its own", lines: []string{"1 1 weak put 5 2:1 0 10"}},
		"an unknown kind of command":          {want: `a "lax" "get"`, lines: []string{"1 1 lax get 5 - 0 10"}},
		"an empty history":                    {want: "history is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			history, err := history(t, test.lines...)
			if err == nil {
				err = Check(history)
			}
			if test.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
