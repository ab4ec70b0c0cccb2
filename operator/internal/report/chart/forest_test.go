package chart

import (
	"encoding/xml"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// element is an element of SVG with the attributes of texts, lines and rectangles.
type element struct {
	XMLName  xml.Name
	Class    string    `xml:"class,attr"`
	AtX      float64   `xml:"x,attr"`
	AtY      float64   `xml:"y,attr"`
	X1       float64   `xml:"x1,attr"`
	Y1       float64   `xml:"y1,attr"`
	Y2       float64   `xml:"y2,attr"`
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// No name of a row is crossed by a line, wherever the bound and the estimates are.
func TestForest_LinesCrossNoName(t *testing.T) {
	const advance, ascent, descent = 6.5, 9.0, 3.0 // Of a character of the page's font.
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		f := Forest{Ratio: true, From: math.Inf(-1), To: math.Exp(random.NormFloat64()), Number: plain}
		for range 1 + random.IntN(5) {
			value := math.Exp(random.NormFloat64())
			f.Rows = append(f.Rows, Estimate{Name: strings.Repeat("m", 1+random.IntN(80)), Value: value, Low: value / 2, High: value * 2})
		}
		for name, svg := range map[string]string{"narrow": string(f.SVG()), "wide": string(f.Wide())} {
			var root element
			if err := xml.Unmarshal([]byte(svg), &root); err != nil {
				t.Fatal(err)
			}
			names := 0
			for _, text := range root.Children {
				if text.Class != "name" {
					continue
				}
				names++
				end := text.AtX + advance*float64(len([]rune(text.Text)))
				for _, line := range root.Children {
					crosses := line.XMLName.Local == "line" && line.X1 > text.AtX && line.X1 < end &&
						min(line.Y1, line.Y2) < text.AtY+descent && max(line.Y1, line.Y2) > text.AtY-ascent
					if crosses {
						t.Fatalf("%s: the line %s at %g crosses the name at %g, %g", name, line.Class, line.X1, text.AtX, text.AtY)
					}
				}
			}
			if names != len(f.Rows) {
				t.Fatalf("%s: %d names of %d rows", name, names, len(f.Rows))
			}
		}
	}
}
