// Package browser opens the HTML report and the pages of a history in a real browser, at the widths of a desk and of a phone, in the light
// and in the dark, and looks for faults that make a page hard to read.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look is one way to look at the page.
type look struct {
	name          string
	width, height int64
	scheme        string
}

var looks = []look{
	{"desk-light", 1280, 900, "light"},
	{"desk-dark", 1280, 900, "dark"},
	{"phone-light", 390, 844, "light"},
	{"phone-dark", 390, 844, "dark"},
}

// report is the file to look at, as an address.
func report(t *testing.T) string {
	t.Helper()
	path := os.Getenv("REPORT")
	if path == "" {
		t.Fatal("REPORT is not set: name the report.html of a ledger, or run hack/browser.sh")
	}
	return addressOf(t, path)
}

// addressOf is a file as an address.
func addressOf(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(absolute); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: absolute}).String()
}

// open starts a separate browser for one look. The sandbox is off because a container's root has none to give; the page
// is our own file.
func open(t *testing.T, l look) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatal("no Chromium on PATH: install the package chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("hide-scrollbars", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancelTimeout)
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 600,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	// A page in the background has no focus.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// complaints runs an expression in the page and fails the test with the list of complaints that it returns.
func complaints(t *testing.T, ctx context.Context, what, expression string) {
	t.Helper()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](expression))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, complaint := range got[:min(len(got), 10)] {
		t.Errorf("%s: %s", what, complaint)
	}
}

func TestReport_IsReadableAtEveryWidth(t *testing.T) { readsWell(t, report(t), "#repeat", "") }

