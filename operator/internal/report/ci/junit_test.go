package ci

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// junitSchema is the schema of Jenkins' xUnit plugin; third_party/junit/README.md has its origin.
const junitSchema = "testdata/third_party/junit/junit-10.xsd"

// element is an element of a document or of a schema.
type element struct {
	name       string
	attributes map[string]string
	text       string
	children   []*element
}

// parse reads a document into its first element.
func parse(raw []byte) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(raw))
	document := &element{}
	for open := []*element{document}; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && len(document.children) == 1 {
			return document.children[0], nil
		}
		if err != nil {
			return nil, err
		}
		last := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			child := &element{name: token.Name.Local, attributes: map[string]string{}}
			for _, attribute := range token.Attr {
				child.attributes[attribute.Name.Local] = attribute.Value
			}
			last.children, open = append(last.children, child), append(open, child)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			last.text += string(token)
		}
	}
}

// schema is an XML Schema with the parts of the language that junit-10.xsd uses (https://www.w3.org/TR/xmlschema-1/): global elements,
// types with and without names, sequences and choices, attributes, and strings with a pattern. Any other construct of a schema is an error
// and never ignored.
type schema struct{ elements, types map[string]*element }

func readSchema(raw []byte) (*schema, error) {
	root, err := parse(raw)
	if err != nil {
		return nil, err
	}
	out := &schema{elements: map[string]*element{}, types: map[string]*element{}}
	for _, child := range root.children {
		switch child.name {
		case "element":
			out.elements[child.attributes["name"]] = child
		case "simpleType", "complexType":
			out.types[child.attributes["name"]] = child
		default:
			return nil, fmt.Errorf("the schema has %s, which is not read here", child.name)
		}
	}
	return out, nil
}

// validate returns an error if a document violates the schema.
func (s *schema) validate(raw []byte) error {
	root, err := parse(raw)
	if err != nil {
		return err
	}
	declared := s.elements[root.name]
	if declared == nil {
		return fmt.Errorf("%s is no element of the schema", root.name)
	}
	return s.element(declared, root)
}

// element holds an element against its declaration.
func (s *schema) element(declared, actual *element) error {
	if ref := declared.attributes["ref"]; ref != "" {
		declared = s.elements[ref]
	}
	kind := s.types[declared.attributes["type"]]
	switch {
	case len(declared.children) == 1 && declared.children[0].name == "complexType":
		kind = declared.children[0]
	case kind == nil || kind.name != "complexType":
		if len(actual.children)+len(actual.attributes) > 0 {
			return fmt.Errorf("%s has more than text", actual.name)
		}
		return s.text(declared.attributes["type"], actual.text)
	}
	content, attributes := "", map[string]*element{}
	declarations := map[string]*element{}
	for _, part := range kind.children {
		switch part.name {
		case "attribute":
			attributes[part.attributes["name"]] = part
		case "sequence", "choice":
			var err error
			if content, err = particle(part, declarations); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the schema has %s, which is not read here", part.name)
		}
	}
	for name, attribute := range attributes {
		value, has := actual.attributes[name]
		if !has && attribute.attributes["use"] == "required" {
			return fmt.Errorf("%s lacks %s", actual.name, name)
		}
		if err := s.text(attribute.attributes["type"], value); has && err != nil {
			return fmt.Errorf("%s of %s: %w", name, actual.name, err)
		}
	}
	for name := range actual.attributes {
		if attributes[name] == nil {
			return fmt.Errorf("%s has %s", actual.name, name)
		}
	}
	if kind.attributes["mixed"] != "true" && strings.TrimSpace(actual.text) != "" {
		return fmt.Errorf("%s has text: %.40q", actual.name, actual.text)
	}
	var names strings.Builder
	for _, child := range actual.children {
		names.WriteString(child.name + " ")
	}
	if !regexp.MustCompile("^(?:" + content + ")$").MatchString(names.String()) {
		return fmt.Errorf("%s has %.80q, which is not %s", actual.name, names.String(), content)
	}
	for _, child := range actual.children {
		if err := s.element(declarations[child.name], child); err != nil {
			return err
		}
	}
	return nil
}

