package record

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/utils/ptr"
)

// Validation against the schemas takes most of the time of reading a ledger, and nearly every object is valid. So there is an acceptor for
// each compiled schema, which reads tokens and can only accept. Objects that it does not accept go to the validator, which reports the
// errors. An acceptor that accepts too little costs time only; TestAccepted_IsValid tests that it never accepts too much, and
// TestAcceptor_SchemasHaveKnownKeywords that the schemas have no keyword that it would ignore.

// acceptor is a compiled schema, prepared for tokens.
type acceptor struct {
	// kinds are the allowed kinds of a value's first token; empty allows all.
	kinds []byte
	// integer requires whole numbers.
	integer bool
	// texts are the allowed strings; nil allows all.
	texts                   map[string]bool
	minLength, maxLength    int
	pattern                 *regexp.Regexp
	dateTime                bool
	minimum, above, maximum float64

	items              *acceptor
	minItems, maxItems int

	members          map[string]member
	required         int
	others, names    *acceptor
	minSize, maxSize int
	// oneOf holds names of which exactly one must be present.
	oneOf map[string]bool
}

// member is a known member of an object.
type member struct {
	of       *acceptor
	required bool
}

// kindsOf are the kinds of the first token of a value, by its type in a schema.
var kindsOf = map[string]string{"string": `"`, "number": "0", "integer": "0", "boolean": "tf", "object": "{", "array": "["}

// newAcceptor returns the acceptor of a schema, which must not contain itself.
func newAcceptor(of *jsonschema.Schema) *acceptor {
	if of == nil {
		return nil
	}
	if of.Ref != nil {
		return newAcceptor(of.Ref)
	}
	out := &acceptor{
		dateTime:  of.Format != nil,
		minLength: ptr.Deref(of.MinLength, 0), maxLength: ptr.Deref(of.MaxLength, math.MaxInt),
		minItems: ptr.Deref(of.MinItems, 0), maxItems: ptr.Deref(of.MaxItems, math.MaxInt),
		minSize: ptr.Deref(of.MinProperties, 0), maxSize: ptr.Deref(of.MaxProperties, math.MaxInt),
		minimum: limit(of.Minimum, -1), above: limit(of.ExclusiveMinimum, -1), maximum: limit(of.Maximum, 1),
		items: newAcceptor(of.Items2020), names: newAcceptor(of.PropertyNames), required: len(of.Required),
	}
	if of.Types != nil {
		for _, name := range of.Types.ToStrings() {
			out.kinds = append(out.kinds, kindsOf[name]...)
			out.integer = out.integer || name == "integer"
		}
	}
	if of.Enum != nil {
		out.texts = texts(of.Enum.Values)
	}
	if of.Const != nil {
		out.texts = texts([]any{*of.Const})
	}
	if of.Pattern != nil {
		out.pattern = regexp.MustCompile(of.Pattern.String())
	}
	for name, property := range of.Properties {
		if out.members == nil {
			out.members = map[string]member{}
		}
		out.members[name] = member{newAcceptor(property), slices.Contains(of.Required, name)}
	}
	// Without a schema for them, no other members are accepted.
	if others, ok := of.AdditionalProperties.(*jsonschema.Schema); ok {
		out.others = newAcceptor(others)
	}
	for _, alternative := range of.OneOf {
		if out.oneOf == nil {
			out.oneOf = map[string]bool{}
		}
		out.oneOf[alternative.Required[0]] = true
	}
	return out
}

// limit returns a limit of a schema; without one, the infinity of this sign.
func limit(of *big.Rat, sign int) float64 {
	if of == nil {
		return math.Inf(sign)
	}
	number, _ := of.Float64()
	return number
}

func texts(values []any) map[string]bool {
	out := map[string]bool{}
	for _, value := range values {
		out[value.(string)] = true
	}
	return out
}

// decoders are reused, because a ledger has a hundred thousand objects.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// accepts reports whether raw is one JSON value that the schema certainly allows.
func (a *acceptor) accepts(raw []byte) bool {
	decoder := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(decoder)
	decoder.Reset(bytes.NewBuffer(raw))
	if !a.next(decoder) {
		return false
	}
	_, err := decoder.ReadToken()
	return errors.Is(err, io.EOF)
}

func (a *acceptor) next(decoder *jsontext.Decoder) bool {
	kind := decoder.PeekKind()
	if len(a.kinds) > 0 && bytes.IndexByte(a.kinds, byte(kind)) < 0 || a.texts != nil && kind != '"' {
		return false
	}
	switch kind {
	case '{':
		return a.object(decoder)
	case '[':
		return a.array(decoder)
	}
	raw, err := decoder.ReadValue()
	switch {
	case err != nil:
		return false
	case kind == '"':
		return a.text(raw)
	case kind == '0':
		return a.number(raw)
	default:
		return kind == 't' || kind == 'f'
	}
}

// text accepts only strings without escapes, because others are rare.
func (a *acceptor) text(raw []byte) bool {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 && (a.texts != nil || a.pattern != nil || a.dateTime || a.minLength > 1 || len(text) > a.maxLength) {
		return false
	}
	switch {
	case a.texts != nil && !a.texts[string(text)],
		len(text) < a.minLength || a.minLength > 1 && utf8.RuneCount(text) < a.minLength,
		len(text) > a.maxLength && utf8.RuneCount(text) > a.maxLength,
		a.pattern != nil && !a.pattern.Match(text):
		return false
	case a.dateTime:
		_, err := time.Parse(time.RFC3339Nano, string(text))
		return err == nil
	}
	return true
}

func (a *acceptor) number(raw []byte) bool {
	if a.integer && bytes.ContainsAny(raw, ".eE") {
		return false
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && number >= a.minimum && number > a.above && number <= a.maximum
}

func (a *acceptor) array(decoder *jsontext.Decoder) bool {
	if _, err := decoder.ReadToken(); err != nil {
		return false
	}
	count := 0
	for ; decoder.PeekKind() != ']'; count++ {
		if a.items == nil || !a.items.next(decoder) {
			return false
		}
	}
	_, err := decoder.ReadToken()
	return err == nil && count >= a.minItems && count <= a.maxItems
}

func (a *acceptor) object(decoder *jsontext.Decoder) bool {
	if _, err := decoder.ReadToken(); err != nil {
		return false
	}
	size, required, oneOf := 0, 0, 0
	for ; decoder.PeekKind() != '}'; size++ {
		raw, err := decoder.ReadValue()
		if err != nil || raw.Kind() != '"' || bytes.IndexByte(raw, '\\') >= 0 {
			return false
		}
		name := raw[1 : len(raw)-1]
		if a.names != nil && !a.names.text(raw) {
			return false
		}
		if a.oneOf[string(name)] {
			oneOf++
		}
		m, known := a.members[string(name)]
		if m.required {
			required++
		}
		switch {
		case known:
		case a.others == nil:
			return false
		default:
			m.of = a.others
		}
		if !m.of.next(decoder) {
			return false
		}
	}
	_, err := decoder.ReadToken()
	return err == nil && required == a.required && size >= a.minSize && size <= a.maxSize && (a.oneOf == nil || oneOf == 1)
}

// acceptors compiles the schemas, by kind, once.
var acceptors = sync.OnceValue(func() map[string]*acceptor {
	out := map[string]*acceptor{}
	for name, schema := range schemas() {
		out[name] = newAcceptor(schema)
	}
	return out
})
