package html

import (
	"testing"

	"assay.dev/assay/operator/internal/quantity"
)

func TestAxis_NumbersRetainDigits(t *testing.T) {
	for name, tc := range map[string]struct {
		unit  string
		value float64
		want  string
	}{
		"a share that ends in the digit of its unit": {"1", 0.51, "0.51"},
		"a ratio":               {quantity.Times, 1.5, "1.5x"},
		"a time":                {"s", 0.0021, "2.1 ms"},
		"a unit of the title's": {"queries/s", 1500, "1500"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := numberOf(tc.unit)(tc.value); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestCell_FigureAndIntervalAreWhole(t *testing.T) {
	for text, want := range map[string]string{
		"13.42 ms [13.21, 13.62]":            `<span class="whole">13.42 ms</span> <span class="whole">[13.21, 13.62]</span>`,
		"0.8670x [0.8541, 0.8802]":           `<span class="whole">0.8670x</span> <span class="whole">[0.8541, 0.8802]</span>`,
		"7.8 % of readBandwidth":             "7.8 % of readBandwidth",
		`1 <b> [<script>alert(1)</script>]`:  `<span class="whole">1 &lt;b&gt;</span> <span class="whole">[&lt;script&gt;alert(1)&lt;/script&gt;]</span>`,
		`a long reason with a [list] in it`:  `a long reason with a [list] in it`,
		`<img src=x> a text of some program`: `&lt;img src=x&gt; a text of some program`,
	} {
		if got := string(cell(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
