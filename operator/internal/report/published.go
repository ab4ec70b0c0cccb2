package report

import (
	"regexp"
	"strings"
)

// fileURL matches the URL of a file on this machine, in plain and in escaped text.
var fileURL = regexp.MustCompile(`(?i)file:/(?:&amp;|&#\d+;|\\u0026|[^\s"'<>&\\|` + "`" + `])+`)

// Published replaces URLs of files of this machine in a text for others by the last element of their path, because the rest is of no use
// to others and names people and folders. Everything that is published passes through it as its last step.
func Published(text string) string {
	return fileURL.ReplaceAllStringFunc(text, func(url string) string {
		whole := url[len("file:"):]
		path := strings.TrimRight(whole, ".,;:)]/")
		name, ends := path[strings.LastIndexAny(path, "/")+1:], whole[len(path):]
		if query := strings.IndexAny(name, "?#"); query >= 0 {
			name = name[:query]
		}
		if name == "" {
			name = "a local folder"
		}
		return name + strings.Trim(ends, "/")
	})
}
