package report

import "testing"

func TestPublished_NamesNoFileOfThisMachine(t *testing.T) {
	for text, want := range map[string]string{
		"in file:///home/ada/a/point-3.tar.zst, again": "in point-3.tar.zst, again",
		`<code>FILE:///home/ada/a%20b/c</code>`:        "<code>c</code>",
		"file:///a/b/?wave=1.":                         "a local folder.",
		"file:///a/x&amp;y/z)":                         "z)",
		"file:///":                                     "a local folder",
		"file:/a/b and file://host/c":                  "b and c",
		"s3://bucket/file:1 and https://x/file":        "s3://bucket/file:1 and https://x/file",
		"a profile: /none":                             "a profile: /none",
		"":                                             "",
	} {
		if got := Published(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if again := Published(Published(text)); again != Published(text) {
			t.Errorf("%q: twice gives %q", text, again)
		}
	}
}