// particle is a content model as an expression over the names of children, each with a space behind it. It notes their declarations.
func particle(declared *element, declarations map[string]*element) (string, error) {
	var parts []string
	for _, child := range declared.children {
		part, err := particle(child, declarations)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	var out string
	switch declared.name {
	case "sequence":
		out = strings.Join(parts, "")
	case "choice":
		out = strings.Join(parts, "|")
	case "element":
		name := declared.attributes["name"] + declared.attributes["ref"]
		declarations[name] = declared
		out = regexp.QuoteMeta(name) + " "
	default:
		return "", fmt.Errorf("the schema has %s, which is not read here", declared.name)
	}
	many := map[string]string{" ": "", "0 ": "?", "0 unbounded": "*", " unbounded": "+"}
	occurs := declared.attributes["minOccurs"] + " " + declared.attributes["maxOccurs"]
	suffix, known := many[occurs]
	if !known {
		return "", fmt.Errorf("the schema has occurrences %q, which are not read here", occurs)
	}
	return "(?:" + out + ")" + suffix, nil
}

// text holds text against a type of strings.
func (s *schema) text(kind, got string) error {
	if kind == "xs:string" {
		return nil
	}
	if of := s.types[kind]; of != nil && of.name == "simpleType" && len(of.children) == 1 && of.children[0].name == "restriction" {
		if rules := of.children[0]; rules.attributes["base"] == "xs:string" && len(rules.children) == 1 && rules.children[0].name == "pattern" {
			if pattern := rules.children[0].attributes["value"]; !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(got) {
				return fmt.Errorf("%q is not %s", got, pattern)
			}
			return nil
		}
	}
	return fmt.Errorf("the schema has the type %q, which is not read here", kind)
}

func readJUnitSchema(t *testing.T) *schema {
	t.Helper()
	raw, err := os.ReadFile(junitSchema)
	if err != nil {
		t.Fatal(err)
	}
	out, err := readSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJUnit_MatchesSchema(t *testing.T) {
	allowed := readJUnitSchema(t)
	for name, result := range results(t) {
		t.Run(name, func(t *testing.T) {
			raw, err := result.JUnit()
			if err != nil {
				t.Fatal(err)
			}
			if err := allowed.validate(raw); err != nil {
				t.Errorf("%v in\n%.3000s", err, raw)
			}
			heldByXmllint(t, raw, true)
		})
	}
}

// xmllint is the reference for this validator. Without it only the validator runs.
func heldByXmllint(t *testing.T, raw []byte, valid bool) {
	t.Helper()
	program, err := exec.LookPath("xmllint")
	if err != nil {
		return
	}
	file := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "--huge", "--noout", "--schema", junitSchema, file).CombinedOutput()
	if (err == nil) != valid {
		t.Errorf("xmllint says valid: %v, and it should be %v: %.1000s", err == nil, valid, out)
	}
}

func TestJUnitSchema_InvalidDocumentsRejected(t *testing.T) {
	allowed := readJUnitSchema(t)
	const whole = `<testsuites name="a" time="1.5"><testsuite name="a" tests="1" failures="0" errors="0" time="1,000.5">` +
		`<properties><property name="a" value="b"/></properties>` +
		`<testcase name="a"><failure type="b" message="c">text</failure><system-out>text</system-out></testcase></testsuite></testsuites>`
	for name, edit := range map[string]struct {
		old, new string
		valid    bool
	}{
		"as it is":                                   {"", "", true},
		"a suite in a suite":                         {`<testcase name="a">`, `<testsuite name="a" tests="0" failures="0" errors="0"/><testcase name="a">`, true},
		"a test that was run again":                  {`</failure>`, `</failure><rerunFailure type="a"><system-out>x</system-out></rerunFailure>`, true},
		"an attribute that there is not":             {`<testcase name="a">`, `<testcase name="a" title="b">`, false},
		"without a required attribute":               {` failures="0"`, ``, false},
		"an unknown element":                         {`<properties>`, `<remark/><properties>`, false},
		"an element elsewhere":                       {`</system-out>`, `</system-out><property name="a" value="b"/>`, false},
		"another first element":                      {"testsuites", "suites", false},
		"text between elements":                      {`<properties>`, `remark<properties>`, false},
		"an element in text":                         {`<system-out>text`, `<system-out><b>text</b>`, false},
		"an invalid time":                            {`time="1.5"`, `time="1s"`, false},
		"a property without a value":                 {` value="b"`, ``, false},
		"a rerun with its elements in another order": {`</failure>`, `</failure><rerunFailure type="a"><system-err/><system-out/></rerunFailure>`, false},
		"a rerun without its type":                   {`</failure>`, `</failure><flakyError/>`, false},
		"a document that ends too early":             {`</testsuites>`, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(strings.ReplaceAll(whole, edit.old, edit.new))
			if edit.old == "" {
				raw = []byte(whole)
			}
			if err := allowed.validate(raw); (err == nil) != edit.valid {
				t.Errorf("valid: %v (%v)", err == nil, err)
			}
			heldByXmllint(t, raw, edit.valid)
		})
	}
	for name, of := range map[string]string{
		"a group":             `<schema><element name="a"><complexType><all/></complexType></element></schema>`,
		"a fact about unity":  `<schema><element name="a"><key/></element><unique/></schema>`,
		"another occurrence":  `<schema><element name="a"><complexType><sequence minOccurs="2"/></complexType></element></schema>`,
		"a type of numbers":   `<schema><element name="a" type="xs:integer"/></schema>`,
		"any kind of element": `<schema><element name="a"><complexType><sequence><any/></sequence></complexType></element></schema>`,
	} {
		read, err := readSchema([]byte(of))
		if err == nil {
			err = read.validate([]byte(`<a></a>`))
		}
		if err == nil || !strings.Contains(err.Error(), "not read here") {
			t.Errorf("a schema with %s is passed over: %v", name, err)
		}
	}
}

// GitLab shows the text of a failure without its attributes. Jenkins shows both, and the counts of the suite.
func TestJUnit_ReasonInTextAndAttributes(t *testing.T) {
	for name, result := range results(t) {
		t.Run(name, func(t *testing.T) {
			raw, err := result.JUnit()
			if err != nil {
				t.Fatal(err)
			}
			root, err := parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			suite := root.children[0]
			counts := map[string]int{}
			for _, test := range suite.children {
				if test.name != "testcase" {
					continue
				}
				counts["tests"]++
				for _, says := range test.children {
					attribute := map[string]string{"failure": "failures", "error": "errors", "skipped": "skipped"}[says.name]
					if attribute == "" {
						continue
					}
					counts[attribute]++
					if says.attributes["message"] == "" || says.text != says.attributes["message"] {
						t.Errorf("%s of %s says %.80q, and its text is %.80q", says.name, test.attributes["name"], says.attributes["message"], says.text)
					}
				}
			}
			for _, attribute := range []string{"tests", "failures", "errors", "skipped"} {
				if suite.attributes[attribute] != fmt.Sprint(counts[attribute]) {
					t.Errorf("%s is %s, and there are %d", attribute, suite.attributes[attribute], counts[attribute])
				}
			}
		})
	}
}
