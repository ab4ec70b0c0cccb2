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

// checkQuantities refuses an experiment.json with a quantity that nobody could read: unmarshalled, its own type takes any exponent. The API
// refuses them by its schema, and who writes a ledger asks no API. Keys that are there twice are unmarshalled twice, so that this goes
// through all of the text.
func checkQuantities(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return checkQuantity(decoder, reflect.TypeFor[struct {
		Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
		Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`
		Plan     Plan                                `json:"plan"`
	}](), "")
}

// checkQuantity goes through the next value, which is read into a type; nil is one without quantities, which is passed over: it may lie ten
// thousand deep, and the paths to all that is there would take the square of it.
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

// fieldOf is the type of a field, or of what a map holds.
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
