package report

import (
	"embed"
	"html/template"
	"io"
	"strings"
)

//go:embed page
var page embed.FS

// scripts are the page's, in the order in which they build on each other.
var scripts = []string{"base.js", "light.js", "timeline.js", "passes.js", "roofline.js", "kernels.js", "main.js"}

var pageTemplate = template.Must(template.ParseFS(page, "page/page.html"))

// WriteHTML writes the report as a page. The template escapes the data for where it
// stands: names of tensors are those of a stranger's file.
func (r *Report) WriteHTML(w io.Writer) error {
	var script strings.Builder
	for _, name := range scripts {
		script.WriteString(part(name))
	}
	return pageTemplate.Execute(w, struct {
		Report *Report
		Style  template.CSS
		Script template.JS
	}{r, template.CSS(part("page.css")), template.JS(script.String())})
}

func part(name string) string {
	data, err := page.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it was embedded
	}
	return string(data)
}
