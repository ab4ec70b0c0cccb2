package join

import "testing"

var words = func() []string {
	out := make([]string, 1000)
	for i := range out {
		out[i] = "word "
	}
	return out
}()

func TestBothWaysGiveTheSameText(t *testing.T) {
	if Plus(words) != Builder(words) {
		t.Error("the texts differ")
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, way := range []struct {
		name string
		join func([]string) string
	}{{"plus", Plus}, {"builder", Builder}} {
		b.Run("way="+way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.join(words)
			}
		})
	}
}
