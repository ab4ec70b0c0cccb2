package main

import (
	"testing"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
)

func TestNeighbourLog_ActiveSpans(t *testing.T) {
	at := func(seconds float64) time.Time { return unix(1_700_000_000 + seconds) }
	for name, test := range map[string]struct {
		log  string
		now  time.Time
		want []calibrate.Busy
		err  bool
	}{
		"nothing yet": {log: "ready\n", now: at(1)},
		"two finished rounds": {
			log: "ready\n5 rounds of arithmetic from 1700000002.000 to 1700000004.000\nready\n6 rounds of arithmetic from 1700000006.000 to 1700000008.000\n", now: at(9),
			want: []calibrate.Busy{{From: at(2), To: at(4)}, {From: at(6), To: at(8)}},
		},
		"one finished round and one in progress": {
			log: "ready\n5 bytes of memory from 1700000002.000 to 1700000004.500\nready\n", now: at(7),
			want: []calibrate.Busy{{From: at(2), To: at(4.5)}, {From: at(6.5), To: at(7)}},
		},
		"a line of another program": {log: "5 rounds from here to there\n", now: at(1), err: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := spans(test.log, test.now)
			if (err != nil) != test.err || len(got) != len(test.want) {
				t.Fatalf("%v, %v; want %v", got, err, test.want)
			}
			for i := range got {
				if !got[i].From.Equal(test.want[i].From) || !got[i].To.Equal(test.want[i].To) {
					t.Errorf("span %d is %v, want %v", i, got[i], test.want[i])
				}
			}
		})
	}
}
