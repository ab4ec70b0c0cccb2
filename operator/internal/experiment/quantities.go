package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/quantity"
)

var quantityType = reflect.TypeFor[resource.Quantity]()

// checkQuantities rejects an experiment.json with an unreadable quantity. Unmarshalling accepts any exponent; the API rejects such values
// by its schema, but a handwritten ledger does not pass through the API. It scans the whole text, because duplicate keys are unmarshalled
// twice.
func checkQuantities(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return checkQuantity(decoder, reflect.TypeFor[struct {
		Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
		Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`
		Plan     Plan                                `json:"plan"`
	}](), "")
}

// checkQuantity scans the next value, which has type into. A nil type has no quantities and is skipped without building paths: it may be
// nested ten thousand levels deep, and the paths would take quadratic memory.
func checkQuantity(decoder *json.Decoder, into reflect.Type, path string) error {
	for into != nil && into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	if into == nil {
		var passed json.RawMessage
		return decoder.Decode(&passed)
	}
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		for i := 0; decoder.More(); i++ {
			at, below := fmt.Sprintf("%s[%d]", path, i), reflect.Type(nil)
			if token == '{' {
				key, err := decoder.Token()
				if err != nil {
					return err
				}
				at, below = strings.TrimPrefix(fmt.Sprint(path, ".", key), "."), fieldOf(into, fmt.Sprint(key))
			} else if into.Kind() == reflect.Slice {
				below = into.Elem()
			}
			if err := checkQuantity(decoder, below, at); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
		return err
	case string, json.Number:
		if into == quantityType {
			if _, err := quantity.Exact(strings.TrimSpace(fmt.Sprint(token))); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// fieldOf returns the type of a field, or of a map's values.
func fieldOf(of reflect.Type, key string) reflect.Type {
	if of == quantityType {
		return nil
	}
	switch of.Kind() {
	case reflect.Map:
		return of.Elem()
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(of) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == key || name == "" && strings.EqualFold(field.Name, key) {
				return field.Type
			}
		}
	}
	return nil
}