// The pages of a history read as well as a report does. They ask for their style sheet, and for nothing else.
func TestSite_IsReadableAtEveryWidth(t *testing.T) {
	folder := os.Getenv("SITE")
	if folder == "" {
		t.Fatal("SITE is not set: name the folder that assay site wrote, or run hack/browser.sh")
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || len(pages) < 2 {
		t.Fatalf("%s has %d pages (%v): an index and a series are needed", folder, len(pages), err)
	}
	const most = 8
	for _, path := range pages[:min(len(pages), most)] {
		name := strings.TrimSuffix(filepath.Base(path), ".html")
		t.Run(name, func(t *testing.T) {
			readsWell(t, addressOf(t, path), "main", name+"-", addressOf(t, filepath.Join(folder, "style.css")))
		})
	}
}

// readsWell opens a page in every look. The page may load itself and its own resources.
func readsWell(t *testing.T, address, ready, prefix string, own ...string) {
	own = append(own, address)
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			ctx := open(t, l)
			var lock sync.Mutex
			var requests, problems []string
			err := chromedp.Listen(ctx, func(event any) {
				lock.Lock()
				defer lock.Unlock()
				switch event := event.(type) {
				case *network.EventRequestWillBeSent:
					requests = append(requests, event.Request.URL)
				case *runtime.EventExceptionThrown:
					problems = append(problems, event.ExceptionDetails.Text)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
				t.Fatal(err)
			}
			if err := chromedp.Do(ctx, chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS(ready))); err != nil {
				t.Fatal(err)
			}

			// A phone's browser makes its window as wide as a page that is too wide, so that the window says nothing.
			complaints(t, ctx, "nothing is wider than the screen", fmt.Sprintf(`
				document.documentElement.scrollWidth > %[1]d ? ["the page is " + document.documentElement.scrollWidth + " wide on a screen of %[1]d"] : []`,
				l.width))
			if l.width >= 1280 {
				complaints(t, ctx, "no column of a table is cut off on a desk", `
					[...document.querySelectorAll(".scroll")].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 2)
					  .map(e => e.scrollWidth + " wide in " + e.clientWidth + ": " + JSON.stringify(e.textContent.trim().slice(0, 60)))`)
			}
			complaints(t, ctx, "no text is squeezed into a column of syllables", `
				[...document.querySelectorAll("h1,h2,h3,p,li,td,th,dt,dd,figcaption,summary")].filter(e => !e.querySelector("svg") && e.textContent.trim().length >= 8)
				  .map(e => { const text = document.createRange(); text.selectNodeContents(e); return [e, text.getBoundingClientRect(), parseFloat(getComputedStyle(e).fontSize)] })
				  .filter(([e, box, size]) => box.width > 0 && box.width < 5 * size && box.height > 5 * size)
				  .map(([e, box]) => Math.round(box.width) + " wide: " + JSON.stringify(e.textContent.trim().slice(0, 40)))`)
			complaints(t, ctx, "every label of a plot is inside it", `
				[...document.querySelectorAll("svg.chart")].flatMap(svg => { const box = svg.getBoundingClientRect();
				  return [...svg.querySelectorAll("text")].filter(text => { const b = text.getBoundingClientRect();
				    return b.width > 0 && (b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 || b.bottom > box.bottom + 2) })
				    .map(text => JSON.stringify(text.textContent) + " of " + JSON.stringify(svg.querySelector("title").textContent)) })`)
			complaints(t, ctx, "labels on an axis do not run into each other", `
				[...document.querySelectorAll("svg.chart")].flatMap(svg => { const boxes = [...svg.querySelectorAll("text.tick")].map(text => [text.textContent, text.getBoundingClientRect()]);
				  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3)
				    .map(([b]) => JSON.stringify(a) + " and " + JSON.stringify(b) + " in " + JSON.stringify(svg.querySelector("title").textContent))) })`)
			complaints(t, ctx, "text is large enough", `
				[...document.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) && !e.closest("title,style") && (!e.ownerSVGElement || e.ownerSVGElement.checkVisibility()))
				  .map(e => [e, parseFloat(getComputedStyle(e).fontSize) * (e.ownerSVGElement ? e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width : 1)])
				  .filter(([e, size]) => size < 8.5).map(([e, size]) => size.toFixed(1) + "px: " + JSON.stringify(e.textContent.slice(0, 40)))`)
			complaints(t, ctx, "text has contrast with its background (WCAG AA)", contrast)
			complaints(t, ctx, "links lead somewhere", `
				[...document.querySelectorAll("a[href^='#']")].filter(a => !document.querySelector(a.getAttribute("href"))).map(a => a.outerHTML)`)

			top, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			keep(t, prefix+l.name+"-top.png", top)
			// Before anything is tapped, which scrolls it.
			complaints(t, ctx, "a scrolled plot still shows its axis", `
				[...document.querySelectorAll(".timeline")].flatMap(figure => { const seen = figure.getBoundingClientRect(), svg = figure.querySelector("svg");
				  const inside = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.left >= seen.left - 2 && b.right <= seen.right + 2 };
				  const pick = [...svg.querySelectorAll(".pick")].pop(); if (!pick) return [];
				  const scale = [...svg.querySelectorAll("text.tick[text-anchor=start]")], hint = svg.querySelector(".hint");
				  const hinted = inside(hint); pick.focus({preventScroll: true}); const told = inside(pick.querySelector(".readout")); pick.blur();
				  return [...(scale.length && scale.every(inside) ? [] : ["its scale is out of sight"]), ...(hinted ? [] : ["its hint is out of sight"]),
				    ...(told ? [] : ["the figures of its newest point are out of sight"])] })`)
			complaints(t, ctx, "a mark that is tapped shows its figures", `
				[...document.querySelectorAll("svg.chart")].filter(svg => svg.checkVisibility() && svg.querySelector(".pick")).flatMap(svg => {
				  const pick = svg.querySelector(".pick"); pick.focus();
				  const readout = pick.querySelector(".readout"), b = readout.getBoundingClientRect(), box = svg.getBoundingClientRect();
				  const hint = svg.querySelector(".hint").getBoundingClientRect(); pick.blur();
				  return b.width == 0 ? ["nothing is shown in " + svg.querySelector("title").textContent]
				    : b.right > box.right + 2 || b.bottom > box.bottom + 2 ? [JSON.stringify(readout.textContent) + " leaves its plot"]
				    : hint.width > 0 ? ["the hint stays below the figures"] : [] })`)
			complaints(t, ctx, "a series that is switched off is gone", `
				[...document.querySelectorAll("input.show")].flatMap(box => { const section = box.closest("section"), name = [...box.classList].find(c => c != "show");
				  const marks = () => [...section.querySelectorAll(".chart ." + name)].filter(e => e.getBoundingClientRect().width > 0).length;
				  const before = marks(); box.click(); const after = marks(); box.click();
				  return before > 0 && after > 0 ? [name + " stays in " + section.id] : [] })`)

			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			keep(t, prefix+l.name+".png", picture)

			lock.Lock()
			defer lock.Unlock()
			for _, request := range requests {
				if !slices.Contains(own, request) {
					t.Errorf("the page asked for %.200s", request)
				}
			}
			for _, problem := range problems {
				t.Errorf("the browser complains: %s", problem)
			}
		})
	}
}

// contrast compares the colour of every text with the background it stands on: WCAG 2.2 requires 4.5 to 1 for text.
const contrast = `(() => {
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
  const light = ([r, g, b]) => { const f = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b) };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.5) return c } return [255, 255, 255] };
  return [...document.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) && !e.closest("title,style")).flatMap(e => {
    const style = getComputedStyle(e), ink = parse(e.ownerSVGElement ? style.fill : style.color), a = light(ink), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return ratio < 4.5 ? [ratio.toFixed(2) + " to 1: " + JSON.stringify(e.textContent.trim().slice(0, 40))] : [] }) })()`

// Plots are hard to print: a page break inside one makes it useless.
func TestReport_Prints(t *testing.T) {
	ctx := open(t, look{"print", 1280, 900, "dark"})
	if err := chromedp.Do(ctx, chromedp.Navigate(report(t)), chromedp.WaitReady(chromedp.CSS("#repeat"))); err != nil {
		t.Fatal(err)
	}
	paper, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(paper), "%PDF") || len(paper) < 20_000 {
		t.Errorf("printing gave %d bytes", len(paper))
	}
	keep(t, "print.pdf", paper)
}

// keep stores a screenshot for people to look at.
func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
		t.Fatal(fmt.Errorf("keep %s: %w", name, err))
	}
}
