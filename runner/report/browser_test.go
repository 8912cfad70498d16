package report

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// browser opens pages in a real browser.
type browser struct {
	context.Context
	console iter.Seq2[chromedp.ConsoleMessage, error]
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
		}
	}
	if path == "" {
		t.Skip("no browser is installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return &browser{ctx, chromedp.Console(ctx)}
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		t.Fatal(err)
	}
}

// silent wants the console to have said nothing.
func (b *browser) silent(t *testing.T) {
	t.Helper()
	b.evaluate(t, `console.log("that was all"), 0`)
	for message, err := range b.console {
		if err != nil {
			t.Fatal(err)
		}
		if message.Text == "that was all" {
			return
		}
		t.Errorf("the console says %s: %s", message.Type, message.Text)
	}
}

// open opens a report as a file, which is all that a reader has.
func (b *browser) open(t *testing.T, r *Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, pageOf(t, r), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.Navigate("file://"+file))
}

// evaluate returns the number that an expression is.
func (b *browser) evaluate(t *testing.T, expression string) float64 {
	t.Helper()
	n, err := chromedp.Run(b, chromedp.Evaluate[float64](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return n
}

func pageOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

func TestPageInBrowser(t *testing.T) {
	b := newBrowser(t)
	r, err := New(made(2000), Options{Title: "nightly batch", Limits: limitOf})
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, r)
	for what, expression := range map[string]string{
		"pictures of work":             `[...document.querySelectorAll("svg.work")].filter(s => s.querySelector("path.mean").getBBox().width > 300).length - 6`,
		"a picture of tokens":          `document.querySelectorAll("svg.tokens path.spent").length - 1`,
		"lines of limits":              `document.querySelectorAll("path.cap").length - 6`,
		"pauses that are shaded":       `[...document.querySelectorAll("svg.work path.pause")].filter(p => p.getBBox().height > 0).length - 1`,
		"pictures that say what it is": `[...document.querySelectorAll("svg[role=img]")].filter(s => !s.querySelector("title") && !s.ariaLabel).length`,
		"nothing that is too wide":     `document.documentElement.scrollWidth - document.documentElement.clientWidth`,
	} {
		if n := b.evaluate(t, expression); n != 0 {
			t.Errorf("%s: %s = %v, want 0", what, expression, n)
		}
	}

	shown := `[...document.querySelectorAll("#jobs tbody tr")].filter(r => r.getBoundingClientRect().height > 0).length`
	all := b.evaluate(t, shown)
	b.do(t, chromedp.SendKeys(chromedp.CSS("#find"), "LOST answer"))
	if n := b.evaluate(t, shown); n != 7 || all < 1000 {
		t.Errorf("%v of %v rows are shown, want those of the 7 jobs of unknown fate", n, all)
	}
	b.evaluate(t, `document.querySelector("#find").value = "", document.querySelector("#status").value = "deferred", 0`)
	b.evaluate(t, `document.querySelector("#status").dispatchEvent(new Event("change")) ? 1 : 0`)
	if n := b.evaluate(t, shown); n != 14 {
		t.Errorf("%v rows are shown, want those of the 14 deferred jobs", n)
	}
	b.evaluate(t, `document.querySelector("svg.work").dispatchEvent(new PointerEvent("pointermove", {clientX: 300})) ? 1 : 0`)
	if n := b.evaluate(t, `document.querySelector("output").textContent.includes("under way at most") ? 0 : 1`); n != 0 {
		t.Error("nothing is said of what is under the pointer")
	}
	b.silent(t)
	shoot(t, b, "page")
}

// shoot takes pictures of the page for those who want to look at it.
func shoot(t *testing.T, b *browser, name string) {
	dir := os.Getenv("AGENTLIMIT_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, width := range []int64{380, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, dark); err != nil {
				t.Fatal(err)
			}
			b.do(t, chromedp.EmulateViewport(width, 900))
			picture, err := chromedp.Run(b, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
			if err := os.WriteFile(file, picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHostilePageInBrowser(t *testing.T) {
	const attack = `"'></bdi></td></title></script></style><script>hacked=1</script><img src=x onerror=hacked=1>{{.}}` + "\u202e\u2066\u200fאבג\x00\x1b]8;;http://x\a` onload=hacked=1 x=`"
	long := strings.Repeat("long", 500)
	evil := attempted(attack, attack, began, time.Second)
	evil.Account, evil.Run, evil.Status = attack, attack, results.Failed
	evil.Error = &results.Error{Kind: attack, Message: attack}
	evil.Attempts[0].Charge[limits.Key{Kind: limits.Pool, Name: attack}] = 1
	evil.Attempts[0].Hint = &results.Hint{Key: &limits.Key{Kind: limits.Pool, Name: attack}, Until: results.At(began + 3*second)}
	said := attempted(long, long, began+second, 2*time.Second)
	said.Status, said.HTTP.Status, said.HTTP.Body = results.Failed, 429, `{"error":{"message":"<svg onload=hacked=1>`+long+`"}}`
	said.Error = &results.Error{Kind: "status", Message: "status 429"}
	late := results.Record{ID: attack + "2", Run: "first", Status: results.Deferred, EndedAt: results.At(began), Deferred: &results.Deferral{Reason: attack}}

	b := newBrowser(t)
	r, err := New(listed(evil, said, late), Options{Title: attack, Limits: limitOf})
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, r)
	for what, expression := range map[string]string{
		"no script of theirs ran":        `window.hacked ? 1 : 0`,
		"no element of theirs":           `document.querySelectorAll("img, bdi script, svg script, [onload], [onerror]").length`,
		"one script, which is ours":      `document.scripts.length - 1`,
		"their words are shown as words": `document.querySelector("#jobs tbody").textContent.includes("<img src=x onerror") ? 0 : 1`,
		"the rows are where they belong": `document.querySelectorAll("#jobs tbody tr").length - 3`,
	} {
		if n := b.evaluate(t, expression); n != 0 {
			t.Errorf("%s: %s = %v, want 0", what, expression, n)
		}
	}
	for _, width := range []int64{380, 1280} {
		b.do(t, chromedp.EmulateViewport(width, 900))
		if n := b.evaluate(t, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n != 0 {
			t.Errorf("at a width of %d the page is %v too wide", width, n)
		}
	}
	b.silent(t)
	shoot(t, b, "hostile")
}

// TestManyRecords wants the page of 100,000 records to be small, and to be open soon.
func TestManyRecords(t *testing.T) {
	r, err := New(made(100_000), Options{Title: "many", Limits: limitOf})
	if err != nil {
		t.Fatal(err)
	}
	if size := len(pageOf(t, r)); size > 5e6 {
		t.Errorf("the page has %d bytes, want at most 5 MB", size)
	}
	b := newBrowser(t)
	on := performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}
	if _, err := chromedp.Call(b, performance.Enable, on); err != nil {
		t.Fatal(err)
	}
	b.open(t, r)
	found, err := chromedp.Call(b, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	// In time of the processor, as other tests run beside it.
	at := slices.IndexFunc(found.Metrics, func(m *performance.Metric) bool { return m.Name == "TaskDuration" })
	if took := found.Metrics[at].Value; took > 3 {
		t.Errorf("to open the page took %v s, want at most 3 s", took)
	}
}
