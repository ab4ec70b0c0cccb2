package calibrate

import (
	"fmt"
	"strings"
)

// Replace replaces the text between the markers of a section: <!-- calibrate NAME --> and <!-- /calibrate NAME -->.
func Replace(document, name, content string) (string, error) {
	begin, end := fmt.Sprintf("<!-- calibrate %s -->\n", name), fmt.Sprintf("<!-- /calibrate %s -->", name)
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return "", fmt.Errorf("the document has no line %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the document has no %q after %q", end, strings.TrimSpace(begin))
	}
	return before + begin + content + end + after, nil
}
