package main

import "testing"

func TestSite_SizeIncludesAllPages(t *testing.T) {
	first, err := siteSize(1)
	if err != nil {
		t.Fatal(err)
	}
	if first.Figure != "history.site_kib_per_series" || first.Unit != "KiB" || first.Samples == 0 ||
		first.Value <= first.Low || first.Low > first.High {
		t.Errorf("the whole has an index and a style sheet beyond the pages of series: %+v", first)
	}
	again, err := siteSize(1)
	if err != nil || again != first {
		t.Errorf("the same seed gives %+v and %+v (%v)", first, again, err)
	}
}
