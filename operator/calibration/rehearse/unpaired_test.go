package rehearse

import (
	"reflect"
	"strings"
	"testing"
)

// The kinds from which the parameters of package detect were chosen.
func TestUnpaired_DatesAreChangesOfTheProgram(t *testing.T) {
	count := 24
	if testing.Short() {
		count = 5
	}
	for _, kind := range UnpairedKinds() {
		t.Run(kind.Name, func(t *testing.T) {
			withErrors, bare := WatchUnpaired(kind, count, 2, 1)
			for form, got := range map[string]struct{ changes, found, wrong, suspicions, builds int }{
				"with errors": {withErrors.Changes, withErrors.Found, withErrors.False, withErrors.Suspicions, withErrors.Builds},
				"bare":        {bare.Changes, bare.Found, bare.False, bare.Suspicions, bare.Builds},
			} {
				least := count * 6 / 10
				if strings.HasPrefix(kind.Name, "stable") || strings.HasPrefix(kind.Name, "spikes") {
					least = count * 9 / 10
				}
				if got.changes > 0 && got.found < least || got.wrong > 1+count/8 || 100*got.suspicions > got.builds {
					t.Errorf("%s: %+v", form, got)
				}
			}
		})
	}
}

func TestUnpaired_SameSeedIsReproducible(t *testing.T) {
	kind := UnpairedKinds()[2]
	one, _ := WatchUnpaired(kind, 5, 1, 3)
	two, _ := WatchUnpaired(kind, 5, 3, 3)
	if !reflect.DeepEqual(one, two) || one.Series != 5 {
		t.Errorf("%+v\n%+v", one, two)
	}
}
